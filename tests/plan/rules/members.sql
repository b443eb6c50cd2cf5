-- EXISTS, NOT EXISTS, IN and NOT IN over a table are semi and anti joins.

-- show types
SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | semi t t.k = a.k; | where EXISTS (SELECT 1 FROM t WHERE t.k = a.k) | by k | count(*) | gives _k0 AS k, _a0 AS count(1)
tables below: t
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] a WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND x > 2) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | anti t t.k = a.k; t.x > 2; | where NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND x > 2) | by k | count(*) | gives _k0 AS k, _a0 AS count(1)
tables below: t
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE v > 0 AND EXISTS (SELECT * FROM u WHERE u.k = s.k AND id > v) SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | semi u u.k = s.k; u.id > s.v; | where v > 0, EXISTS (SELECT * FROM u WHERE u.k = s.k AND id > v) | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v
tables below: u
fold 0 by operators gives STRING, INT

-- show types
SELECT k, v FROM s [INTERVAL 1 MINUTE] WHERE (NOT (EXISTS (SELECT id FROM u WHERE s.k = k))) SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | anti u s.k = u.k; | where NOT (EXISTS (SELECT id FROM u WHERE s.k = k)) | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v
tables below: u
fold 0 by operators gives STRING, INT

-- show types
SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] WHERE k IN (SELECT k FROM t) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | semi t s.k = t.k; | where k IN (SELECT k FROM t) | by k | count(*) | gives _k0 AS k, _a0 AS count(1)
tables below: t
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] WHERE k IN (SELECT name FROM t WHERE x > 1 AND t.x = v) GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | semi t s.k = t.name; t.x > 1; t.x = s.v; | where k IN (SELECT name FROM t WHERE x > 1 AND t.x = v) | by k | count(*) | gives _k0 AS k, _a0 AS count(1)
tables below: t
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] WHERE k NOT IN (SELECT k FROM t) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | where k NOT IN (SELECT k FROM t) | count(*) | gives _a0 AS count(1)
tables below: t
fold 0 by Spark gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] WHERE k NOT IN (SELECT k FROM u) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | where k NOT IN (SELECT k FROM u) | count(*) | gives _a0 AS count(1)
tables below: u
fold 0 by Spark gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM u) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | anti u s.k = u.k; | where k IS NOT NULL, k NOT IN (SELECT k FROM u) | count(*) | gives _a0 AS count(1)
tables below: u
fold 0 by operators gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] WHERE k IS NOT NULL AND NOT k IN (SELECT name FROM t WHERE name IS NOT NULL) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | anti t s.k = t.name; t.name IS NOT NULL; | where k IS NOT NULL, NOT k IN (SELECT name FROM t WHERE name IS NOT NULL) | count(*) | gives _a0 AS count(1)
tables below: t
fold 0 by operators gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE k NOT IN (SELECT k FROM u WHERE id = a.v) SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t a WHERE a.k = v) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | semi t a_ a_.k = a.v; | where EXISTS (SELECT 1 FROM t a WHERE a.k = v) | count(*) | gives _a0 AS count(1)
tables below: t
fold 0 by Spark gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t a WHERE a.x = v) AND EXISTS (SELECT 1 FROM t WHERE t.k = a.k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | semi t a_ a_.x = a.v; | semi t t.k = a.k; | where EXISTS (SELECT 1 FROM t a WHERE a.x = v), EXISTS (SELECT 1 FROM t WHERE t.k = a.k) | count(*) | gives _a0 AS count(1)
tables below: t
fold 0 by operators gives BIGINT

-- show types
SELECT name, count(*) FROM s [INTERVAL 1 MINUTE] LEFT JOIN t ON s.k = t.k WHERE EXISTS (SELECT 1 FROM u WHERE u.k = name) GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | left t s.k = t.k; | semi u u.k = t.name; | where EXISTS (SELECT 1 FROM u WHERE u.k = name) | by name | count(*) | gives _k0 AS name, _a0 AS count(1)
tables below: t, u
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT name, count(*) FROM t JOIN s [INTERVAL 1 MINUTE] ON s.k = t.k WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.x) GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | from t | anti u u.id = t.x; | on s.k = t.k | where NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.x) | by name | count(*) | gives _k0 AS name, _a0 AS count(1)
tables below: t, u
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT a.k, count(*) FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND t.x = c.b) GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
fold 0: join of s a [60 s] and r c [60 s] | semi t t.k = a.k; t.x = c.b; | on a.k = c.k | where EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND t.x = c.b) | by a.k | count(*) | gives _k0 AS k, _a0 AS count(1)
tables below: t
fold 0 on Spark

