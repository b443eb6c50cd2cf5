-- One-time queries: all of Spark SQL.

-- case: texts are as they are written, on Spark too
SELECT concat('${env:HOME}', '$', '{spark.app.name}');
--| '${env:HOME}${spark.app.name}'

-- case: joins
CREATE TABLE a (k INT, v STRING);
CREATE TABLE b (k INT, w STRING);
INSERT INTO a VALUES (1, 'a1'), (2, 'a2'), (NULL, 'a0'), (2, 'a2b');
INSERT INTO b VALUES (2, 'b2'), (3, 'b3'), (NULL, 'b0');
-- sorted
SELECT a.k, v, w FROM a JOIN b ON a.k = b.k;
--| 2 | 'a2' | 'b2'
--| 2 | 'a2b' | 'b2'

-- sorted
SELECT v, w FROM a FULL OUTER JOIN b USING (k);
--| 'a0' | NULL
--| 'a1' | NULL
--| 'a2' | 'b2'
--| 'a2b' | 'b2'
--| NULL | 'b0'
--| NULL | 'b3'

-- sorted
SELECT v FROM a LEFT SEMI JOIN b ON a.k = b.k;
--| 'a2'
--| 'a2b'

-- sorted
SELECT v FROM a LEFT ANTI JOIN b ON a.k = b.k;
--| 'a0'
--| 'a1'

SELECT count(*) FROM a CROSS JOIN b;
--| 12

-- sorted
SELECT x.v, y.v FROM a x, a y WHERE x.k = y.k AND x.v < y.v;
--| 'a2' | 'a2b'

-- sorted
SELECT k, v, w FROM a NATURAL LEFT JOIN b;
--| 1 | 'a1' | NULL
--| 2 | 'a2' | 'b2'
--| 2 | 'a2b' | 'b2'
--| NULL | 'a0' | NULL

-- case: grouping and sets
CREATE TABLE s (shop STRING, item STRING, n INT, price DECIMAL(6, 2));
INSERT INTO s VALUES ('A', 'x', 1, 1.10), ('A', 'y', 2, 2.20), ('B', 'x', 3, 3.30), ('B', NULL, NULL, 4.40);
SELECT shop, count(*), count(n), sum(n), avg(n), min(item), max(price), sum(price) FROM s GROUP BY shop ORDER BY shop;
--| 'A' | 2 | 2 | 3 | 1.5 | 'x' | 2.20BD | 3.30BD
--| 'B' | 2 | 1 | 3 | 3.0 | 'x' | 4.40BD | 7.70BD

SELECT shop, item, sum(n), grouping_id() FROM s GROUP BY GROUPING SETS ((shop, item), (shop), ()) ORDER BY ALL NULLS FIRST;
--| NULL | NULL | 6 | 3
--| 'A' | NULL | 3 | 1
--| 'A' | 'x' | 1 | 0
--| 'A' | 'y' | 2 | 0
--| 'B' | NULL | NULL | 0
--| 'B' | NULL | 3 | 1
--| 'B' | 'x' | 3 | 0

SELECT shop, sum(n) FROM s GROUP BY ROLLUP (shop) HAVING sum(n) > 2 ORDER BY 2, 1;
--| 'A' | 3
--| 'B' | 3
--| NULL | 6

SELECT shop, item, count(*) FROM s GROUP BY CUBE (shop, item) ORDER BY ALL NULLS FIRST LIMIT 3;
--| NULL | NULL | 1
--| NULL | NULL | 4
--| NULL | 'x' | 2

SELECT count(DISTINCT item), percentile_cont(0.5) WITHIN GROUP (ORDER BY n), median(n), stddev(n), mode(item), collect_set(item) FROM s WHERE shop = 'A';
--| 2 | 1.5 | 1.5 | 0.7071067811865476 | 'x' | ['x', 'y']

SELECT sum(n) FILTER (WHERE shop = 'A'), count_if(n > 1), bool_and(n > 0), array_agg(n) FROM s WHERE n IS NOT NULL AND shop = 'A';
--| 3 | 1 | true | [1, 2]

-- sorted
SELECT item FROM s WHERE shop = 'A' EXCEPT SELECT item FROM s WHERE shop = 'B';
--| 'y'

-- sorted
SELECT shop FROM s UNION SELECT item FROM s;
--| 'A'
--| 'B'
--| 'x'
--| 'y'
--| NULL

-- sorted
SELECT item FROM s INTERSECT ALL SELECT item FROM s WHERE shop = 'B';
--| 'x'
--| NULL

SELECT * FROM (SELECT shop, item, n FROM s) PIVOT (sum(n) FOR item IN ('x', 'y')) ORDER BY shop;
--| 'A' | 1 | 2
--| 'B' | 3 | NULL

SELECT * FROM (SELECT 1 AS id, 10 AS p, 20 AS q) UNPIVOT (v FOR name IN (p, q)) ORDER BY name;
--| 1 | 'p' | 10
--| 1 | 'q' | 20

-- case: window functions
CREATE TABLE t (g STRING, i INT, v INT);
INSERT INTO t VALUES ('a', 1, 5), ('a', 2, 5), ('a', 3, 1), ('b', 1, NULL), ('b', 2, 7);
SELECT g, i, row_number() OVER w, rank() OVER (PARTITION BY g ORDER BY v DESC), lag(v) OVER w, sum(v) OVER w,
       avg(v) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
  FROM t WINDOW w AS (PARTITION BY g ORDER BY i) ORDER BY g, i;
