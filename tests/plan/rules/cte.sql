-- WITH: a CTE with a window is a fold, one over tables is read above folds only.

WITH a AS (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) SELECT max(total) FROM a SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: WITH a AS (SELECT _k0 AS k, _a0 AS total FROM fold_0) SELECT max(total) FROM a

WITH a AS (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k), b AS (SELECT k FROM t) SELECT a.k FROM a JOIN b ON a.k = b.k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: WITH a AS (SELECT _k0 AS k, _a0 AS total FROM fold_0), b AS (SELECT k FROM t) SELECT a.k FROM a JOIN b ON a.k = b.k

WITH b AS (SELECT k FROM t) SELECT a.k, count(*) FROM s [INTERVAL 1 MINUTE] a JOIN b ON a.k = b.k GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
again: b of WITH is read together with the rows of a stream

WITH b AS (SELECT k FROM t) SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE a.k IN (SELECT k FROM b) SAMPLE INTERVAL 10 SECONDS;
again: b of WITH is read together with the rows of a stream

WITH a AS (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) SELECT * FROM a WHERE total = (SELECT max(total) FROM a) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: WITH a AS (SELECT _k0 AS k, _a0 AS total FROM fold_0) SELECT * FROM a WHERE total = (SELECT max(total) FROM a)
