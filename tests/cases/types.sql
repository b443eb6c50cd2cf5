-- Every type that Delta can store, by operators and through Spark.

-- case: every simple type, literals without Spark
CREATE TABLE t (
    a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, g DOUBLE,
    h STRING, i BINARY, j DATE, k TIMESTAMP, l TIMESTAMP_NTZ, m DECIMAL(10, 2), n DECIMAL(38, 0));
DESCRIBE t;
--| 'a' | 'BOOLEAN' | true
--| 'b' | 'TINYINT' | true
--| 'c' | 'SMALLINT' | true
--| 'd' | 'INT' | true
--| 'e' | 'BIGINT' | true
--| 'g' | 'DOUBLE' | true
--| 'h' | 'STRING' | true
--| 'i' | 'BINARY' | true
--| 'j' | 'DATE' | true
--| 'k' | 'TIMESTAMP' | true
--| 'l' | 'TIMESTAMP_NTZ' | true
--| 'm' | 'DECIMAL(10,2)' | true
--| 'n' | 'DECIMAL(38,0)' | true

-- tier: operators
INSERT INTO t VALUES
    (true, 127, 32767, 2147483647, 9223372036854775807, 1.5e0, 'text', X'00FF',
     DATE '2024-02-29', TIMESTAMP '2024-02-29 12:34:56.789012', TIMESTAMP_NTZ '2024-02-29 12:34:56.789012',
     12345678.90, 99999999999999999999999999999999999999),
    (false, -128, -32768, -2147483648, -9223372036854775808, -0.0D, '', X'',
     DATE '0001-01-01', TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP_NTZ '1900-01-01 00:00:00',
     -99999999.99, -99999999999999999999999999999999999999),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM t;
--| true | 127 | 32767 | 2147483647 | 9223372036854775807 | 1.5 | 'text' | X'00ff' | 2024-02-29 | 2024-02-29 12:34:56.789012+00:00 | 2024-02-29 12:34:56.789012 | 12345678.90BD | 99999999999999999999999999999999999999BD
--| false | -128 | -32768 | -2147483648 | -9223372036854775808 | -0.0 | '' | X'' | 0001-01-01 | 1969-12-31 23:59:59.999999+00:00 | 1900-01-01 00:00:00 | -99999999.99BD | -99999999999999999999999999999999999999BD
--| NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL

SELECT * FROM (SELECT * FROM t) WHERE d IS NOT NULL ORDER BY d;
--| false | -128 | -32768 | -2147483648 | -9223372036854775808 | -0.0 | '' | X'' | 0001-01-01 | 1969-12-31 23:59:59.999999+00:00 | 1900-01-01 00:00:00 | -99999999.99BD | -99999999999999999999999999999999999999BD
--| true | 127 | 32767 | 2147483647 | 9223372036854775807 | 1.5 | 'text' | X'00ff' | 2024-02-29 | 2024-02-29 12:34:56.789012+00:00 | 2024-02-29 12:34:56.789012 | 12345678.90BD | 99999999999999999999999999999999999999BD

-- case: floats and their oddities
CREATE TABLE t (i INT, f FLOAT, d DOUBLE);
INSERT INTO t VALUES
    (1, 1.5F, 1.5), (2, float('NaN'), double('NaN')), (3, float('Infinity'), double('-Infinity')),
    (4, -0.0F, -0.0D), (5, float('3.4028235E38'), 1.7976931348623157E308D), (6, 1.4E-45F, 4.9E-324D), (7, NULL, NULL);
SELECT * FROM t ORDER BY i;
--| 1 | 1.5 | 1.5
--| 2 | nan | nan
--| 3 | inf | -inf
--| 4 | -0.0 | -0.0
--| 5 | 3.4028234663852886e+38 | 1.7976931348623157e+308
--| 6 | 1.401298464324817e-45 | 5e-324
--| 7 | NULL | NULL

-- tier: operators
SELECT i FROM t WHERE d > 1e300 ORDER BY i;
--| 2
--| 5

-- tier: operators
SELECT i FROM t WHERE NOT (d <= 1e300) ORDER BY i;
--| 2
--| 5

-- tier: operators
SELECT i FROM t WHERE d = 0.0;
--| 4

SELECT i FROM t WHERE d = double('NaN');
--| 2

SELECT i FROM t ORDER BY d;
--| 7
--| 3
--| 4
--| 6
--| 1
--| 5
--| 2

