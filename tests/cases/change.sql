-- UPDATE, DELETE and MERGE of standard tables.

-- case: update
CREATE TABLE t (a INT, b STRING, c DOUBLE);
INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', NULL), (3, NULL, 3.5);
UPDATE t SET c = a * 2, b = upper(b) WHERE a >= 2;
--# UPDATE 2

-- sorted
SELECT * FROM t;
--| 1 | 'x' | 1.5
--| 2 | 'Y' | 4.0
--| 3 | NULL | 6.0

UPDATE t SET a = c, c = a WHERE c IS NOT NULL;
--# UPDATE 3

-- sorted
SELECT * FROM t;
--| 1 | 'x' | 1.0
--| 4 | 'Y' | 2.0
--| 6 | NULL | 3.0

UPDATE t SET b = NULL;
--# UPDATE 3

UPDATE t SET b = 'z' WHERE false;
--# UPDATE 0

UPDATE t AS target SET c = (SELECT max(a) FROM t) WHERE target.a = 1;
-- sorted
SELECT * FROM t;
--| 1 | NULL | 6.0
--| 4 | NULL | 2.0
--| 6 | NULL | 3.0

-- case: update refuses what the table cannot hold
CREATE TABLE t (a TINYINT NOT NULL, b STRING);
INSERT INTO t VALUES (100, 'x');
UPDATE t SET a = a + 100;
--! 22003 the value 200 of the type "INT" cannot be cast to "TINYINT" due to an overflow ~ use a wider type, or try_cast to get NULL

UPDATE t SET a = 'x';
--! 42804 column a is TINYINT but the expression is STRING ~ use CAST(… AS …) if that is what you mean

UPDATE t SET a = NULL;
--! 23502 NULL in column a, which is NOT NULL ~ nothing was written; give a value for every row

UPDATE t SET c = 1;
--! 42703 1:14 column c does not exist ~ columns: a, b

UPDATE t SET a = c;
--! 42703 1:18 column c does not exist ~ did you mean a or b?

UPDATE t SET a = 1 / 0;
--! 22012 1:18 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

UPDATE nothing SET a = 1;
--! 42P01 1:8 table nothing does not exist ~ SHOW TABLES lists what there is

SELECT * FROM t;
--| 100 | 'x'

-- case: delete
CREATE TABLE t (a INT, b STRING);
INSERT INTO t VALUES (1, 'x'), (2, 'y'), (NULL, 'z');
INSERT INTO t VALUES (4, 'x');
DELETE FROM t WHERE a > 1;
--# DELETE 2

-- sorted
SELECT * FROM t;
--| 1 | 'x'
--| NULL | 'z'

DELETE FROM t WHERE a > 100;
--# DELETE 0

DELETE FROM t AS x WHERE x.b IN (SELECT b FROM t WHERE a = 1);
--# DELETE 1

INSERT INTO t VALUES (5, 'q');
DELETE FROM t WHERE a / 0 = 1;
--! 22012 2:21 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

-- sorted
SELECT * FROM t;
--| 5 | 'q'
--| NULL | 'z'

-- tier: operators
DELETE FROM t;
--# DELETE 2

SELECT * FROM t;
--| (no rows)

DELETE FROM t WHERE a = 1;
--# DELETE 0

-- case: delete with a subquery over another table
CREATE TABLE t (a INT);
CREATE TABLE gone (a INT);
INSERT INTO t VALUES (1), (2), (3), (3);
INSERT INTO gone VALUES (3), (9);
DELETE FROM t WHERE EXISTS (SELECT 1 FROM gone WHERE gone.a = t.a);
--# DELETE 2

-- sorted
SELECT * FROM t;
--| 1
--| 2

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
--# MERGE 5

-- sorted
SELECT * FROM t;
--| 1 | 'A' | 1
--| 3 | 'c' | -1
--| 9 | 'new' | NULL

-- case: merge of a query, with stars
CREATE TABLE t (k INT, v STRING);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
MERGE INTO t USING (SELECT 2 AS k, 'B' AS v UNION ALL SELECT 3, 'C') AS s ON t.k = s.k
    WHEN MATCHED THEN UPDATE SET *
    WHEN NOT MATCHED THEN INSERT *;
