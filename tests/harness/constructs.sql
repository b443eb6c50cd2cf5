-- What views and continuous queries are asked to keep: a name, then a SELECT over the streaming table {s}.

-- aggregates
SELECT k, count(*) AS n, sum(v) AS a, avg(v) AS b, min(v) AS c, max(v) AS d, stddev(v) AS e, bool_and(v > 1)
AS f FROM {s} GROUP BY k

-- filter and case
SELECT k, sum(v) FILTER (WHERE v > 1) AS a, sum(CASE WHEN v > 2 THEN 1 END) AS b FROM {s} GROUP BY k HAVING
count(*) > 1

-- distinct
SELECT DISTINCT k FROM {s}

-- count distinct
SELECT k, count(DISTINCT v) AS n FROM {s} GROUP BY k

-- sum distinct
SELECT sum(DISTINCT v) AS n FROM {s}

-- key by a function
SELECT upper(name) AS u, count(*) AS n FROM {s} GROUP BY upper(name)

-- filter
SELECT k, v FROM {s} WHERE v > 1

-- projection
SELECT k + 1 AS k, concat(name, '!') AS name FROM {s}

-- star
SELECT * FROM {s}

-- star but
SELECT * EXCEPT (arr, m, p) FROM {s}

-- struct of star
SELECT k, struct(*) AS whole FROM {s}

-- row_number
SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC, t) AS r FROM {s}) WHERE r
= 1

-- qualify
SELECT k, v, t FROM {s} QUALIFY row_number() OVER (PARTITION BY k ORDER BY v, t) = 1

-- order by limit
SELECT k, v, t FROM {s} ORDER BY v DESC, t LIMIT 3

-- top above a grouping
SELECT k, n FROM (SELECT k, count(*) AS n FROM {s} GROUP BY k) ORDER
 BY n DESC, k LIMIT 2

-- rank above a grouping
SELECT k, rank() OVER (ORDER BY n DESC) AS r FROM (SELECT k, count(*) AS n FROM {s} GROUP BY k)

-- lag
SELECT t, v - lag(v) OVER (PARTITION BY k ORDER BY t, v) AS d FROM {s}

-- running sum
SELECT t, sum(v) OVER (ORDER BY t, v, name ROWS UNBOUNDED PRECEDING) AS d FROM {s}

-- first
SELECT k, first(k) AS f, last(k) AS l FROM {s} GROUP BY k

-- max_by
SELECT k, max_by(name, t) AS a, min_by(name, t) AS b FROM {s} GROUP BY k

-- any_value
SELECT k, any_value(k) AS a FROM {s} GROUP BY k

-- sketches
SELECT k, approx_count_distinct(v) AS a, percentile(v, 0.5) AS b, median(v) AS c FROM {s} GROUP BY k

-- regression
SELECT k, regr_count(v, t) AS n, regr_avgx(v, t) AS a, regr_avgy(v, t) AS b, regr_sxx(v, t) AS c, regr_syy(v, t) AS d,
regr_sxy(v, t) AS e, regr_slope(v, t) AS f, regr_intercept(v, t) AS g, regr_r2(v, t) AS h, regr_r2(k, v) AS i,
regr_r2(v, k) AS j, regr_slope(v, k) AS l FROM {s} GROUP BY k

-- count distinct of two
SELECT k, count(DISTINCT v, name) AS n FROM {s} GROUP BY k

-- unpivot
SELECT * FROM (SELECT k, V, t FROM {s}) UNPIVOT (what FOR which IN (v, t AS `at`))

-- collect
SELECT k, sort_array(collect_list(v)) AS a, sort_array(collect_set(v)) AS b FROM {s} GROUP BY k

-- listagg
SELECT k, listagg(name, ',') WITHIN GROUP (ORDER BY name) AS a FROM {s} GROUP BY k

-- listagg distinct
SELECT k, listagg(DISTINCT name, ',') WITHIN GROUP (ORDER BY name) AS a, count(DISTINCT v) AS n FROM {s}
GROUP BY k

-- listagg distinct alone
SELECT listagg(DISTINCT name) WITHIN GROUP (ORDER BY name) AS a FROM {s}

-- percentile within
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS a, count(DISTINCT k) AS n FROM {s}

-- mode and covar
SELECT k, covar_pop(v, t) AS a, count_if(v > 1) AS b FROM {s} GROUP BY k

-- rollup
SELECT k, name, count(*) AS n FROM {s} GROUP BY ROLLUP (k, name)

-- cube
SELECT k, name, sum(v) AS n FROM {s} GROUP BY CUBE (k, name)

-- grouping sets
SELECT k, name, grouping_id() AS g, count(*) AS n FROM {s} GROUP BY GROUPING SETS ((k), (name))

