-- Set operations: each SELECT with a window is a fold.

SELECT k, sum(v) AS x FROM s [INTERVAL 1 MINUTE] GROUP BY k UNION ALL SELECT k, sum(b) FROM r [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of r [60 s] | by k | sum(b) | gives _k0 AS k, _a0 AS sum(b)
fold 1: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS x
upper: SELECT _k0 AS k, _a0 AS x FROM fold_1 UNION ALL SELECT _k0 AS k, _a0 AS `sum(b)` FROM fold_0

SELECT k FROM s [INTERVAL 1 MINUTE] UNION SELECT k FROM t SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k | gives _c0 AS k
upper: SELECT _c0 AS k FROM fold_0 UNION SELECT k FROM t

SELECT k FROM s [INTERVAL 1 MINUTE] EXCEPT SELECT k FROM r [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k | gives _c0 AS k
fold 1: rows of r [60 s] | keeps 0.k | gives _c0 AS k
upper: SELECT _c0 AS k FROM fold_0 EXCEPT SELECT _c0 AS k FROM fold_1

(SELECT k FROM s [INTERVAL 1 MINUTE] ORDER BY v LIMIT 1) UNION ALL (SELECT k FROM r [INTERVAL 1 MINUTE] LIMIT 1) SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of r [60 s] | keeps 0.k | gives _c0 AS k | LIMIT 1
fold 1: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k | order _c1 nulls first | LIMIT 1
upper: (SELECT _c0 AS k FROM fold_1 ORDER BY _c1 NULLS FIRST LIMIT 1) UNION ALL (SELECT _c0 AS k FROM fold_0 LIMIT 1)

SELECT count(*) FROM (SELECT k FROM s [INTERVAL 1 MINUTE] UNION ALL SELECT k FROM r [INTERVAL 1 MINUTE]) SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k | gives _c0 AS k
fold 1: rows of r [60 s] | keeps 0.k | gives _c0 AS k
upper: SELECT count(*) FROM (SELECT _c0 AS k FROM fold_0 UNION ALL SELECT _c0 AS k FROM fold_1)

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k UNION ALL SELECT k, collect_list(b) FROM r [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: aggregate collect_list has no fold

SELECT 1 AS q, sum(v) AS total FROM s [INTERVAL 1 MINUTES] WHERE v > 1 UNION ALL SELECT 2 AS q, sum(v) AS total FROM s [INTERVAL 2 MINUTES] WHERE v > 2 UNION ALL SELECT 3 AS q, sum(v) AS total FROM s [INTERVAL 3 MINUTES] WHERE v > 3 UNION ALL SELECT 4 AS q, sum(v) AS total FROM s [INTERVAL 4 MINUTES] WHERE v > 4 UNION ALL SELECT 5 AS q, sum(v) AS total FROM s [INTERVAL 5 MINUTES] WHERE v > 5 UNION ALL SELECT 6 AS q, sum(v) AS total FROM s [INTERVAL 6 MINUTES] WHERE v > 6 UNION ALL SELECT 7 AS q, sum(v) AS total FROM s [INTERVAL 7 MINUTES] WHERE v > 7 UNION ALL SELECT 8 AS q, sum(v) AS total FROM s [INTERVAL 8 MINUTES] WHERE v > 8 UNION ALL SELECT 9 AS q, sum(v) AS total FROM s [INTERVAL 9 MINUTES] WHERE v > 9 UNION ALL SELECT 10 AS q, sum(v) AS total FROM s [INTERVAL 10 MINUTES] WHERE v > 10 UNION ALL SELECT 11 AS q, sum(v) AS total FROM s [INTERVAL 11 MINUTES] WHERE v > 11 UNION ALL SELECT 12 AS q, sum(v) AS total FROM s [INTERVAL 12 MINUTES] WHERE v > 12 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | where v > 1 | sum(v) | gives 1 AS q, _a0 AS total
fold 1: aggregate of s [120 s] | where v > 2 | sum(v) | gives 2 AS q, _a0 AS total
fold 2: aggregate of s [180 s] | where v > 3 | sum(v) | gives 3 AS q, _a0 AS total
fold 3: aggregate of s [240 s] | where v > 4 | sum(v) | gives 4 AS q, _a0 AS total
fold 4: aggregate of s [300 s] | where v > 5 | sum(v) | gives 5 AS q, _a0 AS total
fold 5: aggregate of s [360 s] | where v > 6 | sum(v) | gives 6 AS q, _a0 AS total
fold 6: aggregate of s [420 s] | where v > 7 | sum(v) | gives 7 AS q, _a0 AS total
fold 7: aggregate of s [480 s] | where v > 8 | sum(v) | gives 8 AS q, _a0 AS total
fold 8: aggregate of s [540 s] | where v > 9 | sum(v) | gives 9 AS q, _a0 AS total
fold 9: aggregate of s [600 s] | where v > 10 | sum(v) | gives 10 AS q, _a0 AS total
fold 10: aggregate of s [660 s] | where v > 11 | sum(v) | gives 11 AS q, _a0 AS total
fold 11: aggregate of s [720 s] | where v > 12 | sum(v) | gives 12 AS q, _a0 AS total
upper: SELECT 1 AS q, _a0 AS total FROM fold_0 UNION ALL SELECT 2 AS q, _a0 AS total FROM fold_1 UNION ALL SELECT 3 AS q, _a0 AS total FROM fold_2 UNION ALL SELECT 4 AS q, _a0 AS total FROM fold_3 UNION ALL SELECT 5 AS q, _a0 AS total FROM fold_4 UNION ALL SELECT 6 AS q, _a0 AS total FROM fold_5 UNION ALL SELECT 7 AS q, _a0 AS total FROM fold_6 UNION ALL SELECT 8 AS q, _a0 AS total FROM fold_7 UNION ALL SELECT 9 AS q, _a0 AS total FROM fold_8 UNION ALL SELECT 10 AS q, _a0 AS total FROM fold_9 UNION ALL SELECT 11 AS q, _a0 AS total FROM fold_10 UNION ALL SELECT 12 AS q, _a0 AS total FROM fold_11
