-- Conditions that say the same at every instant go below the fold, the others stay above or keep the query whole.

SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE v > 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where v > 1 | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v

SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE v > 1 AND (k = 'a' AND (w < 2 OR k IS NULL)) SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where v > 1, k = 'a', w < 2 OR k IS NULL | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v

SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE ts > CURRENT_INSTANT() - INTERVAL 5 SECONDS AND v > 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where v > 1 | keeps 0.k, 0.v, 0.ts | gives _c0 AS k, _c1 AS v | having (_c2 > instant() - INTERVAL 5 SECONDS)

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] WHERE ts > CURRENT_INSTANT() - INTERVAL 5 SECONDS GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: a condition below the grouping changes from instant to instant

SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE v > (SELECT avg(x) FROM t) SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where v > (SELECT avg(x) FROM t) | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v
tables below: t

SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE v > (SELECT avg(b) FROM r [INTERVAL 1 MINUTE]) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of r [60 s] | avg(b) | gives _a0 AS avg(b)
fold 1: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v | having (_c1 > (SELECT _a0 AS `avg(b)` FROM fold_0))
upper: SELECT _c0 AS k, _c1 AS v FROM fold_1 WHERE (_c1 > (SELECT _a0 AS `avg(b)` FROM fold_0))

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] WHERE v > (SELECT avg(b) FROM r [INTERVAL 1 MINUTE]) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: a condition below the grouping changes from instant to instant

SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE NOT (v > 1 OR k = 'a') SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where NOT (v > 1 OR k = 'a') | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v

SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE true SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where true | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v
