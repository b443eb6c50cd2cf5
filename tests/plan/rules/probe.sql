-- A join of a stream with tables is done row by row, if the stream is the side that is kept.

SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN t ON s.k = t.k GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t s.k = t.k; | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
tables below: t

SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] LEFT JOIN t ON s.k = t.k GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | left t s.k = t.k; | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
tables below: t

SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] a, t b WHERE a.k = b.k AND b.x > a.v GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | , t b | where a.k = b.k, b.x > a.v | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
tables below: t

-- show types
SELECT name, v FROM t JOIN s [INTERVAL 1 MINUTE] ON s.k = t.k WHERE x > 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | from t | on s.k = t.k | where x > 1 | keeps 0.name, 1.v | gives _c0 AS name, _c1 AS v
tables below: t
fold 0 by operators gives STRING, INT

-- show types
SELECT name, v FROM t RIGHT JOIN s [INTERVAL 1 MINUTE] ON s.k = t.k SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | from t | on s.k = t.k | keeps 0.name, 1.v | gives _c0 AS name, _c1 AS v
tables below: t
fold 0 on Spark

SELECT name, v FROM t LEFT JOIN s [INTERVAL 1 MINUTE] ON s.k = t.k SAMPLE INTERVAL 10 SECONDS;
again: a left join keeps rows of a table that match no row yet

SELECT name, v FROM s [INTERVAL 1 MINUTE] FULL JOIN t ON s.k = t.k SAMPLE INTERVAL 10 SECONDS;
again: a full join keeps rows of a table that match no row yet

SELECT name, v FROM s [INTERVAL 1 MINUTE] RIGHT JOIN t ON s.k = t.k SAMPLE INTERVAL 10 SECONDS;
again: a right join keeps rows of a table that match no row yet

SELECT v FROM s [INTERVAL 1 MINUTE] LEFT SEMI JOIN t ON s.k = t.k SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | semi t s.k = t.k; | keeps 0.v | gives _c0 AS v
tables below: t

SELECT v FROM s [INTERVAL 1 MINUTE] LEFT ANTI JOIN t ON s.k = t.k SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | anti t s.k = t.k; | keeps 0.v | gives _c0 AS v
tables below: t

SELECT x FROM t LEFT ANTI JOIN s [INTERVAL 1 MINUTE] ON s.k = t.k SAMPLE INTERVAL 10 SECONDS;
again: an anti join keeps rows of a table that match no row yet

SELECT count(*) FROM s [INTERVAL 1 MINUTE] CROSS JOIN t SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | cross t | count(*) | gives _a0 AS count(1)
tables below: t

SELECT name, id, count(*) FROM s [INTERVAL 1 MINUTE] JOIN t ON s.k = t.k JOIN u ON u.k = t.k GROUP BY ALL SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t s.k = t.k; | inner u u.k = t.k; | by name, id | count(*) | gives _k0 AS name, _k1 AS id, _a0 AS count(1)
tables below: t, u

SELECT m, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN (SELECT k, max(x) AS m FROM t GROUP BY k) b ON s.k = b.k GROUP BY m SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner (SELECT k, max(x) AS m FROM t GROUP BY k) b s.k = b.k; | by m | sum(v) | gives _k0 AS m, _a0 AS sum(v)
tables below: t

SELECT a.k, sum(v) FROM s [INTERVAL 1 MINUTE] a JOIN (SELECT k, max(b) AS m FROM r [INTERVAL 1 MINUTE] GROUP BY k) b ON a.k = b.k GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
again: a stream is joined with a subquery over streams

-- show types
SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN f ON f.p.x = v GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner f f.p.x = v; | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
tables below: f
fold 0 on Spark

-- show types
SELECT t.name, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN t ON (t.k) = s.k JOIN f ON f.name = s.k AND f.p.x < v GROUP BY t.name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t (t.k) = s.k; | inner f f.name = s.k; f.p.x < v; | by t.name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
tables below: t, f
fold 0 by operators gives STRING, BIGINT
