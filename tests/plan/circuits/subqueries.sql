-- Subqueries in conditions and as values.

SELECT k FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND x > v);
semi join on k = k and (x > v)
  s: k, v
  t: k, x
± k STRING

SELECT k FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND b > 3);
anti join on k = k
  s: k
  filter (b > 3)
    r: k, b
± k STRING

SELECT k FROM s WHERE k IN (SELECT k FROM t WHERE x > 1);
semi join on k = k
  s: k
  filter (x > 1)
    t: k, x
± k STRING

SELECT k FROM s WHERE k NOT IN (SELECT k FROM t);
union all
  anti join on nothing
    anti join on k = k
      filter not(is null(k))
        s: k
      t: k
    filter is null(k)
      t: k
  anti join on nothing
    filter is null(k)
      s: k
    t: k
± k STRING

SELECT k FROM s WHERE NOT upper(k) IN (SELECT max(k) FROM t);
union all
  anti join on nothing
    anti join on key = 22.
      compute upper(k)
        filter not(is null(upper(k)))
          s: k
      group by nothing: max(k)
        t: k
    filter is null(22.)
      as in line 7
  anti join on nothing
    filter is null(upper(k))
      s: k
    as in line 7
± k STRING

SELECT k FROM s WHERE v > (SELECT avg(b) FROM r);
filter (v > value)
  inner join on nothing
    s: k, v
    group by nothing: avg(b)
      r: b
± k STRING

SELECT k FROM s WHERE v > (SELECT max(b) FROM r WHERE r.k = s.k);
filter (v > value)
  left join on k = k
    s: k, v
    group by k: max(b)
      r: k, b
± k STRING

SELECT k, (SELECT count(*) FROM r WHERE r.k = s.k AND b > 3) AS n FROM s;
compute coalesce(count, 0)
  left join on k = k
    s: k
    group by k: count()
      filter (b > 3)
        r: k, b
± k STRING, n BIGINT

SELECT k, sum(v) FROM s GROUP BY k HAVING sum(v) > (SELECT sum(b) FROM r);
filter (sum > value)
  inner join on nothing
    group by k: sum(v)
      s: k, v
    group by nothing: sum(b)
      r: b
± k STRING, _ INT

SELECT k FROM s WHERE v > (SELECT max(b) FROM r WHERE r.b > s.v);
Spark: a subquery's value depends on more than an equality

SELECT k, (SELECT b FROM r) AS b FROM s;
Spark: a subquery that may give several rows

SELECT k FROM s a WHERE NOT EXISTS (SELECT * FROM s b WHERE b.k = a.k AND b.v > a.v);
anti join on k = k and (v > v)
  s: k, v
  s: k, v
± k STRING

SELECT k FROM s WHERE v > 1 OR EXISTS (SELECT 1 FROM t WHERE t.k = s.k);
filter ((v > 1) or mark)
  union all
    compute True
      semi join on k = k
        s: k, v
        t: k
    compute False
      anti join on k = k
        s: k, v
        t: k
± k STRING

SELECT k FROM s WHERE v > 1 OR k IN (SELECT k FROM t);
filter ((v > 1) or mark)
  union all
    compute True
      semi join on k = k
        s: k, v
        t: k
    compute False
      anti join on nothing
        anti join on k = k
          filter not(is null(k))
            s: k, v
          t: k
        filter is null(k)
          t: k
    compute False
      anti join on nothing
        filter is null(k)
          s: k, v
        t: k
    compute NULL
      semi join on nothing
        as in line 9
        as in line 13
    compute NULL
      semi join on nothing
        as in line 17
        t: k
± k STRING

SELECT k FROM s WHERE v NOT IN (SELECT x FROM t WHERE t.k = s.k);
union all
  anti join on k = k
    anti join on v = x and k = k
      filter not(is null(v))
        s: k, v
      t: k, x
    filter is null(x)
      t: k, x
  anti join on k = k
    filter is null(v)
      s: k, v
    t: k, x
± k STRING

SELECT count(*) AS n FROM s WHERE v NOT IN (SELECT x FROM t WHERE t.k = s.k);
group by nothing: count()
  union all
    anti join on k = k
      anti join on v = x and k = k
        filter not(is null(v))
          s: ts, k, v
        t: k, x
      filter is null(x)
        t: k, x
    anti join on k = k
      filter is null(v)
        s: ts, k, v
      t: k, x
