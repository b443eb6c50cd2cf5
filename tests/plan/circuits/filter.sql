-- Filters, projections, and the order of one table.

SELECT k, v + 1 AS x FROM s WHERE v > 3 AND k = 'a';
compute (v + 1)
  filter (k = 'a')
    filter (v > 3)
      s: ts, k, v, _seq
+ k STRING, x INT

SELECT * FROM s;
s: ts, k, v, w, p, _seq
+ ts TIMESTAMP, k STRING, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>

SELECT s.*, v * 2 AS twice FROM s WHERE w IS NOT NULL;
compute (v * 2)
  filter not(is null(w))
    s: ts, k, v, w, p, _seq
+ ts TIMESTAMP, k STRING, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>, twice INT

SELECT K FROM S WHERE `k` LIKE 'a%';
filter like(k, 'a%', '\\')
  s: ts, k, _seq
+ K STRING

SELECT _seq FROM s;
s: ts, _seq
+ _seq BIGINT

SELECT k FROM s LIMIT 3;
first 3 of all rows ordered by order, order
  s: ts, k, _seq
± k STRING

SELECT k FROM s ORDER BY v DESC, w LIMIT 3 OFFSET 2;
first 3 after 2 of all rows ordered by order desc, order
  s: k, v, w
± k STRING

SELECT k, v FROM s ORDER BY 2 NULLS LAST;
s: k, v
+ k STRING, v INT

SELECT k AS a FROM s ORDER BY v + 1;
compute (v + 1)
  s: k, v
+ a STRING

SELECT k FROM s WHERE rand() > 0.5;
Spark: rand is evaluated by Spark

SELECT 1 AS one;
Spark: a SELECT without FROM

SELECT k FROM s TABLESAMPLE (10 PERCENT);
Spark: sample of table

SELECT x FROM (SELECT v + 1 AS x, k FROM s WHERE v > 1) q WHERE k = 'b';
filter (k = 'b')
  compute (v + 1)
    filter (v > 1)
      s: k, v
+ x INT

SELECT a, b FROM (SELECT k, v FROM s) q(a, b);
s: k, v
+ a STRING, b INT

WITH c AS (SELECT k, v FROM s WHERE v > 0) SELECT k FROM c WHERE v < 9;
filter (v < 9)
  filter (v > 0)
    s: k, v
+ k STRING

WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT * FROM c;
Spark: WITH RECURSIVE

SELECT k FROM s ORDER BY 0;
Spark: ORDER BY a number that no item has

SELECT k FROM s ORDER BY -1;
Spark: ORDER BY a number that no item has

SELECT k, v FROM s ORDER BY (2);
s: k, v
+ k STRING, v INT

SELECT k FROM s ORDER BY k LIMIT 2147483648;
Spark: LIMIT of an expression
