"""How much memory an operator says that it holds is what it holds, and it does not keep what is gone.

What it holds is counted by walking from the operator over all that it reaches: each buffer of Arrow, each
vector of NumPy and each Python value once.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.expression.terms import PLAIN
from headwater.fold.snapshot import dump, load
from headwater.operators.changes import Changes, come, go
from headwater.operators.circuit import Circuit
from headwater.sql.statements.query import make_query
from tests.harness.circuits.runner import CircuitTables

ROWS, KEYS, TEXTS = 1500, 600, 900
ROUNDS = 5  # all rows go and come again
SMALL = 40_000  # what does not grow with the rows: first rooms of vectors and tables
OUTSIDE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
SHARED = (pa.DataType, pa.Schema, pa.Field, pa.Scalar)
PLAIN_VALUES = (str, bytes, int, float)

QUERIES = {
    "join": "SELECT s.v, r.w FROM s JOIN r ON s.id = r.id",
    "outer join": "SELECT s.v, r.w, r.d FROM s FULL JOIN r ON s.id = r.id",
    "semi join": "SELECT v FROM s WHERE id IN (SELECT id FROM r)",
    "anti join": "SELECT v FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.k)",
    "as-of join": "SELECT s.v, r.w FROM s ASOF LEFT JOIN r ON s.k = r.k AND s.id >= r.id",
    "distinct": "SELECT DISTINCT id, c FROM s",
    "except": "SELECT id FROM s EXCEPT SELECT id FROM r",
    "intersect": "SELECT k FROM s INTERSECT ALL SELECT k FROM r",
    "top": "SELECT id, k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY v, id) <= 2",
    "over": "SELECT id, lag(c) OVER (PARTITION BY k ORDER BY id) AS y FROM s",
    "session": "SELECT k, count(*) AS n FROM s GROUP BY k, session_window(timestamp_seconds(id), '1 second')",
    "sums": "SELECT k, count(*) AS n, sum(v) AS m, avg(x) AS y, var_samp(v) AS z FROM s GROUP BY k",
    "extremes": "SELECT k, max(c) AS n, min(v) AS m FROM s GROUP BY k",
    "groups by text": "SELECT c, count(*) AS n FROM s GROUP BY c",
    "median": "SELECT k, median(v) AS n FROM s GROUP BY k",
    "best": "SELECT k, max_by(c, v) AS n FROM s GROUP BY k",
    "lists": "SELECT k, listagg(c, ',') WITHIN GROUP (ORDER BY c) AS n FROM s GROUP BY k",
    "distinct values": "SELECT k, count(DISTINCT v) AS n FROM s GROUP BY k",
    "distinct texts": "SELECT k % 9 AS k, count(DISTINCT c) AS n FROM s GROUP BY k % 9",
    "sketches": "SELECT k, approx_count_distinct(v) AS n FROM s GROUP BY k",
    "regression": "SELECT k, regr_slope(v, id) AS n FROM s GROUP BY k",
}


def buffers(value: Any) -> Iterator[tuple[int, int]]:
    """Where the buffers of an Arrow value are, and how large; those within it once more are the same."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        for column in value.columns:
            yield from buffers(column)
    elif isinstance(value, pa.ChunkedArray):
        for chunk in value.chunks:
            yield from buffers(chunk)
    else:
        yield from ((one.address, one.size) for one in value.buffers() if one is not None)


def held(root: Any) -> int:
    """The bytes of all buffers, vectors and plain values that are reached from an object."""
    seen, found, waiting = set[int](), dict[int, int](), [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (*OUTSIDE, *SHARED)):
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            base = value
            while isinstance(base.base, np.ndarray):
                base = base.base
            found[base.__array_interface__["data"][0]] = base.nbytes
            if base.dtype == object:
                waiting += value.ravel().tolist()
        elif isinstance(value, pa.Table | pa.RecordBatch | pa.ChunkedArray | pa.Array):
            found |= dict(buffers(value))
        elif isinstance(value, PLAIN_VALUES):
            found[id(value)] = sys.getsizeof(value)
        elif isinstance(value, dict):
            found[id(value)] = sys.getsizeof(value)
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif hasattr(value, "__dict__"):
            waiting += vars(value).values()
    return sum(found.values())


def rows_of(table: str, first: int) -> pa.Table:
    """Rows of many keys and texts."""
    chance, ids = np.random.default_rng(first), np.arange(first, first + ROWS, dtype=np.int32)
    values = chance.integers(0, 1 << 30, ROWS).astype(np.int32)
    texts = [f"a text of {number}" for number in chance.integers(0, TEXTS, ROWS)]
    columns = {"id": ids, "k": chance.integers(0, KEYS, ROWS).astype(np.int32)}
    columns |= {"_seq": ids.astype(np.int64)}
    columns |= (
        {"v": values, "x": values / 2, "c": texts} if table == "s" else {"w": values, "d": texts}
    )
    return pa.table(columns)


def built(text: str, takes_back: bool) -> CircuitSpec:
    """A query over tables of which rows go, or over such of which they do not."""
    spec = make_circuit(make_query(text).tree, CircuitTables(), PLAIN)  # type: ignore[arg-type]
    assert isinstance(spec, CircuitSpec)
    return spec.taking_back if takes_back else spec.at_once


def inputs(spec: CircuitSpec, first: int, sign: Any) -> dict[int, Changes]:
    """The same rows for each call with the same numbers."""
    found = {}
    for place, scan in enumerate(spec.scans):
        rows = rows_of(scan.table, first).select(list(scan.stored))
        found[place] = sign(rows.rename_columns([name for name, _ in scan.columns]))
    return found


def check(circuit: Circuit) -> None:
    """No operator holds much more or less than it says."""
    for node in circuit.nodes:
        said, real = node.operator.nbytes, held(node.operator)
        assert said <= 1.5 * real + SMALL, (node.operator.name, said, real)
        assert said >= 0.75 * real - SMALL, (node.operator.name, said, real)


@pytest.mark.parametrize("takes_back", [False, True])
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES.keys())
def test_an_operator_knows_how_much_it_holds(text: str, takes_back: bool) -> None:
    spec = built(text, takes_back)
    circuit = spec.circuit()
    circuit.begin()
    for first in (0, ROWS):
        circuit.apply(inputs(spec, first, come))
    assert circuit.nbytes > 0
    check(circuit)
    again = spec.circuit()
    load(again, dump(circuit))
    check(again)
    if takes_back:
        full = circuit.nbytes
        for _ in range(ROUNDS):
            for first in (0, ROWS):
                circuit.apply(inputs(spec, first, go))
            check(circuit)
            for first in (0, ROWS):
                circuit.apply(inputs(spec, first, come))
        assert circuit.nbytes <= 3 * full, "what is gone is held"
