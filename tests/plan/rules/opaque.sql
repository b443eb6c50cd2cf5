-- What sqlglot cannot read, and what a SELECT may have that no rule knows, stays whole.

SELECT k FROM s [INTERVAL 1 MINUTE] |> WHERE v > 1 SAMPLE INTERVAL 10 SECONDS;
again: the query is not understood well enough to be split

FROM s [INTERVAL 1 MINUTE] |> AGGREGATE sum(v) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: the query is not understood well enough to be split

SELECT * FROM s [INTERVAL 1 MINUTE] PIVOT (sum(v) FOR k IN ('a', 'b')) SAMPLE INTERVAL 10 SECONDS;
again: the query is not understood well enough to be split

SELECT k FROM s [INTERVAL 1 MINUTE] TABLESAMPLE (10 ROWS) SAMPLE INTERVAL 10 SECONDS;
again: something in FROM is not split

FROM s [INTERVAL 1 MINUTE] SELECT k SAMPLE INTERVAL 10 SECONDS;
again: FROM before SELECT is not split

SELECT /*+ BROADCAST(t) */ a.k FROM s [INTERVAL 1 MINUTE] a JOIN t ON a.k = t.k SAMPLE INTERVAL 10 SECONDS;
again: the query is not understood well enough to be split

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] AS a(x, k, v, w, p) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: column names after an alias is not split

SELECT x FROM s [INTERVAL 1 MINUTE], LATERAL (SELECT x FROM t WHERE t.k = s.k) SAMPLE INTERVAL 10 SECONDS;
again: a function in FROM is not split

SELECT c FROM range(3) AS z(c) JOIN s [INTERVAL 1 MINUTE] ON c = v SAMPLE INTERVAL 10 SECONDS;
again: a function in FROM is not split
