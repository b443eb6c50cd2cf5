-- CREATE, DROP, ALTER and TRUNCATE of standard tables.

-- case: create, describe, drop
-- tier: operators
CREATE TABLE t (a INT NOT NULL, b STRING COMMENT 'a note', c DECIMAL(12, 2)) COMMENT 'things';
DESCRIBE t;
--| 'a' | 'INT' | false
--| 'b' | 'STRING' | true
--| 'c' | 'DECIMAL(12,2)' | true

-- tier: operators
SELECT name, kind, row_count, file_count, version FROM headwater.tables;
--| 't' | 'table' | 0 | 0 | 0

-- tier: operators
DROP TABLE t;
--# DROP TABLE

DESCRIBE t;
--! 42P01 1:10 table t does not exist ~ SHOW TABLES lists what there is

-- case: names are case-insensitive and keep their case
CREATE TABLE Orders (OrderId INT, `two words` INT, `tick``ed` INT);
INSERT INTO ORDERS VALUES (1, 2, 3);
-- tier: operators
SELECT orderid, `Two Words`, `TICK``ED` FROM orders;
--| 1 | 2 | 3

SELECT sum(ORDERID), max(`two words`), min(`tick``ed`) FROM Orders;
--| 1 | 2 | 3

CREATE TABLE orders (a INT);
--! 42P07 table Orders exists already ~ choose another name, or DROP TABLE Orders first

DESCRIBE orders;
--| 'OrderId' | 'INT' | true
--| 'two words' | 'INT' | true
--| 'tick`ed' | 'INT' | true

-- case: if exists, if not exists
CREATE TABLE t (a INT);
INSERT INTO t VALUES (1);
CREATE TABLE IF NOT EXISTS t (b STRING);
SELECT * FROM t;
--| 1

DROP TABLE IF EXISTS nothing;
--# DROP TABLE

DROP TABLE nothing;
--! 42P01 1:12 table nothing does not exist ~ SHOW TABLES lists what there is

-- case: a table that exists is not made again, nor lost
CREATE TABLE t (a INT);
INSERT INTO t VALUES (7);

CREATE TABLE t (b INT);
--! 42P07 table t exists already ~ choose another name, or DROP TABLE t first

CREATE TABLE t AS SELECT 1 AS b;
--! 42P07 table t exists already ~ choose another name, or DROP TABLE t first

SELECT * FROM t;
--| 7

-- case: create or replace
CREATE TABLE t (a INT);
INSERT INTO t VALUES (7);
CREATE OR REPLACE TABLE t (b STRING);
SELECT * FROM t;
--| (no rows)

DESCRIBE t;
--| 'b' | 'STRING' | true

INSERT INTO t VALUES ('x'), ('yy');
CREATE OR REPLACE TABLE t AS SELECT b, length(b) AS n FROM t;
--# CREATE TABLE 2

-- sorted
SELECT * FROM t;
--| 'x' | 1
--| 'yy' | 2

-- case: a failed replacement leaves the old table
CREATE TABLE t (a INT);
INSERT INTO t VALUES (7);

CREATE OR REPLACE TABLE t AS SELECT 1 / a - 1 / (a - 7) AS b FROM t;
--! 22012 1:45 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

SELECT * FROM t;
--| 7

-- case: create table as select
CREATE TABLE t AS SELECT id AS a, CAST(id AS STRING) AS s, id % 2 = 0 AS even FROM range(4);
--# CREATE TABLE 4

DESCRIBE t;
--| 'a' | 'BIGINT' | true
--| 's' | 'STRING' | true
--| 'even' | 'BOOLEAN' | true

-- sorted
SELECT * FROM t;
--| 0 | '0' | true
--| 1 | '1' | false
--| 2 | '2' | true
--| 3 | '3' | false

CREATE TABLE u AS SELECT 1 AS a, 2 AS A;
--! 42701 the query has two columns named A ~ name them with AS

CREATE TABLE u AS SELECT NULL AS a;
--! 0A000 column a is always NULL and has no type ~ CAST(NULL AS …) gives it one

CREATE TABLE u AS SELECT 1 AS _a;
--! 42602 the name _a starts with _ ~ names that start with _ belong to the system; use AS to give another

CREATE TABLE u AS SELECT INTERVAL '1' DAY AS a;
--! 0A000 1:1 a column cannot have type INTERVAL ~ use BIGINT with a unit of your choice

CREATE TABLE u AS SELECT count(*), 1 + 1 FROM t;
DESCRIBE u;
--| 'count(1)' | 'BIGINT' | true
--| '(1 + 1)' | 'INT' | true

SELECT * FROM u;
--| 4 | 2

CREATE TABLE empty AS SELECT * FROM t WHERE a > 100;
SELECT * FROM empty;
--| (no rows)

-- case: truncate
CREATE TABLE t (a INT);
INSERT INTO t VALUES (1), (2);
-- tier: operators
TRUNCATE TABLE t;
--# TRUNCATE 2

SELECT * FROM t;
--| (no rows)

TRUNCATE TABLE t;
--# TRUNCATE 0

TRUNCATE TABLE u;
--! 42P01 1:16 table u does not exist ~ SHOW TABLES lists what there is

-- case: add columns
CREATE TABLE t (a INT);
INSERT INTO t VALUES (1);
-- tier: operators
ALTER TABLE t ADD COLUMNS (b STRING, c STRUCT<x: INT>);
INSERT INTO t VALUES (2, 'x', NULL);
SELECT * FROM t ORDER BY a;
--| 1 | NULL | NULL
--| 2 | 'x' | NULL

