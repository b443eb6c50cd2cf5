-- INSERT in all its forms, and which types go into which columns.

-- case: literal rows need no Spark
CREATE TABLE t (a INT, b STRING, c DOUBLE);
-- tier: operators
INSERT INTO t VALUES (1, 'x', 1), (2, NULL, 2.5), (-3, 'z', -1e3);
--# INSERT 3

-- tier: operators
INSERT INTO t (c, A) VALUES (9.5, 4);
--# INSERT 1

-- tier: operators
INSERT INTO TABLE t VALUES (5, 'v', NULL);
SELECT * FROM t ORDER BY a;
--| -3 | 'z' | -1000.0
--| 1 | 'x' | 1.0
--| 2 | NULL | 2.5
--| 4 | NULL | 9.5
--| 5 | 'v' | NULL

-- case: expressions and queries go through Spark
CREATE TABLE t (a INT, b STRING);
-- tier: spark
INSERT INTO t VALUES (1 + 1, upper('x')), (3, NULL);
--# INSERT 2

INSERT INTO t SELECT a * 10, b FROM t;
--# INSERT 2

INSERT INTO t (b) SELECT 'only b';
INSERT INTO t TABLE t;
INSERT INTO t WITH c AS (SELECT 99 AS n) SELECT n, 'cte' FROM c;
-- sorted
SELECT * FROM t;
--| 2 | 'X'
--| 2 | 'X'
--| 20 | 'X'
--| 20 | 'X'
--| 3 | NULL
--| 3 | NULL
--| 30 | NULL
--| 30 | NULL
--| 99 | 'cte'
--| NULL | 'only b'
--| NULL | 'only b'

INSERT INTO t BY NAME SELECT 'named' AS b, 5 AS a;
-- sorted
SELECT * FROM t WHERE b = 'named';
--| 5 | 'named'

INSERT INTO t BY NAME SELECT 1 AS nothing;
--! 42703 column nothing does not exist

INSERT INTO t SELECT 1, 'x' WHERE false;
--# INSERT 0

-- case: a query reads the table as it was
CREATE TABLE t (a INT);
INSERT INTO t VALUES (1), (2);
INSERT INTO t SELECT a FROM t;
INSERT INTO t SELECT a FROM t;
SELECT count(*), sum(a) FROM t;
--| 8 | 12

-- case: store assignment widens and narrows numbers that fit
CREATE TABLE t (a TINYINT, b BIGINT, c FLOAT, d DECIMAL(5, 2), e STRING, f DATE, g TIMESTAMP);
INSERT INTO t SELECT 5L, 5Y, 2.5D, 1.005, 42, TIMESTAMP '2024-05-06 07:08:09', DATE '2024-05-06';
INSERT INTO t VALUES (7, 8, 1.5, 3, true, '2024-01-02', '2024-01-02 03:04:05');
-- sorted
SELECT * FROM t;
--| 5 | 5 | 2.5 | 1.01BD | '42' | 2024-05-06 | 2024-05-06 00:00:00+00:00
--| 7 | 8 | 1.5 | 3.00BD | 'true' | 2024-01-02 | 2024-01-02 03:04:05+00:00

INSERT INTO t (a) SELECT 128;
--! 22003 the value 128 of the type "INT" cannot be cast to "TINYINT" due to an overflow ~ use a wider type, or try_cast to get NULL

INSERT INTO t (a) VALUES (128);
--! 22003 128 is out of range for column a TINYINT

INSERT INTO t (d) VALUES (1000);
--! 22003 1:19 1000 cannot be represented as Decimal(5, 2)

INSERT INTO t (d) SELECT 123456.5;
--! 22003 1:19 123456.5 cannot be represented as Decimal(5, 2)

INSERT INTO t (f) VALUES ('tomorrow');
--! 22018 1:19 the value 'tomorrow' of the type "STRING" cannot be cast to "DATE" ~ use try_cast to get NULL for values that do not fit

INSERT INTO t (a) VALUES ('5');
--! 42804 column a is TINYINT but the expression is STRING ~ use CAST(… AS …) if that is what you mean

INSERT INTO t (a) SELECT true;
--! 42804 column a is TINYINT but the expression is BOOLEAN ~ use CAST(… AS …) if that is what you mean

INSERT INTO t (g) VALUES (5);
--! 42804 column g is TIMESTAMP but the expression is INT ~ use CAST(… AS …) if that is what you mean

SELECT count(*) FROM t;
--| 2

-- case: NULL where it is not allowed
CREATE TABLE t (a INT NOT NULL, b STRING);
INSERT INTO t VALUES (1, 'x'), (NULL, 'y');
--! 23502 NULL in column a, which is NOT NULL ~ nothing was written; give a value for every row

INSERT INTO t (b) VALUES ('y');
--! 23502 NULL in column a, which is NOT NULL ~ nothing was written; give a value for every row

INSERT INTO t SELECT CAST(NULL AS INT), 'z';
--! 23502 NULL in column a, which is NOT NULL ~ nothing was written; give a value for every row

INSERT INTO t SELECT a, 'z' FROM (SELECT 1 AS a UNION ALL SELECT NULL);
--! 23502 NULL in column a, which is NOT NULL ~ nothing was written; give a value for every row

SELECT * FROM t;
--| (no rows)

-- case: wrong numbers of values
CREATE TABLE t (a INT, b STRING);
INSERT INTO t VALUES (1);
--! 42601 2:13 1 values are given, 2 columns are to be filled ~ name the columns: INSERT INTO t (a, b) …

INSERT INTO t VALUES (1, 'x', 3);
--! 42601 1:13 3 values are given, 2 columns are to be filled ~ name the columns: INSERT INTO t (a, b) …

INSERT INTO t VALUES (1, 'x'), (2);
--! 42601 1:1 row 2 has 1 values, 2 are needed

INSERT INTO t (a) VALUES (1, 'x');
--! 42601 1:1 row 1 has 2 values, 1 are needed

INSERT INTO t SELECT 1;
--! 42601 1:13 1 values are given, 2 columns are to be filled ~ name the columns: INSERT INTO t (a, b) …

INSERT INTO t (a, A) VALUES (1, 2);
--! 42701 1:19 column A occurs twice

INSERT INTO t (a, c) VALUES (1, 2);
--! 42703 1:19 column c does not exist ~ columns: a, b

INSERT INTO nothing VALUES (1);
--! 42P01 1:13 table nothing does not exist ~ SHOW TABLES lists what there is

SELECT * FROM t;
--| (no rows)

-- case: several statements in one text stop at the first error
CREATE TABLE t (a INT);
INSERT INTO t VALUES (1); INSERT INTO t VALUES ('x' || 'y'); INSERT INTO t VALUES (3);
--! 42804 column a is INT but the expression is STRING ~ use CAST(… AS …) if that is what you mean

SELECT * FROM t;
--| 1

-- case: strings can never become code
CREATE TABLE t (s STRING);
INSERT INTO t VALUES ('); DROP TABLE t; --'), (''' OR 1 = 1');
SELECT * FROM t;
--| '); DROP TABLE t; --'
--| ''' OR 1 = 1'

-- case: empty and NULL nested values have no type of their own
CREATE TABLE t (i INT, a ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: INT, y: ARRAY<STRING>>);
INSERT INTO t VALUES (1, array(), map(), named_struct('x', NULL, 'y', array()));
INSERT INTO t VALUES (2, array(NULL), NULL, named_struct('x', 1, 'y', NULL));
SELECT * FROM t ORDER BY i;
--| 1 | [] | {} | {x: NULL, y: []}
--| 2 | [NULL] | NULL | {x: 1, y: NULL}
