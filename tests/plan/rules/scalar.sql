-- Aggregates over all rows in the place of a value.

SELECT k, (SELECT max(b) FROM r [INTERVAL 1 MINUTE]) AS m FROM t SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of r [60 s] | max(b) | gives _a0 AS max(b)
upper: SELECT k, (SELECT _a0 AS `max(b)` FROM fold_0) AS m FROM t

SELECT k, v, (SELECT max(x) FROM t) AS m FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v, (SELECT max(x) FROM t) AS m
upper: SELECT _c0 AS k, _c1 AS v, (SELECT max(x) FROM t) AS m FROM fold_0

SELECT k, sum(v), (SELECT max(x) FROM t) AS m FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v), (SELECT max(x) FROM t) AS m
upper: SELECT _k0 AS k, _a0 AS `sum(v)`, (SELECT max(x) FROM t) AS m FROM fold_0

SELECT k, sum(v) / (SELECT sum(v) FROM s [INTERVAL 1 MINUTE]) AS part FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | sum(v) | gives _a0 AS sum(v)
fold 1: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 / (SELECT _a0 AS `sum(v)` FROM fold_0) AS part
upper: SELECT _k0 AS k, _a0 / (SELECT _a0 AS `sum(v)` FROM fold_0) AS part FROM fold_1

SELECT x FROM t WHERE x > (SELECT avg(v) FROM s [INTERVAL 1 MINUTE]) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | avg(v) | gives _a0 AS avg(v)
upper: SELECT x FROM t WHERE x > (SELECT _a0 AS `avg(v)` FROM fold_0)
