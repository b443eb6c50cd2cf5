-- SQL functions and procedures.

-- case: scalar functions
CREATE FUNCTION add_tax(price DOUBLE, rate DOUBLE) RETURNS DOUBLE RETURN price * (1 + rate);
SELECT add_tax(100, 0.5), ADD_TAX(10, 0);
--| 150.0 | 10.0

CREATE FUNCTION add_tax(x INT) RETURNS INT RETURN x;
--! 42723 1:17 function add_tax exists already

CREATE FUNCTION IF NOT EXISTS add_tax(x INT) RETURNS INT RETURN x;
SELECT add_tax(100, 0.5);
--| 150.0

CREATE OR REPLACE FUNCTION add_tax(price DOUBLE) RETURNS DOUBLE RETURN price * 2;
SELECT add_tax(100);
--| 200.0

SELECT name, kind, language, returns FROM headwater.functions;
--| 'add_tax' | 'scalar' | 'sql' | 'DOUBLE'

DROP FUNCTION add_tax;
SELECT add_tax(1);
--! 42883 2:8 function add_tax does not exist ~ SHOW FUNCTIONS lists your own functions; check the spelling

DROP FUNCTION add_tax;
--! 42883 1:15 function add_tax does not exist ~ SHOW FUNCTIONS lists what there is

DROP FUNCTION IF EXISTS add_tax;
--# DROP FUNCTION

-- case: a function that uses another
CREATE FUNCTION zz(x INT) RETURNS INT RETURN x + 1;
CREATE FUNCTION aa(x INT) RETURNS INT RETURN zz(x) * 2;
SELECT aa(1);
--| 4

CREATE OR REPLACE FUNCTION zz(x INT) RETURNS INT RETURN x + 10;
SELECT aa(1);
--| 22

DROP FUNCTION zz;
SELECT 1 + 1;
--| 2

SELECT aa(1);
--! 42883 1:8 function zz does not exist ~ SHOW FUNCTIONS lists your own functions; check the spelling

-- case: a function with a mistake is not made
CREATE FUNCTION f(x INT) RETURNS INT RETURN y + 1;
--! 42703 1:17 column y does not exist ~ did you mean x?

CREATE FUNCTION g(x INT) RETURNS INT RETURN 'a' || x;
SELECT g(1);
--! 22018 2:8 the value 'a1' of the type "STRING" cannot be cast to "INT" because it is malformed ~ use try_cast to get NULL for values that do not fit

CREATE FUNCTION f() RETURNS INT RETURN (SELECT a FROM nothing);
--! 42P01 1:17 the table or view `nothing` cannot be found ~ SHOW TABLES lists what there is

SHOW FUNCTIONS;
--| 'g' | 'scalar' | 'sql' | 'INT'

-- case: a function that reads tables
CREATE TABLE t (k INT, v STRING);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE FUNCTION newest() RETURNS STRING RETURN (SELECT max_by(v, k) FROM t);
CREATE FUNCTION from_key(n INT) RETURNS TABLE (k INT, v STRING) RETURN SELECT k, v FROM t WHERE k >= n;
SELECT newest(), k, v FROM from_key(2) ORDER BY k;
--| 'c' | 2 | 'b'
--| 'c' | 3 | 'c'

INSERT INTO t VALUES (9, 'z');
SELECT newest(), count(*) FROM from_key(3);
--| 'z' | 2

SELECT x.k, f.v FROM t x, LATERAL from_key(x.k) f WHERE x.k >= 3 ORDER BY ALL;
--| 3 | 'c'
--| 3 | 'z'
--| 9 | 'z'

INSERT INTO t SELECT k + 100, newest() FROM from_key(9);
-- sorted
SELECT * FROM t WHERE k > 100;
--| 109 | 'z'

SELECT 1 + 1;
--| 2

-- case: procedures
CREATE TABLE log (n INT, what STRING);
CREATE PROCEDURE note(n INT, what STRING) AS
BEGIN
    INSERT INTO log VALUES (n, what);
    INSERT INTO log SELECT n + 1, upper(what);
    SELECT count(*) AS rows FROM log;
END;
--# CREATE PROCEDURE

CALL note(1, 'it''s');
--| 2

CALL note(2 * 5, concat('a', 'b'));
--| 4

-- sorted
SELECT * FROM log;
--| 1 | 'it''s'
--| 10 | 'ab'
--| 11 | 'AB'
--| 2 | 'IT''S'

CALL note(1);
--! 42883 1:6 procedure note takes 2 arguments, 1 are given

CALL nothing(1);
--! 42883 1:6 procedure nothing does not exist ~ SHOW PROCEDURES lists what there is

CALL note('x', 'y');
--! 22018 the value 'x' of the type "STRING" cannot be cast to "INT" because it is malformed ~ use try_cast to get NULL for values that do not fit

CREATE PROCEDURE note() AS BEGIN SELECT 1; END;
--! 42P07 procedure note exists already ~ choose another name, or DROP PROCEDURE note first

CREATE OR REPLACE PROCEDURE note() AS BEGIN SELECT 1 AS one; END;
CALL note();
--| 1

DROP PROCEDURE note;
CALL note();
--! 42883 2:6 procedure note does not exist ~ SHOW PROCEDURES lists what there is

DROP PROCEDURE note;
--! 42883 1:16 procedure note does not exist ~ SHOW PROCEDURES lists what there is

-- case: parameters keep their types
CREATE PROCEDURE types(a BIGINT, b SMALLINT, c DECIMAL(5, 2), d FLOAT, e TIMESTAMP, f ARRAY<INT>, g BOOLEAN) AS
BEGIN
    SELECT a, b, c, d, e, f, g;
END;
CALL types(1, 2, 3, 4.5, '2024-01-01 00:00:00', array(5, 6), true);
--: BIGINT, SMALLINT, DECIMAL(5,2), FLOAT, TIMESTAMP, ARRAY<INT>, BOOLEAN
--| 1 | 2 | 3.00BD | 4.5 | 2024-01-01 00:00:00+00:00 | [5, 6] | true

CALL types(-1, -2, -3.25, NULL, NULL, NULL, NULL);
--: BIGINT, SMALLINT, DECIMAL(5,2), VOID, VOID, ARRAY<INT>, VOID
--| -1 | -2 | -3.25BD | NULL | NULL | NULL | NULL

CREATE PROCEDURE big(a BIGINT) AS BEGIN SELECT a + 2147483647; END;
CALL big(1);
--| 2147483648

-- case: procedures call each other, but not without end
CREATE PROCEDURE one(x INT) AS BEGIN SELECT x + 1; END;
CREATE PROCEDURE two(x INT) AS BEGIN CALL one(x * 10); END;
CALL two(4);
--| 41

CREATE PROCEDURE forever() AS BEGIN CALL forever(); END;
CALL forever();
--! 54001 procedures call each other more than 32 deep

-- case: a procedure stops at an error and says where
CREATE TABLE t (a INT);
CREATE PROCEDURE bad(x INT) AS BEGIN INSERT INTO t VALUES (x); SELECT 1 / 0; INSERT INTO t VALUES (x); END;
CALL bad(7);
--! 22012 1:8 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

SELECT * FROM t;
--| 7
