-- Groupings, HAVING, DISTINCT and grouping sets.

SELECT k, count(*) AS n, sum(v) FILTER (WHERE w > 0) AS a, avg(w) + 1 AS m FROM s GROUP BY k HAVING count(*) > 2 ORDER BY m DESC LIMIT 3;
first 3 of all rows ordered by m desc
  compute (avg + 1.0)
    filter (count > 2)
      group by k: count(), sum(argument), avg(w)
        compute case((w > 0.0), v, NULL)
          s: k, v, w
± k STRING, n BIGINT, a INT, m DOUBLE

SELECT upper(k) AS u, max(v) FROM s GROUP BY u;
group by key: max(v)
  compute upper(k)
    s: k, v
± u STRING, _ INT

SELECT upper(k), max(v) FROM s GROUP BY 1;
group by key: max(v)
  compute upper(k)
    s: k, v
± _ STRING, _ INT

SELECT upper(k) || 'x', max(v) FROM s GROUP BY upper(k);
compute concat(key, 'x')
  group by key: max(v)
    compute upper(k)
      s: k, v
± _ STRING, _ INT

SELECT count(*), count(DISTINCT k), sum(DISTINCT v) FROM s;
group by nothing: count(), count(distinct k), sum(distinct v)
  s: k, v
± _ BIGINT, _ BIGINT, _ INT

SELECT k, v FROM s GROUP BY k;
Spark: a column that is not grouped

SELECT DISTINCT k, v % 2 AS odd FROM s;
distinct
  compute (v % 2)
    s: k, v
+ k STRING, odd INT

SELECT DISTINCT k FROM s ORDER BY k LIMIT 2;
first 2 of all rows ordered by k
  distinct
    s: k
± k STRING

SELECT k, v, sum(w) FROM s GROUP BY ROLLUP(k, v);
union all
  group by k, v, always: sum(w)
    compute 0
      s: k, v, w
  compute NULL
    group by k, always: sum(w)
      as in line 3
  compute NULL, NULL
    group by always: sum(w)
      as in line 3
± k STRING, v INT, _ DOUBLE

SELECT k, v, sum(w) FROM s GROUP BY CUBE(k, v);
union all
  group by k, v, always: sum(w)
    compute 0
      s: k, v, w
  compute NULL
    group by k, always: sum(w)
      as in line 3
  compute NULL
    group by v, always: sum(w)
      as in line 3
  compute NULL, NULL
    group by always: sum(w)
      as in line 3
± k STRING, v INT, _ DOUBLE

SELECT k, v, count(*) FROM s GROUP BY GROUPING SETS ((k), (v), ());
union all
  compute NULL
    group by k, always: count()
      compute 0
        s: k, v
  compute NULL
    group by v, always: count()
      as in line 4
  compute NULL, NULL
    group by always: count()
      as in line 4
± k STRING, v INT, _ BIGINT

SELECT k, count(*) FROM s GROUP BY k WITH ROLLUP;
Spark: rollup of group

SELECT k, max_by(v, w), min_by(v, w), median(w), percentile(v, 0.9) FROM s GROUP BY k;
group by k: max_by(v, w), min_by(v, w), median(w), percentile(v)
  s: k, v, w
± k STRING, _ INT, _ INT, _ DOUBLE, _ DOUBLE

SELECT k, mode(v) FROM s GROUP BY k;
Spark: aggregate mode of these types has no operator

SELECT k, count_if(v > 1) FROM s GROUP BY ALL;
group by k: count(argument)
  compute case((v > 1), 1, NULL)
    s: k, v
± k STRING, _ BIGINT

SELECT name, sum(v) FROM s JOIN t ON s.k = t.k GROUP BY name;
group by name: sum(v)
  inner join on k = k
    s: k, v
    t: k, name
± name STRING, _ INT

SELECT max(n) FROM (SELECT k, count(*) AS n FROM s GROUP BY k);
group by nothing: max(n)
  group by k: count()
    s: k
± _ BIGINT

WITH g AS (SELECT k, sum(v) AS z FROM s GROUP BY k) SELECT a.k FROM g a JOIN g b ON a.z = b.z + 1;
inner join on z = key
  group by k: sum(v)
    s: k, v
  compute (z + 1)
    as in line 2
± k STRING

SELECT k, collect_list(v) AS l, any_value(w) AS w, listagg(k, ',') WITHIN GROUP (ORDER BY v DESC) AS t FROM s GROUP BY k;
group by k: collect_list(v ordered by ts, _seq), first(w ordered by ts, _seq), listagg(k ordered by v desc)
  s: ts, k, v, w, _seq
± k STRING, l INT, w DOUBLE, t STRING

SELECT percentile_approx(v, array(0.5, 0.9), 100) AS p, percentile_cont(0.5) WITHIN GROUP (ORDER BY v DESC) AS c FROM s;
group by nothing: percentile_approx(v), percentile(v)
  s: v
± p ARRAY<INT>, c DOUBLE

SELECT k, approx_count_distinct(v) AS n FROM s GROUP BY k;
group by k: approx_count_distinct(v)
  s: k, v
± k STRING, n BIGINT

