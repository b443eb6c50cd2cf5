"""Runs random histories: rows come and go, the circuit follows, DuckDB says what is right after each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.expression.terms import PLAIN
from headwater.fold.snapshot import dump, load
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.circuit import Circuit
from headwater.operators.kept_rows import KeptRows
from headwater.operators.spilled_keys import SpilledKeys
from headwater.plan.folds import StreamColumns
from headwater.plan.relational.names import NotKept
from headwater.sql.statements.query import make_query
from headwater.sql.type_parser import parse_type
from tests.harness.circuits.queries import DOUBLE, INT, TABLES, QueryMaker
from tests.harness.oracle import duckdb_rows
from tests.operators.runs import taken_up, with_runs

STANDARD = "t"
DEPTH = 5
MOST_TEXT = 6000  # characters; a query of many branches says no more, and DuckDB takes long


class Disagreement(Exception):
    """What the circuit has is not what DuckDB gives."""


def schema_of(table: str) -> pa.Schema:
    """The columns of a table."""
    return pa.schema([pa.field(name, parse_type(type_)) for name, type_ in TABLES[table]])


class CircuitTables:
    """The catalog: `s` and `r` are streaming tables, `t` is a standard one."""

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table, by the time of which nothing goes here."""
        if name not in TABLES or name == STANDARD:
            return None
        schema = schema_of(name)
        stored = schema.append(pa.field("_seq", pa.int64()))
        return StreamColumns(name, stored, tuple(schema.names), "id", pa.int32())

    def standard(self, name: str) -> pa.Schema | None:
        """A standard table."""
        return schema_of(name) if name == STANDARD else None


@dataclass
class Counts:
    """What was run: queries, checks, and how often each operator met changes, with rows that go or not."""

    queries: int = 0
    checks: int = 0
    left_to_spark: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    operators: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def table(self) -> str:
        """All of it, in lines."""
        lines = [f"{self.queries} queries, {self.checks} checks"]
        lines += [f"{name}: {count}" for name, count in sorted(self.shapes.items())]
        for (name, back), count in sorted(self.operators.items()):
            lines.append(f"{name}, {'rows go' if back else 'rows come'}: {count}")
        lines += [f"Spark: {reason}: {n}" for reason, n in sorted(self.left_to_spark.items())]
        return "\n".join(lines)


