-- What stands above folds.

-- show types
SELECT avg(total) FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT avg(total) FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0)
fold 0 by operators gives STRING, BIGINT
upper by operators gives DOUBLE

-- show types
SELECT a.k, total, name FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) a JOIN t ON a.k = t.k WHERE total > x SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT a.k, total, name FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0) a JOIN t ON a.k = t.k WHERE total > x
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING, BIGINT, STRING

-- show types
SELECT name FROM t WHERE k IN (SELECT k FROM s [INTERVAL 1 MINUTE] GROUP BY k HAVING sum(v) > 1) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k | having _a0 > 1
upper: SELECT name FROM t WHERE k IN (SELECT _k0 AS k FROM fold_0 WHERE _a0 > 1)
fold 0 by operators gives STRING
upper by operators gives STRING

-- show types
SELECT name FROM t WHERE k NOT IN (SELECT k FROM s [INTERVAL 1 MINUTE] GROUP BY k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | gives _k0 AS k
upper: SELECT name FROM t WHERE k NOT IN (SELECT _k0 AS k FROM fold_0)
fold 0 by operators gives STRING
upper on Spark

-- show types
SELECT a.k, x / y FROM (SELECT k, sum(v) AS x FROM s [INTERVAL 1 MINUTE] GROUP BY k) a JOIN (SELECT k, sum(b) AS y FROM r [INTERVAL 1 MINUTE] GROUP BY k) c ON a.k = c.k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS x
fold 1: aggregate of r [60 s] | by k | sum(b) | gives _k0 AS k, _a0 AS y
upper: SELECT a.k, x / y FROM (SELECT _k0 AS k, _a0 AS x FROM fold_0) a JOIN (SELECT _k0 AS k, _a0 AS y FROM fold_1) c ON a.k = c.k
fold 0 by operators gives STRING, BIGINT
fold 1 by operators gives STRING, BIGINT
upper by operators gives STRING, DOUBLE

-- show types
SELECT name FROM t WHERE EXISTS (SELECT 1 FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) a WHERE a.k = t.k AND a.total > t.x) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT name FROM t WHERE EXISTS (SELECT 1 FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0) a WHERE a.k = t.k AND a.total > t.x)
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING

-- show types
SELECT k, CURRENT_INSTANT() AS i FROM (SELECT k, sum(v) AS total FROM n [INTERVAL 60 SECONDS] GROUP BY k) WHERE total > CURRENT_INSTANT() SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of n [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT k, instant() AS i FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0) WHERE total > instant()
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING, BIGINT

-- show types
SELECT k FROM (SELECT k, sum(v) AS total FROM n [INTERVAL 60 SECONDS] GROUP BY k) WHERE current_timestamp() > TIMESTAMP '1970-01-01 00:00:20' SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of n [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT k FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0) WHERE timestamp_seconds(instant()) > TIMESTAMP '1970-01-01 00:00:20'
fold 0 by operators gives STRING, BIGINT
upper on Spark

-- show types
SELECT k, current_timestamp() AS i FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 60 SECONDS] GROUP BY k) WHERE current_timestamp() > TIMESTAMP '1970-01-01 00:00:20' SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT k, instant() AS i FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0) WHERE instant() > TIMESTAMP '1970-01-01 00:00:20'
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING, TIMESTAMP
