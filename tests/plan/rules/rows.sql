-- Select and map keep the rows that pass.

SELECT * FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.ts, 0.k, 0.v, 0.w, 0.p | gives _c0 AS ts, _c1 AS k, _c2 AS v, _c3 AS w, _c4 AS p

SELECT k, v * 2 AS twice, v + w FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.k, 0.v, 0.w | gives _c0 AS k, _c1 * 2 AS twice, _c1 + _c2

SELECT v, CURRENT_INSTANT() - ts AS age FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | keeps 0.v, 0.ts | gives _c0 AS v, instant() - _c1 AS age

SELECT * FROM s [LANDMARK] SAMPLE INTERVAL 10 SECONDS;
again: a landmark window keeps every row

SELECT k, smooth(v) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: function smooth keeps state for the query

SELECT k, sum(v) FROM s [INTERVAL 1 MINUTE] a LATERAL VIEW explode(array(1, 2)) e AS n GROUP BY k SAMPLE INTERVAL 10 SECONDS;
again: LATERAL is not split

SELECT struct(*) FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: * stands in an expression

SELECT nobody FROM s [INTERVAL 1 MINUTE] SAMPLE INTERVAL 10 SECONDS;
again: column nobody is not plainly one table's

SELECT x.k FROM (SELECT k FROM s [INTERVAL 1 MINUTE] WHERE v > 1) x WHERE x.k <> 'a' SAMPLE INTERVAL 10 SECONDS;
fold 0: rows of s [60 s] | where v > 1 | keeps 0.k | gives _c0 AS k
upper: SELECT x.k FROM (SELECT _c0 AS k FROM fold_0) x WHERE x.k <> 'a'
