-- HAVING is a condition over keys and aggregates; an alias stands for its item.

SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k HAVING sum(v) > 10 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total | having _a0 > 10

SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k HAVING total > 10 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total | having _a0 > 10

SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k HAVING count(*) > 1 AND k <> 'x' SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v), count(*) | gives _k0 AS k, _a0 AS total | having _a1 > 1 AND _k0 <> 'x'

SELECT k, sum(v) AS total, total * 2 AS twice FROM s [INTERVAL 1 MINUTE] GROUP BY k HAVING twice > 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total, _a0 * 2 AS twice | having (_a0 * 2) > 1

SELECT k FROM s [INTERVAL 1 MINUTE] GROUP BY k HAVING max(v) > (SELECT avg(x) FROM t) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | max(v) | gives _k0 AS k | having _a0 > (SELECT avg(x) FROM t)
upper: SELECT _k0 AS k FROM fold_0 WHERE _a0 > (SELECT avg(x) FROM t)

SELECT k FROM s [INTERVAL 1 MINUTE] HAVING v > 1 SAMPLE INTERVAL 10 SECONDS;
again: HAVING without grouping
