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

SELECT k FROM s UNION SELECT k FROM r ORDER BY 0;
Spark: ORDER BY an expression over a set operation

SELECT DISTINCT k, m FROM nested;
Spark: maps among rows that are compared

SELECT array(m) AS l FROM nested EXCEPT ALL SELECT array(m) FROM nested;
Spark: array of these types is evaluated by Spark

SELECT m FROM nested UNION SELECT m FROM nested;
Spark: maps among rows that are compared

SELECT m FROM nested UNION ALL SELECT m FROM nested;
union all
  nested: m
  nested: m
+ m MAP<STRING, INT>
