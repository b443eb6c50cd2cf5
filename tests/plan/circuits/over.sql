-- Window functions, and rows by number up to a bound.

SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM s;
row_number() over k ordered by v desc
  s: k, v
± k STRING, v INT, n INT

SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM s) WHERE n <= 2;
filter (n <= 2)
  first 2 of k ordered by v desc
    s: k, v
± k STRING, v INT, n INT

SELECT k, v FROM s QUALIFY rank() OVER (PARTITION BY k ORDER BY v DESC) = 1;
filter (over = 1)
  first 1 by rank of k ordered by v desc
    s: k, v
± k STRING, v INT

SELECT * FROM (SELECT k, v, dense_rank() OVER (ORDER BY v) AS n FROM s) WHERE 3 > n AND k = 'a';
filter (k = 'a')
  filter (3 > n)
    first 2 by dense_rank of all rows ordered by v
      s: k, v
± k STRING, v INT, n INT

SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM s) WHERE n > 2;
filter (n > 2)
  row_number() over k ordered by v
    s: k, v
± k STRING, v INT, n INT

SELECT k, lag(v) OVER (PARTITION BY k ORDER BY ts) AS before, sum(v) OVER (PARTITION BY k ORDER BY ts) AS total FROM s;
lag(v), sum(v) over k ordered by ts
  s: ts, k, v
± k STRING, before INT, total INT

SELECT k, avg(w) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM s;
avg(w) of rows 2 before to 1 after over k ordered by ts
  s: ts, k, w
± k STRING, _ DOUBLE

SELECT k, v, max(v) OVER (PARTITION BY k) - v AS short FROM s;
compute (over - v)
  max(v) over k
    s: k, v
± k STRING, v INT, short INT

SELECT k, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM s GROUP BY k;
rank() over all rows ordered by count desc
  group by k: count()
    s: k
± k STRING, n BIGINT, r INT

SELECT k, sum(v) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s;
sum(v) of range 1 before to 0 after over all rows ordered by v
  s: k, v
± k STRING, _ INT

SELECT max(v) OVER (PARTITION BY k ORDER BY ts DESC RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND INTERVAL '1' MINUTE FOLLOWING) AS m FROM s;
max(v) of range 10 seconds before to 1 minute after over k ordered by ts desc
  s: ts, k, v
± m INT

SELECT sum(v) OVER (ORDER BY w RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s;
Spark: this frame

SELECT sum(v) OVER (ORDER BY v, k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s;
Spark: this frame

SELECT sum(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) FROM s;
Spark: this frame

SELECT k, ntile(4) OVER (PARTITION BY k ORDER BY v) AS n, last_value(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY v ROWS 1 PRECEDING) AS l FROM s;
ntile(), last_value(v) of rows 1 before to 0 after over k ordered by v
  s: k, v
± k STRING, n INT, l INT

SELECT first(v) OVER (ORDER BY ts) AS f, nth_value(v, 2) OVER (ORDER BY ts) AS t, cume_dist() OVER (ORDER BY ts) AS c FROM s;
first_value(v), nth_value(v), cume_dist() over all rows ordered by ts
  s: ts, v
± f INT, t INT, c DOUBLE

SELECT nth_value(v, v) OVER (ORDER BY ts) AS t FROM s;
Spark: a window function by an expression

-- Names that the select list gives.

SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM s QUALIFY n <= 2;
filter (over <= 2)
  first 2 of k ordered by v desc
    s: k, v
± k STRING, v INT, n INT

SELECT v + 1 AS a, a * 2 AS b, b + v AS c FROM s;
compute (v + 1), ((v + 1) * 2), (((v + 1) * 2) + v)
  s: ts, v, _seq
+ a INT, b INT, c INT

SELECT k, max_by(v, ts) AS m, count(*) AS n FROM s GROUP BY k HAVING n > 1 AND m > 2 ORDER BY m + n LIMIT 3;
first 3 of all rows ordered by order
  compute (max_by + count)
    filter ((count > 1) and (max_by > 2))
      group by k: max_by(v, ts), count()
        s: ts, k, v
± k STRING, m INT, n BIGINT

SELECT k, -v AS v FROM s ORDER BY v + 0 LIMIT 3;
first 3 of all rows ordered by order
  compute negative(v), (negative(v) + 0)
    s: k, v
± k STRING, v INT

SELECT k, -v AS v, row_number() OVER (ORDER BY v) AS n FROM s QUALIFY n = 1 AND v < 0;
Spark: v, which is a column and an alias

-- What Spark refuses is left to it.

SELECT count(DISTINCT v) OVER (PARTITION BY k) AS n FROM s;
Spark: count as a window function

SELECT rank() OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM s;
Spark: a row's number within a frame

SELECT ntile(0) OVER (ORDER BY v) AS n FROM s;
Spark: a window function by 0 or less

SELECT nth_value(k, 0) OVER (ORDER BY v) AS n FROM s;
Spark: a window function by 0 or less

SELECT sum(v) OVER (ORDER BY ts ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING) AS n FROM s;
Spark: a frame that ends before it begins

SELECT sum(v) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED FOLLOWING AND 1 FOLLOWING) AS n FROM s;
Spark: a frame that ends before it begins

SELECT sum(v) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND UNBOUNDED PRECEDING) AS n FROM s;
Spark: a frame that ends before it begins

SELECT k FROM s QUALIFY v = 1;
Spark: QUALIFY without a window function

SELECT k FROM s ORDER BY row_number() OVER (ORDER BY v);
Spark: ORDER BY a window function

SELECT k, count(*) AS n FROM s GROUP BY k QUALIFY row_number() OVER (ORDER BY count(*)) = 1;
Spark: an aggregate in QUALIFY
