-- One row for each element of an array or map.

SELECT k, x FROM nested LATERAL VIEW explode(a) e AS x WHERE x > 1 AND k = 'b';
filter (k = 'b')
  filter (x > 1)
    explode a
      nested: k, a
+ k STRING, x INT

SELECT k, p, x FROM nested LATERAL VIEW OUTER posexplode(a) AS p, x;
posexplode outer a
  nested: k, a
+ k STRING, p INT, x INT

SELECT k, e.* FROM nested LATERAL VIEW explode(m) e;
explode m
  nested: k, m
+ k STRING, key STRING, value INT

SELECT k, explode(a) AS x FROM nested;
explode a
  nested: k, a
+ k STRING, x INT

SELECT explode_outer(a), k FROM nested WHERE k IS NOT NULL;
explode outer a
  filter not(is null(k))
    nested: k, a
+ col INT, k STRING

SELECT x, count(*) FROM nested LATERAL VIEW explode(a) AS x GROUP BY x;
group by x: count()
  explode a
    nested: a
± x INT, _ BIGINT

SELECT k, x, y FROM nested LATERAL VIEW explode(a) AS x LATERAL VIEW explode(a) AS y;
explode a
  explode a
    nested: k, a
+ k STRING, x INT, y INT

SELECT k, explode(a) + 1 AS x FROM nested;
Spark: a generator within an expression

SELECT k FROM nested LATERAL VIEW json_tuple(k, 'a') AS x;
Spark: anonymous in LATERAL VIEW
