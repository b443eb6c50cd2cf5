-- FILTER and count_if are CASEs below the fold.

SELECT count(*) FILTER (WHERE v > 1) AS n FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | count(CASE WHEN v > 1 THEN 1 END) | gives _a0 AS n

SELECT k, sum(v) FILTER (WHERE w > 0), sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(CASE WHEN w > 0 THEN v END), sum(v) | gives _k0 AS k, _a0, _a1 AS sum(v)

SELECT count_if(v > 1) AS n FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | count(CASE WHEN v > 1 THEN 1 END) | gives _a0 AS n

SELECT first(v) FILTER (WHERE v > 1) AS n FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: first with FILTER has no fold

SELECT sum(v) FILTER (WHERE ts = CURRENT_INSTANT()) AS n FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: FILTER depends on the instant