SELECT approx_count_distinct(v, 0.01) AS n, approx_count_distinct(w) FILTER (WHERE v > 1) AS m FROM s;
group by nothing: approx_count_distinct(v, 0.01), approx_count_distinct(argument)
  compute case((v > 1), w, NULL)
    s: v, w
± n BIGINT, m BIGINT

SELECT approx_count_distinct(v, 0.5) AS n FROM s;
Spark: approx_count_distinct with an error of 0.5

SELECT * FROM (SELECT k, v, x FROM s JOIN t USING (k)) PIVOT (count(*) AS n, sum(v) AS t FOR k IN ('a' AS a, 'b'));
compute case((count > 0), count, NULL), case((count > 0), count, NULL)
  group by x: count(argument), sum(argument), count(argument), sum(argument)
    compute case((k = 'a'), 1, NULL), case((k = 'a'), v, NULL), case((k = 'b'), 1, NULL), case((k = 'b'), v, NULL)
      inner join on k = k
        s: k, v
        t: k, x
± x INT, a_n BIGINT, a_t INT, b_n BIGINT, b_t INT

SELECT * FROM s UNPIVOT (x FOR n IN (v));
compute 'v'
  filter not(is null(v))
    s: ts, k, v, w, p
+ ts TIMESTAMP, k STRING, w DOUBLE, p STRUCT<x: INT, y: STRING>, n STRING, x INT

SELECT * FROM (SELECT k, v FROM s) PIVOT (count(*) FOR v IN (1.7 AS a, 2 AS b));
Spark: a PIVOT by values that are not of the column's type

SELECT a, b FROM (SELECT k FROM s) q, (SELECT k AS j FROM t) u PIVOT (count(*) FOR j IN ('x' AS a, 'y' AS b));
Spark: PIVOT behind a join: it is over all that was joined

SELECT k, regr_count(v, w) AS n, regr_avgx(v, w) AS x, regr_slope(v, w) AS a, regr_r2(v, w) AS r FROM s GROUP BY k;
group by k: count(argument), avg(argument), regr_slope(v, w), regr_r2(v, w)
  compute case(not(is null(w)), case(not(is null(v)), 1, NULL), NULL), case(not(is null(w)), case(not(is null(v)), w, NULL), NULL)
    s: k, v, w
± k STRING, n BIGINT, x DOUBLE, a INT, r INT

SELECT count(DISTINCT k, v) AS n, count(DISTINCT k, v) FILTER (WHERE v > 1) AS m FROM s;
group by nothing: count_distinct(k, v), count_distinct(argument, v)
  compute case((v > 1), k, NULL)
    s: k, v
± n BIGINT, m BIGINT

SELECT * FROM (SELECT k, v, ts FROM s) UNPIVOT (what FOR name IN (v)) AS u;
compute 'v'
  filter not(is null(v))
    s: ts, k, v
+ k STRING, ts TIMESTAMP, name STRING, what INT

SELECT k, name, what FROM (SELECT k, v, v + 1 AS u FROM s) UNPIVOT INCLUDE NULLS (what FOR name IN (v, u AS next));
union all
  compute 'v'
    compute (v + 1)
      s: k, v
  compute 'next'
    as in line 3
+ k STRING, name STRING, what INT

SELECT k, name, what FROM s UNPIVOT (what FOR name IN (v, w));
Spark: an UNPIVOT of columns of several types

SELECT * EXCEPT (w, p), r.* EXCEPT (k, ts) FROM s CROSS JOIN r;
inner join on nothing
  s: ts, k, v
  r: ts, k, b
+ ts TIMESTAMP, k STRING, v INT, ts TIMESTAMP, k STRING, b BIGINT, b BIGINT

SELECT * EXCEPT (none) FROM s;
Spark: * EXCEPT what is not one column of it

SELECT k, max(struct(v, w)).w AS m, min_by(v, struct(w, v)) AS n, bit_xor(v) AS x, every(v > 1) AS e FROM s GROUP BY k;
compute field(first, 1)
  group by k: first(argument ordered by v desc, w desc), first(v ordered by w, v), bit_xor(v), bool_and(argument)
    compute struct(v, w, 'v', 'w'), (v > 1)
      s: k, v, w
± k STRING, m DOUBLE, n INT, x INT, e BOOLEAN

SELECT k, mean(v) AS m FROM s GROUP BY k;
group by k: avg(v)
  s: k, v
± k STRING, m DOUBLE

SELECT k, max(struct(v, w)) FILTER (WHERE v > 1) AS m FROM s GROUP BY k;
Spark: first with FILTER

SELECT k, count(*) AS n FROM s GROUP BY 0;
Spark: GROUP BY a number that no item has

SELECT k, count(*) AS n FROM s GROUP BY -1;
Spark: GROUP BY a number that no item has

SELECT k, count(*) AS n FROM s GROUP BY (1);
group by k: count()
  s: k
± k STRING, n BIGINT

SELECT count(*) AS n FROM s GROUP BY GROUPING SETS (());
Spark: grouping sets without a key

SELECT DISTINCT v AS x FROM s ORDER BY v;
Spark: ORDER BY what DISTINCT shows under another name

SELECT DISTINCT v FROM s ORDER BY s.v;
distinct
  s: v
+ v INT
