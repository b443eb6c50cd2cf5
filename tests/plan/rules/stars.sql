-- Stars show declared columns only.

-- show whole
SELECT * FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.ts, 0.k, 0.v, 0.w, 0.p | gives _c0 AS ts, _c1 AS k, _c2 AS v, _c3 AS w, _c4 AS p
whole: SELECT * FROM window_0 AS s

-- show whole
SELECT *, _seq FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.ts, 0.k, 0.v, 0.w, 0.p, 0._seq | gives _c0 AS ts, _c1 AS k, _c2 AS v, _c3 AS w, _c4 AS p, _c5 AS _seq
whole: SELECT * EXCEPT (s._seq), _seq FROM window_0 AS s

-- show whole
SELECT a.*, a._late FROM s [INTERVAL 1 MINUTE] a SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s a [60 s] | keeps 0.ts, 0.k, 0.v, 0.w, 0.p, 0._late | gives _c0 AS ts, _c1 AS k, _c2 AS v, _c3 AS w, _c4 AS p, _c5 AS _late
whole: SELECT a.* EXCEPT (_late), a._late FROM window_0 a

-- show whole
SELECT *, PREV(v) AS before FROM s [k ROWS 2] SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [k rows 2 prev v/1]
whole: SELECT * EXCEPT (s._prev1_v), s._prev1_v AS before FROM window_0 AS s

-- show whole
SELECT struct(*), _seq FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
refused: * stands beside a column that it does not show

-- show whole
SELECT * EXCEPT (v) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: EXCEPT in a select list is not split
whole: SELECT * EXCEPT (v) FROM window_0 AS s

-- show whole
SELECT * FROM s [INTERVAL 1 MINUTE] NATURAL JOIN r [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: NATURAL JOIN is not split
whole: SELECT * FROM window_0 AS s NATURAL JOIN window_1 AS r

-- show whole
SELECT *, s._seq, r._seq FROM s [INTERVAL 1 MINUTE] NATURAL JOIN r [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
refused: NATURAL JOIN of tables whose hidden columns are read
