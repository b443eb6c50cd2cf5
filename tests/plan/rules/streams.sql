-- Joins of streams.

SELECT a.k, v, b FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 30 SECONDS] c ON a.k = c.k SAMPLE INTERVAL 10 SECONDS;
fold 0: join of s a [60 s] and r c [30 s] | on a.k = c.k | keeps 0.k, 0.v, 1.b | gives _c0 AS k, _c1 AS v, _c2 AS b

SELECT a.k, sum(v * b) FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k AND v > 1 WHERE b < 9 GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
fold 0: join of s a [60 s] and r c [60 s] | on a.k = c.k, v > 1 | where b < 9 | by a.k | sum(v * b) | gives _k0 AS k, _a0

SELECT a.k, count(*) FROM s [INTERVAL 1 MINUTE] a, r [INTERVAL 1 MINUTE] c WHERE a.k = c.k GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
fold 0: join of s a [60 s] and r c [60 s] | where a.k = c.k | by a.k | count(*) | gives _k0 AS k, _a0 AS count(1)

SELECT a.k, b FROM s [INTERVAL 1 MINUTE] a LEFT JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k SAMPLE INTERVAL 10 SECONDS;
again: a left join keeps rows of a table that match no row yet

SELECT a.k, first(b) FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
again: first, last and distinct values do not cross a join of streams

SELECT a.k, count(DISTINCT b) FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
again: first, last and distinct values do not cross a join of streams

SELECT count(*) FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k JOIN s [INTERVAL 1 MINUTE] d ON d.k = c.k SAMPLE INTERVAL 10 SECONDS;
again: three or more streams are joined in one SELECT

SELECT count(*) FROM s [LANDMARK] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k SAMPLE INTERVAL 10 SECONDS;
again: a join with a landmark window keeps every row

SELECT count(*) FROM s [ROWS 5] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k SAMPLE INTERVAL 10 SECONDS;
again: a window of last rows is joined with another stream

SELECT k, v, b FROM s [INTERVAL 1 MINUTE] JOIN r [INTERVAL 1 MINUTE] USING (k) SAMPLE INTERVAL 10 SECONDS;
again: column k is not plainly one table's

SELECT a.k, name, b FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k JOIN t ON t.k = a.k SAMPLE INTERVAL 10 SECONDS;
fold 0: join of s a [60 s] and r c [60 s] | inner t t.k = a.k; | on a.k = c.k | keeps 0.k, 2.name, 1.b | gives _c0 AS k, _c1 AS name, _c2 AS b
tables below: t

SELECT count(*) FROM s [INTERVAL 1 MINUTE] a JOIN s [INTERVAL 1 MINUTE] c ON a.k = c.k AND a.v < c.v SAMPLE INTERVAL 10 SECONDS;
fold 0: join of s a [60 s] and s c [60 s] | on a.k = c.k, a.v < c.v | count(*) | gives _a0 AS count(1)