@dataclass
class _State:
    """A circuit and its result, as they are put away together."""

    circuit: Circuit
    kept: KeptRows

    @property
    def spilled(self) -> list[SpilledKeys]:
        parts = [part for operator in self.circuit.spilling() for part in operator.spilled]
        return [*parts, *self.kept.spilled]

    def spill(self) -> None:
        for operator in self.circuit.spilling():
            operator.spill()
        self.kept.spill()

    def state(self) -> dict[str, Any]:
        return {"circuit": self.circuit.state(), "kept": self.kept.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.circuit.restore(state["circuit"])
        self.kept.restore(state["kept"])


class History:
    """Three tables whose rows come and, of the standard one, go."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._next = 0

    def _row(self, table: str) -> tuple[Any, ...]:
        return tuple(self._value(name, type_) for name, type_ in TABLES[table])

    def _value(self, name: str, type_: str) -> Any:
        if name == "id":
            self._next += 1
            return self._next
        if self._random.random() < 0.12:
            return None
        if type_ == INT:
            return self._random.randint(0, 5)
        return self._random.randint(0, 6) / 2 if type_ == DOUBLE else self._random.choice("abcd")

    def step(self) -> dict[str, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
        """By table: the rows that come and those that go."""
        found = {}
        for name, rows in self.rows.items():
            first = name == "s" and not rows  # ROLLUP over nothing means something else to DuckDB
            if self._random.random() < 0.25 and not first:
                continue
            count = self._random.choice((0, 1, 1, 4, 9))
            coming = [self._row(name) for _ in range(max(count, first))]
            going: list[tuple[Any, ...]] = []
            if name == STANDARD and rows:
                count = min(len(rows), self._random.choice((0, 0, 1, 3)))
                going = [rows.pop(self._random.randrange(len(rows))) for _ in range(count)]
            rows += coming
            found[name] = (coming, going)
        return found

    def table(self, name: str, rows: list[tuple[Any, ...]] | None = None) -> pa.Table:
        """Rows as an Arrow table."""
        rows = self.rows[name] if rows is None else rows
        schema = schema_of(name)
        columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)


def run_query(seed: int, counts: Counts) -> None:
    """One random query through one random history."""
    random = Random(seed)
    maker = QueryMaker(random)
    part = maker.query(random.randint(1, DEPTH))
    text = maker.text(part)
    if len(text) > MOST_TEXT:
        counts.left_to_spark["too long for this test"] += 1
        return
    found = make_circuit(make_query(text).tree, CircuitTables(), PLAIN)  # type: ignore[arg-type]
    if isinstance(found, NotKept):
        counts.left_to_spark[found.reason] += 1
        return
    counts.queries += 1
    counts.shapes += maker.shapes
    try:
        _follow(found, maker.judge(part), random, counts)
    except Exception as error:
        raise Disagreement(f"seed {seed}: {text}\n{error}") from error


def _follow(spec: CircuitSpec, text: str, random: Random, counts: Counts) -> None:
    history, made = History(random), _State(spec.circuit(), spec.kept())
    spills = random.random() < 0.5  # after each step: memory has room for nothing
    with_runs(made.spilled, random)
    made.kept.apply(made.circuit.begin())
    for number in range(random.randint(2, 6)):
        step = history.step()
        inputs: dict[int, Changes] = {}
        for place, scan in enumerate(spec.scans):
            if scan.table in step:
                coming, going = (history.table(scan.table, rows) for rows in step[scan.table])
                inputs[place] = together(
                    [come(_seen(coming, scan)), go(_seen(going, scan))], pa.schema(scan.columns)
                )
        if random.random() < 0.5:
            made.kept.apply(made.circuit.apply(inputs))
        else:
            for place, changes in inputs.items():
                made.kept.apply(made.circuit.apply({place: changes}))
        if random.random() < 0.2:
            again = _State(spec.circuit(), spec.kept())
            load(again, dump(made))
            taken_up(again.spilled, made.spilled)
            _note(made.circuit, counts)
            made = again
        if spills:
            made.spill()
        _check(spec, made.kept, text, history, number)
        counts.checks += 1
    _note(made.circuit, counts)


def _seen(rows: pa.Table, scan: Any) -> pa.Table:
    numbered = rows.append_column("_seq", pa.nulls(rows.num_rows, pa.int64()))
    return numbered.select(list(scan.stored)).rename_columns([name for name, _ in scan.columns])


def _note(circuit: Circuit, counts: Counts) -> None:
    for node in circuit.nodes:
        back = any(_takes_back(origin) for origin in node.inputs)
        counts.operators[node.operator.name, back] += circuit.figures[node].rows_in


def _takes_back(origin: Any) -> bool:
    return bool(origin.operator.takes_back if hasattr(origin, "operator") else origin.takes_back)


def _check(spec: CircuitSpec, kept: KeptRows, text: str, history: History, number: int) -> None:
    names = [column.name for column in spec.shown]
    mine = _bag(tuple(row.values()) for row in kept.table().select(names).to_pylist())
    tables = {name: history.table(name) for name in TABLES}
    right = _bag(duckdb_rows(text, tables))
    if mine != right:
        raise Disagreement(
            f"step {number}: only in the circuit {dict(mine - right)}, "
            f"only in DuckDB {dict(right - mine)}\n{history.rows}\n" + "\n".join(spec.lines)
        )


def _bag(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    return round(float(value), 9) if isinstance(value, int | float) else value
