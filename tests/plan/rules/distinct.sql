-- DISTINCT is a grouping by the whole list; count(DISTINCT) has values of its own.

SELECT DISTINCT k FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | gives _k0 AS k

SELECT DISTINCT k, v % 2 AS odd FROM s [INTERVAL 1 MINUTE] WHERE v > 0 ORDER BY odd SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | where v > 0 | by k, v % 2 | gives _k0 AS k, _k1 AS odd | order odd nulls first

SELECT DISTINCT * FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.ts, 0.k, 0.v, 0.w, 0.p | distinct _c0 AS ts, _c1 AS k, _c2 AS v, _c3 AS w, _c4 AS p

SELECT DISTINCT k, CURRENT_INSTANT() FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k | distinct _c0 AS k, instant()

SELECT DISTINCT sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | distinct _a0 AS sum(v)

SELECT DISTINCT sum(v) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: DISTINCT above a grouping

SELECT k, count(DISTINCT v) AS n FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | count_distinct(v) | gives _k0 AS k, _a0 AS n

SELECT count(DISTINCT k, v) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: count_distinct of 2 arguments has no fold

SELECT min(DISTINCT v), max(DISTINCT v) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | min(v), max(v) | gives _a0 AS min(DISTINCT v), _a1 AS max(DISTINCT v)
