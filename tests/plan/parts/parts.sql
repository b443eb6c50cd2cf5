-- Circuits as their parts have them, or why they stay whole: s and r are streaming tables, t is a standard one.

SELECT s.k, b FROM s JOIN r ON s.k = r.k;
inner join on k = k
  part 1 of 2 by hash of k
    s: k
  part 1 of 2 by hash of k
    r: k, b
found by: k

SELECT k, v FROM s WHERE v > 1;
filter (v > 1)
  part 1 of 2 by hash of ts, k, v, _seq
    s: ts, k, v, _seq
found by: nothing

SELECT s.k, sum(b) AS b FROM s JOIN r ON s.k = r.k GROUP BY s.k;
group by k: sum(b)
  inner join on k = k
    part 1 of 2 by hash of k
      s: k
    part 1 of 2 by hash of k
      r: k, b
found by: k

SELECT r.b, count(*) AS n FROM s JOIN r ON s.k = r.k GROUP BY r.b;
whole: every part would have all rows of s for: inner join on k = k

SELECT t.name, count(*) AS n FROM s JOIN t ON s.k = t.k GROUP BY t.name;
whole: every part would have all rows of s for: inner join on k = k

SELECT s.v, count(*) AS n FROM s JOIN t ON s.k = t.k GROUP BY s.v;
group by v: count()
  inner join on k = k
    part 1 of 2 by hash of v
      s: k, v
    t: k
found by: v

SELECT s.v, count(*) AS n FROM t LEFT JOIN s ON s.k = t.k GROUP BY s.v;
whole: every part would have all rows of s for: left join on k = k

SELECT s.k, s.v, count(*) AS n FROM s LEFT JOIN r ON s.k = r.k GROUP BY s.k, s.v;
group by k, v: count()
  left join on k = k
    part 1 of 2 by hash of k
      s: k, v
    part 1 of 2 by hash of k
      r: k
found by: k

SELECT r.k, count(*) AS n FROM s LEFT JOIN r ON s.k = r.k GROUP BY r.k;
whole: every part would have all rows of r for: left join on k = k

SELECT s.k FROM s FULL JOIN r ON s.k = r.k;
full join on k = k
  part 1 of 2 by hash of k
    s: k
  part 1 of 2 by hash of k
    r: k
found by: nothing

SELECT s.k, count(*) AS n FROM s FULL JOIN r ON s.k = r.k GROUP BY s.k;
whole: rows of other keys meet in: full join on k = k

SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) <= 3;
filter (over <= 3)
  first 3 of k ordered by v desc
    part 1 of 2 by hash of k
      s: k, v
found by: k

SELECT k, v, sum(v) OVER (PARTITION BY k ORDER BY ts) AS total FROM s;
sum(v) over k ordered by ts
  part 1 of 2 by hash of k
    s: ts, k, v
found by: k

SELECT k, v, sum(v) OVER (ORDER BY ts) AS total FROM s;
whole: all rows meet in: sum(v) over all rows ordered by ts

SELECT DISTINCT k, v FROM s;
distinct
  part 1 of 2 by hash of k, v
    s: k, v
found by: k, v

SELECT k, sum(v) AS total FROM s GROUP BY k ORDER BY total DESC LIMIT 10 OFFSET 2;
first 10 after 2 of all rows ordered by total desc
  first 12 of all rows ordered by total desc
    group by k: sum(v)
      part 1 of 2 by hash of k
        s: k, v
found by: k

SELECT k, sum(v) AS total FROM s GROUP BY k ORDER BY total;
group by k: sum(v)
  part 1 of 2 by hash of k
    s: k, v
found by: k

SELECT count(*) AS n FROM (SELECT DISTINCT k FROM s);
whole: all rows meet in: group by nothing: count()

SELECT k FROM s UNION ALL SELECT k FROM r;
union all
  part 1 of 2 by hash of k
    s: k
  part 1 of 2 by hash of k
    r: k
found by: k

SELECT k FROM s INTERSECT SELECT k FROM r;
intersect
  part 1 of 2 by hash of k
    s: k
  part 1 of 2 by hash of k
    r: k
found by: k

SELECT k, v FROM s WHERE EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND r.b > s.v);
semi join on k = k and (b > v)
  part 1 of 2 by hash of k
    s: k, v
  part 1 of 2 by hash of k
    r: k, b
found by: k

SELECT k, v FROM s WHERE v > (SELECT max(b) FROM r);
whole: every part would have all rows of s for: inner join on nothing

SELECT s.k, v FROM s, t WHERE s.v < t.x;
inner join on (v < x)
  part 1 of 2 by hash of k, v
    s: k, v
  t: x
found by: k, v

SELECT s.k, v FROM s, r WHERE s.v < r.b;
whole: every part would have all rows of s for: inner join on (v < b)

SELECT upper(s.k) AS u, count(*) AS n FROM s JOIN r ON upper(s.k) = upper(r.k) GROUP BY upper(s.k);
whole: key is computed above a key

SELECT s.k, v % 3 AS m, count(*) AS n FROM s JOIN r ON s.k = r.k GROUP BY s.k, v % 3;
group by k, key: count()
  compute (v % 3)
    inner join on k = k
      part 1 of 2 by hash of k
        s: k, v
      part 1 of 2 by hash of k
        r: k
found by: k

SELECT a.k, b.v FROM s a JOIN s b ON a.k = b.k AND a.v < b.v;
inner join on k = k and (v < v)
  part 1 of 2 by hash of k
    s: k, v
  as in line 2
found by: k

WITH g AS (SELECT k, sum(v) AS v FROM s GROUP BY k) SELECT a.k, a.v FROM g a JOIN g b ON a.k = b.k WHERE a.v <= b.v;
inner join on k = k and (v <= v)
  group by k: sum(v)
    part 1 of 2 by hash of k
      s: k, v
  as in line 2
found by: k

SELECT s.k, r.b, t.name FROM s JOIN r ON s.k = r.k JOIN t ON r.k = t.k;
inner join on k = k
  inner join on k = k
    part 1 of 2 by hash of k
      s: k
    part 1 of 2 by hash of k
      r: k, b
  part 1 of 2 by hash of k
    t: k, name
found by: k

SELECT s.k, v, b FROM s ASOF JOIN r ON s.k = r.k AND s.ts >= r.ts;
as-of join on k = k and ts >= ts, the last by ts, _seq
  part 1 of 2 by hash of k
    s: ts, k, v
  part 1 of 2 by hash of k
    r: ts, k, b, _seq
found by: k
