-- Equal blocks are one fold, whatever they are called.

-- show types
SELECT a.k, a.total, c.total AS again FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) a JOIN (SELECT K, SUM( V ) AS total /* the same */ FROM S [INTERVAL 1 MINUTE] z GROUP BY z.k) c ON a.k = c.k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT a.k, a.total, c.total AS again FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0) a JOIN (SELECT _k0 AS K, _a0 AS total FROM fold_0) c ON a.k = c.k
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING, BIGINT, BIGINT

-- show types
SELECT k, sum(v) AS x FROM s [INTERVAL 1 MINUTE] GROUP BY k UNION ALL SELECT b.k, sum(b.v) FROM s [INTERVAL 1 MINUTE] b GROUP BY b.k HAVING sum(v) > 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS x
upper: SELECT _k0 AS k, _a0 AS x FROM fold_0 UNION ALL SELECT _k0 AS k, _a0 AS `sum(v)` FROM fold_0 WHERE _a0 > 1
fold 0 by operators gives STRING, BIGINT
upper on Spark

-- show types
SELECT k, sum(v) AS x FROM s [INTERVAL 1 MINUTE] GROUP BY k UNION ALL SELECT k, sum(v) FROM s [INTERVAL 2 MINUTES] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [120 s] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)
fold 1: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS x
upper: SELECT _k0 AS k, _a0 AS x FROM fold_1 UNION ALL SELECT _k0 AS k, _a0 AS `sum(v)` FROM fold_0
fold 0 by operators gives STRING, BIGINT
fold 1 by operators gives STRING, BIGINT
upper on Spark

-- show types
SELECT k, sum(v) AS x FROM s [INTERVAL 1 MINUTE] WHERE v > 1 AND k = 'a' GROUP BY k UNION ALL SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] WHERE (v > 1) AND k = 'A' GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | where v > 1, k = 'A' | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)
fold 1: aggregate of s [60 s] | where v > 1, k = 'a' | by k | sum(v) | gives _k0 AS k, _a0 AS x
upper: SELECT _k0 AS k, _a0 AS x FROM fold_1 UNION ALL SELECT _k0 AS k, _a0 AS `sum(v)` FROM fold_0
fold 0 by operators gives STRING, BIGINT
fold 1 by operators gives STRING, BIGINT
upper on Spark

-- show types
SELECT k, sum(v) / (SELECT sum(v) FROM s [INTERVAL 1 MINUTE]) AS part, (SELECT sum(v) FROM s [INTERVAL 1 MINUTE]) AS whole FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | sum(v) | gives _a0 AS sum(v)
fold 1: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 / (SELECT _a0 AS `sum(v)` FROM fold_0) AS part, (SELECT _a0 AS `sum(v)` FROM fold_0) AS whole
upper: SELECT _k0 AS k, _a0 / (SELECT _a0 AS `sum(v)` FROM fold_0) AS part, (SELECT _a0 AS `sum(v)` FROM fold_0) AS whole FROM fold_1
fold 0 by operators gives BIGINT
fold 1 by operators, finished on Spark
upper on Spark

-- show types
SELECT sum(v) - (SELECT sum(v) FROM s [INTERVAL 1 MINUTE]) AS nothing FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | sum(v) | gives _a0 - (SELECT _a0 AS `sum(v)` FROM fold_0) AS nothing
upper: SELECT _a0 - (SELECT _a0 AS `sum(v)` FROM fold_0) AS nothing FROM fold_0
fold 0 by operators, finished on Spark
upper on Spark

-- show types
SELECT name, (SELECT sum(v) FROM s [INTERVAL 1 MINUTE] WHERE s.k = t.k) AS a, (SELECT sum(v) FROM s [INTERVAL 1 MINUTE] WHERE s.k = t.name) AS b FROM t SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | for t.k | by s.k | sum(v) | gives _a0 AS sum(v)
upper: SELECT name, (SELECT max(_a0) AS `sum(v)` FROM fold_0 WHERE _k0 = (t.k)) AS a, (SELECT max(_a0) AS `sum(v)` FROM fold_0 WHERE _k0 = (t.name)) AS b FROM t
fold 0 by operators gives BIGINT
upper by operators gives STRING, BIGINT, BIGINT

-- show types
SELECT k FROM s [INTERVAL 1 MINUTE] WHERE v > 1 UNION ALL SELECT x.k FROM s [INTERVAL 1 MINUTE] x WHERE x.v > 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where v > 1 | keeps 0.k | gives _c0 AS k
upper: SELECT _c0 AS k FROM fold_0 UNION ALL SELECT _c0 AS k FROM fold_0
fold 0 by operators gives STRING
upper on Spark

-- show types
SELECT k, v FROM s [INTERVAL 1 MINUTE] UNION ALL SELECT k, v + 1 FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v
upper: SELECT _c0 AS k, _c1 AS v FROM fold_0 UNION ALL SELECT _c0 AS k, _c1 + 1 FROM fold_0
fold 0 by operators gives STRING, INT
upper on Spark