± n BIGINT

SELECT k FROM s WHERE EXISTS (SELECT max(x) FROM t WHERE t.k = s.k);
Spark: EXISTS over an aggregate, which has a row in any case

SELECT k FROM s WHERE v > 1 OR NOT EXISTS (SELECT explode(array(x)) FROM t WHERE t.k = s.k);
Spark: EXISTS over a generator

SELECT k, EXISTS (SELECT 1 FROM t WHERE t.k = s.k) AS there FROM s GROUP BY k;
Spark: a subquery above a grouping that depends on its rows

SELECT k, sum(v) FROM s GROUP BY k HAVING k IN (SELECT k FROM t) OR sum(v) > 3;
filter (mark or (sum > 3))
  union all
    compute True
      semi join on k = k
        group by k: sum(v)
          s: k, v
        t: k
    compute False
      anti join on nothing
        anti join on k = k
          filter not(is null(k))
            as in line 5
          t: k
        filter is null(k)
          t: k
    compute False
      anti join on nothing
        filter is null(k)
          as in line 5
        t: k
    compute False
      semi join on nothing
        as in line 10
        as in line 14
    compute False
      semi join on nothing
        as in line 18
        t: k
± k STRING, _ INT

SELECT v NOT IN (SELECT x FROM t) AS none, v IN (SELECT x FROM t) AS one FROM s;
compute not(mark)
  union all
    compute True
      semi join on v = x
        union all
          compute True
            semi join on v = x
              s: v
              t: x
          compute False
            anti join on nothing
              anti join on v = x
                filter not(is null(v))
                  s: v
                t: x
              filter is null(x)
                t: x
          compute False
            anti join on nothing
              filter is null(v)
                s: v
              t: x
          compute True
            semi join on nothing
              as in line 12
              as in line 16
          compute True
            semi join on nothing
              as in line 20
              t: x
        t: x
    compute False
      anti join on nothing
        anti join on v = x
          filter not(is null(v))
            as in line 5
          t: x
        filter is null(x)
          t: x
    compute False
      anti join on nothing
        filter is null(v)
          as in line 5
        t: x
    compute False
      semi join on nothing
        as in line 34
        as in line 38
    compute False
      semi join on nothing
        as in line 42
        t: x
± none BOOLEAN, one BOOLEAN

SELECT k FROM s WHERE coalesce(k IN (SELECT k FROM t), true);
filter coalesce(mark, True)
  union all
    compute True
      semi join on k = k
        s: k
        t: k
    compute False
      anti join on nothing
        anti join on k = k
          filter not(is null(k))
            s: k
          t: k
        filter is null(k)
          t: k
    compute False
      anti join on nothing
        filter is null(k)
          s: k
        t: k
    compute False
      semi join on nothing
        as in line 9
        as in line 13
    compute False
      semi join on nothing
        as in line 17
        t: k
± k STRING

SELECT k, NOT (k IN (SELECT k FROM t) OR v > 2) AS none FROM s;
Spark: IN under NOT or =, as a value

SELECT k, (k IN (SELECT k FROM t)) = false AS none FROM s;
Spark: IN under NOT or =, as a value

SELECT k, NULL IN (SELECT k FROM t) AS n FROM s;
Spark: IN of a NULL that has no type

SELECT k, (SELECT count(DISTINCT b, k) FROM r WHERE r.k = s.k) AS n FROM s;
compute coalesce(count_distinct, 0)
  left join on k = k
    s: k
    group by k: count_distinct(b, k)
      r: k, b
± k STRING, n BIGINT

SELECT k, (SELECT collect_list(b) FROM r WHERE r.k = s.k) AS n FROM s;
Spark: a list of no values, which is no NULL

SELECT k FROM s WHERE EXISTS (SELECT nope FROM r WHERE r.k = s.k);
Spark: column of these types is evaluated by Spark

SELECT k FROM s AS b WHERE EXISTS (SELECT 1 FROM r WHERE r.k = b.k);
Spark: column of these types is evaluated by Spark
