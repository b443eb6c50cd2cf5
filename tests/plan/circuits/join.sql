-- Joins: keys are what is equal on both sides, conditions go down as far as they may.

SELECT s.k, b FROM s JOIN r ON s.k = r.k;
inner join on k = k
  s: k
  r: k, b
+ k STRING, b BIGINT

SELECT s.k, b FROM s, r WHERE s.k = r.k AND v > 1 AND b < 5 AND v < b;
inner join on k = k and (v < b)
  filter (v > 1)
    s: k, v
  filter (b < 5)
    r: k, b
+ k STRING, b BIGINT

SELECT s.k, name FROM s LEFT JOIN t ON s.k = t.k AND x > 1 AND v > 2;
left join on k = k and (v > 2)
  s: k, v
  filter (x > 1)
    t: k, name, x
± k STRING, name STRING

SELECT s.k, name FROM s LEFT JOIN t ON s.k = t.k WHERE name IS NULL AND v > 2;
filter is null(name)
  left join on k = k
    filter (v > 2)
      s: k, v
    t: k, name
± k STRING, name STRING

SELECT s.k, name FROM t RIGHT JOIN s ON s.k = t.k WHERE v > 2;
filter (v > 2)
  right join on k = k
    t: k, name
    s: k, v
± k STRING, name STRING

SELECT s.k, r.k FROM s FULL JOIN r ON s.k = r.k AND v = b;
full join on k = k and key = b
  compute v
    s: k, v
  r: k, b
± k STRING, k STRING

SELECT s.k FROM s LEFT SEMI JOIN t ON s.k = t.k AND x > v;
semi join on k = k and (x > v)
  s: k, v
  t: k, x
± k STRING

SELECT s.k FROM s LEFT ANTI JOIN t ON s.k = t.k;
anti join on k = k
  s: k
  t: k
± k STRING

SELECT s.k, t.name FROM s JOIN t USING (k);
inner join on k = k
  s: k
  t: k, name
± k STRING, name STRING

SELECT k, name FROM s JOIN t USING (k) WHERE v > 0;
inner join on k = k
  filter (v > 0)
    s: k, v
  t: k, name
± k STRING, name STRING

SELECT * FROM s JOIN t USING (k);
inner join on k = k
  s: ts, k, v, w, p
  t: k, name, x
± k STRING, ts TIMESTAMP, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>, name STRING, x INT

SELECT t.*, s.* FROM t LEFT JOIN s USING (k) WHERE k > 'a';
left join on k = k
  filter (k > 'a')
    t: k, name, x
  s: ts, k, v, w, p
± k STRING, name STRING, x INT, k STRING, ts TIMESTAMP, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>

SELECT * FROM s JOIN t USING (k) JOIN u USING (k);
inner join on k = k
  inner join on k = k
    s: ts, k, v, w, p
    t: k, name, x
  u: k, id
± k STRING, ts TIMESTAMP, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>, name STRING, x INT, id INT

SELECT * FROM s LEFT SEMI JOIN t USING (k);
semi join on k = k
  s: ts, k, v, w, p
  t: k
± k STRING, ts TIMESTAMP, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>

SELECT a.v, b.v FROM s a JOIN s b ON a.k = b.k AND a.v < b.v;
inner join on k = k and (v < v)
  s: k, v
  s: k, v
+ v INT, v INT

SELECT a.v FROM s a CROSS JOIN t;
inner join on nothing
  s: v
  t: k
± v INT

SELECT a.v FROM s a JOIN r ON upper(a.k) = lower(r.k) AND a.v + 1 = r.b;
inner join on key = key and key = b
  compute upper(k), (v + 1)
    s: k, v
  compute lower(k)
    r: k, b
+ v INT

SELECT a.v FROM s a JOIN t ON a.k <=> t.k;
inner join on k <=> k
  s: k, v
  t: k
± v INT

SELECT k FROM s JOIN r ON s.k = r.k;
Spark: column k may mean several

SELECT s.k FROM s NATURAL JOIN t;
Spark: NATURAL JOIN

SELECT s.k, t.name, u.id FROM s JOIN t ON s.k = t.k JOIN u ON u.k = t.k WHERE u.id > s.v;
inner join on k = k and (id > v)
  inner join on k = k
    s: k, v
    t: k, name
  u: k, id
± k STRING, name STRING, id INT
