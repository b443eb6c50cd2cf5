-- UNION, INTERSECT and EXCEPT.

SELECT k FROM s UNION ALL SELECT k FROM r;
union all
  s: k
  r: k
+ k STRING

SELECT k FROM s UNION SELECT k FROM r;
distinct
  union all
    s: k
    r: k
+ k STRING

SELECT v FROM s UNION ALL SELECT b FROM r;
union all
  compute v
    s: v
  r: b
+ v BIGINT

SELECT k FROM s INTERSECT SELECT k FROM r;
intersect
  s: k
  r: k
+ k STRING

SELECT k FROM s EXCEPT ALL SELECT k FROM t ORDER BY k LIMIT 3;
first 3 of all rows ordered by k
  except all
    s: k
    t: k
± k STRING

SELECT k, count(*) FROM (SELECT k FROM s UNION ALL SELECT k FROM r) GROUP BY k;
group by k: count()
  union all
    s: k
    r: k
± k STRING, _ BIGINT

SELECT k FROM s UNION ALL SELECT v FROM s;
Spark: string and int32 meet in a set operation