--# MERGE 2

-- sorted
SELECT * FROM t;
--| 1 | 'a'
--| 2 | 'B'
--| 3 | 'C'

-- case: merge into an empty table
CREATE TABLE t (k INT, v STRING);
MERGE INTO t USING (SELECT 1 AS k, 'x' AS v) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM t;
--| 1 | 'x'

-- case: merge of a table with itself
CREATE TABLE t (k INT, v INT);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
MERGE INTO t USING t AS s ON t.k = s.k + 1 WHEN MATCHED THEN UPDATE SET v = t.v + s.v;
--# MERGE 2

-- sorted
SELECT * FROM t;
--| 1 | 10
--| 2 | 30
--| 3 | 50

-- case: merge that would change a row twice
CREATE TABLE t (k INT, v INT);
INSERT INTO t VALUES (1, 0);
CREATE TABLE s (k INT, v INT);
INSERT INTO s VALUES (1, 1), (1, 2);
MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v;
--! 21000 MERGE would change a row of the table more than once ~ more than one row of the source matches it; make the source's keys unique

MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.v = 2 THEN UPDATE SET v = s.v;
SELECT * FROM t;
--| 1 | 2

-- case: NULL keys do not match in a merge
CREATE TABLE t (k INT, v INT);
INSERT INTO t VALUES (NULL, 1);
MERGE INTO t USING (SELECT CAST(NULL AS INT) AS k) s ON t.k = s.k
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 2);
-- sorted
SELECT * FROM t;
--| NULL | 1
--| NULL | 2

-- case: merge refuses what does not fit
CREATE TABLE t (k INT NOT NULL, v STRING);
MERGE INTO t USING nothing AS s ON t.k = s.k WHEN MATCHED THEN DELETE;
--! 42P01 2:20 table nothing does not exist ~ SHOW TABLES lists what there is

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.nothing WHEN MATCHED THEN DELETE;
--! 42703 1:47 column s.nothing does not exist ~ did you mean t.k or s.k or t.v?

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (v) VALUES ('x');
--! 23502 NULL in column k, which is NOT NULL ~ nothing was written; give a value for every row

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k);
--! 42601 1:80 INSERT names 2 columns but has 1 values

MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k) VALUES ('x');
--! 42804 column k is INT but the expression is STRING ~ use CAST(… AS …) if that is what you mean

SELECT * FROM t;
--| (no rows)

-- case: a condition that is one name
CREATE TABLE t (a INT, flag BOOLEAN);
INSERT INTO t VALUES (1, true), (2, false), (3, NULL);
UPDATE t SET a = a * 10 WHERE flag;
--# UPDATE 1

DELETE FROM t WHERE flag;
--# DELETE 1

DELETE FROM t WHERE true;
--# DELETE 2

-- case: comments in expressions do not swallow what follows
CREATE TABLE t (a INT, b INT);
INSERT INTO t VALUES (1, 1), (2, 2);
UPDATE t SET a = a + 1 -- one more
    , b = 5 /* five */ WHERE a = 1 -- only the first
;
--# UPDATE 1

-- sorted
SELECT * FROM t;
--| 2 | 2
--| 2 | 5

-- case: update of nested columns as a whole
CREATE TABLE t (i INT, s STRUCT<x: INT, y: STRING>, a ARRAY<INT>, m MAP<STRING, INT>);
INSERT INTO t SELECT 1, named_struct('x', 1, 'y', 'z'), array(1), map('k', 1);
UPDATE t SET s = named_struct('x', s.x + 1, 'y', NULL), a = array_append(a, i), m = map_concat(m, map('l', 2L));
SELECT * FROM t;
--| 1 | {x: 2, y: NULL} | [1, 1] | {'k' -> 1, 'l' -> 2}

UPDATE t SET s = array(1);
--! 42804 column s is STRUCT<x: INT, y: STRING> but the expression is ARRAY<INT> ~ use CAST(… AS …) if that is what you mean

UPDATE t SET s.x = 5;
--! 0A000 1:14 a field of a struct cannot be set alone ~ set the whole column, with named_struct(…)
