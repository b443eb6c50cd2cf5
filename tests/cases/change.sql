-- UPDATE, DELETE and MERGE of standard tables.

-- case: update
CREATE TABLE t (a INT, b STRING, c DOUBLE);
INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', NULL), (3, NULL, 3.5);
UPDATE t SET c = a * 2, b = upper(b) WHERE a >= 2;
--?

-- sorted
SELECT * FROM t;
--?

UPDATE t SET a = c, c = a WHERE c IS NOT NULL;
--?

-- sorted
SELECT * FROM t;
--?

UPDATE t SET b = NULL;
--?

UPDATE t SET b = 'z' WHERE false;
--?

UPDATE t AS target SET c = (SELECT max(a) FROM t) WHERE target.a = 1;
-- sorted
SELECT * FROM t;
--?

-- case: update refuses what the table cannot hold
CREATE TABLE t (a TINYINT NOT NULL, b STRING);
INSERT INTO t VALUES (100, 'x');
UPDATE t SET a = a + 100;
--?

UPDATE t SET a = 'x';
--?

UPDATE t SET a = NULL;
--?

UPDATE t SET c = 1;
--?

UPDATE t SET a = c;
--?

UPDATE t SET a = 1 / 0;
--?

UPDATE nothing SET a = 1;
--?

SELECT * FROM t;
--?

-- case: delete
CREATE TABLE t (a INT, b STRING);
INSERT INTO t VALUES (1, 'x'), (2, 'y'), (NULL, 'z');
INSERT INTO t VALUES (4, 'x');
DELETE FROM t WHERE a > 1;
--?

-- sorted
SELECT * FROM t;
--?

DELETE FROM t WHERE a > 100;
--?

DELETE FROM t AS x WHERE x.b IN (SELECT b FROM t WHERE a = 1);
--?

DELETE FROM t WHERE a / 0 = 1;
--?

SELECT * FROM t;
--?

-- tier: inline
DELETE FROM t;
--?

SELECT * FROM t;
--?

DELETE FROM t WHERE a = 1;
--?

-- case: delete with a subquery over another table
CREATE TABLE t (a INT);
CREATE TABLE gone (a INT);
INSERT INTO t VALUES (1), (2), (3), (3);
INSERT INTO gone VALUES (3), (9);
DELETE FROM t WHERE EXISTS (SELECT 1 FROM gone WHERE gone.a = t.a);
--?

-- sorted
SELECT * FROM t;
--?

-- case: merge, all clauses
CREATE TABLE t (k INT, v STRING, n INT);
CREATE TABLE s (k INT, v STRING, dead BOOLEAN);
INSERT INTO t VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0), (4, 'd', 0);
INSERT INTO s VALUES (1, 'A', false), (2, 'B', true), (9, 'new', false), (8, 'never', true);
MERGE INTO t USING s ON t.k = s.k
    WHEN MATCHED AND s.dead THEN DELETE
    WHEN MATCHED THEN UPDATE SET v = s.v, n = t.n + 1
    WHEN NOT MATCHED AND NOT s.dead THEN INSERT (k, v) VALUES (s.k, s.v)
    WHEN NOT MATCHED BY SOURCE AND t.k = 4 THEN DELETE
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1;
--?

-- sorted
SELECT * FROM t;
--?

-- case: merge of a query, with stars
CREATE TABLE t (k INT, v STRING);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
MERGE INTO t USING (SELECT 2 AS k, 'B' AS v UNION ALL SELECT 3, 'C') AS s ON t.k = s.k
    WHEN MATCHED THEN UPDATE SET *
    WHEN NOT MATCHED THEN INSERT *;
--?

-- sorted
SELECT * FROM t;
--?

-- case: merge into an empty table
CREATE TABLE t (k INT, v STRING);
MERGE INTO t USING (SELECT 1 AS k, 'x' AS v) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM t;
--?

-- case: merge of a table with itself
CREATE TABLE t (k INT, v INT);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
MERGE INTO t USING t AS s ON t.k = s.k + 1 WHEN MATCHED THEN UPDATE SET v = t.v + s.v;
--?

-- sorted
SELECT * FROM t;
--?

-- case: merge that would change a row twice
CREATE TABLE t (k INT, v INT);
INSERT INTO t VALUES (1, 0);
CREATE TABLE s (k INT, v INT);
INSERT INTO s VALUES (1, 1), (1, 2);
MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v;
--?

MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.v = 2 THEN UPDATE SET v = s.v;
SELECT * FROM t;
--?

-- case: NULL keys do not match in a merge
CREATE TABLE t (k INT, v INT);
INSERT INTO t VALUES (NULL, 1);
MERGE INTO t USING (SELECT CAST(NULL AS INT) AS k) s ON t.k = s.k
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 2);
-- sorted
SELECT * FROM t;
--?

-- case: merge refuses what does not fit
CREATE TABLE t (k INT NOT NULL, v STRING);
MERGE INTO t USING nothing AS s ON t.k = s.k WHEN MATCHED THEN DELETE;
--?

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.nothing WHEN MATCHED THEN DELETE;
--?

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (v) VALUES ('x');
--?

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k);
--?

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k) VALUES ('x');
--?

SELECT * FROM t;
--?
