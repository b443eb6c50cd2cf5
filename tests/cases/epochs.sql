-- Epochs: chunks by time and by rows, kept chunks, pairs (EQ1, EQ3, EQ4; the queries of the paper).

-- case: Q_A once, Q_B minute by minute, Q_D without the join
CREATE STREAM packets (ts INT, src STRING, dst STRING, bytes INT) TIMESTAMP BY ts;
CREATE TABLE hosts (ip STRING, host STRING);
INSERT INTO hosts VALUES ('1', 'ann'), ('2', 'bob'), ('3', 'bob');
CREATE TABLE packet_table (ts INT, src STRING, dst STRING, bytes INT);
INSERT INTO packet_table VALUES (5, '1', '2', 10), (70, '1', '3', 5);
-- sorted
SELECT h1.host AS from_host, h2.host AS to_host, sum(t.bytes) AS bytes FROM packet_table t, hosts h1, hosts h2
  WHERE h1.ip = t.src AND h2.ip = t.dst GROUP BY h1.host, h2.host;
--| 'ann' | 'bob' | 15
CREATE CONTINUOUS QUERY q_b AS
  SELECT floor(s.ts / 60) AS minute, h1.host AS from_host, h2.host AS to_host, sum(s.bytes) AS bytes
  FROM STREAM(packets, 'CUT ON ts BY 60 SECS') s, hosts h1, hosts h2
  WHERE h1.ip = s.src AND h2.ip = s.dst GROUP BY floor(s.ts / 60), h1.host, h2.host ORDER BY 1, 2, 3;
CREATE CONTINUOUS QUERY q_d AS
  SELECT src, sum(bytes) AS bytes, count(*) AS n FROM packets CUT ON ts BY INTERVAL '60' SECOND GROUP BY src ORDER BY src;
INSERT INTO packets VALUES (5, '1', '2', 10), (20, '1', '3', 7), (59, '2', '1', 1), (60, '1', '2', 2), (185, '3', '1', 4);
ADVANCE packets TO 240;
FLUSH;
SUBSCRIBE q_b EARLIEST;
--| 0 | 'ann' | 'bob' | 17 | 60
--| 0 | 'bob' | 'ann' | 1 | 60
--| 1 | 'ann' | 'bob' | 2 | 120
--| 3 | 'bob' | 'ann' | 4 | 240
SUBSCRIBE q_d EARLIEST;
--| '1' | 17 | 2 | 60
--| '2' | 1 | 1 | 60
--| '1' | 2 | 1 | 120
--| '3' | 4 | 1 | 240

