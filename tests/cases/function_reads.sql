-- SQL functions and procedures that read streaming tables, views and continuous queries (ST12).

-- case: the witnesses of an accident, as a table function (OTQ-2)
CREATE STREAMING TABLE reports (vid INT, xway INT, seg INT, speed INT, time INT NOT NULL) TIMESTAMP BY time;
INSERT INTO reports VALUES (1, 0, 16, 50, 10), (2, 0, 17, 40, 20), (3, 0, 18, 30, 30), (4, 0, 19, 20, 40), (5, 1, 17, 10, 50), (1, 0, 17, 55, 60);
CREATE FUNCTION near_to(way INT, segment INT, since INT, until INT)
  RETURNS TABLE (vid INT, first_seen INT, last_seen INT)
  RETURN SELECT r.vid, min(r.time), max(r.time) FROM reports r
    WHERE VALID(r) OVERLAPS PERIOD(since, until) AND r.xway = way AND r.seg BETWEEN segment - 1 AND segment + 1
    GROUP BY r.vid;
SELECT * FROM near_to(0, 17, 10, 30) ORDER BY vid;
--| 1 | 10 | 10
--| 2 | 20 | 20
--| 3 | 30 | 30

SELECT count(*) FROM near_to(0, 17, 10, 60) w JOIN near_to(1, 17, 0, 100) o ON w.vid <> o.vid;
--| 3

-- Rows that come later are seen by later reads.
INSERT INTO reports VALUES (9, 0, 17, 5, 70);
SELECT max(vid) FROM near_to(0, 17, 60, 80);
--| 9

-- case: a scalar function over a window, called for each row
CREATE STREAMING TABLE reports (vid INT, speed INT, time INT NOT NULL) TIMESTAMP BY time;
CREATE TABLE cars (id INT, owner STRING);
INSERT INTO cars VALUES (1, 'ann'), (2, 'bob'), (3, 'cid');
INSERT INTO reports VALUES (1, 50, 1), (2, 40, 2), (1, 60, 50), (1, 80, 55), (2, 30, 58);
CREATE FUNCTION speed_of(car INT) RETURNS DOUBLE
  RETURN (SELECT avg(r.speed) FROM reports [INTERVAL '10' SECOND] r WHERE r.vid = car);
SELECT owner, speed_of(id) FROM cars ORDER BY id;
--| 'ann' | 70.0
--| 'bob' | 30.0
--| 'cid' | NULL

SELECT speed_of(1) + 1;
--| 71.0

CREATE FUNCTION latest(n INT) RETURNS TABLE (vid INT, speed INT)
  RETURN SELECT vid, speed FROM reports [vid ROWS 1] WHERE speed >= n;
SELECT * FROM latest(0) ORDER BY vid;
--| 1 | 80
--| 2 | 30

SELECT c.owner, l.speed FROM cars c, LATERAL latest(c.id * 40) l ORDER BY ALL;
--| 'ann' | 80
--| 'bob' | 80

CREATE FUNCTION changed() RETURNS TABLE (vid INT, before INT, now INT)
  RETURN SELECT vid, PREV(speed), speed FROM reports [vid ROWS 2] WHERE PREV(speed) IS NOT NULL;
SELECT * FROM changed() ORDER BY vid;
--| 1 | 60 | 80
--| 2 | 40 | 30

CREATE FUNCTION age_of(car INT) RETURNS INT
  RETURN (SELECT CURRENT_INSTANT() - max(r.time) FROM reports [INTERVAL '1' MINUTE] r WHERE r.vid = car);
SELECT age_of(1), age_of(2);
--| 3 | 0

-- Each window of a statement, in functions too, ends at one instant.
CREATE STREAMING TABLE stops (vid INT, time INT NOT NULL) TIMESTAMP BY time;
INSERT INTO stops VALUES (1, 52);
SELECT count(*), max(speed_of(1)) FROM stops [INTERVAL '10' SECOND];
--| 1 | 60.0

-- case: functions over views and continuous queries
CREATE STREAMING TABLE reports (seg INT, speed INT, time INT NOT NULL) TIMESTAMP BY time;
CREATE VIEW by_seg AS SELECT seg, count(*) AS n, max(speed) AS fastest FROM reports GROUP BY seg;
CREATE VIEW fast AS SELECT * FROM by_seg WHERE fastest > 50;
CREATE FUNCTION seen(s INT) RETURNS BIGINT RETURN (SELECT b.n FROM by_seg b WHERE b.seg = s);
CREATE FUNCTION fast_segs() RETURNS TABLE (seg INT) RETURN SELECT seg FROM fast;
CREATE FUNCTION twice(s INT) RETURNS BIGINT RETURN 2 * seen(s);
INSERT INTO reports VALUES (1, 40, 1), (1, 60, 2), (2, 30, 3);
SELECT seen(1), seen(2), seen(3), twice(1);
--| 2 | 1 | NULL | 4

