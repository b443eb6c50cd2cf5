"""Circuits against the same query over the rows of their sources."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.fold.snapshot import dump, load
from headwater.operators.changes import Changes, come, go, nothing, together
from headwater.operators.circuit import Circuit, CircuitNode, CircuitSource
from headwater.operators.distinct import DistinctRows
from headwater.operators.filter import FilterRows
from headwater.operators.join import join_rows
from headwater.operators.operator import Operator
from headwater.operators.project import ProjectRows
from headwater.operators.union import UnionRows
from tests.operators.bags import INTEGERS, Input, Output, Row, bag, table

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
OTHER = pa.schema([("c", pa.int64()), ("d", pa.int64())])
PAIR = pa.schema([("a", pa.int64()), ("d", pa.int64())])
COUNT = pa.schema([("count", pa.int64())])


class CountRows(Operator):
    """count(*) without keys: a row from the start."""

    name, schema, takes_back = "count", COUNT, True

    def __init__(self) -> None:
        self.count = 0

    def begin(self) -> Changes:
        return come(table(COUNT, [(0,)]))

    def apply(self, *inputs: Changes) -> Changes:
        before, self.count = self.count, self.count + int(inputs[0].signs.sum())
        rows = [go(table(COUNT, [(before,)])), come(table(COUNT, [(self.count,)]))]
        return together(rows, COUNT)

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


def column(name: str) -> Any:
    return lambda rows: rows[name]


def built() -> Circuit:
    """(s ⋈ t on a = c ∪ all s that are above 0, twice used), each pair once."""
    s, t = CircuitSource(0, SCHEMA, True), CircuitSource(1, OTHER, True)
    above = CircuitNode(FilterRows(SCHEMA, lambda rows: pc.greater(rows["a"], 0), True), (s,))
    both = (True, True)
    join = CircuitNode(
        join_rows("inner", SCHEMA, OTHER, ["a"], ["c"], None, [False], both), (above, t)
    )
    pair = CircuitNode(ProjectRows(PAIR, [column("a"), column("d")], True), (join,))
    union = CircuitNode(UnionRows(PAIR, both), (pair, above))
    return Circuit(CircuitNode(DistinctRows(PAIR, True), (union,)))


def expected(s: list[Row], t: list[Row]) -> set[Row]:
    above = [row for row in s if row[0] is not None and row[0] > 0]
    return {(a, d) for a, _ in above for c, d in t if a == c} | {*above}


@pytest.mark.parametrize("seed", range(8))
def test_a_circuit_is_its_query(seed: int) -> None:
    circuit, out = built(), Output()
    inputs = [Input(SCHEMA, [INTEGERS, INTEGERS], seed), Input(OTHER, [INTEGERS, INTEGERS], -seed)]
    out.take(circuit.begin(), circuit.schema, circuit.takes_back)
    for number in range(10):
        batch = {place: given.step() for place, given in enumerate(inputs)}
        given = {place: changes for place, changes in batch.items() if len(changes) or number % 2}
        out.take(circuit.apply(given), circuit.schema, circuit.takes_back)
        assert out.rows == bag(expected(inputs[0].rows, inputs[1].rows))
        if number == 5:
            again = built()
            load(again, dump(circuit))
            circuit = again
    assert circuit.nbytes > 0


def test_a_node_that_two_need_runs_once_and_one_without_input_does_not() -> None:
    ticks = itertools.count()
    circuit = Circuit(built().output, lambda: float(next(ticks)))
    names = [node.operator.name for node in circuit.nodes]
    assert Counter(names)["filter"] == 1
    assert [names.index(node.operator.name) for node in circuit.nodes] == [*range(len(names))]
    circuit.apply({0: come(table(SCHEMA, [(1, 2), (0, 1)]))})
    done = {node.operator.name: figures for node, figures in circuit.figures.items()}
    assert (done["filter"].rows_in, done["filter"].rows_out, done["filter"].seconds) == (2, 1, 1.0)
    assert (done["inner join"].rows_in, done["inner join"].rows_out) == (1, 0)
    assert (done["project"].rows_in, done["project"].seconds) == (0, 0.0)
    assert (done["distinct"].rows_in, done["distinct"].rows_out) == (1, 1)
    assert not len(circuit.apply({}))


def test_what_comes_before_any_input_goes_through_the_circuit() -> None:
    source = CircuitSource(0, SCHEMA, True)
    twice = [pc.multiply, pc.add]
    count = CircuitNode(CountRows(), (source,))
    more = [lambda rows, by=by: by(rows["count"], 2) for by in twice]
    schema = pa.schema([("twice", pa.int64()), ("more", pa.int64())])
    circuit = Circuit(CircuitNode(ProjectRows(schema, more, True), (count,)))
    assert circuit.begin().rows.to_pylist() == [{"twice": 0, "more": 2}]
    out = circuit.apply({0: come(table(SCHEMA, [(1, 1)]))})
    assert out.rows.to_pylist() == [{"twice": 0, "more": 2}, {"twice": 2, "more": 3}]
    assert out.signs.tolist() == [-1, 1]


def test_a_source_may_be_all_there_is() -> None:
    circuit = Circuit(CircuitSource(3, SCHEMA, False))
    rows = come(table(SCHEMA, [(1, 1)]))
    assert circuit.apply({3: rows}) is rows
    assert not circuit.takes_back
    assert circuit.apply({}).rows.schema == nothing(SCHEMA).rows.schema == circuit.schema
