-- Where folds run, and the types of what they give.

-- show types
SELECT k, sum(v), sum(w), count(*), avg(v), max(ts) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v), sum(w), count(*), avg(v), max(ts) | gives _k0 AS k, _a0 AS sum(v), _a1 AS sum(w), _a2 AS count(1), _a3 AS avg(v), _a4 AS max(ts)
fold 0 by operators gives STRING, BIGINT, DOUBLE, BIGINT, DOUBLE, TIMESTAMP

-- show types
SELECT k, v, w * 2, v + 1, CURRENT_INSTANT() FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v, 0.w | gives _c0 AS k, _c1 AS v, _c2 * 2, _c1 + 1, instant()
fold 0 by operators gives STRING, INT, DOUBLE, INT, TIMESTAMP

-- show types
SELECT k, sum(length(k)) AS n FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(length(k)) | gives _k0 AS k, _a0 AS n
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT k, soundex(k) AS n FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k | gives _c0 AS k, soundex(_c0) AS n
fold 0 by operators, finished on Spark

-- show types
SELECT p, count(*) FROM s [INTERVAL 1 MINUTE] GROUP BY p SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by p | count(*) | gives _k0 AS p, _a0 AS count(1)
fold 0 on Spark

-- show types
SELECT name, sum(v) FROM s [INTERVAL 1 MINUTE] JOIN t ON s.k = t.k GROUP BY name SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | inner t s.k = t.k; | by name | sum(v) | gives _k0 AS name, _a0 AS sum(v)
tables below: t
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT a.k, sum(b) FROM s [INTERVAL 1 MINUTE] a JOIN r [INTERVAL 1 MINUTE] c ON a.k = c.k GROUP BY a.k SAMPLE INTERVAL 10 SECONDS;
fold 0: join of s a [60 s] and r c [60 s] | on a.k = c.k | by a.k | sum(b) | gives _k0 AS k, _a0 AS sum(b)
fold 0 by operators gives STRING, BIGINT

-- show types
SELECT k, first(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k ORDER BY 2 SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | first(v) | gives _k0 AS k, _a0 AS first(v) | order 2 nulls first
fold 0 by operators gives STRING, INT

-- show types
SELECT k, first(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k ORDER BY soundex(k) SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | first(v) | gives _k0 AS k, _a0 AS first(v) | order soundex(_k0) nulls first
fold 0 by operators, finished on Spark

-- show types
SELECT at, sum(v) FROM n [INTERVAL 1 MINUTE] GROUP BY at SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of n [60 s] | by at | sum(v) | gives _k0 AS at, _a0 AS sum(v)
fold 0 by operators gives BIGINT, BIGINT