-- tier: operators
SELECT a FROM t WHERE b IS NULL;
--| 1

INSERT INTO t SELECT 3, 'y', named_struct('x', 5);
-- sorted
SELECT a, b, c.x, count(*) OVER () FROM t;
--| 1 | NULL | NULL | 3
--| 2 | 'x' | NULL | 3
--| 3 | 'y' | 5 | 3

ALTER TABLE t ADD COLUMN A INT;
--! 42701 1:26 column A exists already

ALTER TABLE t ADD COLUMN d INT NOT NULL;
--! 0A000 1:26 a new column cannot be NOT NULL ~ rows there are have NULL in it

ALTER TABLE nothing ADD COLUMN d INT;
--! 42P01 1:13 table nothing does not exist ~ SHOW TABLES lists what there is

-- case: rename and drop columns
CREATE TABLE t (a INT NOT NULL, b STRING, c DOUBLE);
INSERT INTO t VALUES (1, 'x', 1.5), (2, NULL, 2.5);
ALTER TABLE t RENAME COLUMN b TO text;
SELECT * FROM t ORDER BY a;
--| 1 | 'x' | 1.5
--| 2 | NULL | 2.5

ALTER TABLE t RENAME COLUMN a TO text;
--! 42701 1:34 column text exists already

ALTER TABLE t RENAME COLUMN nothing TO other;
--! 42703 1:29 column nothing does not exist ~ columns: a, text, c

ALTER TABLE t DROP COLUMN c;
DESCRIBE t;
--| 'a' | 'INT' | false
--| 'text' | 'STRING' | true

INSERT INTO t VALUES (NULL, 'x');
--! 23502 NULL in column a, which is NOT NULL ~ nothing was written; give a value for every row

ALTER TABLE t DROP COLUMNS (a, text);
--! 42P16 a table needs at least one column ~ DROP TABLE

ALTER TABLE t DROP COLUMN nothing;
--! 42703 1:27 column nothing does not exist ~ columns: a, text

ALTER TABLE t DROP COLUMN IF EXISTS nothing;
SELECT * FROM t ORDER BY a;
--| 1 | 'x'
--| 2 | NULL

-- case: rename a table
CREATE TABLE t (a INT);
CREATE TABLE u (a INT);
INSERT INTO t VALUES (1);
-- tier: operators
ALTER TABLE t RENAME TO v;
SELECT * FROM v;
--| 1

SELECT * FROM t;
--! 42P01 1:15 table t does not exist ~ SHOW TABLES lists what there is

ALTER TABLE v RENAME TO U;
--! 42P07 table u exists already ~ choose another name, or DROP TABLE u first

ALTER TABLE v RENAME TO V;
SELECT name FROM headwater.tables;
--| 'u'
--| 'V'

-- case: refused definitions
CREATE TABLE t (a INT, A STRING);
--! 42701 1:24 column A occurs twice

CREATE TABLE t (_a INT);
--! 42602 1:17 the name _a starts with _ ~ names that start with _ belong to the system

CREATE TABLE _t (a INT);
--! 42602 1:14 the name _t starts with _ ~ names that start with _ belong to the system

CREATE TABLE t (a INT PRIMARY KEY);
--! 0A000 1:23 PRIMARY KEY is not supported in table definitions ~ columns take NOT NULL and COMMENT; for the newest row per key use UPDATE KEY (…)

CREATE TABLE t ();
--! 42601 1:17 syntax error at or near ")"

CREATE TABLE t (a TIME);
--! 0A000 1:19 a column cannot have type TIME ~ use STRING, or TIMESTAMP with a date

CREATE TABLE t (a INTERVAL DAY);
--! 0A000 1:19 a column cannot have type INTERVAL ~ use BIGINT with a unit of your choice

CREATE TABLE t (a VARIANT);
--! 0A000 1:19 a column cannot have type VARIANT ~ use STRING with JSON in it

CREATE TABLE t (a INTT);
--! 42704 1:19 type INTT does not exist ~ did you mean INT?

CREATE TABLE t (a DECIMAL(39, 0));
--! 22023 1:26 there is no DECIMAL(39, 0) ~ precision is 1 to 38, scale at most the precision

CREATE TABLE t (a MAP<MAP<INT, INT>, INT>);
--! 0A000 1:23 a map cannot be the key of a map

SELECT name FROM headwater.tables;
--| (no rows)

-- case: columns named like keywords
CREATE TABLE `order` (`select` INT, `from` INT, `group` INT, `left` INT, `on` INT, `case` INT);
INSERT INTO `order` VALUES (1, 2, 3, 4, 5, 6);
INSERT INTO `order` (`case`, `select`) SELECT 10, 11;
UPDATE `order` SET `group` = `from` + 1, `on` = 7 WHERE `select` = 1;
-- sorted
SELECT * FROM `order`;
--| 1 | 2 | 3 | 4 | 7 | 6
--| 11 | NULL | NULL | NULL | NULL | 10

MERGE INTO `order` o USING (SELECT 1 AS k) s ON o.`select` = s.k WHEN MATCHED THEN UPDATE SET `left` = 9;
ALTER TABLE `order` RENAME COLUMN `case` TO `end`;
DELETE FROM `order` WHERE `select` = 11;
SELECT * FROM `order`;
--| 1 | 2 | 3 | 9 | 7 | 6
