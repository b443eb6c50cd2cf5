-- Functions of time mean the instant; those of chance are refused.

SELECT k, current_timestamp() AS now FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k | gives _c0 AS k, instant() AS now

SELECT k, current_date AS today, sum(v) FROM s [INTERVAL 1 MINUTE] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of s [60 s] | by k | sum(v) | gives _k0 AS k, CAST(instant() AS DATE) AS today, _a0 AS sum(v)

SELECT sum(v), now() FROM n [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: aggregate of n [60 s] | sum(v) | gives _a0 AS sum(v), timestamp_seconds(instant())

SELECT rand() FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
refused: rand() cannot be used in a continuous query

SELECT k FROM s [INTERVAL 1 MINUTE] WHERE w > random() SAMPLE INTERVAL 10 SECONDS;
refused: random() cannot be used in a continuous query

SELECT localtime() FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
refused: localtime() cannot be used in a continuous query

SELECT CAST('now' AS TIMESTAMP) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
refused: the time 'now' cannot be used in a continuous query

SELECT count(*) FROM s [INTERVAL 1 MINUTE] WHERE ts > unix_timestamp() SAMPLE INTERVAL 10 SECONDS;
again: a condition below the grouping changes from instant to instant
