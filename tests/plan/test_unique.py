"""What is unique in a fold's result: from GROUP BY, DISTINCT, LIMIT and aggregates over all rows."""

from __future__ import annotations

import pytest

from tests.plan.compact import plan_of

S = "FROM s [INTERVAL 1 MINUTE]"
UNIQUE: dict[str, list[set[int]]] = {
    f"SELECT k, sum(v) {S} GROUP BY k": [{0}],
    f"SELECT sum(v), upper(k), k {S} GROUP BY k": [{2}],
    f"SELECT k, v, count(*) {S} GROUP BY k, v": [{0, 1}],
    f"SELECT k, count(*) {S} GROUP BY k, v": [],
    f"SELECT upper(k), count(*) {S} GROUP BY k": [],
    f"SELECT upper(k), count(*) {S} GROUP BY upper(k)": [{0}],
    f"SELECT DISTINCT k, v {S}": [{0, 1}],
    f"SELECT DISTINCT k, count(*) {S} GROUP BY k, v": [{0, 1}],
    f"SELECT DISTINCT k, count(*) {S} GROUP BY k": [{0}, {0, 1}],
    f"SELECT sum(v), count(*) {S}": [set()],
    f"SELECT sum(v) {S} HAVING count(*) > 1": [set()],
    f"SELECT k {S} LIMIT 1": [set()],
    f"SELECT k {S} LIMIT 1 OFFSET 2": [set()],
    f"SELECT k {S} LIMIT 2": [],
    f"SELECT k {S} OFFSET 2": [],
    f"SELECT k, v {S}": [],
    f"SELECT k, sum(v) {S} GROUP BY k LIMIT 1": [set(), {0}],
    f"SELECT k, count(*) {S} WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k) GROUP BY k": [{0}],
}


@pytest.mark.parametrize("query", UNIQUE)
def test_columns_that_no_two_rows_share(query: str) -> None:
    (fold,) = plan_of(f"{query} SAMPLE INTERVAL 1 SECOND")[1].folds
    assert fold.unique == frozenset(map(frozenset, UNIQUE[query]))


@pytest.mark.parametrize(
    ("query", "is_value"),
    [
        (f"SELECT sum(v) {S}", True),
        (f"SELECT k {S} ORDER BY k LIMIT 1", True),
        (f"SELECT sum(v), count(*) {S}", False),
        (f"SELECT k {S} GROUP BY k", False),
    ],
)
def test_a_result_that_is_a_value(query: str, is_value: bool) -> None:
    (fold,) = plan_of(f"{query} SAMPLE INTERVAL 1 SECOND")[1].folds
    assert fold.has_one_row == is_value