SELECT d, count(*) FROM t WHERE i IN (2, 4) GROUP BY d ORDER BY d;
--| 0.0 | 1
--| nan | 1

-- case: text
CREATE TABLE t (i INT, s STRING);
-- tier: operators
INSERT INTO t VALUES (1, 'plain'), (2, 'it''s'), (3, 'naïve 水源 🌊'), (4, ''), (5, 'a\tb\\c'), (6, r'a\tb'), (7, 'NULL'), (8, NULL);
SELECT * FROM t;
--| 1 | 'plain'
--| 2 | 'it''s'
--| 3 | 'naïve 水源 🌊'
--| 4 | ''
--| 5 | 'a	b\\c'
--| 6 | 'a\\tb'
--| 7 | 'NULL'
--| 8 | NULL

-- tier: operators
SELECT i FROM t WHERE s >= 'n' ORDER BY s DESC;
--| 1
--| 3

-- tier: operators
SELECT i FROM t WHERE s = 'naïve 水源 🌊';
--| 3

SELECT i, length(s), upper(s) FROM t WHERE length(s) > 5 ORDER BY i;
--| 3 | 10 | 'NAÏVE 水源 🌊'

-- case: nested types
CREATE TABLE t (i INT, a ARRAY<INT>, m MAP<STRING, DOUBLE>, s STRUCT<x: INT, y: STRING>,
    n ARRAY<STRUCT<k: STRING, v: MAP<STRING, ARRAY<DECIMAL(5, 2)>>>>);
DESCRIBE t;
--| 'i' | 'INT' | true
--| 'a' | 'ARRAY<INT>' | true
--| 'm' | 'MAP<STRING, DOUBLE>' | true
--| 's' | 'STRUCT<x: INT, y: STRING>' | true
--| 'n' | 'ARRAY<STRUCT<k: STRING, v: MAP<STRING, ARRAY<DECIMAL(5,2)>>>>' | true

INSERT INTO t VALUES
    (1, array(1, NULL, 3), map('k', 1.5D), named_struct('x', 1, 'y', 'z'), array(named_struct('k', 'q', 'v', map('w', array(1.25))))),
    (2, array(), map(), named_struct('x', NULL, 'y', NULL), array()),
    (3, NULL, NULL, NULL, NULL);

-- tier: operators
SELECT * FROM t ORDER BY i;
--| 1 | [1, NULL, 3] | {'k' -> 1.5} | {x: 1, y: 'z'} | [{k: 'q', v: [['w', [1.25BD]]]}]
--| 2 | [] | {} | {x: NULL, y: NULL} | []
--| 3 | NULL | NULL | NULL | NULL

SELECT i, a[0], m['k'], s.x, s.y, n[0].v['w'][0], size(a), try_element_at(a, 9) FROM t WHERE i = 1;
--| 1 | 1 | 1.5 | 1 | 'z' | 1.25BD | 3 | NULL

SELECT i, x FROM t LATERAL VIEW OUTER explode(a) AS x ORDER BY i, x;
--| 1 | NULL
--| 1 | 1
--| 1 | 3
--| 2 | NULL
--| 3 | NULL

SELECT i, transform(a, v -> v + 1), map_keys(m), cardinality(n) FROM t ORDER BY i;
--| 1 | [2, NULL, 4] | ['k'] | 1
--| 2 | [] | [] | 0
--| 3 | NULL | NULL | NULL

-- case: a struct in a table keeps the names and the case of its fields
CREATE TABLE t (s STRUCT<Xy: INT, `two words`: STRING>);
INSERT INTO t SELECT named_struct('Xy', 1, 'two words', 'z');
SELECT s, s.Xy, s.`two words` FROM t;
--| {Xy: 1, two words: 'z'} | 1 | 'z'

DESCRIBE t;
--| 's' | 'STRUCT<Xy: INT, `two words`: STRING>' | true

DESCRIBE SELECT s AS Whole FROM t;
--| 'Whole' | 'STRUCT<Xy: INT, `two words`: STRING>' | true

-- case: types that tables cannot hold are fine in queries
SELECT TIME '12:34:56', INTERVAL '3' DAY, INTERVAL '2' MONTH, parse_json('{"a": [1, 2]}'), make_interval(1, 2), NULL;
--| 12:34:56 | 3 days, 0:00:00 | 'INTERVAL ''2'' MONTH' | '{"a":[1,2]}' | '1 years 2 months' | NULL