-- join
SELECT d.label, count(*) AS n FROM {s} AS s JOIN dim AS d ON s.k = d.k GROUP BY d.label

-- left join
SELECT d.label, sum(s.v) AS n FROM {s} AS s LEFT JOIN dim AS d ON s.k = d.k GROUP BY d.label

-- join using
SELECT k, label, v FROM {s} AS s JOIN dim USING (k)

-- star of a join using
SELECT * FROM {s} AS s JOIN dim USING (k)

-- natural join
SELECT * FROM {s} AS s NATURAL JOIN dim

-- star of a join
SELECT s.*, d.label FROM {s} AS s JOIN dim AS d ON s.k = d.k

-- right join
SELECT d.label, s.v FROM {s} AS s RIGHT JOIN dim AS d ON s.k = d.k

-- full join above
SELECT d.label, n FROM (SELECT k, count(*) AS n FROM {s} GROUP BY k) AS g FULL JOIN dim AS d ON g.k = d.k

-- semi and anti join
SELECT count(*) AS n FROM {s} AS s LEFT SEMI JOIN dim ON s.k = dim.k UNION ALL SELECT count(*) FROM {s} AS s
LEFT ANTI JOIN dim ON s.k = dim.k

-- in
SELECT count(*) AS n FROM {s} WHERE k IN (SELECT k FROM dim)

-- not in
SELECT count(*) AS n FROM {s} WHERE k NOT IN (SELECT k FROM dim WHERE k IS NOT NULL)

-- exists
SELECT s.k, s.v FROM {s} AS s WHERE EXISTS (SELECT 1 FROM dim AS d WHERE d.k = s.k)

-- not exists
SELECT count(*) AS n FROM {s} AS s WHERE NOT EXISTS (SELECT 1 FROM dim AS d WHERE d.k = s.k)

-- self join
SELECT a.k, a.t, b.t AS u FROM {s} AS a JOIN {s} AS b ON a.k = b.k AND a.t < b.t

-- natural self join
SELECT count(*) AS n FROM {s} AS a NATURAL JOIN (SELECT k, v AS w FROM {s}) AS b

-- left join of streams
SELECT a.t, b.t AS u FROM {s} AS a LEFT JOIN {s} AS b ON a.k = b.v

-- union all of groups
SELECT k, count(*) AS n FROM {s} GROUP BY k UNION ALL SELECT v, sum(k) FROM {s} GROUP BY v

-- twelve branches
SELECT 0 AS b, count(*) AS n, sum(v) AS a FROM {s} WHERE v <> 0 UNION ALL SELECT 1 AS b, count(*) AS n,
sum(v) AS a FROM {s} WHERE v <> 1 UNION ALL SELECT 2 AS b, count(*) AS n, sum(v) AS a FROM {s} WHERE v <> 2
UNION ALL SELECT 3 AS b, count(*) AS n, sum(v) AS a FROM {s} WHERE v <> 3 UNION ALL SELECT 4 AS b, count(*)
AS n, sum(v) AS a FROM {s} WHERE v <> 4 UNION ALL SELECT 5 AS b, count(*) AS n, sum(v) AS a FROM {s} WHERE v
<> 5 UNION ALL SELECT 6 AS b, count(*) AS n, sum(v) AS a FROM {s} WHERE v <> 6 UNION ALL SELECT 7 AS b,
count(*) AS n, sum(v) AS a FROM {s} WHERE v <> 7 UNION ALL SELECT 8 AS b, count(*) AS n, sum(v) AS a FROM
{s} WHERE v <> 8 UNION ALL SELECT 9 AS b, count(*) AS n, sum(v) AS a FROM {s} WHERE v <> 9 UNION ALL SELECT
10 AS b, count(*) AS n, sum(v) AS a FROM {s} WHERE v <> 10 UNION ALL SELECT 11 AS b, count(*) AS n, sum(v)
AS a FROM {s} WHERE v <> 11

-- union under a grouping
SELECT k, count(*) AS n FROM (SELECT k FROM {s} UNION ALL SELECT v FROM {s}) GROUP BY k

-- set operations
SELECT k FROM {s} INTERSECT SELECT v FROM {s} EXCEPT SELECT k FROM dim

-- union
SELECT k FROM {s} UNION SELECT k FROM dim

-- scalar subquery
SELECT k, count(*) AS n FROM {s} GROUP BY k HAVING count(*) > (SELECT avg(k) - 2 FROM dim)

-- correlated
SELECT label, (SELECT max(v) FROM {s} AS s WHERE s.k = dim.k) AS m FROM dim

-- lateral
SELECT d.k, x.m FROM dim AS d, LATERAL (SELECT max(s.v) AS m FROM {s} AS s WHERE s.k = d.k) AS x

