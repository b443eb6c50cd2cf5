-- A window of the last rows is a ring.

SELECT * FROM s [ROWS 10] SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [rows 10]

SELECT k, sum(v) FROM s [k ROWS 3] GROUP BY k SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [k rows 3]

SELECT k, v FROM s [k ROWS 1] WHERE ts = CURRENT_INSTANT() SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [k rows 1] | fresh

SELECT k, v FROM s [k ROWS 1] WHERE ts = CURRENT_INSTANT() SAMPLE 5 ROWS;
fold 0: ring of s [k rows 1]

SELECT sum(v) FROM s [ROWS 10] SAMPLE 5 ROWS;
fold 0: aggregate of s [rows 10] | sum(v) | gives _a0 AS sum(v)

SELECT k, v FROM s [ROWS 10] SAMPLE 5 ROWS;
fold 0: rows of s [rows 10] | keeps 0.k, 0.v | gives _c0 AS k, _c1 AS v

SELECT sum(v) FROM s [INTERVAL 1 MINUTE] SAMPLE 5 ROWS;
again: a window of time under SAMPLE n ROWS begins at another row each time

SELECT sum(v) FROM short [ROWS 10] SAMPLE 5 ROWS;
fold 0: ring of short [rows 10]

SELECT a.k, name FROM s [ROWS 10] a JOIN t ON t.k = a.k SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s a [rows 10] | inner t t.k = a.k;

SELECT q.k FROM (SELECT k, v FROM s [k ROWS 2]) q WHERE q.v > 1 SAMPLE INTERVAL 10 SECONDS;
fold 0: ring of s [k rows 2]
upper: SELECT q.k FROM (SELECT k, v FROM fold_0 AS s ) q WHERE q.v > 1
