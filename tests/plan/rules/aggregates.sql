-- GROUP BY and aggregates: partials per pane, merged per instant.

SELECT sum(v) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | sum(v) | gives _a0 AS sum(v)

SELECT k, sum(v) AS total FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 AS total

SELECT k, count(*), min(v), max(w) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | count(*), min(v), max(w) | gives _k0 AS k, _a0 AS count(1), _a1 AS min(v), _a2 AS max(w)

SELECT k, avg(v), stddev(w), var_pop(w) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | avg(v), stddev(w), var_pop(w) | gives _k0 AS k, _a0 AS avg(v), _a1 AS stddev(w), _a2 AS var_pop(w)

SELECT k, sum(v) + sum(v) * 2, sum( V ) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, _a0 + _a0 * 2, _a0 AS sum(V)

SELECT sum(v) / count(v) AS mean FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | sum(v), count(v) | gives _a0 / _a1 AS mean

SELECT upper(k) AS u, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY upper(k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by upper(k) | sum(v) | gives _k0 AS u, _a0 AS sum(v)

SELECT upper(k) AS u, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY u SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by upper(k) | sum(v) | gives _k0 AS u, _a0 AS sum(v)

SELECT upper(k) AS u, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by upper(k) | sum(v) | gives _k0 AS u, _a0 AS sum(v)

SELECT k, v % 2, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY ALL SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k, v % 2 | count(*) | gives _k0 AS k, _k1, _a0 AS count(1)

SELECT k, v % 2, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY 7 SAMPLE INTERVAL 10 SECONDS;
again: GROUP BY a number that no item has

SELECT (v % 2) * 10 AS x, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY v % 2 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by v % 2 | count(*) | gives _k0 * 10 AS x, _a0 AS count(1)

SELECT k, v FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: column v is not grouped

SELECT *, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: * beside a grouping

SELECT k, percentile(v, 0.5) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: aggregate percentile has no fold

SELECT k, collect_list(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: aggregate collect_list has no fold

SELECT k, geomean(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: geomean is an aggregate in Python, which has no fold

SELECT k, sum(DISTINCT v) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: sum(DISTINCT …) has no fold

SELECT k, max_by(v, w) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: aggregate max_by has no fold

SELECT k, sum((SELECT max(x) FROM t)) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: a subquery stands in an aggregate

SELECT k, sum(v) OVER (PARTITION BY k) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, sum(_c1) OVER (PARTITION BY _c0)

SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY k, CURRENT_INSTANT() SAMPLE INTERVAL 10 SECONDS;
again: a grouping depends on the instant

SELECT k, sum(v * unix_timestamp()) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: an aggregate depends on the instant

SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY ROLLUP (k) SAMPLE INTERVAL 10 SECONDS;
again: GROUP BY ROLLUP is not split

SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY CUBE (k) SAMPLE INTERVAL 10 SECONDS;
again: GROUP BY CUBE is not split

SELECT k, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY GROUPING SETS ((k), ()) SAMPLE INTERVAL 10 SECONDS;
again: GROUP BY GROUPING is not split

SELECT k, CURRENT_INSTANT() AS now, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, instant() AS now, _a0 AS sum(v)

SELECT k, sum(v) FROM s [LANDMARK] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [landmark] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE BEFORE] GROUP BY k SAMPLE REALTIME;
fold 0: aggregate of s [60 s before] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)

SELECT k, any(v > 1), any(v > 1) FILTER (WHERE w > 0) AS filtered, some(v > 1) AS one FROM s GROUP BY k;
fold 0: aggregate of s [landmark] | by k | any(v > 1), any(CASE WHEN w > 0 THEN v > 1 END), some(v > 1) | gives _k0 AS k, _a0, _a1 AS filtered, _a2 AS one

SELECT k, v > ANY (SELECT x FROM t) AS larger FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v | gives _c0 AS k, _c1 > ANY (SELECT x FROM t) AS larger
upper: SELECT _c0 AS k, _c1 > ANY (SELECT x FROM t) AS larger FROM fold_0