-- explode
SELECT k, x FROM {s} LATERAL VIEW explode(arr) AS x

-- outer explode
SELECT k, x FROM {s} LATERAL VIEW OUTER explode(arr) e AS x

-- posexplode
SELECT k, i, x FROM {s} LATERAL VIEW posexplode(arr) e AS i, x

-- two lateral views
SELECT k, x, y FROM {s} LATERAL VIEW explode(arr) a AS x LATERAL VIEW explode(arr) b AS y

-- lateral view grouped
SELECT x, count(*) AS n FROM {s} LATERAL VIEW explode(arr) AS x GROUP BY x

-- explode of a map
SELECT k, a, b FROM {s} LATERAL VIEW explode(m) AS a, b

-- inline
SELECT k, a, b FROM {s} LATERAL VIEW inline(array(struct(v, name))) AS a, b

-- stack
SELECT k, a FROM {s} LATERAL VIEW stack(2, v, t) AS a

-- explode in the list
SELECT k, explode(arr) AS x FROM {s}

-- posexplode in the list
SELECT k, posexplode(arr) AS (i, x) FROM {s}

-- explode in FROM
SELECT s.k, e.col FROM {s} AS s, LATERAL explode(s.arr) AS e

-- session window
SELECT k, session_window(at, '10 seconds').start AS w, count(*) AS n FROM {s} GROUP BY k, session_window(at,
'10 seconds')

-- tumbling window
SELECT window(at, '10 seconds').end AS w, count(*) AS n FROM {s} GROUP BY window(at, '10 seconds')

-- group by an array
SELECT arr, count(*) AS n FROM {s} GROUP BY arr

-- group by a struct
SELECT p, count(*) AS n FROM {s} GROUP BY p

-- group all
SELECT k, name, count(*) AS n FROM {s} GROUP BY ALL

-- struct field
SELECT p.x, count(*) AS n FROM {s} GROUP BY p.x

-- struct field by alias
SELECT s.p.x AS x, s.p.q.z AS z FROM {s} AS s WHERE s.p.x > 1 ORDER BY p.x

-- struct fields
SELECT p.x + 1 AS y, p.q.z FROM {s} WHERE p.q.z IS NOT NULL

-- struct field of a group
SELECT x + 1 AS x, n FROM (SELECT p.x, sum(p.q.z) AS n FROM {s} GROUP BY p.x) WHERE x > 0

-- struct star
SELECT k, p.* FROM {s}

-- struct field in a join
SELECT d.label, s.p.x FROM {s} AS s JOIN dim AS d ON s.p.x = d.k

-- struct field of a subquery
SELECT g.p.x AS x FROM (SELECT p FROM {s}) AS g

-- map and array
SELECT m['a'] AS a, arr[0] AS b, m.a AS c FROM {s} WHERE size(arr) > 0

-- values
SELECT s.k, w.x FROM {s} AS s JOIN (VALUES (1, 'one'), (2, 'two')) AS w(k, x) ON s.k = w.k

-- named columns
SELECT a, b FROM (SELECT k, count(*) FROM {s} GROUP BY k) AS g(a, b)

-- cte
WITH g AS (SELECT k, count(*) AS n FROM {s} GROUP BY k) SELECT a.k, b.n FROM g AS a JOIN g AS b ON a.n = b.n

-- nested aggregates
SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM {s} GROUP BY k)

-- recursive
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT i, n FROM r JOIN (SELECT
k, count(*) AS n FROM {s} GROUP BY k) ON i = k

-- pivot
SELECT * FROM (SELECT k, name, v FROM {s}) PIVOT (sum(v) FOR name IN ('a', 'b'))

-- unpivot
SELECT * FROM (SELECT k, v, t FROM {s}) UNPIVOT (x FOR c IN (v, t))

-- window clause
SELECT t, sum(v) OVER w AS x FROM {s} WINDOW w AS (PARTITION BY k ORDER BY t, v, name)

-- higher order
SELECT k, transform(arr, x -> x + 1) AS a, aggregate(arr, 0, (a, x) -> a + x) AS b FROM {s}

-- strings with our words
SELECT k, 'ORDER BY headwater_instant() headwater_fold_0 LIMIT' AS w, count(*) AS n FROM {s} GROUP BY k

-- comment in order by
SELECT k, n FROM (SELECT k, count(*) AS n FROM {s} GROUP BY k) ORDER /* by */ BY n, k LIMIT 2

-- time of day
SELECT k, hour(at) AS h, date_trunc('day', at) AS d, count(*) AS n FROM {s} GROUP BY ALL

-- sql function
SELECT twice(k) AS k, count(*) AS n FROM {s} GROUP BY twice(k)
