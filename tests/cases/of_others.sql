-- What people know from other systems: TUMBLE, HOP, CUMULATE, SESSION, generate_series, date_bin, time_bucket, WATERMARK FOR.

-- case: windows in FROM
CREATE STREAMING TABLE s (id INT, ts TIMESTAMP, v INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
INSERT INTO s VALUES (1, '2026-01-01 00:00:10', 1), (2, '2026-01-01 00:00:20', 2), (1, '2026-01-01 00:01:10', 3),
  (1, '2026-01-01 00:03:10', 4), (1, '2026-01-01 00:06:00', 5);
CREATE VIEW tumbling AS
  SELECT window_start, window_end, sum(v) AS v FROM TUMBLE(s, ts, INTERVAL '1' MINUTE) GROUP BY window_start, window_end;
CREATE VIEW hopping AS
  SELECT window_start, count(*) AS n FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '30' SECONDS, INTERVAL '1' MINUTE) GROUP BY 1;
CREATE VIEW growing AS
  SELECT c.window_start, c.window_end, sum(c.v) AS v FROM CUMULATE(s, ts, '20 seconds', '1 minute') AS c GROUP BY 1, 2;
CREATE VIEW sessions AS
  SELECT id, window_start, window_end, count(*) AS n FROM SESSION(s, ts, '2 minutes', id) GROUP BY ALL;
SELECT name, tier FROM headwater.views;
--| 'growing' | 'operators'
--| 'hopping' | 'operators'
--| 'sessions' | 'operators'
--| 'tumbling' | 'operators'
SELECT * FROM tumbling ORDER BY window_start LIMIT 2;
--| 2026-01-01 00:00:00+00:00 | 2026-01-01 00:01:00+00:00 | 3
--| 2026-01-01 00:01:00+00:00 | 2026-01-01 00:02:00+00:00 | 3
SELECT * FROM hopping ORDER BY window_start LIMIT 4;
--| 2025-12-31 23:59:30+00:00 | 2
--| 2026-01-01 00:00:00+00:00 | 2
--| 2026-01-01 00:00:30+00:00 | 1
--| 2026-01-01 00:01:00+00:00 | 1
SELECT * FROM growing ORDER BY window_start, window_end LIMIT 4;
--| 2026-01-01 00:00:00+00:00 | 2026-01-01 00:00:20+00:00 | 1
--| 2026-01-01 00:00:00+00:00 | 2026-01-01 00:00:40+00:00 | 3
--| 2026-01-01 00:00:00+00:00 | 2026-01-01 00:01:00+00:00 | 3
--| 2026-01-01 00:01:00+00:00 | 2026-01-01 00:01:20+00:00 | 3
SELECT * FROM sessions ORDER BY id, window_start;
--| 1 | 2026-01-01 00:00:10+00:00 | 2026-01-01 00:05:10+00:00 | 3
--| 1 | 2026-01-01 00:06:00+00:00 | 2026-01-01 00:08:00+00:00 | 1
--| 2 | 2026-01-01 00:00:20+00:00 | 2026-01-01 00:02:20+00:00 | 1
-- as Spark's own: a row that comes just as the gap ends still belongs to the session
SELECT id, session_window.start AS s, session_window.end AS e, count(*) AS n FROM s GROUP BY id, session_window(ts, '2 minutes') ORDER BY id, s;
--| 1 | 2026-01-01 00:00:10+00:00 | 2026-01-01 00:05:10+00:00 | 3
--| 1 | 2026-01-01 00:06:00+00:00 | 2026-01-01 00:08:00+00:00 | 1
--| 2 | 2026-01-01 00:00:20+00:00 | 2026-01-01 00:02:20+00:00 | 1
SELECT s.id, window_start FROM TUMBLE(s, ts, '5 minutes', '1 minute') WHERE s.v = 1;
--| 1 | 2025-12-31 23:56:00+00:00
SELECT x.id FROM TUMBLE((SELECT id, ts FROM s WHERE v > 4), ts, '1 minute') AS x;
--| 1