-- case: Q_C joins two streams chunk by chunk
CREATE STREAM rt1 (ts INT, pid INT, seen INT) TIMESTAMP BY ts;
CREATE STREAM rt2 (ts INT, pid INT, seen INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q_c AS
  SELECT avg(s2.seen - s1.seen) AS delay, count(*) AS packets
  FROM STREAM(rt1, 'CUT ON ts BY 60 SECS', 'BLOCK') s1, STREAM(rt2, 'CUT ON ts BY 60 SECS', 'BLOCK') s2
  WHERE s1.pid = s2.pid;
INSERT INTO rt1 VALUES (1, 1, 2), (30, 2, 31), (61, 3, 62);
INSERT INTO rt2 VALUES (1, 1, 5), (62, 2, 63), (63, 3, 66);
ADVANCE rt1 TO 120;
FLUSH;
SELECT waits_for FROM headwater.queries;
--| 'rt2'
ADVANCE rt2 TO 120;
FLUSH;
SUBSCRIBE q_c EARLIEST;
--| 3.0 | 1 | 60
--| 4.0 | 1 | 120

-- case: the newest chunk with the last twelve finds doubled calls
CREATE STREAM cdrs (ts TIMESTAMP, caller INT, callee INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY doubled AS
  SELECT DISTINCT a.caller, a.callee, a.ts AS first, b.ts AS second
  FROM STREAM(cdrs, 'CUT ON ts BY 5 SECS', 'BLOCK', 1) b, STREAM(cdrs, 'CUT ON ts BY 5 SECS', 'BLOCK', 12) a
  WHERE a.caller = b.caller AND a.callee = b.callee
    AND ((a.ts > b.ts AND a.ts - b.ts < INTERVAL '0.2' SECOND) OR (b.ts > a.ts AND b.ts - a.ts < INTERVAL '0.2' SECOND));
INSERT INTO cdrs VALUES ('2026-01-01 00:00:01', 1, 2), ('2026-01-01 00:00:04.9', 3, 4), ('2026-01-01 00:00:05.05', 3, 4),
  ('2026-01-01 00:00:06', 1, 2), ('2026-01-01 00:00:06.1', 1, 2);
ADVANCE cdrs TO '2026-01-01 00:00:10';
FLUSH;
-- sorted
SUBSCRIBE doubled EARLIEST;
--| 1 | 2 | 2026-01-01 00:00:06+00:00 | 2026-01-01 00:00:06.100000+00:00 | 2026-01-01 00:00:10+00:00
--| 1 | 2 | 2026-01-01 00:00:06.100000+00:00 | 2026-01-01 00:00:06+00:00 | 2026-01-01 00:00:10+00:00
--| 3 | 4 | 2026-01-01 00:00:04.900000+00:00 | 2026-01-01 00:00:05.050000+00:00 | 2026-01-01 00:00:10+00:00

-- case: kept chunks, all pairs, and pairs with a newest row only
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY every AS
  SELECT count(*) AS pairs FROM s CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS a JOIN s CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS b ON a.k = b.k;
CREATE CONTINUOUS QUERY newest AS
  SELECT count(*) AS pairs FROM s CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS a JOIN s CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS b ON a.k = b.k PAIR NEWEST;
CREATE CONTINUOUS QUERY outside AS
  SELECT a.v, b.v AS w FROM s CUT ON ts BY INTERVAL '5' SECOND a LEFT JOIN s CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS b ON a.k = b.k AND a.v > b.v;
INSERT INTO s VALUES (1, 1, 1), (2, 1, 2), (6, 1, 3), (11, 2, 4);
ADVANCE s TO 20;
FLUSH;
SUBSCRIBE every EARLIEST;
--| 4 | 5
--| 9 | 10
--| 2 | 15
--| 1 | 20
SUBSCRIBE newest EARLIEST;
--| 4 | 5
--| 5 | 10
--| 1 | 15
--| 0 | 20
-- sorted
SUBSCRIBE outside EARLIEST;
--| 1 | NULL | 5
--| 2 | 1 | 5
--| 3 | 1 | 10
--| 3 | 2 | 10
--| 4 | NULL | 15

-- case: chunks of rows
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n, sum(v) AS t FROM STREAM(s, 'CUT BY 2 ROWS', 'BLOCK', 2);
INSERT INTO s VALUES (1, 1), (2, 2), (2, 3), (5, 4), (6, 5);
FLUSH;
SUBSCRIBE q EARLIEST;
--| 2 | 3 | 2
--| 4 | 10 | 5

-- case: chunks of rows that end at the same time are all seen through a materialized view
CREATE STREAM s (ts INT, v INT) TIMESTAMP BY ts;
CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(v) AS v FROM s CUT BY 2 ROWS;
CREATE CONTINUOUS QUERY by_time AS SELECT count(*) AS n, sum(v) AS v FROM m CUT ON _t BY INTERVAL '5' SECOND;
CREATE CONTINUOUS QUERY by_rows AS SELECT count(*) AS n, sum(v) AS v FROM m CUT BY 2 ROWS;
INSERT INTO s VALUES (1, 1), (2, 2);
FLUSH;
INSERT INTO s VALUES (2, 4), (2, 8);
FLUSH;
INSERT INTO s VALUES (2, 16), (2, 32), (7, 64), (9, 128);
FLUSH;
SELECT *, _late FROM m;
--| 2 | 3 | 2 | false
--| 2 | 12 | 2 | false
--| 2 | 48 | 2 | false
--| 2 | 192 | 9 | false
SUBSCRIBE by_time EARLIEST;
--| 3 | 63 | 5
SUBSCRIBE by_rows EARLIEST;
--| 2 | 15 | 2
--| 2 | 240 | 9

-- case: a query that comes later needs earlier rows of a stream than those before it
CREATE STREAM s (ts INT, v INT) TIMESTAMP BY ts;
CREATE STREAM u (ts INT, v INT) TIMESTAMP BY ts;
INSERT INTO u VALUES (100, 1);
CREATE CONTINUOUS QUERY first AS SELECT count(*) AS n FROM u CUT ON ts BY INTERVAL '10' SECOND, s CUT ON ts BY INTERVAL '10' SECOND;
FLUSH;
CREATE CONTINUOUS QUERY later WITH (mode = 'reevaluate') AS SELECT count(*) AS n, sum(v) AS v FROM s CUT ON ts BY INTERVAL '10' SECOND;
INSERT INTO s VALUES (1, 1), (2, 2), (25, 4);
ADVANCE s TO 30;
FLUSH;
SUBSCRIBE later EARLIEST;
--| 2 | 3 | 10
--| 0 | NULL | 20
--| 1 | 4 | 30

-- case: semi, anti and full outer joins of two streams
CREATE STREAM a (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAM b (ts INT, k INT, w INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY met AS SELECT a.k, a.v FROM a CUT ON ts BY INTERVAL '5' SECOND LEFT SEMI JOIN b CUT ON ts BY INTERVAL '5' SECOND ON a.k = b.k;
CREATE CONTINUOUS QUERY alone AS SELECT a.k, a.v FROM a CUT ON ts BY INTERVAL '5' SECOND LEFT ANTI JOIN b CUT ON ts BY INTERVAL '5' SECOND ON a.k = b.k;
CREATE CONTINUOUS QUERY both AS
  SELECT a.k AS ak, a.v, b.k AS bk, b.w FROM STREAM(a, 'CUT ON ts BY 5 SECS') a FULL OUTER JOIN STREAM(b, 'CUT ON ts BY 5 SECS', 'BLOCK', 2) b ON a.k = b.k;
CREATE CONTINUOUS QUERY newest AS
  SELECT a.v, b.w FROM a CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS FULL OUTER JOIN b CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS ON a.k = b.k PAIR NEWEST;
INSERT INTO a VALUES (1, 1, 10), (2, NULL, 11), (3, 2, 12), (6, 1, 13);
INSERT INTO b VALUES (1, 1, 20), (2, 1, 21), (3, NULL, 22), (7, 2, 23);
ADVANCE a TO 15;
ADVANCE b TO 15;
FLUSH;
-- sorted
SUBSCRIBE met EARLIEST;
--| 1 | 10 | 5
-- sorted
SUBSCRIBE alone EARLIEST;
--| 1 | 13 | 10
--| 2 | 12 | 5
--| NULL | 11 | 5
-- sorted
SUBSCRIBE both EARLIEST;
--| 1 | 10 | 1 | 20 | 5
--| 1 | 10 | 1 | 21 | 5
--| 1 | 13 | 1 | 20 | 10
--| 1 | 13 | 1 | 21 | 10
--| 2 | 12 | NULL | NULL | 5
--| NULL | 11 | NULL | NULL | 5
--| NULL | NULL | 2 | 23 | 10
--| NULL | NULL | 2 | 23 | 15
--| NULL | NULL | NULL | 22 | 10
--| NULL | NULL | NULL | 22 | 5
-- sorted
SUBSCRIBE newest EARLIEST;
--| 10 | 20 | 5
--| 10 | 21 | 5
--| 11 | NULL | 5
--| 12 | 23 | 10
--| 12 | NULL | 5
--| 13 | 20 | 10
--| 13 | 21 | 10
--| NULL | 22 | 5

-- case: three streams move together, a silent one is carried by its clock
CREATE STREAM a (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAM b (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAM c (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY three AS
  SELECT a.v AS x, b.v AS y, c.v AS z FROM a CUT ON ts BY INTERVAL '5' SECOND, b CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS, c CUT ON ts BY INTERVAL '5' SECOND
  WHERE a.k = b.k AND b.k = c.k;
CREATE CONTINUOUS QUERY by_rows AS
  SELECT count(*) AS n, sum(a.v + b.v + c.v) AS t FROM a CUT BY 2 ROWS, b CUT BY 2 ROWS, c CUT BY 2 ROWS WHERE a.k = b.k AND b.k = c.k;
INSERT INTO a VALUES (1, 1, 1), (6, 1, 2), (7, 2, 3), (11, 2, 4);
INSERT INTO b VALUES (2, 1, 10), (8, 2, 20);
INSERT INTO c VALUES (9, 1, 100), (9, 2, 200);
ADVANCE a TO 15;
ADVANCE b TO 15;
FLUSH;
SELECT waits_for FROM headwater.queries WHERE name = 'three';
--| 'c'
ADVANCE c TO 15;
FLUSH;
-- sorted
SUBSCRIBE three EARLIEST;
--| 2 | 10 | 100 | 10
--| 3 | 20 | 200 | 10
SUBSCRIBE by_rows EARLIEST;
--| 2 | 223 | 9

-- case: a condition that is no equality
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS
  SELECT a.v, b.v AS w FROM s CUT ON ts BY INTERVAL '10' SECOND a JOIN s CUT ON ts BY INTERVAL '10' SECOND KEEP 2 CHUNKS b ON a.v > b.v AND a.ts - b.ts < 8;
CREATE CONTINUOUS QUERY larger AS
  SELECT a.v FROM s CUT BY 2 ROWS a LEFT ANTI JOIN s CUT BY 2 ROWS KEEP 2 CHUNKS b ON b.v > a.v;
INSERT INTO s VALUES (1, 5), (3, 1), (9, 3), (12, 4), (13, 4), (19, NULL);
ADVANCE s TO 20;
FLUSH;
-- sorted
SUBSCRIBE q EARLIEST;
--| 3 | 1 | 10
--| 4 | 3 | 20
--| 4 | 3 | 20
--| 5 | 1 | 10
--| 5 | 3 | 10
-- sorted
SUBSCRIBE larger EARLIEST;
--| 4 | 19
--| 5 | 3
--| NULL | 19

-- case: a subquery that depends on the rows outside it
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE r (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS
  SELECT a.k, a.n FROM (SELECT k, count(*) AS n FROM s CUT ON ts BY INTERVAL '5' SECOND GROUP BY k) a
  WHERE NOT EXISTS (SELECT 1 FROM r CUT ON ts BY INTERVAL '5' SECOND e WHERE a.k = e.k);
INSERT INTO s VALUES (1, 1, 1), (2, 2, 2), (3, 2, 3), (6, 1, 4);
INSERT INTO r VALUES (1, 1, 1), (7, 2, 2);
ADVANCE s TO 10;
ADVANCE r TO 10;
FLUSH;
-- sorted
SUBSCRIBE q EARLIEST;
--| 1 | 1 | 10
--| 2 | 2 | 5

-- case: what is refused
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s CUT ON ts BY INTERVAL '5' SECOND a, s CUT ON ts BY INTERVAL '6' SECOND b;
--! 42P20 2:91 all cuts of one query must be alike ~ KEEP may differ
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s CUT ON ts BY INTERVAL '5' SECOND a, s [ROWS 3] b;
--! 42P20 1:91 windows and cuts do not mix
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s CUT ON ts BY INTERVAL '5' SECOND SAMPLE INTERVAL 1 SECOND;
--! 42P20 1:86 a query with CUT is evaluated at the end of each chunk ~ leave SAMPLE out
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s CUT ON nothing;
--! 42703 1:60 column nothing does not exist
CREATE TABLE words (w STRING);
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s CUT ON k, words CUT ON w;
--! 42P20 2:69 table words is no stream, so it is not cut ~ cuts stand on streams and streaming tables
CREATE STREAM names (ts INT, name STRING) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM names CUT ON name BY 5;
--! 42P20 2:57 column name has no steps ~ CUT ON name, without BY, ends a chunk at each new value
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM s CUT ON ts BY 5 a, s CUT ON v BY 5 b;
--! 42P20 1:73 all cuts of one query must be alike ~ KEEP may differ
CREATE STREAMING TABLE short (ts INT, v INT) TIMESTAMP BY ts RANGE INTERVAL '8' SECOND;
CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM short CUT ON ts BY INTERVAL '5' SECOND KEEP 2 CHUNKS;
--! 42P16 2:57 the kept chunks are longer than the RANGE of table short ~ SET RANGE keeps more

-- case: a new value ends a chunk, and its row belongs to the next one
CREATE STREAM s (ts INT, trip STRING, v INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY trips AS SELECT max(trip) AS trip, count(*) AS n, sum(v) AS total FROM s CUT ON trip;
CREATE CONTINUOUS QUERY tens AS SELECT min(v) AS low, max(v) AS high FROM STREAM(s, 'CUT ON v BY 10', 'BLOCK', 2);
INSERT INTO s VALUES (1, 'a', 1), (2, 'a', 2), (2, 'b', 13), (3, NULL, 14), (3, NULL, 25), (7, 'a', 9);
FLUSH;
SUBSCRIBE trips EARLIEST;
--| 'a' | 2 | 3 | 2
--| 'b' | 1 | 13 | 2
--| NULL | 2 | 39 | 3
SUBSCRIBE tens EARLIEST;
--| 1 | 2 | 2
--| 1 | 14 | 3
--| 13 | 25 | 3
SELECT total, _epoch FROM trips;
--| 39 | 2
SELECT * FROM trips;
--| NULL | 2 | 39 | 3

-- case: sources that are cut by values pair by number; the slower one is waited for
CREATE STREAM a (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAM b (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE MATERIALIZED VIEW pairs AS SELECT a.v, b.v AS w FROM a CUT ON k, b CUT ON k WHERE a.v <= b.v;
INSERT INTO a VALUES (1, 1, 1), (1, 2, 2), (2, 3, 3), (9, 4, 4);
INSERT INTO b VALUES (1, 7, 1), (1, 7, 5), (3, 8, 2);
FLUSH;
SELECT waits_for FROM headwater.queries;
--| 'b'
INSERT INTO b VALUES (4, 9, 9), (5, 7, 7);
FLUSH;
-- sorted
SELECT v, w, _t, _epoch FROM pairs;
--| 1 | 1 | 1 | 0
--| 1 | 5 | 1 | 0
--| 2 | 2 | 3 | 1
--| 3 | 9 | 4 | 2
-- sorted
SELECT * FROM pairs WHERE _epoch = 0;
--| 1 | 1 | 1
--| 1 | 5 | 1
