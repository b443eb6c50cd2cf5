-- A subquery that stands in a query more than once is one fold.

-- case: continuous queries
CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts;
CREATE TABLE t (k STRING, other STRING);
INSERT INTO t VALUES ('a', 'b'), ('b', 'a'), ('c', NULL);
CREATE CONTINUOUS QUERY above AS SELECT a.k, a.total FROM (SELECT k, sum(v) AS total FROM s [INTERVAL 4 SECONDS] GROUP BY k) a
  JOIN (SELECT K, SUM(V) AS total FROM s [INTERVAL 4 SECONDS] z GROUP BY z.k HAVING sum(v) > 3) c ON a.k = c.k SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY both AS SELECT k, v FROM s [INTERVAL 4 SECONDS] WHERE v > 3
  UNION ALL SELECT x.k, x.v + 100 FROM s [INTERVAL 4 SECONDS] x WHERE (x.v > 3) SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY last AS SELECT k FROM s [k ROWS 1] UNION ALL SELECT max(k) FROM s [k ROWS 1] SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY looked AS SELECT k, (SELECT sum(v) FROM s [INTERVAL 4 SECONDS] WHERE s.k = t.k) AS mine,
  (SELECT sum(v) FROM s [INTERVAL 4 SECONDS] WHERE s.k = t.other) AS theirs FROM t SAMPLE INTERVAL 2 SECONDS;
INSERT INTO s VALUES (1, 'a', 4), (1, 'b', 3), (2, 'c', 7), (2, 'a', 1), (3, 'a', 6), (7, 'b', 9);
ADVANCE s TO 9;
FLUSH;
-- sorted
SUBSCRIBE above EARLIEST;
--| 'a' | 11 | 4
--| 'a' | 5 | 2
--| 'a' | 7 | 6
--| 'b' | 9 | 8
--| 'c' | 7 | 2
--| 'c' | 7 | 4
--| 'c' | 7 | 6
-- sorted
SUBSCRIBE both EARLIEST;
--| 'a' | 104 | 2
--| 'a' | 104 | 4
--| 'a' | 106 | 4
--| 'a' | 106 | 6
--| 'a' | 4 | 2
--| 'a' | 4 | 4
--| 'a' | 6 | 4
--| 'a' | 6 | 6
--| 'b' | 109 | 8
--| 'b' | 9 | 8
--| 'c' | 107 | 2
--| 'c' | 107 | 4
--| 'c' | 107 | 6
--| 'c' | 7 | 2
--| 'c' | 7 | 4
--| 'c' | 7 | 6
-- sorted
SUBSCRIBE last EARLIEST;
--| 'a' | 2
--| 'a' | 4
--| 'a' | 6
--| 'a' | 8
--| 'b' | 2
--| 'b' | 4
--| 'b' | 6
--| 'b' | 8
--| 'c' | 2
--| 'c' | 2
--| 'c' | 4
--| 'c' | 4
--| 'c' | 6
--| 'c' | 6
--| 'c' | 8
--| 'c' | 8
-- sorted
SUBSCRIBE looked EARLIEST;
--| 'a' | 11 | 3 | 4
--| 'a' | 5 | 3 | 2
--| 'a' | 7 | NULL | 6
--| 'a' | NULL | 9 | 8
--| 'b' | 3 | 11 | 4
--| 'b' | 3 | 5 | 2
--| 'b' | 9 | NULL | 8
--| 'b' | NULL | 7 | 6
--| 'c' | 7 | NULL | 2
--| 'c' | 7 | NULL | 4
--| 'c' | 7 | NULL | 6
--| 'c' | NULL | NULL | 8

-- case: a view
CREATE STREAM q (ts INT, k STRING, v INT) TIMESTAMP BY ts;
CREATE VIEW w AS SELECT a.k, total, n FROM (SELECT k, sum(v) AS total, count(*) AS n FROM q GROUP BY k) a
  WHERE total > (SELECT avg(total) FROM (SELECT k, sum(v) AS total, count(*) AS n FROM q GROUP BY k));
INSERT INTO q VALUES (1, 'a', 4), (1, 'b', 3), (2, 'c', 7), (3, 'a', 6);
-- sorted
SELECT * FROM w;
--| 'a' | 10 | 2
--| 'c' | 7 | 1
INSERT INTO q VALUES (5, 'c', 9);
-- sorted
SELECT * FROM w;
--| 'a' | 10 | 2
--| 'c' | 16 | 2
EXPLAIN VIEW w;
--| 'continuous view w, maintenance split'
--| 'at each insert:'
--| 'fold_0: stream pipeline over q, operators'
--| '  group by: k AS _k0'
--| '  partials: sum(v) AS _a0, count(*) AS _a1'
--| 'at each read: operators'
--| '  SELECT a.k, total, n FROM (SELECT _k0 AS k, _a0 AS total, _a1 AS n FROM fold_0) a'
--| '    WHERE total > (SELECT avg(total) FROM (SELECT _k0 AS k, _a0 AS total, _a1 AS n FROM fold_0))'
--| 'in one part: more stands above its grouping than HAVING and columns'
