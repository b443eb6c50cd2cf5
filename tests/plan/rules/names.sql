-- Names: USING and NATURAL, fields of structs, aliases, letter case, backticks.

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN t USING (k) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t using k; | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)
tables below: t

SELECT s.k, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN t USING (k) GROUP BY s.k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t using k; | by s.k | sum(v) | gives _k0 AS k, _a0 AS sum(v)
tables below: t

SELECT sum(v) FROM s [INTERVAL 1 MINUTE] NATURAL JOIN t SAMPLE INTERVAL 10 SECONDS;
again: NATURAL JOIN is not split

SELECT p.x, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY p.x SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by p.x | sum(v) | gives _k0 AS x, _a0 AS sum(v)

SELECT a.p.x AS px, a.p FROM s [INTERVAL 1 MINUTE] a WHERE p.y = 'q' SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s a [60 s] | where p.y = 'q' | keeps 0.p | gives _c0.x AS px, _c0 AS p

SELECT K, SUM(V) AS `the sum` FROM S [INTERVAL 1 MINUTE] GROUP BY S.k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of S [60 s] | by S.k | sum(V) | gives _k0 AS K, _a0 AS the sum

SELECT `k`, `a`.`v` FROM `s` [INTERVAL 1 MINUTE] AS `a` SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s a [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v

SELECT k FROM s [INTERVAL 1 MINUTE] a JOIN t ON a.k = t.k SAMPLE INTERVAL 10 SECONDS;
again: column k is not plainly one table's

SELECT a.k AS t, count(*) FROM s [INTERVAL 1 MINUTE] a GROUP BY t SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | by a.k | count(*) | gives _k0 AS t, _a0 AS count(1)
