-- Views read all rows of their streams; what breaks R1 to R5 is said.

SELECT k, sum(v) AS total FROM s GROUP BY k;
fold 0: aggregate of s [landmark] | by k | sum(v) | gives _k0 AS k, _a0 AS total

SELECT name, sum(v) AS total FROM s JOIN t ON s.k = t.k GROUP BY name;
fold 0: aggregate of s [landmark] | inner t s.k = t.k; | by name | sum(v) | gives _k0 AS name, _a0 AS total
tables below: t

SELECT k, v FROM s WHERE v > 1;
again: without a grouping every row is needed (R1)

SELECT count(*) FROM s JOIN r ON s.k = r.k;
again: a join before the grouping needs every row (R3)

SELECT a.k, x, y FROM (SELECT k, sum(v) AS x FROM s GROUP BY k) a JOIN (SELECT k, sum(b) AS y FROM r GROUP BY k) c ON a.k = c.k;
fold 0: aggregate of s [landmark] | by k | sum(v) | gives _k0 AS k, _a0 AS x
fold 1: aggregate of r [landmark] | by k | sum(b) | gives _k0 AS k, _a0 AS y
upper: SELECT a.k, x, y FROM (SELECT _k0 AS k, _a0 AS x FROM fold_0) a JOIN (SELECT _k0 AS k, _a0 AS y FROM fold_1) c ON a.k = c.k

SELECT max(v) FROM (SELECT v FROM s ORDER BY w LIMIT 10);
again: without a grouping every row is needed (R4)

SELECT name, count(*) FROM t LEFT JOIN s ON s.k = t.k GROUP BY name;
again: a left join keeps rows of a table that match no row yet (R5)

SELECT name, (SELECT sum(v) FROM s WHERE s.k = t.k) AS total FROM t;
fold 0: aggregate of s [landmark] | for t.k | by s.k | sum(v) | gives _a0 AS sum(v)
upper: SELECT name, (SELECT max(_a0) AS `sum(v)` FROM fold_0 WHERE _k0 = (t.k)) AS total FROM t

SELECT name, (SELECT sum(v) FROM s WHERE s.v > t.x) AS total FROM t;
again: a subquery depends on the rows outside it (R2)

SELECT name, (SELECT v FROM s WHERE s.k = t.k LIMIT 1) AS one FROM t;
again: a subquery depends on the rows outside it (R2)

SELECT k, sum(v) FROM s WHERE ts > current_timestamp() - INTERVAL 1 DAY GROUP BY k;
again: a condition below the grouping changes from instant to instant (functions of time have no fixed meaning in the part of a view that runs at each insert)

SELECT k, count(*) AS n FROM s GROUP BY k HAVING n > 1 ORDER BY n DESC LIMIT 3;
fold 0: aggregate of s [landmark] | by k | count(*) | gives _k0 AS k, _a0 AS n | having _a0 > 1 | order n desc | LIMIT 3

SELECT DISTINCT k FROM s;
fold 0: aggregate of s [landmark] | by k | gives _k0 AS k

-- show at insert
SELECT k, count(*) FROM s WHERE ts > current_timestamp() - INTERVAL 1 DAY GROUP BY k;
fold 0: aggregate of s [landmark] | where ts > instant() - INTERVAL 1 DAY | by k | count(*) | gives _k0 AS k, _a0 AS count(1)

-- show rows at hand
SELECT k, v FROM s WHERE v > 1 ORDER BY v LIMIT 3;
fold 0: rows of s [interval] | where v > 1 | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v | order _c1 nulls first | LIMIT 3
