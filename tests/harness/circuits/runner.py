"""Runs random histories: rows come and go, the circuit follows, DuckDB says what is right after each step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import pyarrow as pa

from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.compile.split_circuit import SplitCircuit, split_circuit
from headwater.expression.terms import PLAIN
from headwater.fold.share import Share
from headwater.fold.snapshot import dump, load
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.circuit import Circuit, CircuitNode
from headwater.operators.group import GroupRows
from headwater.operators.kept_rows import KeptRows
from headwater.operators.operator import Operator
from headwater.operators.over import OverRows
from headwater.operators.spilled_keys import SpilledKeys
from headwater.plan.folds import StreamColumns
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.opaque import Opaque, SparkTypes
from headwater.plan.relational.partition import NotSplit
from headwater.sql.statements.query import make_query
from headwater.sql.type_parser import parse_type
from tests.harness.circuits.base import ARRAY, DOUBLE, INT, TABLES
from tests.harness.circuits.queries import QueryMaker
from tests.harness.oracle import duckdb_rows
from tests.operators.runs import taken_up, with_runs

STANDARD = "t"
STREAMS = frozenset(TABLES) - {STANDARD}
NUMBERS = (-1, *(0, 1, 2, 3, 4, 5) * 2)  # of a table
UNUSUAL = (math.nan, math.nan, -0.0, -0.0, math.inf, -math.inf)
TEXTS = ("", *("a", "b", "c", "d") * 2)
LATEST = 4  # rows that come before one that is older
RESTARTED = 0.3  # of the steps end in a restart
TAKEN_BACK = 0.4  # of the queries have streams whose rows go
MOST_TEXT = 6000  # characters; a query of many branches says no more, and DuckDB takes long


Rows = list[tuple[Any, ...]]


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
    restarts: Counter[str] = field(
        default_factory=Counter
    )  # operators with rows, put away and taken up
    split: Counter[str] = field(default_factory=Counter)  # operators of circuits in parts
    whole: Counter[str] = field(default_factory=Counter)  # why others were not split

    def table(self) -> str:
        """All of it, in lines."""
        lines = [f"{self.queries} queries, {self.checks} checks"]
        lines += [f"{name}: {count}" for name, count in sorted(self.shapes.items())]
        for (name, back), count in sorted(self.operators.items()):
            lines.append(f"{name}, {'rows go' if back else 'rows come'}: {count}")
        lines += [f"{name}, restarts: {n}" for name, n in sorted(self.restarts.items())]
        lines += [f"Spark: {reason}: {n}" for reason, n in sorted(self.left_to_spark.items())]
        lines += [f"in parts: {name}: {n}" for name, n in sorted(self.split.items())]
        lines += [f"whole: {reason}: {n}" for reason, n in sorted(self.whole.items())]
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

    def answer(self, answers: Answers) -> None:
        while (node := self.circuit.waiting()) is not None:
            self.kept.apply(self.circuit.answer(node, answers.of(node)))

    def state(self) -> dict[str, Any]:
        return {"circuit": self.circuit.state(), "kept": self.kept.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.circuit.restore(state["circuit"])
        self.kept.restore(state["kept"])


class History:
    """Three tables whose rows come and go; those of streams, too, if they are deleted and replaced."""

    def __init__(self, random: Random, going: tuple[str, ...] = (STANDARD,)) -> None:
        self._random, self._going = random, going
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._next = 0
        self._times: list[int] = []  # of the next rows, not in order: some are late

    def row(self, table: str) -> tuple[Any, ...]:
        """A row that may come to a table."""
        return tuple(self._value(name, type_) for name, type_ in TABLES[table])

    def _value(self, name: str, type_: str) -> Any:
        if name == "id":
            if not self._times:
                self._times = [self._next + number for number in range(1, LATEST + 1)]
                self._random.shuffle(self._times)
                self._next += LATEST
            return self._times.pop()
        if self._random.random() < 0.12:
            return None
        if type_ == INT:
            return self._random.choice(NUMBERS)
        if type_ == ARRAY:
            return self._random.choices((0, 1, 2, 2, None), k=self._random.randint(0, 3))
        if type_ == DOUBLE and self._random.random() < 0.2:
            return self._random.choice(UNUSUAL)
        return self._random.randint(0, 6) / 2 if type_ == DOUBLE else self._random.choice(TEXTS)

    def step(self) -> dict[str, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
        """By table: the rows that come and those that go."""
        found = {}
        for name, rows in self.rows.items():
            if self._random.random() < 0.25:
                continue
            count = self._random.choice((0, 1, 1, 4, 9))
            coming = [self.row(name) for _ in range(count)]
            going: list[tuple[Any, ...]] = []
            if name in self._going and rows:
                count = min(len(rows), self._random.choice((0, 0, 1, 3, 99)))
                going = [rows.pop(self._random.randrange(len(rows))) for _ in range(count)]
            rows += coming
            found[name] = (coming, going)
        return found

    def changes(self, name: str, coming: Rows, going: Rows) -> tuple[pa.Table, pa.Table]:
        """The rows that come to a table, and those that go."""
        return self.table(name, coming), self.table(name, going)

    def table(self, name: str, rows: list[tuple[Any, ...]] | None = None) -> pa.Table:
        """Rows as an Arrow table."""
        rows = self.rows[name] if rows is None else rows
        schema = schema_of(name)
        columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)


class Answers(SparkTypes, Protocol):
    """Whoever evaluates the texts of opaque nodes."""

    def of(self, node: CircuitNode) -> pa.Table:
        """What a node that waits asks for."""


def run_query(
    seed: int,
    counts: Counts,
    maker_of: Callable[[Random], QueryMaker] = QueryMaker,
    answers: Answers | None = None,
) -> None:
    """One random query through one random history; `answers`: opaque nodes are allowed."""
    random = Random(seed)
    maker = maker_of(random)
    part = maker.query(random.randint(1, maker.depth))
    text = maker.text(part)
    if len(text) > MOST_TEXT:
        counts.left_to_spark["too long for this test"] += 1
        return
    query = make_query(text)
    opaque = None if answers is None else Opaque(query.text, answers, PLAIN)
    found = make_circuit(query.tree, CircuitTables(), PLAIN, opaque)  # type: ignore[arg-type]
    if isinstance(found, NotKept):
        counts.left_to_spark[found.reason] += 1
        return
    if answers is not None and not found.opaque:
        return  # the other tests have it
    counts.queries += 1
    counts.shapes += maker.shapes
    try:
        _follow(found, maker.judge(part), random, counts, answers)
    except Exception as error:
        raise Disagreement(f"seed {seed}: {text}\n{error}") from error


def _follow(
    spec: CircuitSpec, text: str, random: Random, counts: Counts, answers: Answers | None
) -> None:
    going: tuple[str, ...] = (STANDARD,)
    if random.random() < TAKEN_BACK:
        spec, going = spec.taking_back, tuple(TABLES)
    history = History(random, going)
    every = [_Run(spec, random, counts), *_parts(spec, random, counts)]
    for number in range(random.randint(3, 6)):
        step = history.step()
        changes = {name: history.changes(name, *rows) for name, rows in step.items()}
        for run in every:
            run.step(changes)
        if answers is not None:
            if random.random() < 0.3:
                continue  # nobody reads: what came waits
            for run in every:
                run.answer(answers)
        _check(spec, every[0].rows(), text, history, number)
        if len(every) > 1:
            split = split_circuit(spec, STREAMS)
            assert isinstance(split, SplitCircuit)
            united = split.united([run.rows() for run in every[1:]])
            _check(spec, united, text, history, number)
        counts.checks += 1


def _parts(spec: CircuitSpec, random: Random, counts: Counts) -> list[_Run]:
    """The parts of a query that can be split, some of two and some of three."""
    split = split_circuit(spec, STREAMS)
    if isinstance(split, NotSplit):
        counts.whole[str(split).partition(":")[0]] += 1
        return []
    parts = random.choice((2, 3))
    found = [_Run(split.part(Share(place, parts)), random, None) for place in range(parts)]
    counts.split["queries"] += 1
    counts.split += Counter({node.operator.name for node in found[0].state.circuit.nodes})
    return found


class _Run:
    """A circuit that follows a history; some spill after each step, as if memory had room for nothing."""

    def __init__(self, spec: CircuitSpec, random: Random, counts: Counts | None) -> None:
        """`counts`: of a circuit that is looked at."""
        self._spec, self._random = spec, random
        self._tally = None if counts is None else _Tally(counts)
        self.state = _State(spec.circuit(), spec.kept())
        if self._tally is not None:
            self._tally.watch(self.state.circuit)
        self._spills = random.random() < 0.5
        with_runs(self.state.spilled, random)
        self.state.kept.apply(self.state.circuit.begin())

    def rows(self) -> pa.Table:
        """The result as it is now."""
        return self.state.kept.table()

    def step(self, changed: dict[str, tuple[pa.Table, pa.Table]]) -> None:
        """What changed goes through, together or table by table; now and then there is a restart."""
        inputs: dict[int, Changes] = {}
        for place, scan in enumerate(self._spec.scans):
            if scan.table in changed:
                coming, going = (_seen(rows, scan) for rows in changed[scan.table])
                inputs[place] = together([come(coming), go(going)], pa.schema(scan.columns))
        state = self.state
        if self._random.random() < 0.5:
            state.kept.apply(state.circuit.apply(inputs))
        else:
            for place, changes in inputs.items():
                state.kept.apply(state.circuit.apply({place: changes}))
        if self._random.random() < RESTARTED:
            self._restart()
        if self._spills:
            self.state.spill()

    def _restart(self) -> None:
        again = _State(self._spec.circuit(), self._spec.kept())
        load(again, dump(self.state))
        taken_up(again.spilled, self.state.spilled)
        if self._tally is not None:
            self._tally.restarted(self.state.circuit)
            self._tally.watch(again.circuit)
        self.state = again

    def answer(self, answers: Answers) -> None:
        """What waits for Spark is answered, as when somebody reads."""
        self.state.answer(answers)
        if self._spills:
            self.state.spill()


def _seen(rows: pa.Table, scan: Any) -> pa.Table:
    numbered = rows.append_column("_seq", pa.nulls(rows.num_rows, pa.int64()))
    return numbered.select(list(scan.stored)).rename_columns([name for name, _ in scan.columns])


class _Tally:
    """Counts which operators take in rows that come and rows that are taken back, and what restarts."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def watch(self, circuit: Circuit) -> None:
        """Counts what goes through the operators of a circuit from now on."""
        for node in circuit.nodes:
            names = list(_names_of(node.operator))
            setattr(node.operator, "apply", self._counting(node.operator.apply, names))  # noqa: B010

    def _counting(self, apply: Callable[..., Changes], names: list[str]) -> Callable[..., Changes]:
        def counted(*inputs: Changes) -> Changes:
            for back, sign in ((False, 1), (True, -1)):
                count = sum(int((changes.signs == sign).sum()) for changes in inputs)
                for name in names:
                    self._counts.operators[name, back] += count
            return apply(*inputs)

        return counted

    def restarted(self, circuit: Circuit) -> None:
        """Notes the operators of which a snapshot was taken up that had taken in rows."""
        for node in circuit.nodes:
            if circuit.figures[node].rows_in:
                self._counts.restarts[node.operator.name] += 1


def _names_of(operator: Operator) -> Iterable[str]:
    """The operator, and each function that it has."""
    yield operator.name
    if isinstance(operator, GroupRows):
        for aggregate in operator.aggregates:
            yield f"group: {aggregate.known_name}{' distinct' if aggregate.distinct else ''}"
    if isinstance(operator, OverRows):
        for function in operator.functions:
            yield f"over: {function.known_name}"
            if function.frame is not None:
                yield f"over: frame by {function.frame.unit}"


def _check(spec: CircuitSpec, rows: pa.Table, text: str, history: History, number: int) -> None:
    names = [column.name for column in spec.shown]
    mine = bag(tuple(row.values()) for row in rows.select(names).to_pylist())
    tables = {name: history.table(name) for name in TABLES}
    right = bag(duckdb_rows(text, tables))
    if mine != right:
        raise Disagreement(
            f"step {number}: only in the circuit {dict(mine - right)}, "
            f"only in DuckDB {dict(right - mine)}\n{history.rows}\n" + "\n".join(spec.lines)
        )


def bag(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows that can be compared, whatever their order and the types of their numbers."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, int | float):
        return "NaN" if math.isnan(value) else round(float(value), 9)
    return value