-- case: a window of others over a window of ours
CREATE STREAMING TABLE s (ts TIMESTAMP, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS
  SELECT window_start, sum(v) AS v FROM TUMBLE(s [INTERVAL 2 MINUTES BEFORE], ts, '1 minute') GROUP BY 1 SAMPLE INTERVAL 2 MINUTES;
INSERT INTO s VALUES ('2026-01-01 00:00:10', 1), ('2026-01-01 00:01:10', 2), ('2026-01-01 00:02:00', 3);
FLUSH;
SELECT * FROM q ORDER BY 1;
--| 2026-01-01 00:00:00+00:00 | 1 | 2026-01-01 00:02:00+00:00
--| 2026-01-01 00:01:00+00:00 | 2 | 2026-01-01 00:02:00+00:00

-- case: growing windows of times without a zone
SET time_zone = 'Asia/Kolkata';
CREATE TABLE t (at TIMESTAMP_NTZ);
INSERT INTO t VALUES (TIMESTAMP_NTZ '2026-01-01 10:25:00'), (NULL);
SELECT window_start, window_end FROM CUMULATE(t, at, '20 minutes', '1 hour') ORDER BY window_end;
--: TIMESTAMP_NTZ, TIMESTAMP_NTZ
--| 2026-01-01 10:00:00 | 2026-01-01 10:40:00
--| 2026-01-01 10:00:00 | 2026-01-01 11:00:00

-- case: watermarks in the list of columns
CREATE STREAM w (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM w2 (id INT, WATERMARK FOR ts AS ts, ts TIMESTAMP);
CREATE STREAM x (id INT, WATERMARK FOR t AS t - INTERVAL 1 SECOND);
--! 42703 3:40 column t does not exist
CREATE STREAM x (t TIMESTAMP, u TIMESTAMP, WATERMARK FOR t AS u - INTERVAL 1 SECOND);
--! 42601 1:63 the watermark of t is t less an interval
CREATE STREAM x (t TIMESTAMP, WATERMARK FOR t AS t, WATERMARK FOR t AS t);
--! 42601 1:53 WATERMARK occurs twice
CREATE STREAM x (t TIMESTAMP, WATERMARK FOR t AS t) TIMESTAMP BY t;
--! 42601 1:53 TIMESTAMP occurs twice

-- case: times rounded down, and series
CREATE TABLE t (at TIMESTAMP, n INT);
INSERT INTO t VALUES ('2026-01-01 13:14:15', 2), ('1969-12-31 23:59:59', 0);
-- sorted
SELECT date_bin(INTERVAL '15' MINUTES, at), date_bin('1 day', at, TIMESTAMP '2000-01-01 06:00:00') AS d FROM t;
--: TIMESTAMP, TIMESTAMP
--| 1969-12-31 23:45:00+00:00 | 1969-12-31 06:00:00+00:00
--| 2026-01-01 13:00:00+00:00 | 2026-01-01 06:00:00+00:00
-- sorted
SELECT time_bucket('1 week', at) AS w, time_bucket('1 month', at) AS m FROM t;
--| 1969-12-29 00:00:00+00:00 | 1969-12-01 00:00:00+00:00
--| 2025-12-29 00:00:00+00:00 | 2026-01-01 00:00:00+00:00
SELECT * FROM generate_series(1, 3);
--| 1
--| 2
--| 3
SELECT n FROM generate_series(6, 1, -2) AS t(n);
--| 6
--| 4
--| 2
SELECT * FROM generate_series(3, 1);
--| (no rows)
SELECT h FROM generate_series(TIMESTAMP '2026-01-01 02:00:00', TIMESTAMP '2026-01-01 00:00:00', INTERVAL '-90' MINUTES) AS h;
--| 2026-01-01 02:00:00+00:00
--| 2026-01-01 00:30:00+00:00
SELECT n, g FROM (VALUES (-2), (3)) AS t(n), generate_series(4, 1, n) AS g;
--| -2 | 4
--| -2 | 2
SELECT d FROM generate_series(DATE '2026-01-30', DATE '2026-02-01', INTERVAL '1' DAY) AS d;
--| 2026-01-30
--| 2026-01-31
--| 2026-02-01
SELECT t.n, g FROM t, generate_series(1, t.n) AS g ORDER BY g;
--| 2 | 1
--| 2 | 2

-- case: how they are called
CREATE STREAMING TABLE s (ts TIMESTAMP) TIMESTAMP BY ts;
SELECT * FROM TUMBLE(s, ts);
--! 22023 2:15 TUMBLE: 2 arguments ~ it is called TUMBLE(table, time, size [, offset])
SELECT * FROM HOP(s, ts, '2 minutes', '1 minute');
--! 22023 1:26 HOP: the slide is longer than the window ~ the slide comes first, then the size
SELECT * FROM CUMULATE(s, ts, '25 seconds', '1 minute');
--! 22023 1:45 CUMULATE: the size is not a number of steps
SELECT * FROM TUMBLE(s, ts, '1 month');
--! 22023 1:29 TUMBLE: months and years are not a fixed length ~ use WEEK, DAY, HOUR, MINUTE, SECOND or smaller units
SELECT * FROM TUMBLE(nothing, ts, '1 minute');
--! 42P01 1:15 table nothing does not exist
CREATE VIEW v AS SELECT date_bin('1 month', ts) FROM s;
--! 22023 1:34 date_bin: months and years are not a fixed length

-- case: a function of the user's own comes first
CREATE FUNCTION date_bin(a INT, b INT) RETURNS INT RETURN a + b;
SELECT date_bin(1, 2) AS x;
--| 3
