-- Bad statements: SQLSTATE, place and hint. After each, the database is as it was.

-- case: syntax
SELEC 1;
--! 42601 1:1 syntax error at or near "SELEC" ~ did you mean SELECT?

SELECT (1;
--! 42601 1:8 unclosed ( ~ the ( that starts here has no matching )

SELECT 'open;
--! 42601 1:8 unclosed string ~ the string that starts here has no end; close it with a quote

CREATE TABEL t (a INT);
--! 42601 1:8 syntax error at or near "TABEL" ~ did you mean TABLE?

CREATE TABLE t (a INT,);
--! 42601 1:23 syntax error at or near ")"

INSERT INTO t VALUES 1, 2;
--! 42P01 1:13 table t does not exist ~ SHOW TABLES lists what there is

SELECT a b c FROM range(1);
--! 42601 1:12 syntax error at or near 'c'

UPDATE t SET;
--! 42601 1:13 syntax error at end of input

DELETE t;
--! 42601 1:8 syntax error at or near "t"

SELECT * FORM t;
--! 42601 1:15 syntax error at or near 't' ~ did you mean FROM?

CREATE TABLE t (a INT);
UPDATE t SET a = 1 WHERE a > 1 RETURNING a;
--! 42601 syntax error ~ RETURNING is not supported yet: read the rows with a SELECT

SELECT 1; SELECT 2; SELEC 3;
--! 42601 1:21 syntax error at or near "SELEC" ~ did you mean SELECT?

-- case: unknown names
CREATE TABLE orders (id INT, price DOUBLE);
SELECT * FROM oders;
--! 42P01 2:15 table oders does not exist ~ did you mean orders?

SELECT pice FROM orders;
--! 42703 1:8 column pice does not exist ~ did you mean id or price?

SELECT
  id,
  o.pric
FROM orders o;
--! 42703 3:3 column o.pric does not exist ~ did you mean o.price or o.id?

SELECT * FROM orders WHERE idd = 1;
--! 42703 1:28 column idd does not exist ~ did you mean id or price?

SELECT nofunction(id) FROM orders;
--! 42883 1:8 function nofunction does not exist ~ SHOW FUNCTIONS lists your own functions; check the spelling

SELECT * FROM headwater.table;
--! 42P01 1:15 table headwater.table does not exist ~ did you mean headwater.tables?

SELECT * FROM other.orders;
--! 42P01 1:15 the table or view `other`.`orders` cannot be found ~ SHOW TABLES lists what there is

INSERT INTO orders SELECT id, prize FROM orders;
--! 42703 1:31 column prize does not exist ~ did you mean price or id?

CREATE TABLE c AS SELECT idd FROM orders;
--! 42703 1:26 column idd does not exist ~ did you mean id or price?

UPDATE orders SET price = prize + 1;
--! 42703 1:27 column prize does not exist ~ did you mean price or id?

DELETE FROM orders WHERE prise > 1;
--! 42703 1:26 column prise does not exist ~ did you mean price or id?

EXPLAIN SELECT nothing FROM orders;
--! 42703 1:16 column nothing does not exist ~ did you mean id or price?

WITH c AS (SELECT id FROM orders) SELECT x FROM c;
--! 42703 1:42 column x does not exist ~ did you mean id?

-- case: types
SELECT 1 + 'x';
--! 22018 1:8 the value 'x' of the type "STRING" cannot be cast to "BIGINT" because it is malformed ~ use try_cast to get NULL for values that do not fit

SELECT 'a' AND true;
--! 22018 1:8 the value 'a' of the type "STRING" cannot be cast to "BOOLEAN" because it is malformed ~ use try_cast to get NULL for values that do not fit

SELECT DATE '2024-13-01';
--! 42604 1:8 the value of the typed literal "DATE" is invalid: '2024-13-01'

SELECT CAST('abc' AS INT);
--! 22018 1:8 the value 'abc' of the type "STRING" cannot be cast to "INT" because it is malformed ~ use try_cast to get NULL for values that do not fit

SELECT CAST(300 AS TINYINT);
--! 22003 the value 300 of the type "INT" cannot be cast to "TINYINT" due to an overflow ~ use a wider type, or try_cast to get NULL

SELECT map(1, 2) = map(1, 2);
--! 42K09 1:8 cannot resolve "(map(1, 2) = map(1, 2))" due to data type mismatch: The `=` does not support ordering on type "MAP<INT, INT>"

SELECT sum('x' || id) FROM range(1);
--! 22018 1:8 the value 'x0' of the type "STRING" cannot be cast to "DOUBLE" because it is malformed ~ use try_cast to get NULL for values that do not fit

SELECT explode(5);
--! 42K09 1:8 cannot resolve "explode(5)" due to data type mismatch: The first parameter requires the ("ARRAY" or "MAP") type, however "5" has the type "INT"

SELECT array(1, 2)[5];
--! 22003 1:8 the index 5 is out of bounds ~ use get(array, index)

SELECT id FROM range(2) GROUP BY ();
--! 42601 1:35 syntax error at or near ')'

SELECT id, count(*) FROM range(2);
--! 42803 1:1 the query does not include a GROUP BY clause. Add GROUP BY or turn it into the window functions using OVER clauses

-- case: arithmetic
SELECT 1 / 0;
--! 22012 1:8 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

SELECT 2147483647 + 1;
--! 22003 1:8 overflow ~ use a wider type, or try_add, try_subtract, try_multiply

SELECT 9223372036854775807 + 1;
--! 22003 1:8 overflow ~ use a wider type, or try_add, try_subtract, try_multiply

SELECT id / (id - 1) FROM range(3);
--! 22012 1:8 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

SELECT CAST(1e30 AS DECIMAL(10, 0));
--! 22003 1:8 1000000000000000000000000000000 cannot be represented as Decimal(10, 0)

SELECT (SELECT id FROM range(2));
--! 21000 more than one row returned by a subquery used as an expression

-- case: the place is right in an edited text
CREATE TABLE t (a INT);
INSERT INTO t VALUES (0);
SELECT
  name, 1 / (row_count - 1)
FROM headwater.tables;
--! 22012 4:9 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

INSERT INTO t
SELECT a,
       b FROM t;
--! 42703 3:8 column b does not exist ~ did you mean a?

INSERT INTO t SELECT 1 /
  a FROM t;
--! 22012 1:22 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

UPDATE t
SET a = 1 / a
WHERE a = 0;
--! 22012 2:9 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

MERGE INTO t USING (SELECT 0 AS a) s ON t.a = s.a
WHEN MATCHED THEN UPDATE SET a = 5 / s.a;
--! 22012 2:34 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

SELECT * FROM t;
--| 0

-- case: what others write, and what there is in its place
CREATE TABLE orders (id INT);
SELECT cout(*) FROM orders;
--! 42883 2:8 function cout does not exist ~ did you mean count?
SELECT TUMBLE(id, INTERVAL '1' MINUTE) FROM orders;
--! 42883 1:8 function TUMBLE does not exist ~ a window stands behind its table
REFRESH MATERIALIZED VIEW v;
--! 0A000 1:1 REFRESH is not supported ~ views are always up to date
GRANT SELECT ON orders TO bob;
--! 0A000 1:1 GRANT is not supported ~ the ROLE READER, WRITER or ADMIN
VACUUM;
--! 0A000 1:1 VACUUM is not supported ~ files are joined and removed by themselves
CREATE SCHEMA s;
--! 0A000 1:8 CREATE SCHEMA is not supported ~ a data folder is one database
CREATE CONTINUOUS VIEW v AS SELECT id FROM orders;
--! 0A000 1:8 a view is not CREATEd CONTINUOUS ~ CREATE VIEW …: it is kept as rows come
EXPLAIN orders;
--! 42601 1:9 syntax error at or near "orders" ~ EXPLAIN VIEW v, EXPLAIN QUERY q, or EXPLAIN SELECT …
SUBSCRIBE oders;
--! 42P01 there is no continuous query, view or table oders ~ did you mean orders?
PAUSE QUERY orders;
--! 42P01 1:13 there is no continuous query orders ~ orders is a table
CREATE STREAMING TABLE arrivals (id INT);
ALTER TABLE arrivals ADD COLUMN x INT;
--! 0A000 2:13 a streaming table keeps its name and its columns ~ create another one, and INSERT INTO it SELECT … FROM arrivals
ALTER TABLE arrivals RENAME COLUMN id TO x;
--! 0A000 1:13 a streaming table keeps its name and its columns
ALTER TABLE arrivals RENAME TO departures;
--! 0A000 1:13 a streaming table keeps its name and its columns
