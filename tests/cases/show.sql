-- SHOW, DESCRIBE, SET and system tables.

-- case: show
CREATE TABLE b (x INT);
CREATE TABLE a (y INT);
INSERT INTO b VALUES (1), (2);
-- tier: operators
SELECT name, kind, row_count, file_count, version FROM headwater.tables ORDER BY name;
--| 'a' | 'table' | 0 | 0 | 0
--| 'b' | 'table' | 2 | 1 | 1

SHOW VIEWS;
--| (no rows)

SHOW NOTHING;
--! 42704 1:6 setting nothing does not exist ~ SHOW SETTINGS lists all of them

-- case: describe
CREATE TABLE t (a INT NOT NULL, `b c` ARRAY<STRUCT<x: INT>>);
-- tier: operators
DESC TABLE t;
--| 'a' | 'INT' | false
--| 'b c' | 'ARRAY<STRUCT<x: INT>>' | true

DESCRIBE SELECT a, sum(a) AS s, INTERVAL '1' DAY AS i FROM t GROUP BY a;
--| 'a' | 'INT' | true
--| 's' | 'BIGINT' | true
--| 'i' | 'INTERVAL DAY' | true

DESCRIBE nothing;
--! 42P01 1:10 table nothing does not exist ~ SHOW TABLES lists what there is

-- case: settings
-- tier: operators
SHOW rows_at_once;
--| '1000000'

SET rows_at_once = 5;
SHOW rows_at_once;
--| '5'

SELECT name, value FROM headwater.settings WHERE name = 'rows_at_once';
--| 'rows_at_once' | '5'

RESET rows_at_once;
SHOW rows_at_once;
--| '1000000'

SET rows_at_once = -1;
--! 22023 setting rows_at_once cannot be -1 ~ rows_at_once is at least 1

SET rows_at_once = 'many';
--! 22023 setting rows_at_once cannot be 'many' ~ rows_at_once is an integer

SET row_at_once = 5;
--! 42704 setting row_at_once does not exist ~ did you mean rows_at_once?

SET master = 'local[1]';
--! 55P02 setting master takes effect at connect() only ~ connect(…, settings={'master': …}) or the environment variable HEADWATER_MASTER

SHOW nothing;
--! 42704 1:6 setting nothing does not exist ~ SHOW SETTINGS lists all of them

RESET nothing;
--! 42704 setting nothing does not exist ~ SHOW SETTINGS lists all of them

SET statement_timeout_s = INTERVAL '2' MINUTES;
SHOW statement_timeout_s;
--| '120.0'

RESET ALL;
SHOW statement_timeout_s;
--| '0.0'

-- case: settings of Spark
SET spark.sql.shuffle.partitions = 3;
SHOW spark.sql.shuffle.partitions;
--| '3'

SET spark.sql.ansi.enabled = false;
SELECT 1 / 0;
--| NULL

SET spark.sql.ansi.enabled = true;
SELECT 1 / 0;
--! 22012 2:8 division by zero ~ use try_divide to get NULL instead, or filter out zero divisors

-- case: system tables have columns
DESCRIBE headwater.settings;
--| 'name' | 'STRING' | true
--| 'value' | 'STRING' | true
--| 'meaning' | 'STRING' | true

DESCRIBE headwater.functions;
--| 'name' | 'STRING' | true
--| 'kind' | 'STRING' | true
--| 'language' | 'STRING' | true
--| 'returns' | 'STRING' | true