--| 'a' | 1 | 1 | 1 | NULL | 5 | 5.0
--| 'a' | 2 | 2 | 1 | 5 | 10 | 5.0
--| 'a' | 3 | 3 | 3 | 5 | 11 | 3.0
--| 'b' | 1 | 1 | 2 | NULL | NULL | NULL
--| 'b' | 2 | 2 | 1 | NULL | 7 | 7.0

SELECT g, i FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY i DESC) = 1 ORDER BY g;
--| 'a' | 3
--| 'b' | 2

-- case: subqueries, CTEs, lateral
CREATE TABLE t (a INT, b ARRAY<INT>);
INSERT INTO t VALUES (1, array(10, 11)), (2, array()), (3, NULL);
WITH big AS (SELECT a FROM t WHERE a > 1), bigger AS (SELECT max(a) AS m FROM big) SELECT m FROM bigger;
--| 3

WITH t AS (SELECT 100 AS a) SELECT a FROM t;
--| 100

SELECT a, (SELECT max(x.a) FROM t x WHERE x.a < t.a) FROM t ORDER BY a;
--| 1 | NULL
--| 2 | 1
--| 3 | 2

SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.a = t.a + 1) ORDER BY a;
--| 1
--| 2

SELECT a FROM t WHERE a IN (SELECT a + 1 FROM t) ORDER BY a;
--| 2
--| 3

SELECT a, e FROM t, LATERAL explode(b) AS x(e) ORDER BY e;
--| 1 | 10
--| 1 | 11

SELECT t.a, u.n FROM t, LATERAL (SELECT count(*) AS n FROM t u WHERE u.a < t.a) u ORDER BY t.a;
--| 1 | 0
--| 2 | 1
--| 3 | 2

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT sum(i) FROM n;
--| 10

SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(a, b) ORDER BY a DESC;
--| 2 | 'y'
--| 1 | 'x'

VALUES (1), (2);
--| 1
--| 2

FROM t |> WHERE a < 3 |> SELECT a * 10 AS a |> ORDER BY a;
--| 10
--| 20

SELECT id FROM range(3);
--| 0
--| 1
--| 2

TABLE t;
--| 1 | [10, 11]
--| 2 | []
--| 3 | NULL

-- case: names of results
CREATE TABLE t (Abc INT);
INSERT INTO t VALUES (1);
DESCRIBE SELECT ABC, abc AS `x y`, abc + 1, count(*) FROM t GROUP BY ALL;
--| 'ABC' | 'INT' | true
--| 'x y' | 'INT' | true
--| '(abc + 1)' | 'INT' | true
--| 'count(1)' | 'BIGINT' | true

-- case: dates, times, text, JSON
SELECT date_add(DATE '2024-02-28', 2), datediff(DATE '2024-03-01', DATE '2024-02-01'), last_day(DATE '2024-02-01'), date_trunc('MONTH', TIMESTAMP '2024-05-06 07:08:09');
--| 2024-03-01 | 29 | 2024-02-29 | 2024-05-01 00:00:00+00:00

SELECT TIMESTAMP '2024-01-31 00:00:00' + INTERVAL '1' MONTH, TIMESTAMP '2024-01-01 00:00:00' - INTERVAL 3 SECONDS, unix_timestamp(TIMESTAMP '1970-01-02 00:00:00');
--| 2024-02-29 00:00:00+00:00 | 2023-12-31 23:59:57+00:00 | 86400

SELECT concat_ws('-', 'a', NULL, 'b'), split('a,b', ','), regexp_extract('x12', '([0-9]+)', 1), 'a' || 'b', substr('hello', 2, 3), lower('ÄÖ');
--| 'a-b' | ['a', 'b'] | '12' | 'ab' | 'ell' | 'äö'

SELECT get_json_object('{"a": {"b": 5}}', '$.a.b'), from_json('{"x": 1}', 'x INT').x, to_json(named_struct('a', 1));
--| '5' | 1 | '{"a":1}'

SELECT CASE WHEN 1 > 2 THEN 'x' ELSE 'y' END, coalesce(NULL, 3), nullif(1, 1), greatest(1, 3, 2), if(true, 1, 2), try_cast('x' AS INT), try_divide(1, 0);
--| 'y' | 3 | NULL | 3 | 1 | NULL | NULL

SELECT 5 / 2, 5 DIV 2, 5 % 3, -5 % 3, 2 * 3.5, 1e0 / 3, round(2.5), bround(2.5), 7 & 3, 1 << 4;
--| 2.5 | 2 | 2 | -2 | 7.0BD | 0.3333333333333333 | 3BD | 2BD | 3 | 16

-- case: a query over a system table and a table
CREATE TABLE t (name STRING);
INSERT INTO t VALUES ('t'), ('u');
SELECT t.name, s.row_count FROM t LEFT JOIN headwater.tables s ON s.name = t.name ORDER BY t.name;
--| 't' | 2
--| 'u' | NULL

SELECT count(*) > 5 FROM headwater.settings;
--| true

SELECT x.name FROM headwater.tables AS x WHERE x.row_count = (SELECT count(*) FROM t);
--| 't'

SELECT tables.name FROM headwater.tables WHERE length(tables.name) = 1;
--| 't'
