-- INSERT in all its forms, and which types go into which columns.

-- case: literal rows need no Spark
CREATE TABLE t (a INT, b STRING, c DOUBLE);
-- tier: inline
INSERT INTO t VALUES (1, 'x', 1), (2, NULL, 2.5), (-3, 'z', -1e3);
--?

-- tier: inline
INSERT INTO t (c, A) VALUES (9.5, 4);
--?

-- tier: inline
INSERT INTO TABLE t VALUES (5, 'v', NULL);
SELECT * FROM t;
--?

-- case: expressions and queries go through Spark
CREATE TABLE t (a INT, b STRING);
-- tier: spark
INSERT INTO t VALUES (1 + 1, upper('x')), (3, NULL);
--?

INSERT INTO t SELECT a * 10, b FROM t;
--?

INSERT INTO t (b) SELECT 'only b';
INSERT INTO t TABLE t;
INSERT INTO t WITH c AS (SELECT 99 AS n) SELECT n, 'cte' FROM c;
-- sorted
SELECT * FROM t;
--?

INSERT INTO t BY NAME SELECT 'named' AS b, 5 AS a;
-- sorted
SELECT * FROM t WHERE b = 'named';
--?

INSERT INTO t BY NAME SELECT 1 AS nothing;
--?

INSERT INTO t SELECT 1, 'x' WHERE false;
--?

-- case: a query reads the table as it was
CREATE TABLE t (a INT);
INSERT INTO t VALUES (1), (2);
INSERT INTO t SELECT a FROM t;
INSERT INTO t SELECT a FROM t;
SELECT count(*), sum(a) FROM t;
--?

-- case: store assignment widens and narrows numbers that fit
CREATE TABLE t (a TINYINT, b BIGINT, c FLOAT, d DECIMAL(5, 2), e STRING, f DATE, g TIMESTAMP);
INSERT INTO t SELECT 5L, 5Y, 2.5D, 1.005, 42, TIMESTAMP '2024-05-06 07:08:09', DATE '2024-05-06';
INSERT INTO t VALUES (7, 8, 1.5, 3, true, '2024-01-02', '2024-01-02 03:04:05');
-- sorted
SELECT * FROM t;
--?

INSERT INTO t (a) SELECT 128;
--?

INSERT INTO t (a) VALUES (128);
--?

INSERT INTO t (d) VALUES (1000);
--?

INSERT INTO t (d) SELECT 123456.5;
--?

INSERT INTO t (f) VALUES ('tomorrow');
--?

INSERT INTO t (a) VALUES ('5');
--?

INSERT INTO t (a) SELECT true;
--?

INSERT INTO t (g) VALUES (5);
--?

SELECT count(*) FROM t;
--?

-- case: NULL where it is not allowed
CREATE TABLE t (a INT NOT NULL, b STRING);
INSERT INTO t VALUES (1, 'x'), (NULL, 'y');
--?

INSERT INTO t (b) VALUES ('y');
--?

INSERT INTO t SELECT CAST(NULL AS INT), 'z';
--?

INSERT INTO t SELECT a, 'z' FROM (SELECT 1 AS a UNION ALL SELECT NULL);
--?

SELECT * FROM t;
--?

-- case: wrong numbers of values
CREATE TABLE t (a INT, b STRING);
INSERT INTO t VALUES (1);
--?

INSERT INTO t VALUES (1, 'x', 3);
--?

INSERT INTO t VALUES (1, 'x'), (2);
--?

INSERT INTO t (a) VALUES (1, 'x');
--?

INSERT INTO t SELECT 1;
--?

INSERT INTO t (a, A) VALUES (1, 2);
--?

INSERT INTO t (a, c) VALUES (1, 2);
--?

INSERT INTO nothing VALUES (1);
--?

SELECT * FROM t;
--?

-- case: several statements in one text stop at the first error
CREATE TABLE t (a INT);
INSERT INTO t VALUES (1); INSERT INTO t VALUES ('x' || 'y'); INSERT INTO t VALUES (3);
--?

SELECT * FROM t;
--?

-- case: strings can never become code
CREATE TABLE t (s STRING);
INSERT INTO t VALUES ('); DROP TABLE t; --'), (''' OR 1 = 1');
SELECT * FROM t;
--?
