-- first and last go by the rows' order.

SELECT k, first(v), last(v) AS l FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | first(v), last(v) | gives _k0 AS k, _a0 AS first(v), _a1 AS l

SELECT k, first(v) IGNORE NULLS AS f FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | first_ignore_nulls(v) | gives _k0 AS k, _a0 AS f

SELECT k, last_value(v, true) AS f FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | last_ignore_nulls(v) | gives _k0 AS k, _a0 AS f

SELECT any_value(v) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: aggregate any_value has no fold

-- show whole
SELECT k, first(v), last(w) FILTER (WHERE w > 0) AS l FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: last with FILTER has no fold
whole: SELECT k, min_by(v, struct(s.ts, s._seq)) AS `first(v)`, max_by(w, struct(s.ts, s._seq)) FILTER (WHERE (w > 0)) AS l FROM window_0 AS s GROUP BY k
