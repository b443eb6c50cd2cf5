-- Plain scans, which the storage manager answers without Spark, and where they end.

-- case: columns, order, limit
SET select_rows = 0;
CREATE TABLE t (a INT, b STRING, c DATE);
INSERT INTO t VALUES (3, 'x', DATE '2024-01-03'), (1, NULL, DATE '2024-01-01'), (2, 'y', NULL), (NULL, 'z', DATE '2024-01-02');
-- tier: operators
SELECT * FROM t ORDER BY a;
--| NULL | 'z' | 2024-01-02
--| 1 | NULL | 2024-01-01
--| 2 | 'y' | NULL
--| 3 | 'x' | 2024-01-03

-- tier: operators
SELECT t.b, a AS number, c day FROM t AS t ORDER BY t.a DESC LIMIT 2;
--| 'x' | 3 | 2024-01-03
--| 'y' | 2 | NULL

-- tier: spark
SELECT x.*, a FROM t x LIMIT 0;
--| (no rows)

-- tier: operators
SELECT a, a, A FROM t WHERE a = 1;
--| 1 | 1 | 1

-- tier: operators
SELECT b FROM t ORDER BY b DESC, a LIMIT 100;
--| 'z'
--| 'y'
--| 'x'
--| NULL

-- case: predicates
CREATE TABLE t (a INT, b STRING, ok BOOLEAN);
INSERT INTO t VALUES (1, 'x', true), (2, NULL, false), (NULL, 'z', NULL), (4, 'w', true);
-- tier: operators
SELECT a FROM t WHERE a > 1 AND NOT (b = 'w') OR b IS NULL ORDER BY a;
--| 2

-- tier: operators
SELECT a FROM t WHERE a IN (1, 4, NULL) ORDER BY a;
--| 1
--| 4

-- tier: operators
SELECT a FROM t WHERE a NOT IN (1, NULL);
--| (no rows)

-- tier: operators
SELECT a FROM t WHERE a = NULL;
--| (no rows)

-- tier: operators
SELECT a FROM t WHERE a BETWEEN 1 AND 2 ORDER BY a;
--| 1
--| 2

-- tier: operators
SELECT a FROM t WHERE a NOT BETWEEN 2 AND 3 ORDER BY a;
--| 1
--| 4

-- tier: operators
SELECT a FROM t WHERE 2 <= a AND ok = TRUE;
--| 4

-- tier: operators
SELECT a FROM t WHERE b <> 'x' AND b IS NOT NULL ORDER BY a;
--| NULL
--| 4

-- case: what is not plain goes to Spark
SET select_rows = 0;
CREATE TABLE t (a INT, b STRING, d DOUBLE);
INSERT INTO t VALUES (1, '1', 1.5), (2, 'y', NULL);
-- tier: spark
SELECT a FROM t WHERE a > 0 + 1;
--| 2

-- tier: spark
SELECT a FROM t WHERE a = 1.0;
--| 1

-- tier: spark
SELECT a FROM t WHERE b = 'y' AND a <=> 2;
--| 2

-- tier: spark
SELECT a + 1 FROM t ORDER BY d NULLS LAST;
--| 2
--| 3

-- tier: spark
SELECT b AS a FROM t ORDER BY a DESC;
--| 'y'
--| '1'

-- tier: spark
SELECT a AS b, b AS a FROM t ORDER BY b, t.b LIMIT 1;
--| 1 | '1'

-- tier: spark
SELECT a FROM t ORDER BY a LIMIT 1 OFFSET 1;
--| 2

-- tier: spark
SELECT DISTINCT a FROM t WHERE b LIKE 'y%';
--| 2

-- tier: spark
SELECT a FROM t WHERE a > '1';
--| 2

-- case: explain says who answers
CREATE TABLE t (a INT, b DOUBLE);
INSERT INTO t VALUES (1, 1.5);
EXPLAIN SELECT a FROM t WHERE a > 0 ORDER BY a DESC LIMIT 3;
--| 'plain scan, no Spark'
--| 'reads 1 files of t, version 1'
--| 'rows: (a > 0)'
--| 'columns: a'
--| 'order: a DESC'
--| 'limit: 3'

EXPLAIN ANALYZE SELECT a FROM t WHERE a > 5;
--| 'plain scan, no Spark'
--| 'reads 1 files of t, version 1'
--| 'rows: (a > 5)'
--| 'columns: a'
--| 'rows returned: 0'

EXPLAIN SELECT name FROM headwater.tables;
--| 'plain scan, no Spark'
--| 'reads headwater.tables'
--| 'columns: name'

EXPLAIN DELETE FROM t;
--! 0A000 EXPLAIN of Delete is not supported yet
