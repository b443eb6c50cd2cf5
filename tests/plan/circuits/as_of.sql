-- As-of joins: equal keys and one comparison of times; what the right side's order of rows of one time is.

SELECT s.k, v, b FROM s ASOF JOIN r ON s.k = r.k AND s.ts >= r.ts;
as-of join on k = k and ts >= ts, the last by ts, _seq
  s: ts, k, v
  r: ts, k, b, _seq
± k STRING, v INT, b BIGINT

SELECT s.k, v, b FROM s ASOF LEFT JOIN r ON r.ts < s.ts AND s.k <=> r.k WHERE v > 1 AND b > 2;
filter (b > 2)
  left as-of join on k <=> k and ts > ts, the last by ts, _seq
    filter (v > 1)
      s: ts, k, v
    r: ts, k, b, _seq
± k STRING, v INT, b BIGINT

SELECT * FROM s ASOF JOIN r USING (k, ts);
as-of join on k = k and ts >= ts, the last by ts, _seq
  s: ts, k, v, w, p
  r: ts, k, b, _seq
± k STRING, ts TIMESTAMP, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>, b BIGINT

SELECT s.k, name FROM s ASOF LEFT OUTER JOIN t ON s.k = t.k AND s.v <= t.x + 1;
left as-of join on k = k and v <= key
  s: k, v
  compute (x + 1)
    t: k, name, x
± k STRING, name STRING

SELECT s.k, b FROM s ASOF JOIN r ON s.ts > r.ts;
as-of join on ts > ts, the last by ts, _seq
  s: ts, k
  r: ts, b, _seq
± k STRING, b BIGINT

SELECT s.k, sum(b) AS total FROM s ASOF JOIN (SELECT ts, k, max(b) AS b FROM r GROUP BY ts, k) r ON s.k = r.k AND s.ts >= r.ts JOIN t ON s.k = t.k GROUP BY s.k;
group by k: sum(b)
  inner join on k = k
    as-of join on k = k and ts >= ts
      s: ts, k
      group by ts, k: max(b)
        r: ts, k, b
    t: k
± k STRING, total BIGINT

SELECT s.k FROM s ASOF JOIN r ON s.k = r.k;
Spark: ON of an as-of join takes equalities of both sides and one comparison of their times

SELECT s.k FROM s ASOF JOIN r ON s.ts >= r.ts AND s.v > r.b;
Spark: ON of an as-of join takes equalities of both sides and one comparison of their times

SELECT s.k FROM s ASOF JOIN r ON s.ts >= r.ts AND r.b > 1;
Spark: ON of an as-of join takes equalities of both sides and one comparison of their times

SELECT s.k FROM s ASOF RIGHT JOIN r ON s.ts >= r.ts;
Spark: an as-of join that is neither inner nor left
