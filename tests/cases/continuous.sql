-- Continuous queries: windows, instants, materialized views, control and what is refused (ST4–ST6, ST15, DC6).

-- case: figure 1 of the streaming tables paper
CREATE STREAMING TABLE posreports (ts INT, vid INT, spd INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY stopped AS
  SELECT vid, spd FROM posreports [INTERVAL 4 SECONDS] WHERE spd = 0 SAMPLE INTERVAL 2 SECONDS;
SELECT * FROM stopped;
--| (no rows)
INSERT INTO posreports VALUES (0, 1, 0), (1, 1, 32), (3, 2, 0), (4, 4, 0), (6, 4, 32);
ADVANCE posreports TO 7;
FLUSH;
SELECT * FROM stopped;
--| 4 | 0 | 6
--| 2 | 0 | 6
SUBSCRIBE stopped EARLIEST;
--| 1 | 0 | 0
--| 1 | 0 | 2
--| 4 | 0 | 4
--| 2 | 0 | 4
--| 1 | 0 | 4
--| 4 | 0 | 6
--| 2 | 0 | 6
SUBSCRIBE stopped EMIT CHANGES EARLIEST;
--| 1 | 0 | 0 | '+'
--| 4 | 0 | 4 | '+'
--| 2 | 0 | 4 | '+'
--| 1 | 0 | 6 | '-'
DESCRIBE stopped;
--| 'vid' | 'INT' | true
--| 'spd' | 'INT' | true
--| '_t' | 'BIGINT' | true
SELECT name, state, mode, tier, sample, last_instant, results, error FROM headwater.queries;
--| 'stopped' | 'running' | 'fold' | 'operators' | 'interval' | '6' | 4 | NULL

-- case: every window
CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY closed AS SELECT count(*) n FROM s [INTERVAL 2 SECONDS] SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY before AS SELECT count(*) n FROM s [INTERVAL 2 SECONDS BEFORE] SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY last2 AS SELECT k, v FROM s [ROWS 2] SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY last1k AS SELECT k, v, PREV(v) p FROM s [k ROWS 2] SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY since AS SELECT k, count(*) n FROM s [LANDMARK] GROUP BY k ORDER BY k SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY by_rows AS SELECT sum(v) FROM s [ROWS 3] SAMPLE 2 ROWS;
CREATE CONTINUOUS QUERY at_once AS SELECT max(v) m FROM s [INTERVAL 1 SECOND] SAMPLE REALTIME;
INSERT INTO s VALUES (1, 'a', 1), (2, 'b', 2), (2, 'a', 3), (4, 'b', 4), (5, 'a', 5);
ADVANCE s TO 6;
FLUSH;
SUBSCRIBE closed EARLIEST;
--| 3 | 2
--| 3 | 4
--| 2 | 6
SUBSCRIBE before EARLIEST;
--| 1 | 2
--| 2 | 4
--| 2 | 6
SUBSCRIBE last2 EARLIEST;
--| 'a' | 3 | 2
--| 'b' | 2 | 2
--| 'b' | 4 | 4
--| 'a' | 3 | 4
--| 'a' | 5 | 6
--| 'b' | 4 | 6
SUBSCRIBE last1k EARLIEST;
--| 'a' | 3 | 1 | 2
--| 'b' | 2 | NULL | 2
--| 'a' | 1 | NULL | 2
--| 'b' | 4 | 2 | 4
--| 'a' | 3 | 1 | 4
--| 'b' | 2 | NULL | 4
--| 'a' | 1 | NULL | 4
--| 'a' | 5 | 3 | 6
--| 'b' | 4 | 2 | 6
--| 'a' | 3 | NULL | 6
--| 'b' | 2 | NULL | 6
SUBSCRIBE since EARLIEST;
--| 'a' | 2 | 2
--| 'b' | 1 | 2
--| 'a' | 2 | 4
--| 'b' | 2 | 4
--| 'a' | 3 | 6
--| 'b' | 2 | 6
SUBSCRIBE by_rows EARLIEST;
--| 3 | 2
--| 9 | 4
SUBSCRIBE at_once EARLIEST;
--| 1 | 1
--| 3 | 2
--| 4 | 4
--| 5 | 5

-- case: late rows are in history and in no window of a continuous query
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS SELECT count(*) n FROM s [INTERVAL 10 SECONDS] SAMPLE INTERVAL 1 SECOND;
INSERT INTO s VALUES (5, 1);
INSERT INTO s VALUES (3, 2), (6, 3);
ADVANCE s TO 6;
FLUSH;
SELECT * FROM q;
--| 2 | 6
SELECT count(*) FROM s;
--| 3

-- case: a query on a table with rows starts after the clock and sees the stored rows
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
INSERT INTO s VALUES (1, 1), (2, 2), (5, 3);
CREATE CONTINUOUS QUERY now AS SELECT sum(v) t FROM s [INTERVAL 4 SECONDS] SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY all_along FROM BEGINNING AS SELECT sum(v) t FROM s [INTERVAL 4 SECONDS] SAMPLE INTERVAL 2 SECONDS;
ADVANCE s TO 9;
FLUSH;
SUBSCRIBE now EARLIEST;
--| 5 | 6
--| 3 | 8
SUBSCRIBE all_along EARLIEST;
--| 3 | 2
--| 3 | 4
--| 5 | 6
--| 3 | 8

-- case: a materialized view is a streaming table
CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts;
CREATE MATERIALIZED VIEW per_second AS SELECT k, sum(v) total FROM s [INTERVAL 1 SECOND BEFORE] GROUP BY k SAMPLE INTERVAL 1 SECOND;
CREATE CONTINUOUS QUERY smooth AS SELECT k, sum(total) t, count(*) n FROM per_second [INTERVAL 2 SECONDS BEFORE] GROUP BY k SAMPLE INTERVAL 2 SECONDS;
INSERT INTO s VALUES (0, 'a', 1), (1, 'a', 2), (1, 'b', 3), (3, 'a', 4);
ADVANCE s TO 6;
FLUSH;
SELECT * FROM per_second ORDER BY _t, k;
--| 'a' | 1 | 1
--| 'a' | 2 | 2
--| 'b' | 3 | 2
--| 'a' | 4 | 4
SELECT * FROM per_second [ROWS 1];
--| 'a' | 4 | 4
SUBSCRIBE smooth EARLIEST;
--| 'a' | 1 | 1 | 2
--| 'a' | 2 | 1 | 4
--| 'b' | 3 | 1 | 4
--| 'a' | 4 | 1 | 6
INSERT INTO per_second VALUES ('x', 1, 7);
--! 42809 1:13 materialized view per_second takes its rows from its query ~ insert into the tables that it reads
DROP TABLE per_second;
--! 42809 per_second is a materialized view, not a table ~ DROP MATERIALIZED VIEW per_second
DROP MATERIALIZED VIEW per_second;
--! 2BP01 materialized view per_second is read by continuous query smooth ~ KILL QUERY smooth first
KILL QUERY smooth;
DROP MATERIALIZED VIEW per_second;
SHOW VIEWS;
--| (no rows)
SELECT * FROM per_second;
--! 42P01 1:15 table per_second does not exist ~ SHOW TABLES lists what there is

-- case: tables in a continuous query, above and below the fold
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE TABLE names (k INT, name STRING);
INSERT INTO names VALUES (1, 'one'), (2, 'two');
CREATE CONTINUOUS QUERY q AS SELECT name, sum(v) t FROM s [INTERVAL 9 SECONDS] JOIN names USING (k) GROUP BY name ORDER BY name SAMPLE INTERVAL 1 SECOND;
INSERT INTO s VALUES (1, 1, 10), (1, 2, 20), (1, 3, 30);
ADVANCE s TO 1;
FLUSH;
SELECT * FROM q;
--| 'one' | 10 | 1
--| 'two' | 20 | 1
INSERT INTO names VALUES (3, 'three');
ADVANCE s TO 2;
FLUSH;
SELECT * FROM q;
--| 'one' | 10 | 2
--| 'three' | 30 | 2
--| 'two' | 20 | 2
DROP TABLE names;
--! 2BP01 table names is read by continuous query q ~ KILL QUERY q first

-- case: pause, resume, kill
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS SELECT count(*) n FROM s [INTERVAL 2 SECONDS] SAMPLE INTERVAL 1 SECOND;
INSERT INTO s VALUES (1, 1);
ADVANCE s TO 1;
FLUSH;
PAUSE QUERY q;
INSERT INTO s VALUES (2, 1), (3, 1);
ADVANCE s TO 3;
FLUSH;
SELECT * FROM q;
--| 1 | 1
RESUME QUERY q;
FLUSH;
SUBSCRIBE q EARLIEST;
--| 1 | 1
--| 2 | 2
--| 3 | 3
DROP STREAMING TABLE s;
--! 2BP01 streaming table s is read by continuous query q ~ KILL QUERY q first
KILL QUERY q;
SELECT * FROM q;
--! 42P01 2:15 table q does not exist ~ SHOW TABLES lists what there is
KILL QUERY q;
--! 42P01 1:12 there is no continuous query q ~ SHOW QUERIES lists what there is

-- case: an error inside a query stops that query only
CREATE STREAMING TABLE s (ts INT, v STRING) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY bad AS SELECT sum(CAST(v AS INT)) t FROM s [INTERVAL 2 SECONDS] SAMPLE INTERVAL 1 SECOND;
CREATE CONTINUOUS QUERY good AS SELECT count(*) n FROM s [INTERVAL 2 SECONDS] SAMPLE INTERVAL 1 SECOND;
INSERT INTO s VALUES (1, '1'), (2, 'x');
ADVANCE s TO 2;
FLUSH;
--! 55000 not everything was processed: query bad has failed ~ what retries goes on by itself; RESUME QUERY, SOURCE or SINK tries what has failed again
SELECT name, state, error IS NULL FROM headwater.queries;
--| 'bad' | 'failed' | false
--| 'good' | 'running' | true
SELECT * FROM good;
--| 2 | 2

-- case: reset of a landmark
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS SELECT count(*) n, sum(v) t FROM s [LANDMARK] SAMPLE INTERVAL 1 SECOND;
INSERT INTO s VALUES (1, 1), (2, 2);
ADVANCE s TO 2;
FLUSH;
ALTER QUERY q RESET LANDMARK;
INSERT INTO s VALUES (3, 4);
ADVANCE s TO 3;
FLUSH;
SUBSCRIBE q EARLIEST;
--| 1 | 1 | 1
--| 2 | 3 | 2
--| 1 | 4 | 3

-- case: what is refused
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts RANGE INTERVAL 10 SECONDS;
CREATE TABLE t (v INT);
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s [INTERVAL 2 SECONDS];
--! 42P20 3:30 a continuous query needs SAMPLE ~ SAMPLE INTERVAL '1' SECOND, SAMPLE 1000 ROWS or SAMPLE REALTIME at the end
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s SAMPLE INTERVAL 1 SECOND;
--! 42P20 1:51 streaming table s needs a window in a continuous query ~ for instance s [INTERVAL '1' MINUTE] or s [ROWS 100]
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM t [ROWS 3] SAMPLE INTERVAL 1 SECOND;
--! 42P20 1:53 table t has no time, so it takes no window ~ windows stand on streaming tables
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM t SAMPLE INTERVAL 1 SECOND;
--! 42P20 1:30 a continuous query reads at least one streaming table through a window ~ FROM t [INTERVAL '1' MINUTE]
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s [INTERVAL 20 SECONDS] SAMPLE INTERVAL 1 SECOND;
--! 42P16 1:53 the window is longer than the RANGE of table s ~ ALTER TABLE … SET RANGE keeps more
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s [INTERVAL '0.5' SECOND] SAMPLE INTERVAL 1 SECOND;
--! 22008 1:53 the interval is not a whole number of seconds ~ the table's time column is an integer, which counts seconds
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s [nope ROWS 3] SAMPLE INTERVAL 1 SECOND;
--! 42703 1:54 column nope does not exist
CREATE CONTINUOUS QUERY q AS SELECT rand() FROM s [ROWS 3] SAMPLE INTERVAL 1 SECOND;
--! 42P17 1:37 rand() cannot be used in a continuous query ~ a result must be the same when it is computed again
CREATE CONTINUOUS QUERY q AS SELECT w FROM s [ROWS 3] SAMPLE INTERVAL 1 SECOND;
--! 42703 1:37 column w does not exist ~ did you mean ts?
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s [LANDMARK] SAMPLE INTERVAL 1 SECOND;
--! 42P20 1:53 a landmark window reaches beyond the RANGE of table s ~ ALTER TABLE … SET RANGE FOREVER keeps every row
CREATE CONTINUOUS QUERY q WITH (mood = 'auto') AS SELECT count(*) FROM s [ROWS 3] SAMPLE INTERVAL 1 SECOND;
--! 22023 there is no option mood of a continuous query ~ did you mean mode?
SELECT count(*) FROM s [ROWS 3] SAMPLE INTERVAL 1 SECOND;
--! 42P20 1:33 a select with SAMPLE or EMIT is a continuous query ~ CREATE CONTINUOUS QUERY q AS …, or subscribe to it
PAUSE QUERY nope;
--! 42P01 1:13 there is no continuous query nope ~ SHOW QUERIES lists what there is