SELECT * FROM fast_segs();
--| 1

INSERT INTO reports VALUES (2, 90, 4);
SELECT seen(2), (SELECT collect_list(seg) FROM (SELECT * FROM fast_segs() ORDER BY seg));
--| 2 | [1, 2]

CREATE CONTINUOUS QUERY totals AS SELECT count(*) AS n FROM reports [INTERVAL '1' MINUTE] SAMPLE 1 ROWS;
CREATE FUNCTION last_total() RETURNS BIGINT RETURN (SELECT max(n) FROM totals);
INSERT INTO reports VALUES (2, 90, 5);
FLUSH;
SELECT last_total();
--| 5

KILL QUERY totals;
--! 2BP01 continuous query totals is read by function last_total ~ DROP FUNCTION last_total first

DROP QUERY totals;
--! 2BP01 continuous query totals is read by function last_total ~ DROP FUNCTION last_total first

-- case: functions that read, in other statements
CREATE STREAMING TABLE reports (seg INT, speed INT, time INT NOT NULL) TIMESTAMP BY time;
CREATE TABLE log (seg INT, speed INT);
INSERT INTO reports VALUES (1, 40, 1), (1, 60, 2), (2, 30, 3);
CREATE FUNCTION top(s INT) RETURNS INT RETURN (SELECT max(r.speed) FROM reports r WHERE r.seg = s);
INSERT INTO log SELECT 1, top(1);
INSERT INTO log SELECT 2, top(2);
INSERT INTO log VALUES (3, 0);
SELECT * FROM log ORDER BY seg;
--| 1 | 60
--| 2 | 30
--| 3 | 0

UPDATE log SET speed = top(1) WHERE top(seg) IS NULL;
DELETE FROM log WHERE speed < top(1);
SELECT * FROM log ORDER BY seg;
--| 1 | 60
--| 3 | 60

CREATE PROCEDURE tops(s INT) AS BEGIN
  INSERT INTO log SELECT s, top(s);
  SELECT max(speed) FROM log WHERE seg = s;
END;
CALL tops(2);
--| 30

CALL tops(top(9));
--| NULL

CREATE VIEW top_segs AS SELECT DISTINCT l.seg, top(l.seg) AS speed FROM log l;
SELECT * FROM top_segs ORDER BY seg;
--| NULL | NULL
--| 1 | 60
--| 2 | 30
--| 3 | NULL

-- A column with a function's name is no call of it.
SELECT top FROM (SELECT 1 AS top);
--| 1

-- case: a function is seen as it is now
CREATE STREAMING TABLE s (v INT, t INT NOT NULL) TIMESTAMP BY t;
INSERT INTO s VALUES (1, 1), (2, 2);
CREATE FUNCTION total() RETURNS BIGINT RETURN (SELECT sum(v) FROM s);
CREATE VIEW shown AS SELECT total() AS n;
SELECT total(), (SELECT n FROM shown);
--| 3 | 3

CREATE OR REPLACE FUNCTION total() RETURNS BIGINT RETURN (SELECT 10 * sum(v) FROM s [ROWS 1]);
SELECT total(), (SELECT n FROM shown);
--| 20 | 20

-- case: what a function reads stays
CREATE STREAMING TABLE s (v INT, t INT NOT NULL) TIMESTAMP BY t;
CREATE TABLE t (k INT);
CREATE VIEW v AS SELECT max(v) AS m FROM s;
CREATE FUNCTION f() RETURNS INT RETURN (SELECT m FROM v);
CREATE FUNCTION g(k INT) RETURNS TABLE (v INT) RETURN SELECT v FROM s WHERE v > k;
CREATE FUNCTION h() RETURNS BIGINT RETURN (SELECT count(*) FROM t);
DROP VIEW v;
--! 2BP01 view v is read by function f ~ DROP FUNCTION f first

DROP FUNCTION f;
DROP VIEW v;
DROP TABLE s;
--! 2BP01 streaming table s is read by function g ~ DROP FUNCTION g first

DROP TABLE t;
--! 2BP01 table t is read by function h ~ DROP FUNCTION h first

DROP FUNCTION g;
DROP FUNCTION h;
DROP TABLE s;
DROP TABLE t;
--# DROP TABLE

-- case: mistakes in a function that reads
CREATE STREAMING TABLE s (v INT, t INT NOT NULL) RANGE INTERVAL '1' MINUTE TIMESTAMP BY t;
CREATE STREAM gone (v INT, t INT NOT NULL) TIMESTAMP BY t;
CREATE TABLE k (v INT);
CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(w) FROM s [ROWS 1]);
--! 42703 4:17 column w does not exist

CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(v) FROM s [INTERVAL '1' HOUR]);
--! 42P16 1:17 the window is longer than the RANGE of table s

CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(v) FROM k [ROWS 1]);
--! 42P16 1:17 table k has no time, so it takes no window

CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(v) FROM gone);
--! 55000 1:17 stream gone keeps no rows to read

CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(v) FROM s SAMPLE 1 ROWS);
--! 42601

CREATE FUNCTION f(x INT) RETURNS TABLE (v INT) RETURN SELECT v FROM s [ROWS 1] SAMPLE 1 ROWS;
--! 42P20 1:17 a select with SAMPLE or EMIT is a continuous query

SELECT count(*) FROM headwater.functions;
--| 0

-- case: functions of constants in continuous queries and views
CREATE STREAMING TABLE s (k INT, v INT, t INT NOT NULL) TIMESTAMP BY t;
CREATE TABLE names (k INT, name STRING);
INSERT INTO names VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION above(least INT) RETURNS TABLE (k INT, v BIGINT) RETURN SELECT k, v FROM s [INTERVAL '10' SECOND] WHERE v >= least;
CREATE FUNCTION every_above(least INT) RETURNS TABLE (k INT, v INT) RETURN SELECT k, v FROM s WHERE v >= least;
CREATE FUNCTION top() RETURNS INT RETURN (SELECT max(v) FROM s);
CREATE FUNCTION sum_of(key INT) RETURNS BIGINT RETURN (SELECT sum(x.v) FROM s [INTERVAL '10' SECOND] x WHERE x.k = key);
CREATE CONTINUOUS QUERY q AS SELECT k, sum(v) AS total FROM above(10) GROUP BY k ORDER BY k SAMPLE INTERVAL '5' SECOND;
CREATE VIEW kept AS SELECT k, count(*) AS n FROM every_above(20) GROUP BY k;
INSERT INTO s VALUES (1, 5, 1), (1, 10, 2), (2, 20, 3), (2, 30, 4), (1, 40, 9);
ADVANCE s TO 10;
FLUSH;
SELECT * FROM q;
--| 1 | 50 | 10
--| 2 | 50 | 10

-- sorted
SELECT * FROM kept;
--| 1 | 1
--| 2 | 2

-- It reads its stream by a function alone, so it is a plain view: a function is seen as it is.
EXPLAIN CREATE VIEW v AS SELECT k, count(*) AS n FROM every_above(20) GROUP BY k;
--| 'plain view: its text stands in each query'

CREATE VIEW tops AS SELECT s.k, count(*) AS n, max(s.v) - top() AS below FROM s JOIN (SELECT DISTINCT k FROM every_above(20)) e ON s.k = e.k GROUP BY s.k;
-- sorted
SELECT * FROM tops;
--| 1 | 3 | 0
--| 2 | 2 | -10

CREATE CONTINUOUS QUERY r AS SELECT n.name, sum_of(n.k) FROM s [ROWS 1] JOIN names n USING (k) SAMPLE 1 ROWS;
--! 42P20 1:45 function sum_of reads what changes, so a continuous query cannot keep its answers ~ call it with constants, or join what it reads

CREATE VIEW v AS SELECT k, max(sum_of(k)) AS m FROM s GROUP BY k;
--! 42P20 1:32 function sum_of reads what changes

-- Through views, too: plain and continuous ones.
CREATE VIEW texts AS SELECT k, name FROM names;
CREATE VIEW counted AS SELECT k, count(*) AS n FROM s GROUP BY k;
CREATE FUNCTION named_from(least INT) RETURNS TABLE (k INT, name STRING) RETURN SELECT k, name FROM texts WHERE k >= least;
CREATE FUNCTION often(least INT) RETURNS TABLE (k INT) RETURN SELECT k FROM counted WHERE n >= least;
CREATE FUNCTION last_key() RETURNS INT RETURN (SELECT max(k) FROM texts);
CREATE VIEW by_text AS SELECT f.name, count(*) AS n FROM s JOIN named_from(2) f ON s.k = f.k GROUP BY f.name;
SELECT * FROM by_text;
--| 'b' | 2

CREATE VIEW by_count AS SELECT s.k, max(s.v) AS v FROM s JOIN often(3) f ON s.k = f.k GROUP BY s.k;
SELECT * FROM by_count;
--| 1 | 40

CREATE VIEW by_value AS SELECT s.k, max(s.v) AS v FROM s WHERE s.k = last_key() GROUP BY s.k;
SELECT * FROM by_value;
--| 2 | 30

-- A view that such a function reads gets another query: the views above follow.
CREATE OR REPLACE VIEW texts AS SELECT k, upper(name) AS name FROM names;
SELECT * FROM by_text;
--| 'B' | 2

VERIFY VIEW by_text;
DROP VIEW texts;
--! 2BP01 view texts is read by views by_text, by_value

CREATE FUNCTION hidden(name STRING) RETURNS TABLE (k INT) RETURN SELECT texts.k FROM texts WHERE texts.name = name;

CREATE VIEW v AS SELECT s.k, count(*) AS n FROM s JOIN hidden('A') f ON s.k = f.k GROUP BY s.k;
--! 42P20 1:56 function hidden reads what changes, so a continuous query cannot keep its answers ~ join what it reads; or give its parameters names that no column has which it reads

CREATE FUNCTION plain(x INT) RETURNS INT RETURN x + 1;
CREATE CONTINUOUS QUERY p AS SELECT max(plain(v)) AS m FROM s [ROWS 3] SAMPLE 1 ROWS;
CREATE OR REPLACE FUNCTION plain(x INT) RETURNS INT RETURN (SELECT max(v) + x FROM s);
--! 2BP01 3:28 continuous query p calls function plain ~ KILL QUERY p first

CREATE OR REPLACE FUNCTION plain(x INT) RETURNS INT RETURN x + 2;
DROP FUNCTION plain;
--# DROP FUNCTION

-- case: NEAR
CREATE STREAMING TABLE reports (vid INT, seg INT, pos DOUBLE, time INT NOT NULL) TIMESTAMP BY time;
INSERT INTO reports VALUES (1, 16, 1.5, 10), (2, 17, 2.0, 20), (3, 18, 2.25, 30), (4, 19, 9.0, 40), (5, NULL, NULL, 50);
-- tier: operators
SELECT vid FROM reports WHERE NEAR(seg, 17, 1);
--| 1
--| 2
--| 3

-- tier: operators
SELECT vid FROM reports r WHERE near(r.pos, 2, 0.25) AND VALID(r) OVERLAPS PERIOD(10, 25);
--| 2

-- tier: operators
SELECT vid FROM reports WHERE NOT NEAR(seg, 17, 1);
--| 4

SELECT NEAR(1, 2, 1), NEAR(1, 3, 1), NEAR(1, NULL, 1), NEAR(-1.5, 1.5, 3), NEAR(3, 3, -1);
--| true | false | NULL | true | false

SELECT NEAR(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 00:00:40', INTERVAL '1' MINUTE), NEAR(DATE '2024-01-01', DATE '2024-01-05', 3);
--| true | false

SELECT a.vid, b.vid FROM reports a JOIN reports b ON a.vid < b.vid AND NEAR(a.seg, b.seg, 1) ORDER BY ALL;
--| 1 | 2
--| 2 | 3
--| 3 | 4

CREATE FUNCTION witnesses(segment INT, since INT, until INT) RETURNS TABLE (vid INT)
  RETURN SELECT r.vid FROM reports r WHERE VALID(r) OVERLAPS PERIOD(since, until) AND NEAR(r.seg, segment, 1);
SELECT vid FROM witnesses(18, 20, 40) ORDER BY vid;
--| 2
--| 3
--| 4

CREATE FUNCTION close_to(x INT, y INT) RETURNS BOOLEAN RETURN NEAR(x, y, 1);
SELECT vid, close_to(seg, 16) FROM reports ORDER BY vid LIMIT 3;
--| 1 | true
--| 2 | true
--| 3 | false

CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n, max(CASE WHEN NEAR(vid, 6, NEAR(seg, 50, 1)::INT) THEN vid END) AS m FROM reports [INTERVAL '1' MINUTE] WHERE NEAR(seg, 50, 2) SAMPLE INTERVAL '10' SECOND;
CREATE VIEW v AS SELECT count(*) AS n FROM reports WHERE NEAR(seg, 17, 1);
INSERT INTO reports VALUES (6, 51, 0, 60), (7, 52, 0, 61), (8, 53, 0, 62);
ADVANCE reports TO 70;
FLUSH;
SELECT * FROM q;
--| 2 | 6 | 70

SELECT * FROM v;
--| 3

CREATE TABLE t (x INT, y INT);
INSERT INTO t VALUES (1, 1), (2, 5), (3, 9);
UPDATE t SET y = 0 WHERE NEAR(x, y, 2);
DELETE FROM t WHERE NEAR(y, 10, 1);
SELECT * FROM t ORDER BY x;
--| 1 | 0
--| 2 | 5

SELECT NEAR(seg, nothing, 1) FROM reports;
--! 42703 1:8 column nothing does not exist ~ did you mean time or vid or pos?

SELECT near FROM (SELECT 1 AS near);
--| 1

-- A function of one's own of that name comes first.
CREATE FUNCTION near(x INT, y INT, z INT) RETURNS STRING RETURN 'mine';
SELECT NEAR(1, 2, 3);
--| 'mine'
