-- EXISTS, NOT EXISTS, IN and NOT IN over a table: semi and anti joins below folds, and above them.

-- case: continuous queries
CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts;
CREATE TABLE t (k STRING, name STRING, x INT);
CREATE TABLE u (k STRING NOT NULL, id INT NOT NULL);
INSERT INTO t VALUES ('a', 'one', 1), ('a', 'two', 5), ('b', NULL, 3), (NULL, 'none', 9);
INSERT INTO u VALUES ('a', 1), ('c', 2);
CREATE CONTINUOUS QUERY there AS SELECT k, count(*) AS n FROM s [INTERVAL 4 SECONDS] a
  WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k) GROUP BY k SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY gone AS SELECT k, count(*) AS n FROM s [INTERVAL 4 SECONDS] a
  WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND t.x > a.v) GROUP BY k SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY larger AS SELECT k, v FROM s [INTERVAL 4 SECONDS] a
  WHERE EXISTS (SELECT 1 FROM t WHERE x > v) SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY listed AS SELECT k, sum(v) AS total FROM s [INTERVAL 4 SECONDS]
  WHERE k IN (SELECT k FROM t WHERE x >= 3) GROUP BY k SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY others AS SELECT k, sum(v) AS total FROM s [INTERVAL 4 SECONDS]
  WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM u) GROUP BY k SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY never AS SELECT count(*) AS n FROM s [INTERVAL 4 SECONDS]
  WHERE k NOT IN (SELECT k FROM t) SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY above AS SELECT name FROM t WHERE NOT EXISTS
  (SELECT 1 FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 4 SECONDS] GROUP BY k) a
   WHERE a.k = t.k AND a.total > t.x) SAMPLE INTERVAL 2 SECONDS;
INSERT INTO s VALUES (1, 'a', 4), (1, 'b', 3), (2, 'c', 7), (2, NULL, 1), (3, 'a', 6);
ADVANCE s TO 3;
FLUSH;
-- sorted
SUBSCRIBE there EARLIEST;
--| 'a' | 1 | 2
--| 'b' | 1 | 2
-- sorted
SUBSCRIBE gone EARLIEST;
--| 'b' | 1 | 2
--| 'c' | 1 | 2
--| NULL | 1 | 2
-- sorted
SUBSCRIBE larger EARLIEST;
--| 'a' | 4 | 2
--| 'b' | 3 | 2
--| 'c' | 7 | 2
--| NULL | 1 | 2
-- sorted
SUBSCRIBE listed EARLIEST;
--| 'a' | 4 | 2
--| 'b' | 3 | 2
-- sorted
SUBSCRIBE others EARLIEST;
--| 'b' | 3 | 2
SUBSCRIBE never EARLIEST;
--| 0 | 2
-- sorted
SUBSCRIBE above EARLIEST;
--| 'none' | 2
--| 'two' | 2
--| NULL | 2
SELECT name, mode, tier FROM headwater.queries ORDER BY name;
--| 'above' | 'fold' | 'operators'
--| 'gone' | 'fold' | 'operators'
--| 'larger' | 'fold' | 'Spark and operators'
--| 'listed' | 'fold' | 'operators'
--| 'never' | 'fold' | 'Spark and operators'
--| 'others' | 'fold' | 'operators'
--| 'there' | 'fold' | 'operators'

-- case: a table that changes reaches rows that are folded
CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts;
CREATE TABLE t (k STRING, x INT);
CREATE CONTINUOUS QUERY there AS SELECT k, sum(v) AS total FROM s [INTERVAL 9 SECONDS] a
  WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND x > v) GROUP BY k SAMPLE INTERVAL 2 SECONDS;
INSERT INTO s VALUES (1, 'a', 4), (1, 'b', 3);
ADVANCE s TO 3;
FLUSH;
INSERT INTO t VALUES ('a', 5), ('b', 1);
INSERT INTO s VALUES (4, 'a', 1), (4, 'b', 2);
ADVANCE s TO 5;
FLUSH;
SUBSCRIBE there EARLIEST;
--| 'a' | 5 | 4

-- case: views
CREATE STREAM q (ts INT, k STRING, v INT) TIMESTAMP BY ts;
CREATE TABLE t (k STRING, name STRING, x INT);
INSERT INTO t VALUES ('a', 'one', 1), ('b', NULL, 3), (NULL, 'none', 9);
CREATE VIEW there AS SELECT k, count(*) AS n FROM q WHERE EXISTS (SELECT 1 FROM t WHERE t.k = q.k AND x < v) GROUP BY k;
CREATE VIEW gone AS SELECT k, count(*) AS n FROM q WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = q.k) GROUP BY k;
INSERT INTO q VALUES (1, 'a', 4), (1, 'b', 3), (2, 'c', 7), (2, NULL, 1), (3, 'a', 6);
-- sorted
SELECT * FROM there;
--| 'a' | 2
-- sorted
SELECT * FROM gone;
--| 'c' | 1
--| NULL | 1
INSERT INTO t VALUES ('c', 'three', 0);
-- sorted
SELECT * FROM gone;
--| 'c' | 1
--| NULL | 1
INSERT INTO q VALUES (5, 'c', 7), (5, 'd', 7);
-- sorted
SELECT * FROM gone;
--| 'c' | 2
--| 'd' | 1
--| NULL | 1
EXPLAIN VIEW gone;
--| 'continuous view gone, maintenance split'
--| 'at each insert:'
--| 'fold_0: stream pipeline over q, operators'
--| '  anti t'
--| '  where: NOT EXISTS (SELECT 1 FROM t WHERE t.k = q.k)'
--| '  group by: k AS _k0'
--| '  partials: count(*) AS _a0'
--| 'tables as of creation or REFRESH STATIC: t'
--| 'at each read: operators'
--| '  SELECT _k0 AS k, _a0 AS n FROM fold_0'

-- case: a view of stored rows is made again
CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts RANGE FOREVER;
CREATE TABLE t (k STRING, x INT);
INSERT INTO t VALUES ('a', 1);
INSERT INTO s VALUES (1, 'a', 4), (1, 'b', 3), (2, 'c', 7);
CREATE VIEW gone AS SELECT k, sum(v) AS n FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k) GROUP BY k;
-- sorted
SELECT * FROM gone;
--| 'b' | 3
--| 'c' | 7
INSERT INTO t VALUES ('c', 0);
ALTER VIEW gone REFRESH STATIC;
INSERT INTO s VALUES (5, 'c', 7), (5, 'd', 7);
-- sorted
SELECT * FROM gone;
--| 'b' | 3
--| 'd' | 7
VERIFY VIEW gone;
--| (no rows)