-- show types
SELECT v FROM s [ROWS 5] WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k) SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [rows 5] | semi t t.k = s.k;
fold 0 by Spark, finished on Spark

-- show types
SELECT k, count(*) FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k) GROUP BY k;
fold 0: aggregate of s [landmark] | semi t t.k = s.k; | where EXISTS (SELECT 1 FROM t WHERE t.k = s.k) | by k | count(*) | gives _k0 AS k, _a0 AS count(1)
tables below: t
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT k, count(*) FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.name LIKE 'a%') GROUP BY k;
fold 0: aggregate of s [landmark] | anti t t.k = s.k; t.name LIKE 'a%'; | where NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.name LIKE 'a%') | by k | count(*) | gives _k0 AS k, _a0 AS count(1)
tables below: t
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] WHERE EXISTS (SELECT 1 FROM t WHERE t.x > v) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | semi t t.x > s.v; | where EXISTS (SELECT 1 FROM t WHERE t.x > v) | count(*) | gives _a0 AS count(1)
tables below: t
fold 0 by Spark gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] WHERE EXISTS (SELECT 1 FROM t WHERE t.k = p.y) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | semi t t.k = s.p.y; | where EXISTS (SELECT 1 FROM t WHERE t.k = p.y) | count(*) | gives _a0 AS count(1)
tables below: t
fold 0 by Spark gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t WHERE x > 2) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s a [60 s] | semi t t.x > 2; | where EXISTS (SELECT 1 FROM t WHERE x > 2) | count(*) | gives _a0 AS count(1)
tables below: t
fold 0 by Spark gives BIGINT

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT count(*) FROM t WHERE t.k = a.k) SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k LIMIT 0) SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t JOIN u ON t.k = u.k WHERE t.k = a.k) SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k) OR v > 1 SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND a.ts = CURRENT_INSTANT()) SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM r [INTERVAL 1 MINUTE] c WHERE c.k = a.k) SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
SELECT k, EXISTS (SELECT 1 FROM t WHERE t.k = a.k) AS known FROM s [INTERVAL 1 MINUTE] a SAMPLE INTERVAL 10 SECONDS;
again: a subquery depends on the rows outside it

-- show types
WITH b AS (SELECT k FROM t) SELECT count(*) FROM s [INTERVAL 1 MINUTE] a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) SAMPLE INTERVAL 10 SECONDS;
again: b of WITH is read together with the rows of a stream

-- show types
SELECT k, total FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) a WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND x > total) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: SELECT k, total FROM (SELECT _k0 AS k, _a0 AS total FROM fold_0) a WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND x > total)
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING, BIGINT

-- show types
WITH a AS (SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k) SELECT name FROM t WHERE EXISTS (SELECT 1 FROM a WHERE a.k = t.k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total
upper: WITH a AS (SELECT _k0 AS k, _a0 AS total FROM fold_0) SELECT name FROM t WHERE EXISTS (SELECT 1 FROM a WHERE a.k = t.k)
fold 0 by operators gives STRING, BIGINT
upper by operators gives STRING

-- show types
SELECT name FROM t WHERE EXISTS (SELECT 1 FROM t z, (SELECT k FROM s [INTERVAL 1 MINUTE] GROUP BY k) a WHERE a.k = z.k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | gives _k0 AS k
upper: SELECT name FROM t WHERE EXISTS (SELECT 1 FROM t z, (SELECT _k0 AS k FROM fold_0) a WHERE a.k = z.k)
fold 0 by operators gives STRING
upper on Spark

-- show types
SELECT k FROM s [INTERVAL 1 MINUTE] LEFT SEMI JOIN t ON s.k = t.k AND t.x > v SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | semi t s.k = t.k; t.x > v; | keeps 0.k | gives _c0 AS k
tables below: t
fold 0 by operators gives STRING