-- case: the types of results
SELECT 1, 1L, 1S, 1Y, 1.5, 1.5D, 1.5F, 'x', true, DATE '2020-01-01', current_timestamp() IS NULL, X'00', array(1), map('a', 1), named_struct('a', 1);
--| 1 | 1 | 1 | 1 | 1.5BD | 1.5 | 1.5 | 'x' | true | 2020-01-01 | false | X'00' | [1] | {'a' -> 1} | {a: 1}

SELECT CAST(1 AS DECIMAL(10, 2)) * CAST(3 AS DECIMAL(10, 2)), avg(CAST(2 AS DECIMAL(10, 2))), sum(CAST(1 AS INT)), count(*), avg(1);
--| 3.0000BD | 2.000000BD | 1 | 1 | 1.0

-- case: time zones change text, never instants
SET time_zone = 'America/New_York';
CREATE TABLE t (i INT, ts TIMESTAMP, n TIMESTAMP_NTZ);
-- tier: operators
INSERT INTO t VALUES (1, TIMESTAMP '2024-07-01 12:00:00', TIMESTAMP_NTZ '2024-07-01 12:00:00'),
    (2, '2024-01-01 12:00:00', '2024-01-01 12:00:00'), (3, TIMESTAMP '2024-01-01 12:00:00+00:00', NULL),
    (4, TIMESTAMP '2024-03-10 02:30:00', NULL), (5, TIMESTAMP '2024-11-03 01:30:00', NULL);
SELECT * FROM t;
--| 1 | 2024-07-01 16:00:00+00:00 | 2024-07-01 12:00:00
--| 2 | 2024-01-01 17:00:00+00:00 | 2024-01-01 12:00:00
--| 3 | 2024-01-01 12:00:00+00:00 | NULL
--| 4 | 2024-03-10 07:30:00+00:00 | NULL
--| 5 | 2024-11-03 05:30:00+00:00 | NULL

SELECT i, CAST(ts AS STRING), hour(ts), date_trunc('DAY', ts) FROM t ORDER BY i;
--| 1 | '2024-07-01 12:00:00' | 12 | 2024-07-01 04:00:00+00:00
--| 2 | '2024-01-01 12:00:00' | 12 | 2024-01-01 05:00:00+00:00
--| 3 | '2024-01-01 07:00:00' | 7 | 2024-01-01 05:00:00+00:00
--| 4 | '2024-03-10 03:30:00' | 3 | 2024-03-10 05:00:00+00:00
--| 5 | '2024-11-03 01:30:00' | 1 | 2024-11-03 04:00:00+00:00

-- tier: operators
SELECT i FROM t WHERE ts >= TIMESTAMP '2024-07-01 12:00:00';
--| 1
--| 5

SELECT TIMESTAMP '2024-03-10 02:30:00', TIMESTAMP '2024-11-03 01:30:00';
--| 2024-03-10 07:30:00+00:00 | 2024-11-03 05:30:00+00:00

SET time_zone = 'UTC';
SELECT i, CAST(ts AS STRING), CAST(n AS STRING) FROM t ORDER BY i;
--| 1 | '2024-07-01 16:00:00' | '2024-07-01 12:00:00'
--| 2 | '2024-01-01 17:00:00' | '2024-01-01 12:00:00'
--| 3 | '2024-01-01 12:00:00' | NULL
--| 4 | '2024-03-10 07:30:00' | NULL
--| 5 | '2024-11-03 05:30:00' | NULL

SET TIME ZONE 'Asia/Kolkata';
SELECT CAST(TIMESTAMP '2024-01-01 00:00:00Z' AS STRING), TIMESTAMP '2024-01-01 00:00:00';
--| '2024-01-01 05:30:00' | 2023-12-31 18:30:00+00:00

SET time_zone = 'Mars/Olympus';
--! 22023 setting time_zone cannot be 'Mars/Olympus' ~ time_zone is a region such as Europe/Berlin, or an offset such as +02:00

-- case: a struct field that may not be NULL
CREATE TABLE t (s STRUCT<x: INT NOT NULL>);
INSERT INTO t SELECT named_struct('x', CAST(NULL AS INT));
--! 42K09 2:15

INSERT INTO t SELECT named_struct('x', 1);
SELECT * FROM t;
--| {x: 1}
