-- ORDER BY, LIMIT and OFFSET are done above the fold.

SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k ORDER BY total DESC, k LIMIT 3 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total | order total desc, _k0 nulls first | LIMIT 3

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k ORDER BY count(*) NULLS LAST LIMIT 3 OFFSET 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v), count(*) | gives _k0 AS k, _a0 AS sum(v) | order _a1 | LIMIT 3 OFFSET 1

SELECT k, v FROM s [INTERVAL 1 MINUTE] ORDER BY w DESC NULLS FIRST LIMIT 5 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v, 0.w | gives _c0 AS k, _c1 AS v | order _c2 desc nulls first | LIMIT 5

SELECT k, v FROM s [INTERVAL 1 MINUTE] LIMIT 5 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v | LIMIT 5

SELECT k, v FROM s [INTERVAL 1 MINUTE] LIMIT 2 + 3 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v | LIMIT 2 + 3

SELECT k, v FROM s [INTERVAL 1 MINUTE] SORT BY v SAMPLE INTERVAL 10 SECONDS;
again: SORT is not split

SELECT k, v FROM s [INTERVAL 1 MINUTE] ORDER BY 2 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v | order 2 nulls first

SELECT k, row_number() OVER (ORDER BY v) AS n FROM s [INTERVAL 1 MINUTE] QUALIFY n < 3 SAMPLE INTERVAL 10 SECONDS;
again: QUALIFY is not split

-- show types
SELECT k, avg(v) AS mean FROM s [INTERVAL 60 SECONDS] GROUP BY k ORDER BY mean SAMPLE INTERVAL 1 SECOND;
fold 0: aggregate of s [60 s] | by k | avg(v) | gives _k0 AS k, _a0 AS mean | order mean nulls first
fold 0 by operators gives STRING, DOUBLE