-- show types
SELECT k FROM s [k ROWS 2] UNION ALL SELECT k FROM s [K ROWS 2] SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [k rows 2]
upper: SELECT k FROM fold_0 AS s UNION ALL SELECT k FROM fold_0 AS s
fold 0 by Spark, finished on Spark
upper on Spark

-- show types
SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN t ON s.k = t.k GROUP BY name UNION ALL SELECT y.name, sum(v) FROM s [INTERVAL 1 MINUTE] x JOIN t y ON x.k = y.k GROUP BY y.name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t s.k = t.k; | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
upper: SELECT _k0 AS name, _a0 AS `sum(v)` FROM fold_0 UNION ALL SELECT _k0 AS name, _a0 AS `sum(v)` FROM fold_0
tables below: t
fold 0 by operators gives STRING, BIGINT
upper on Spark

-- show types
SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN t ON s.k = t.k GROUP BY name UNION ALL SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] LEFT JOIN t ON s.k = t.k GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t s.k = t.k; | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
fold 1: aggregate of s [60 s] | left t s.k = t.k; | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
upper: SELECT _k0 AS name, _a0 AS `sum(v)` FROM fold_0 UNION ALL SELECT _k0 AS name, _a0 AS `sum(v)` FROM fold_1
tables below: t
fold 0 by operators gives STRING, BIGINT
fold 1 by operators gives STRING, BIGINT
upper on Spark

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k) UNION ALL SELECT count(*) FROM s [INTERVAL 1 MINUTE] b WHERE EXISTS (SELECT 1 FROM t WHERE t.k = b.k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | semi t t.k = a.k; | where EXISTS (SELECT 1 FROM t WHERE t.k = a.k) | count(*) | gives _a0 AS count(1)
upper: SELECT _a0 AS `count(1)` FROM fold_0 UNION ALL SELECT _a0 AS `count(1)` FROM fold_0
tables below: t
fold 0 by operators gives BIGINT
upper on Spark

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k) UNION ALL SELECT count(*) FROM s [INTERVAL 1 MINUTE] b WHERE EXISTS (SELECT 1 FROM t b WHERE b.k = v) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | semi t t.k = a.k; | where EXISTS (SELECT 1 FROM t WHERE t.k = a.k) | count(*) | gives _a0 AS count(1)
fold 1: aggregate of s b [60 s] | semi t b_ b_.k = b.v; | where EXISTS (SELECT 1 FROM t b WHERE b.k = v) | count(*) | gives _a0 AS count(1)
upper: SELECT _a0 AS `count(1)` FROM fold_0 UNION ALL SELECT _a0 AS `count(1)` FROM fold_1
tables below: t
fold 0 by operators gives BIGINT
fold 1 by Spark gives BIGINT
upper on Spark

-- show types
SELECT a.k, x - y AS d FROM (SELECT k, max(v) AS x FROM s GROUP BY k) a JOIN (SELECT k, max(v) AS y FROM s GROUP BY k HAVING max(v) > 3) c ON a.k = c.k;
fold 0: aggregate of s [landmark] | by k | max(v) | gives _k0 AS k, _a0 AS x
upper: SELECT a.k, x - y AS d FROM (SELECT _k0 AS k, _a0 AS x FROM fold_0) a JOIN (SELECT _k0 AS k, _a0 AS y FROM fold_0 WHERE _a0 > 3) c ON a.k = c.k
fold 0 by operators gives STRING, INT
upper by operators gives STRING, INT

-- show types
SELECT a.total FROM (SELECT max(v) AS total FROM s [INTERVAL 1 MINUTE]) a, (SELECT max(v) AS total FROM s [INTERVAL 1 MINUTE]) c WHERE a.total = c.total SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | max(v) | gives _a0 AS total
upper: SELECT a.total FROM (SELECT _a0 AS total FROM fold_0) a, (SELECT _a0 AS total FROM fold_0) c WHERE a.total = c.total
fold 0 by operators gives INT
upper by operators gives INT

-- show types
SELECT count(*) AS n FROM s CUT ON ts BY INTERVAL 5 SECONDS KEEP 2 CHUNKS a UNION ALL SELECT count(*) FROM s CUT ON ts BY INTERVAL 5 SECONDS KEEP 2 CHUNKS b;
fold 0: aggregate of s a [10 s before] | count(*) | gives _a0 AS n
upper: SELECT _a0 AS n FROM fold_0 UNION ALL SELECT _a0 AS `count(1)` FROM fold_0
fold 0 by operators gives BIGINT
upper on Spark

-- show types
WITH a AS (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) SELECT x.k FROM a x JOIN a y ON x.k = y.k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: WITH a AS (SELECT _k0 AS k, _a0 AS total FROM fold_0) SELECT x.k FROM a x JOIN a y ON x.k = y.k
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING
