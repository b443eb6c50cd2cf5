-- Views: folded at each insert, finished when read (CV1–CV7, CV9, CV12); plain ones; rules, versions, what is refused.

-- case: figures 2 and 3 of the split maintenance paper
CREATE STREAM part_usage (part_id INT, part STRING, station INT, worker INT);
CREATE FOREIGN TABLE part_restock (part_id INT, part STRING, station INT, worker INT) SERVER stream;
CREATE TABLE station (id INT, plant STRING, location STRING, supplier STRING);
INSERT INTO station VALUES (1, 'Sparta', 'Gate 2 - N', '+1 555'), (2, 'Sparta', 'Gate 1 - E', '+1 556'),
  (3, 'Regensburg', 'Tor 2', '+49 555'), (5, 'Sparta', 'Gate 5 - S', '+1 557');
CREATE VIEW running_low AS
  WITH used AS (SELECT part, station, count(*) AS n FROM part_usage GROUP BY part, station),
       restocked AS (SELECT part, station, count(*) AS n FROM part_restock GROUP BY part, station)
  SELECT r.part, s.location, s.supplier
  FROM station s, used u, restocked r
  WHERE s.id = u.station AND u.station = r.station AND u.part = r.part AND r.n - u.n < 5;
--# CREATE VIEW
SELECT * FROM running_low;
--| (no rows)
INSERT INTO part_usage VALUES (1, 'Wheel', 5, 4), (2, 'Seat', 2, 22), (3, 'Seat', 2, 2);
INSERT INTO part_restock VALUES (1, 'Wheel', 5, 1), (2, 'Seat', 2, 6), (6, 'Engine', 1, 3);
-- sorted
SELECT * FROM running_low;
--| 'Seat' | 'Gate 1 - E' | '+1 556'
--| 'Wheel' | 'Gate 5 - S' | '+1 557'
-- Five more wheels at station 5: enough there. A used engine: now station 1 is short of engines.
INSERT INTO part_restock SELECT id, 'Wheel', 5, 1 FROM range(5);
INSERT INTO part_usage VALUES (6, 'Engine', 1, 1);
-- sorted
SELECT * FROM running_low;
--| 'Engine' | 'Gate 2 - N' | '+1 555'
--| 'Seat' | 'Gate 1 - E' | '+1 556'
-- A table above the groupings takes changes for all rows.
UPDATE station SET supplier = '+1 999' WHERE plant = 'Sparta';
DELETE FROM station WHERE id = 1;
SELECT * FROM running_low;
--| 'Seat' | 'Gate 1 - E' | '+1 999'
EXPLAIN VIEW running_low;
--| 'continuous view running_low, maintenance split'
--| 'at each insert:'
--| 'fold_0: stream pipeline over part_usage, operators'
--| '  group by: part AS _k0, station AS _k1'
--| '  partials: count(*) AS _a0'
--| 'fold_1: stream pipeline over part_restock, operators'
--| '  group by: part AS _k0, station AS _k1'
--| '  partials: count(*) AS _a0'
--| 'at each read: operators'
--| '  WITH used AS (SELECT _k0 AS part, _k1 AS station, _a0 AS n FROM fold_0),'
--| '         restocked AS (SELECT _k0 AS part, _k1 AS station, _a0 AS n FROM fold_1)'
--| '    SELECT r.part, s.location, s.supplier'
--| '    FROM station s, used u, restocked r'
--| '    WHERE s.id = u.station AND u.station = r.station AND u.part = r.part AND r.n - u.n < 5'
--| 'in one part: it is not one grouping by keys'
DESCRIBE running_low;
--| 'part' | 'STRING' | true
--| 'location' | 'STRING' | true
--| 'supplier' | 'STRING' | true
SELECT name, kind, maintenance, state, progress, waiting_rows, groups, error FROM headwater.views;
--| 'running_low' | 'continuous' | 'split' | 'running' | 1.0 | 0 | 6 | NULL
SHOW VIEWS;
--| 'running_low' | 'continuous' | 'split' | 'running' | 1.0 | 0 | 6 | 4
SELECT * FROM part_usage;
--! 55000 1:15 stream part_usage keeps no rows to read ~ CREATE STREAMING TABLE keeps them; a continuous query or view reads a stream
VERIFY VIEW running_low;
--! 55000 view running_low cannot be verified: a stream keeps no rows
DELETE FROM part_usage;
--! 0A000 1:13 rows of stream part_usage are never changed ~ a streaming table keeps its rows and takes UPDATE and DELETE

-- case: a read shows every row acknowledged before, late ones too
CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts;
INSERT INTO s VALUES (1, 'a', 1), (2, 'b', 2);
CREATE VIEW sums AS SELECT k, count(*) AS n, sum(v) AS total, first(v) AS f, last(v) AS l FROM s GROUP BY k;
--# CREATE VIEW
-- sorted
-- tier: operators
SELECT * FROM sums;
--| 'a' | 1 | 1 | 1 | 1
--| 'b' | 1 | 2 | 2 | 2
ADVANCE s TO 100;
INSERT INTO s VALUES (0, 'a', 10), (101, 'b', NULL);
-- sorted
-- tier: operators
SELECT * FROM sums;
--| 'a' | 2 | 11 | 10 | 1
--| 'b' | 2 | 2 | 2 | NULL
-- sorted
-- tier: operators
SELECT k, total FROM sums WHERE total > 5 ORDER BY total DESC;
--| 'a' | 11
VERIFY VIEW sums;
--| (no rows)
DELETE FROM s WHERE k = 'a' AND v = 1;
-- sorted
SELECT * FROM sums;
--| 'a' | 1 | 10 | 10 | 10
--| 'b' | 2 | 2 | 2 | NULL
UPDATE s SET v = 7 WHERE k = 'b' AND v = 2;
-- sorted
SELECT * FROM sums;
--| 'a' | 1 | 10 | 10 | 10
--| 'b' | 2 | 7 | 7 | NULL
VERIFY VIEW sums;
--| (no rows)

-- case: versions
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
CREATE VIEW n AS SELECT count(*) AS n FROM s;
SELECT n FROM n VERSION AS OF 'latest';
--| 0
INSERT INTO s VALUES (1, 1);
SELECT n FROM n VERSION AS OF 'latest';
--| 0
SELECT n FROM n;
--| 1
SELECT n FROM n;
--| 1
SELECT version, versions FROM headwater.views;
--| 2 | [1, 2]
SELECT a.n, b.n, c.n FROM n VERSION AS OF 1 a, n VERSION AS OF 2 b, n c;
--| 0 | 1 | 1
SELECT n FROM n VERSION AS OF 3;
--! 22023 view n has no version 3 ~ headwater.views lists the versions that are kept
SET view_versions = 2;
INSERT INTO s VALUES (2, 2);
SELECT n FROM n;
--| 2
SELECT n FROM n VERSION AS OF 1;
--! 22023 view n has no version 1 ~ headwater.views lists the versions that are kept
SELECT v FROM s VERSION AS OF 1;
--! 42809 1:17 s is no continuous view, so it has no versions
CREATE VIEW p AS SELECT 1 AS one;
SELECT one FROM p VERSION AS OF 1;
--! 42P20 p is a plain view: it takes no window, no CUT and no version

-- case: tables below the groupings as of creation, above them as of the read
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE TABLE d (k INT, name STRING);
INSERT INTO d VALUES (1, 'one'), (2, 'two');
CREATE VIEW below AS SELECT d.name, sum(s.v) AS v FROM s JOIN d ON s.k = d.k GROUP BY d.name;
CREATE VIEW above AS SELECT d.name, g.v FROM (SELECT k, sum(v) AS v FROM s GROUP BY k) g JOIN d ON g.k = d.k;
CREATE VIEW both AS SELECT g.name, d.name AS now, g.v
  FROM (SELECT d.k, d.name, sum(s.v) AS v FROM s JOIN d ON s.k = d.k GROUP BY d.k, d.name) g LEFT JOIN d ON g.k = d.k;
INSERT INTO s VALUES (1, 1, 10), (1, 2, 20);
UPDATE d SET name = 'zwei' WHERE k = 2;
INSERT INTO s VALUES (2, 2, 5), (2, 3, 7);
-- sorted
SELECT * FROM below;
--| 'one' | 10
--| 'two' | 25
-- sorted
SELECT * FROM above;
--| 'one' | 10
--| 'zwei' | 25
-- sorted
SELECT * FROM both;
--| 'one' | 'one' | 10
--| 'two' | 'zwei' | 25
VERIFY VIEW both;
--| (no rows)
ALTER VIEW below REFRESH STATIC;
--# ALTER VIEW
ALTER VIEW both REFRESH STATIC;
-- sorted
SELECT * FROM below;
--| 'one' | 10
--| 'zwei' | 25
-- sorted
SELECT * FROM both;
--| 'one' | 'one' | 10
--| 'zwei' | 'zwei' | 25
DROP TABLE d;
--! 2BP01 table d is read by views above, below, both ~ DROP VIEW above first
ALTER VIEW nobody REFRESH STATIC;
--! 42P01 1:12 table nobody does not exist ~ SHOW TABLES lists what there is

-- case: a static part cannot be read again for rows that are gone
CREATE STREAM s (k INT);
CREATE TABLE d (k INT, name STRING);
CREATE VIEW below AS SELECT d.name, count(*) AS n FROM s JOIN d ON s.k = d.k GROUP BY d.name;
ALTER VIEW below REFRESH STATIC;
--! 55000 view below cannot be made again: its rows are not all stored ~ a streaming table with RANGE FOREVER keeps them

-- case: a view on a stream begins now, on a streaming table with what is stored unless FROM NOW
CREATE STREAM q (v INT);
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
INSERT INTO q VALUES (1);
INSERT INTO s VALUES (1, 1);
CREATE VIEW on_stream AS SELECT count(*) AS n FROM q;
CREATE VIEW on_table AS SELECT count(*) AS n FROM s;
CREATE VIEW later FROM NOW AS SELECT count(*) AS n FROM s;
CREATE VIEW later_rows FROM NOW AS SELECT v FROM s;
CREATE VIEW later_deferred FROM NOW WITH (maintenance = 'deferred') AS SELECT count(*) AS n FROM s;
INSERT INTO q VALUES (2);
INSERT INTO s VALUES (2, 2);
SELECT a.n, b.n, c.n, d.v, e.n FROM on_stream a, on_table b, later c, later_rows d, later_deferred e;
--| 1 | 2 | 1 | 2 | 1
VERIFY VIEW later;
--| (no rows)

-- case: R1 a stream is grouped before anything needs all of its rows
CREATE STREAM q (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE VIEW v AS SELECT k, v FROM q WHERE v > 1;
--! 42P17 the view cannot be kept: R1: a stream must be grouped before anything else needs all of its rows ~ a streaming table with RANGE FOREVER keeps what such a view needs
EXPLAIN CREATE VIEW v AS SELECT k, v FROM q WHERE v > 1;
--! 42P17 the view cannot be kept: R1: a stream must be grouped before anything else needs all of its rows ~ a streaming table with RANGE FOREVER keeps what such a view needs
EXPLAIN CREATE VIEW v AS SELECT k, sum(w) AS w FROM q GROUP BY k;
--! 42703 1:32 column w does not exist ~ did you mean k or ts?
CREATE VIEW v AS SELECT k, v FROM s WHERE v > 1;
--# CREATE VIEW
EXPLAIN VIEW v;
--| 'continuous view v, maintenance split'
--| 'at each insert:'
--| '  filter (v > 1)'
--| '    s: ts, k, v, _seq'
INSERT INTO s VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3);
-- sorted
SELECT * FROM v;
--| 2 | 2
--| 3 | 3
CREATE VIEW w AS SELECT k, sum(v) OVER (PARTITION BY k ORDER BY ts) AS running FROM q;
--! 42P17 the view cannot be kept: R1: a stream must be grouped before anything else needs all of its rows ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW m AS SELECT median(v) AS m FROM q;
--! 42P17 the view cannot be kept: aggregate median has no fold ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW m AS SELECT median(v) AS m FROM s;
SELECT m FROM m;
--| 2.0

-- case: R2 a subquery may not depend on the rows outside it
CREATE STREAM q (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE TABLE d (k INT, least INT);
CREATE VIEW v AS SELECT k, count(*) AS n FROM q a WHERE v > (SELECT max(v) FROM q b WHERE b.ts < a.ts) GROUP BY k;
--! 42P17 the view cannot be kept: R2: a subquery depends on the rows outside it, and is no grouped join with them ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW v AS SELECT k, count(*) AS n FROM s a WHERE v > (SELECT coalesce(max(v), 0) FROM s b WHERE b.ts < a.ts) GROUP BY k;
--# CREATE VIEW
INSERT INTO s VALUES (1, 1, 1), (2, 1, 3), (3, 1, 2), (4, 2, 5);
-- sorted
SELECT * FROM v;
--| 1 | 2
--| 2 | 1

-- case: R3 a join of two streams needs both grouped
CREATE STREAM q (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE u (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE VIEW v AS SELECT a.k, count(*) AS n FROM q a JOIN s b ON a.k = b.k GROUP BY a.k;
--! 42P17 the view cannot be kept: R3: a join of two streams needs both of them grouped ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW v AS SELECT a.k, count(*) AS n FROM q a JOIN (SELECT k, sum(v) AS v FROM s GROUP BY k) b ON a.k = b.k GROUP BY a.k;
--! 42P17 the view cannot be kept: R3: a join of two streams needs both of them grouped ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW v AS SELECT a.k, count(*) AS n FROM u a JOIN s b ON a.k = b.k GROUP BY a.k;
--# CREATE VIEW
INSERT INTO s VALUES (1, 1, 1), (2, 1, 3);
INSERT INTO u VALUES (1, 1, 1), (2, 1, 3), (2, 2, 3);
SELECT * FROM v;
--| 1 | 4
INSERT INTO s VALUES (3, 2, 3);
-- sorted
SELECT * FROM v;
--| 1 | 4
--| 2 | 1

-- case: R4 ORDER BY with LIMIT below a grouping
CREATE STREAM q (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE VIEW v AS SELECT k, sum(v) AS v FROM (SELECT k, v FROM q ORDER BY v DESC LIMIT 2) t GROUP BY k;
--! 42P17 the view cannot be kept: R4: ORDER BY with LIMIT may not stand below a grouping ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW v AS SELECT k, sum(v) AS v FROM (SELECT k, v FROM s ORDER BY v DESC LIMIT 2) t GROUP BY k;
--# CREATE VIEW
INSERT INTO s VALUES (1, 1, 1), (2, 1, 3), (3, 2, 2);
-- sorted
SELECT * FROM v;
--| 1 | 3
--| 2 | 2
CREATE VIEW top AS SELECT k, sum(v) AS v FROM q GROUP BY k ORDER BY v DESC LIMIT 1;
CREATE VIEW unsorted AS SELECT k, sum(v) AS v FROM q GROUP BY k ORDER BY v DESC;
INSERT INTO q VALUES (1, 1, 1), (2, 1, 3), (3, 2, 2);
SELECT * FROM top;
--| 1 | 4
-- sorted
SELECT * FROM unsorted;
--| 1 | 4
--| 2 | 2
EXPLAIN VIEW unsorted;
--| 'continuous view unsorted, maintenance split'
--| 'at each insert:'
--| 'fold_0: stream pipeline over q, operators'
--| '  group by: k AS _k0'
--| '  partials: sum(v) AS _a0'
--| 'at each read: operators'
--| '  SELECT _k0 AS k, _a0 AS v FROM fold_0 ORDER BY v DESC NULLS LAST'

-- case: R5 outer, semi and anti joins keep the rows of the stream
CREATE STREAM q (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE TABLE d (k INT, name STRING);
INSERT INTO d VALUES (1, 'one'), (3, 'three');
CREATE VIEW v AS SELECT d.name, count(q.v) AS n FROM d LEFT JOIN q ON d.k = q.k GROUP BY d.name;
--! 42P17 the view cannot be kept: R5: an outer, semi or anti join keeps the rows of its stream, not those of its table ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW v AS SELECT d.name, count(q.v) AS n FROM q FULL JOIN d ON d.k = q.k GROUP BY d.name;
--! 42P17 the view cannot be kept: R5: an outer, semi or anti join keeps the rows of its stream, not those of its table ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW v AS SELECT name, count(*) AS n FROM d LEFT ANTI JOIN q ON d.k = q.k GROUP BY name;
--! 42P17 the view cannot be kept: R5: an outer, semi or anti join keeps the rows of its stream, not those of its table ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW v AS SELECT d.name, count(s.v) AS n FROM d LEFT JOIN s ON d.k = s.k GROUP BY d.name;
--# CREATE VIEW
INSERT INTO s VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3);
-- sorted
SELECT * FROM v;
--| 'one' | 2
--| 'three' | 0
CREATE VIEW kept AS SELECT d.name, count(*) AS n FROM d RIGHT JOIN q ON d.k = q.k GROUP BY d.name;
CREATE VIEW semi AS SELECT k, count(*) AS n FROM q LEFT SEMI JOIN d ON d.k = q.k GROUP BY k;
CREATE VIEW anti AS SELECT k, count(*) AS n FROM q LEFT ANTI JOIN d ON d.k = q.k GROUP BY k;
INSERT INTO q VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3);
-- sorted
SELECT * FROM kept;
--| 'one' | 2
--| NULL | 1
SELECT * FROM semi;
--| 1 | 2
SELECT * FROM anti;
--| 2 | 1

-- case: R6 and R7 rows of a stream are never changed, and a stream does not feed itself
CREATE STREAM q (v INT);
CREATE VIEW n AS SELECT count(*) AS n FROM q;
UPDATE q SET v = 2;
--! 0A000 3:8 rows of stream q are never changed ~ a streaming table keeps its rows and takes UPDATE and DELETE
DELETE FROM q WHERE v = 1;
--! 0A000 1:13 rows of stream q are never changed ~ a streaming table keeps its rows and takes UPDATE and DELETE
INSERT INTO q SELECT v FROM q;
--! 55000 1:29 stream q keeps no rows to read ~ CREATE STREAMING TABLE keeps them; a continuous query or view reads a stream
INSERT INTO q SELECT n FROM n;
SELECT n FROM n;
--| 1

-- case: finite RANGE
CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts RANGE INTERVAL 10 SECONDS;
INSERT INTO s VALUES (1, 1), (2, 1);
CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k;
CREATE VIEW w AS SELECT k FROM s;
--! 42P17 the view cannot be kept: R1: a stream must be grouped before anything else needs all of its rows ~ a streaming table with RANGE FOREVER keeps what such a view needs
CREATE VIEW w WITH (maintenance = 'deferred') AS SELECT count(*) AS n FROM s;
--! 42P17 the view cannot be kept: maintenance = 'deferred' evaluates it at each read ~ a streaming table with RANGE FOREVER keeps what such a view needs
INSERT INTO s VALUES (30, 1), (30, 2);
SELECT count(*) FROM s;
--| 2
-- sorted
SELECT * FROM v;
--| 1 | 3
--| 2 | 1
VERIFY VIEW v;
--! 55000 view v cannot be verified before 20
ALTER VIEW v REFRESH STATIC;
--# ALTER VIEW
DELETE FROM s WHERE k = 2;
--! 55000 rows of s cannot be changed: view v has counted rows that RANGE has dropped ~ DROP VIEW v first
UPDATE s SET k = 3 WHERE k = 2;
--! 55000 rows of s cannot be changed: view v has counted rows that RANGE has dropped ~ DROP VIEW v first
-- A view that begins now has not counted what RANGE hides; a late row counts, wherever it belongs.
CREATE VIEW later AS SELECT k, count(*) AS n FROM s GROUP BY k;
INSERT INTO s VALUES (3, 7);
-- sorted
SELECT * FROM later;
--| 1 | 1
--| 2 | 1
--| 7 | 1
-- sorted
SELECT * FROM v;
--| 1 | 3
--| 2 | 1
--| 7 | 1

-- case: strategies
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE VIEW a WITH (maintenance = 'split') AS SELECT k, sum(v) AS v FROM s GROUP BY k;
CREATE VIEW b WITH (maintenance = 'eager') AS SELECT k, sum(v) AS v FROM s GROUP BY k;
CREATE VIEW c WITH (maintenance = 'deferred') AS SELECT k, sum(v) AS v FROM s GROUP BY k;
CREATE VIEW d WITH (maintenance = 'incremental') AS SELECT k, sum(v) AS v FROM s GROUP BY k;
INSERT INTO s VALUES (1, 1, 1), (2, 2, 2), (3, 2, 3);
FLUSH;
SELECT name, maintenance, waiting_rows, version FROM headwater.views WHERE maintenance <> 'deferred';
--| 'a' | 'split' | 0 | NULL
--| 'b' | 'eager' | 0 | 1
--| 'd' | 'incremental' | 3 | NULL
-- sorted
SELECT a.k, a.v, b.v, c.v, d.v FROM a, b, c, d WHERE a.k = b.k AND a.k = c.k AND a.k = d.k;
--| 1 | 1 | 1 | 1 | 1
--| 2 | 5 | 5 | 5 | 5
EXPLAIN VIEW c;
--| 'continuous view c, maintenance deferred'
--| 'evaluated again over s when read and changed: maintenance = ''deferred'''
--| 'in one part: maintenance = ''deferred'' keeps no groups apart from the result'

-- case: options and their errors
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
CREATE TABLE t (v INT);
CREATE VIEW v WITH (maintenance = 'lazy') AS SELECT sum(v) AS v FROM s;
--! 22023 maintenance is 'split', 'eager', 'deferred' or 'incremental'
CREATE VIEW v WITH (maintenence = 'eager') AS SELECT sum(v) AS v FROM s;
--! 22023 there is no option maintenence of a view ~ did you mean maintenance?
CREATE VIEW v WITH (volatile = 'at read') AS SELECT sum(v) AS v FROM s;
--! 22023 volatile is 'at insert'
CREATE VIEW v FROM NOW AS SELECT sum(v) AS v FROM t;
--! 42P20 FROM NOW and options belong to continuous views ~ no stream or streaming table is read whole here
CREATE VIEW v WITH (maintenance = 'eager') AS SELECT sum(v) AS v FROM t;
--! 42P20 FROM NOW and options belong to continuous views ~ no stream or streaming table is read whole here
CREATE VIEW v AS SELECT sum(v) AS v FROM s [ROWS 3] SAMPLE 1 ROWS;
--! 42P20 a view has no SAMPLE, EMIT or CUT ~ CREATE MATERIALIZED VIEW keeps the results of a continuous query
CREATE VIEW v AS SELECT sum(v) AS v FROM nowhere;
--! 42P01 1:42 table nowhere does not exist ~ SHOW TABLES lists what there is
CREATE VIEW v AS SELECT sum(w) AS v FROM s;
--! 42703 1:29 column w does not exist ~ did you mean ts?
CREATE VIEW v AS SELECT rand() AS r, count(*) AS n FROM s;
--! 42P17 1:25 rand() cannot be used in a continuous query ~ a result must be the same when it is computed again
CREATE VIEW v AS SELECT sum(v) AS v, max(v) AS v FROM s;
--! 42701 column v occurs twice in the result ~ give it an alias: AS …
CREATE VIEW s AS SELECT 1 AS one;
--! 42P07 streaming table s exists already ~ choose another name, or DROP STREAMING TABLE s first
CREATE VIEW v AS SELECT sum(v) AS v FROM s;
CREATE VIEW v AS SELECT max(v) AS v FROM s;
--! 42P07 view v exists already ~ choose another name, or DROP VIEW v first
CREATE VIEW IF NOT EXISTS v AS SELECT max(v) AS v FROM s;
--# CREATE VIEW
CREATE OR REPLACE VIEW s AS SELECT 1 AS one;
--! 42P07 streaming table s exists already ~ choose another name, or DROP STREAMING TABLE s first
CREATE OR REPLACE VIEW v AS SELECT v FROM v;
--! 42P19 view v would be made of itself
INSERT INTO v VALUES (1);
--! 42809 1:13 view v takes its rows from its query ~ insert into the tables that it reads
DELETE FROM v;
--! 42809 rows of view v are its query's ~ change the tables that it reads
CREATE TABLE v (a INT);
--! 42P07 view v exists already ~ choose another name, or DROP VIEW v first
DROP TABLE v;
--! 42809 1:12 v is a view, not a table ~ DROP VIEW v
DROP VIEW s;
--! 42P01 1:11 there is no view s ~ s is a streaming table
DROP VIEW nobody;
--! 42P01 1:11 there is no view nobody ~ SHOW VIEWS lists what there is
EXPLAIN VIEW on_stream;
--! 42P01 1:14 there is no view on_stream ~ SHOW VIEWS lists what there is
DROP VIEW IF EXISTS nobody;
--# DROP VIEW

-- case: column lists
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE TABLE t (a INT, b INT);
INSERT INTO t VALUES (1, 2);
CREATE VIEW v (key, total) AS SELECT k, sum(v) FROM s GROUP BY k;
CREATE VIEW w (x, y) AS SELECT a, a + b FROM t;
INSERT INTO s VALUES (1, 1, 5);
SELECT total, key FROM v WHERE total > 1;
--| 5 | 1
SELECT x, y FROM w;
--| 1 | 3
DESCRIBE v;
--| 'key' | 'INT' | true
--| 'total' | 'BIGINT' | true
DESCRIBE w;
--| 'x' | 'INT' | true
--| 'y' | 'INT' | true
CREATE VIEW z (a) AS SELECT k, sum(v) FROM s GROUP BY k;
--! 42601 the view names 1 columns, its query has 2
CREATE VIEW z (a) AS SELECT a, b FROM t;
--! 42601 the view names 1 columns, its query has 2
CREATE VIEW z (a, A) AS SELECT k, sum(v) FROM s GROUP BY k;
--! 42701 1:19 column A occurs twice

-- case: plain views
CREATE TABLE t (a INT, b STRING);
INSERT INTO t VALUES (1, 'x'), (2, 'y');
CREATE VIEW p AS SELECT a, upper(b) AS b FROM t WHERE a > 1;
--# CREATE VIEW
CREATE VIEW pp AS SELECT a + 1 AS c FROM p;
SELECT * FROM p;
--| 2 | 'Y'
SELECT pp.c, p.b FROM pp JOIN p ON pp.c = p.a + 1;
--| 3 | 'Y'
INSERT INTO t VALUES (3, 'z');
-- sorted
SELECT * FROM pp;
--| 3
--| 4
CREATE OR REPLACE VIEW p AS SELECT a, b FROM t WHERE a = 1;
SELECT * FROM pp;
--| 2
DROP TABLE t;
--! 2BP01 table t is read by view p ~ DROP VIEW p first
DROP VIEW p;
--! 2BP01 view p is read by view pp ~ DROP VIEW pp first
CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts;
INSERT INTO s VALUES (1, 1), (2, 2), (3, 3);
CREATE VIEW recent AS SELECT sum(v) AS v FROM s [ROWS 2];
SELECT v FROM recent;
--| 5
INSERT INTO s VALUES (4, 4);
SELECT v FROM recent;
--| 7
SHOW VIEWS;
--| 'p' | 'plain' | NULL | 'running' | NULL | NULL | NULL | NULL
--| 'pp' | 'plain' | NULL | 'running' | NULL | NULL | NULL | NULL
--| 'recent' | 'plain' | NULL | 'running' | NULL | NULL | NULL | NULL
VERIFY VIEW p;
--! 42809 p is no continuous view ~ it is a plain view: its query is run at each read
DROP VIEW pp;
DROP VIEW p;
DROP TABLE t;
--# DROP TABLE

-- case: views on views
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE TABLE d (k INT, name STRING);
INSERT INTO d VALUES (1, 'one');
CREATE VIEW known AS SELECT k, name FROM d;
CREATE VIEW sums AS SELECT known.name, s.k, sum(s.v) AS v FROM s LEFT JOIN known ON s.k = known.k GROUP BY known.name, s.k;
CREATE VIEW largest AS SELECT max(v) AS v FROM sums;
CREATE VIEW pairs AS SELECT a.k AS a, b.k AS b FROM sums a JOIN sums b ON a.v < b.v;
INSERT INTO s VALUES (1, 1, 5), (2, 2, 6), (3, 1, 2);
SELECT * FROM largest;
--| 7
SELECT * FROM pairs;
--| 2 | 1
-- sorted
SELECT sums.* FROM sums JOIN largest ON sums.v = largest.v;
--| 'one' | 1 | 7
CREATE VIEW mixed AS SELECT s.k, count(*) AS n FROM s JOIN sums ON s.k = sums.k GROUP BY s.k;
--! 42P20 a view over a stream cannot read a continuous view or query beside it ~ make a view of the stream's part, and a third one that joins both
DROP VIEW sums;
--! 2BP01 view sums is read by views largest, pairs ~ DROP VIEW largest first
DROP VIEW known;
--! 2BP01 view known is read by view sums ~ DROP VIEW sums first
DROP TABLE s;
--! 2BP01 streaming table s is read by view sums ~ DROP VIEW sums first
DROP VIEW pairs;
DROP VIEW largest;
DROP VIEW sums;
DROP TABLE s;
--# DROP TABLE

-- case: CREATE OR REPLACE
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE TABLE t (v INT);
INSERT INTO s VALUES (1, 1, 5), (2, 2, 6);
CREATE OR REPLACE VIEW v AS SELECT sum(v) AS v FROM s;
SELECT * FROM v;
--| 11
CREATE OR REPLACE VIEW v AS SELECT k, max(v) AS m FROM s GROUP BY k;
INSERT INTO s VALUES (3, 2, 7);
-- sorted
SELECT * FROM v;
--| 1 | 5
--| 2 | 7
CREATE OR REPLACE VIEW v AS SELECT nothing FROM s;
--! 42703 1:36 column nothing does not exist ~ did you mean ts?
-- sorted
SELECT * FROM v;
--| 1 | 5
--| 2 | 7
CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM t;
SELECT * FROM v;
--| 0
CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM s;
SELECT * FROM v;
--| 3
SELECT name, kind, maintenance FROM headwater.views;
--| 'v' | 'continuous' | 'split'

-- case: functions of time
SET max_clock_ahead_s = 0;
CREATE STREAM q (ts TIMESTAMP, k INT) TIMESTAMP BY ts;
CREATE STREAMING TABLE s (ts TIMESTAMP, k INT) TIMESTAMP BY ts;
CREATE VIEW v AS SELECT count(*) AS n FROM q WHERE ts > current_timestamp();
--! 42P17 the view cannot be kept: functions of time have no fixed meaning in the part of a view that runs at each insert ~ WITH (volatile = 'at insert')
CREATE VIEW v AS SELECT current_date() AS d, count(*) AS n FROM q GROUP BY current_date();
--! 42P17 the view cannot be kept: functions of time have no fixed meaning in the part of a view that runs at each insert ~ WITH (volatile = 'at insert')
CREATE VIEW future WITH (volatile = 'at insert') AS SELECT count(*) AS n FROM q WHERE ts > current_timestamp();
CREATE VIEW past WITH (volatile = 'at insert') AS SELECT count(*) AS n FROM q WHERE ts <= current_timestamp() AND weekofyear(current_date()) > 0;
INSERT INTO q VALUES (TIMESTAMP '2001-01-01 00:00:00', 1), (TIMESTAMP '2999-01-01 00:00:00', 1);
SELECT future.n, past.n FROM future, past;
--| 1 | 1
-- Above the groupings they mean the time of the read.
CREATE VIEW read_at AS SELECT count(*) AS n, current_timestamp() >= max(ts) AS over FROM q;
SELECT * FROM read_at;
--| 0 | NULL
CREATE VIEW again AS SELECT k FROM s WHERE ts <= current_timestamp();
INSERT INTO s VALUES (TIMESTAMP '2001-01-01 00:00:00', 1), (TIMESTAMP '2999-01-01 00:00:00', 2);
SELECT * FROM again;
--| 1

-- case: state is by groups, sets and expressions over aggregates
CREATE STREAM q (k INT, s STRING, v DOUBLE, b BOOLEAN);
CREATE VIEW all_of_them AS SELECT k % 2 AS odd, count(*) AS n, count(DISTINCT s) AS d, min(s) AS lo, max(s) AS hi,
  round(stddev_pop(v), 3) AS spread, avg(v) + 1 AS more, bool_or(b) AS some, count(*) FILTER (WHERE v > 1) AS large
  FROM q GROUP BY k % 2 HAVING count(*) > 1;
CREATE VIEW kinds AS SELECT DISTINCT s, b FROM q WHERE k < 5;
CREATE VIEW more_than_average AS SELECT k, sum(v) AS v FROM q GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM q);
INSERT INTO q VALUES (1, 'a', 1.0, true), (3, 'b', 2.0, false), (1, 'a', NULL, NULL), (2, 'z', 9.0, true), (2, NULL, 1.5, false);
INSERT INTO q VALUES (7, 'q', 0.0, true);
-- sorted
SELECT * FROM all_of_them;
--| 0 | 2 | 1 | 'z' | 'z' | 3.75 | 6.25 | true | 2
--| 1 | 4 | 3 | 'a' | 'q' | 0.816 | 2.0 | true | 1
-- sorted
SELECT * FROM kinds;
--| 'a' | NULL
--| 'a' | true
--| 'b' | false
--| 'z' | true
--| NULL | false
-- sorted
SELECT * FROM more_than_average;
--| 2 | 10.5
SELECT groups FROM headwater.views WHERE name = 'all_of_them';
--| 2

-- case: an error in one view's expression leaves views of the same grouping alone
CREATE STREAMING TABLE s (k INT, v INT);
CREATE VIEW good AS SELECT k, sum(v) AS v FROM s GROUP BY k;
CREATE VIEW bad AS SELECT k, sum(1 / v) AS v FROM s GROUP BY k;
INSERT INTO s VALUES (1, 2), (1, 0);
SELECT * FROM bad;
--! 22012 division by zero
SELECT * FROM good;
--| 1 | 2
SELECT name, state FROM headwater.views WHERE name = 'good';
--| 'good' | 'running'
DROP VIEW bad;
INSERT INTO s VALUES (1, 3);
SELECT * FROM good;
--| 1 | 5

-- case: a column of the name of a table or view is no dependency
CREATE STREAMING TABLE s (k INT, v INT);
CREATE TABLE k (id INT);
CREATE VIEW total AS SELECT k, sum(v) AS total FROM s GROUP BY k;
CREATE VIEW other AS SELECT total FROM (SELECT sum(v) AS total FROM s);
CREATE CONTINUOUS QUERY q AS SELECT k, count(*) AS n FROM s [INTERVAL '1' HOUR] GROUP BY k SAMPLE INTERVAL '1' HOUR;
DROP TABLE k;
--# DROP TABLE
DROP VIEW total;
--# DROP VIEW

-- case: HAVING may name what the select list names
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
INSERT INTO s VALUES (1, 1, 1), (2, 1, 3), (3, 2, 9);
CREATE VIEW a AS SELECT k AS key, count(*) AS n, sum(v) + 1 AS t FROM s GROUP BY k HAVING n > 1 AND t * 2 = 10 AND key < 5;
CREATE VIEW b AS SELECT k, sum(v) AS t FROM s GROUP BY ALL HAVING t > 5;
CREATE VIEW c AS SELECT k, sum(v) AS t, t + 1 AS u FROM s GROUP BY k HAVING u > 5;
SELECT * FROM a;
--| 1 | 2 | 5
SELECT * FROM b;
--| 2 | 9
SELECT * FROM c;
--| 2 | 9 | 10
CREATE CONTINUOUS QUERY q FROM BEGINNING AS SELECT k, count(*) AS n FROM s [INTERVAL 10 SECONDS] GROUP BY k HAVING n > 1 SAMPLE INTERVAL 4 SECONDS;
ADVANCE s TO 5;
FLUSH;
SELECT * FROM q;
--| 1 | 2 | 4

-- case: a view with a column of its own name can be dropped
CREATE STREAM q (k INT, v INT);
CREATE VIEW v AS SELECT k, sum(v) AS s FROM q GROUP BY k;
DROP VIEW v;
--# DROP VIEW

-- case: a join by a field of a struct
CREATE STREAM s (k STRING, v INT);
CREATE TABLE w (p STRUCT<x: INT>, name STRING);
INSERT INTO w VALUES (named_struct('x', 1), 'one'), (named_struct('x', 2), 'two');
CREATE VIEW m AS SELECT name, sum(v) AS total FROM s JOIN w ON w.p.x = s.v GROUP BY name;
INSERT INTO s VALUES ('a', 1), ('b', 2), ('c', 2), ('d', 3);
-- sorted
SELECT * FROM m;
--| 'one' | 1
--| 'two' | 4

-- case: names that the select list gives, in QUALIFY, HAVING, ORDER BY and later items
CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts;
CREATE VIEW best AS SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM s QUALIFY n <= 2;
CREATE VIEW later AS SELECT v + 1 AS a, a * 2 AS b, b - v AS c FROM s;
CREATE VIEW latest AS SELECT k, max_by(v, ts) AS m, count(*) AS n, m + n AS both FROM s GROUP BY k HAVING n > 1 AND both > 4;
CREATE VIEW least AS SELECT k, -v AS v FROM s ORDER BY v * 2 LIMIT 2;
SELECT name, tier FROM headwater.views ORDER BY name;
--| 'best' | 'operators'
--| 'later' | 'operators'
--| 'latest' | 'operators'
--| 'least' | 'operators'

INSERT INTO s VALUES (1, 1, 5), (2, 1, 3), (3, 2, 7), (4, 1, 9);
SELECT * FROM best ORDER BY k, n;
--| 1 | 9 | 1
--| 1 | 5 | 2
--| 2 | 7 | 1

SELECT * FROM later ORDER BY a;
--| 4 | 8 | 5
--| 6 | 12 | 7
--| 8 | 16 | 9
--| 10 | 20 | 11

SELECT * FROM latest;
--| 1 | 9 | 3 | 12

SELECT * FROM least;
--| 1 | -9
--| 2 | -7
INSERT INTO s VALUES (5, 2, 8);
SELECT * FROM best ORDER BY k, n;
--| 1 | 9 | 1
--| 1 | 5 | 2
--| 2 | 8 | 1
--| 2 | 7 | 2

SELECT k, m, both FROM latest ORDER BY k;
--| 1 | 9 | 12
--| 2 | 8 | 10

-- case: as-of joins, in views and read once
CREATE STREAMING TABLE trades (ts INT, symbol STRING, price DOUBLE) TIMESTAMP BY ts;
CREATE STREAMING TABLE quotes (ts INT, symbol STRING, bid DOUBLE) TIMESTAMP BY ts;
CREATE TABLE rates (first INT, rate DOUBLE);
CREATE VIEW with_quote AS
  SELECT t.ts, t.symbol, price, bid FROM trades t ASOF LEFT JOIN quotes q ON t.symbol = q.symbol AND t.ts >= q.ts;
CREATE VIEW rated AS SELECT symbol, sum(price * rate) AS total, count(*)
  FROM trades ASOF JOIN rates ON ts >= first GROUP BY symbol;
SELECT name, tier FROM headwater.views ORDER BY name;
--| 'rated' | 'operators'
--| 'with_quote' | 'operators'
EXPLAIN VIEW with_quote;
--| 'continuous view with_quote, maintenance split'
--| 'at each insert:'
--| '  left as-of join on symbol = symbol and ts >= ts, the last by ts, _seq'
--| '    trades: ts, symbol, price'
--| '    quotes: ts, symbol, bid, _seq'
INSERT INTO trades VALUES (10, 'a', 1.0), (20, 'a', 2.0), (25, 'b', 4.0), (30, NULL, 8.0);
INSERT INTO quotes VALUES (5, 'a', 0.5), (20, 'a', 1.5), (20, 'a', 1.75), (26, 'b', 3.0), (1, NULL, 9.0);
INSERT INTO rates VALUES (0, 1.0), (20, 2.0), (NULL, 5.0);
SELECT * FROM with_quote ORDER BY ts;
--| 10 | 'a' | 1.0 | 0.5
--| 20 | 'a' | 2.0 | 1.75
--| 25 | 'b' | 4.0 | NULL
--| 30 | NULL | 8.0 | NULL
SELECT * FROM rated ORDER BY symbol;
--| NULL | 16.0 | 1
--| 'a' | 5.0 | 2
--| 'b' | 8.0 | 1
DESCRIBE rated;
--| 'symbol' | 'STRING' | true
--| 'total' | 'DOUBLE' | true
--| 'count(*)' | 'BIGINT' | true
-- A late quote, and one that goes, move only the trades between them and the next quote.
INSERT INTO quotes VALUES (8, 'a', 0.75);
DELETE FROM quotes WHERE bid = 1.75;
UPDATE rates SET rate = 3.0 WHERE first = 20;
SELECT * FROM with_quote ORDER BY ts;
--| 10 | 'a' | 1.0 | 0.75
--| 20 | 'a' | 2.0 | 1.5
--| 25 | 'b' | 4.0 | NULL
--| 30 | NULL | 8.0 | NULL
SELECT total FROM rated WHERE symbol = 'a';
--| 7.0
VERIFY VIEW with_quote;
--| (no rows)
VERIFY VIEW rated;
--| (no rows)
-- The same read once: operators answer, Spark SQL has no such join.
SELECT t.ts, bid, bid * 2 FROM trades t ASOF JOIN quotes q ON t.symbol = q.symbol AND t.ts > q.ts ORDER BY t.ts;
--| 10 | 0.75 | 1.5
--| 20 | 0.75 | 1.5
SELECT t.ts, q.ts FROM trades t ASOF JOIN quotes q ON q.symbol <=> t.symbol AND q.ts >= t.ts ORDER BY t.ts;
--| 10 | 20
--| 20 | 20
--| 25 | 26
WITH late AS (SELECT * FROM trades WHERE ts > 15) SELECT count(*) FROM late ASOF JOIN quotes USING (symbol, ts);
--| 1
SELECT count(bid) FROM trades [INTERVAL 10 SECONDS] t ASOF LEFT JOIN quotes [INTERVAL 10 SECONDS] q ON t.ts >= q.ts;
--| 2
SELECT w.ts, first FROM with_quote w ASOF LEFT JOIN rates ON bid < first ORDER BY w.ts LIMIT 2;
--| 10 | 20
--| 20 | 20
CREATE TABLE kept AS SELECT t.ts, bid FROM trades t ASOF JOIN quotes q ON t.symbol = q.symbol AND t.ts >= q.ts;
SELECT count(*), sum(bid) FROM kept;
--| 2 | 2.25
EXPLAIN SELECT t.ts, bid FROM trades t ASOF JOIN quotes q ON t.ts >= q.ts;
--| 'run by operators'
--| 'as-of join on ts >= ts, the last by ts, _seq'
--| '  trades: ts'
--| '  quotes: ts, bid, _seq'
SELECT count(*) FROM trades AS asof JOIN rates ON asof.ts = rates.first;
--| 1
SELECT 1 FROM trades t ASOF JOIN quotes q ON t.symbol = q.symbol;
--! 0A000 ON of an as-of join takes equalities of both sides and one comparison of their times ~ other conditions go into WHERE, or into a subquery
CREATE VIEW no AS SELECT 1 FROM trades t ASOF JOIN quotes q ON t.ts > q.ts AND price > 1;
--! 0A000 ON of an as-of join takes equalities of both sides and one comparison of their times ~ other conditions go into WHERE, or into a subquery
CREATE CONTINUOUS QUERY c AS SELECT bid FROM trades [INTERVAL 10 SECONDS] t ASOF JOIN quotes [INTERVAL 10 SECONDS] q ON t.ts >= q.ts SAMPLE INTERVAL 1 SECONDS;
--! 0A000 an as-of join cannot be computed here: only views keep one ~ make a view of the as-of join, and read the view
SELECT map_filter(map(1, 2), (k, v) -> k > v) FROM trades t ASOF JOIN quotes q ON t.ts >= q.ts;
--! 0A000 an as-of join cannot be computed here: map ~ make a view of the as-of join, and read the view
DELETE FROM rates WHERE first IN (SELECT q.ts FROM trades t ASOF JOIN quotes q ON t.ts >= q.ts);
--! 0A000 an as-of join cannot be computed here: it stands in a statement that changes rows ~ make a view of the as-of join, and read the view
CREATE FUNCTION last_bid() RETURNS DOUBLE RETURN SELECT max(bid) FROM trades t ASOF JOIN quotes q ON t.ts >= q.ts;
--! 0A000 an as-of join cannot be computed here: it stands in a function ~ make a view of the as-of join, and read the view

-- case: about how many different values there are
CREATE STREAMING TABLE visits (ts INT, page STRING, visitor INT) TIMESTAMP BY ts;
CREATE VIEW visitors AS SELECT page, approx_count_distinct(visitor) AS about, count(DISTINCT visitor) AS n,
  approx_count_distinct(visitor, 0.01) FILTER (WHERE visitor > 2) AS later FROM visits GROUP BY page;
SELECT name, tier FROM headwater.views;
--| 'visitors' | 'operators'
INSERT INTO visits VALUES (1, 'a', 1), (2, 'a', 2), (3, 'a', 3), (4, 'a', 1), (5, 'b', NULL), (6, 'c', 3);
SELECT * FROM visitors ORDER BY page;
--| 'a' | 3 | 3 | 1
--| 'b' | 0 | 0 | 0
--| 'c' | 1 | 1 | 1
VERIFY VIEW visitors;
--| (no rows)
INSERT INTO visits SELECT 10 + id, 'a', id FROM range(20000);
SELECT abs(about - n) < 0.05 * n, abs(later - n) < 0.02 * n FROM visitors WHERE page = 'a';
--| true | true
VERIFY VIEW visitors;
--| (no rows)
DELETE FROM visits WHERE visitor >= 10;
SELECT * FROM visitors ORDER BY page;
--| 'a' | 10 | 10 | 7
--| 'b' | 0 | 0 | 0
--| 'c' | 1 | 1 | 1
VERIFY VIEW visitors;
--| (no rows)
