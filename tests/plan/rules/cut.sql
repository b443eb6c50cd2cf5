-- CUT keeps chunks; PAIR NEWEST pairs only what the newest chunk has a part in.

SELECT k, sum(v) FROM s CUT ON ts BY INTERVAL 5 SECONDS GROUP BY k;
fold 0: aggregate of s [5 s before] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)

SELECT k, sum(v) FROM s CUT ON ts BY INTERVAL 5 SECONDS KEEP 3 CHUNKS GROUP BY k;
fold 0: aggregate of s [15 s before] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)

SELECT k, sum(v) FROM s CUT BY 100 ROWS KEEP 2 CHUNKS GROUP BY k;
fold 0: aggregate of s [rows 200] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)

SELECT k, sum(v) FROM s CUT ON k KEEP 2 CHUNKS GROUP BY k;
fold 0: aggregate of s [chunks 2] | by k | sum(v) | gives _k0 AS k, _a0 AS sum(v)

SELECT k, sum(v) FROM short CUT ON k KEEP 2 CHUNKS GROUP BY k;
again: RANGE may end within a kept chunk

SELECT a.k, count(*) FROM s CUT ON ts BY INTERVAL 5 SECONDS KEEP 2 CHUNKS a JOIN r CUT ON ts BY INTERVAL 5 SECONDS KEEP 2 CHUNKS b ON a.k = b.k GROUP BY a.k PAIR NEWEST;
fold 0: join of s a [10 s before newest] and r b [10 s before newest] | on a.k = b.k | by a.k | count(*) | gives _k0 AS k, _a0 AS count(1)

SELECT k, sum(v) FROM s CUT ON ts BY INTERVAL 5 SECONDS KEEP 2 CHUNKS GROUP BY k PAIR NEWEST;
again: PAIR NEWEST of one stream is asked of the chunks at hand
