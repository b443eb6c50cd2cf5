-- PREV and VALID.

SELECT k, v - PREV(v) AS d FROM s [k ROWS 2] SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [k rows 2 prev v/1]

SELECT k, PREV(v + 1, 2) AS d FROM s [k ROWS 3] SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [k rows 3 prev v/2 prev _seq/2]

SELECT k, v - PREV(v) AS d FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: PREV depends on where the window begins

SELECT PREV(v + b) FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k SAMPLE INTERVAL 10 SECONDS;
refused: PREV takes an expression over columns of one windowed table

SELECT k, VALID(s) AS at FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: column s is not plainly one table's

SELECT a.k, count(*) FROM s [INTERVAL 1 MINUTE] a WHERE VALID(a) OVERLAPS PERIOD (TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-02-01 00:00:00') GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | where (a.ts BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-02-01 00:00:00') | by a.k | count(*) | gives _k0 AS k, _a0 AS count(1)

SELECT VALID(x) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
refused: VALID(x): x is no windowed table of this query
