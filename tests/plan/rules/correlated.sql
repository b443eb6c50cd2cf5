-- A correlated aggregate over a stream is folded by what it is correlated on.

SELECT name, (SELECT sum(v) FROM s [INTERVAL 1 MINUTE] WHERE s.k = t.k) AS total FROM t SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | for t.k | by s.k | sum(v) | gives _a0 AS sum(v)
upper: SELECT name, (SELECT max(_a0) AS `sum(v)` FROM fold_0 WHERE _k0 = (t.k)) AS total FROM t

SELECT name FROM t WHERE x < (SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE t.k = a.k AND a.v > 1) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | where a.v > 1 | for t.k | by a.k | count(*) | gives _a0 AS count(1)
upper: SELECT name FROM t WHERE x < (SELECT coalesce(max(_a0), 0L) AS `count(1)` FROM fold_0 WHERE _k0 = (t.k))

SELECT name, (SELECT sum(v) FROM s [INTERVAL 1 MINUTE] WHERE s.v > t.x) AS total FROM t SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

SELECT name, (SELECT sum(v) FROM s [INTERVAL 1 MINUTE] WHERE s.k = t.k GROUP BY s.k) AS total FROM t SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

SELECT name, (SELECT max(v) - min(v) FROM s [INTERVAL 1 MINUTE] WHERE s.k = t.k AND upper(s.k) = t.name) AS spread FROM t SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | for t.k, t.name | by s.k, upper(s.k) | max(v), min(v) | gives _a0 - _a1
upper: SELECT name, (SELECT max(_a0) - max(_a1) FROM fold_0 WHERE _k0 = (t.k) AND _k1 = (t.name)) AS spread FROM t

SELECT name FROM t WHERE EXISTS (SELECT 1 FROM s [INTERVAL 1 MINUTE] WHERE s.k = t.k) SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

SELECT k, (SELECT max(x) FROM t WHERE t.k = a.k) AS m FROM s [INTERVAL 1 MINUTE] a SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it
