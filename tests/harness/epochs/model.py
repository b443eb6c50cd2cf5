"""When an epoch ends and which rows it sees, in plain Python.

Written from DESIGN §5 (Clock, Late, Epoch) and nothing else: a list of rows per table with its clock, the
chunks that are finished after each action, the kept rows of each source. Slow and obvious.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from tests.harness.epochs.histories import (
    COLUMNS,
    DIM,
    Action,
    Advance,
    Change,
    Create,
    History,
    Insert,
    Pause,
    Resume,
    Row,
    Table,
)
from tests.harness.epochs.queries import NEWEST, Case, Kept, Source
from tests.harness.epochs.terms import ZONE
from tests.semantics.streaming_model import Model
from tests.semantics.streaming_model import Row as Stored

MOST_EMPTY = 1000  # the default of `max_empty_instants`
ARROW = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string()}


@dataclass(frozen=True)
class Epoch:
    """One result: `_t` in ticks, and the rows without it."""

    tick: int
    rows: list[tuple[Any, ...]]


@dataclass
class Running:
    """A query at work."""

    case: Case
    began: dict[str, set[int]]  # by table: arrivals of the rows that were released when it began
    after: int | None  # end of the last chunk by time, or the clock at the start
    epochs: list[Epoch] = field(default_factory=list)


@dataclass(frozen=True)
class Chunks:
    """What one epoch sees: its `_t`, and for each source the kept chunks, the newest last."""

    tick: int
    kept: dict[str, list[list[Stored]]]

    @property
    def is_empty(self) -> bool:
        """Whether no kept chunk holds a row."""
        return not any(chunk for chunks in self.kept.values() for chunk in chunks)

    def rows(self) -> Kept:
        """By alias: the rows, with whether they are of the newest chunk."""
        return {
            alias: [
                {**row.values, NEWEST: place == len(chunks) - 1}
                for place, chunk in enumerate(chunks)
                for row in chunk
            ]
            for alias, chunks in self.kept.items()
        }


class Oracle:
    """What every query must answer, action by action."""

    def __init__(self, history: History, cases: list[Case]) -> None:
        self._tables = {table.name: table for table in history.tables}
        self._models = {
            table.name: Model(watermark=table.watermark * table.unit) for table in history.tables
        }
        self._dim = list(history.dim)
        self._cases = cases
        self._paused = False
        self.running: list[Running] = []
        self.connection = duckdb.connect()
        self.connection.execute(f"SET TimeZone = '{ZONE}'; SET threads = 1")
        self.connection.execute("CREATE MACRO timestamp_seconds(x) AS to_timestamp(x)")

    def act(self, action: Action) -> None:
        """One action; then every epoch that has ended is answered."""
        if isinstance(action, Insert):
            self._models[action.table].insert(list(action.rows))
        elif isinstance(action, Advance):
            self._models[action.table].advance(action.tick)
        elif isinstance(action, Change):
            self._dim = [r for r in self._dim if action.removed is None or r["k"] != action.removed]
            self._dim += action.added
        elif isinstance(action, Create):
            self._create()
        elif isinstance(action, (Pause, Resume)):
            self._paused = isinstance(action, Pause)
        if not self._paused:
            for running in self.running:
                self._answer(running)

    def _create(self) -> None:
        """Queries begin; a stream that nobody read has kept no row, and knows only its clock."""
        self.running = [self._begin(case) for case in self._cases]
        for name, model in self._models.items():
            if self._tables[name].kind == "STREAM":
                model.rows.clear()

    def _begin(self, case: Case) -> Running:
        names = {source.table for source in case.sources}
        if case.from_beginning:
            return Running(case, {name: set() for name in names}, None)
        began = {name: {row.arrival for row in self._released(name)} for name in names}
        clocks = [self._models[name].clock for name in names if self._models[name].rows]
        return Running(case, began, min((c for c in clocks if c is not None), default=None))

    def _released(self, name: str) -> list[Stored]:
        """Rows in time that are released, by (T, arrival)."""
        model = self._models[name]
        clock = model.clock
        rows = [row for row in model.rows if not row.late and clock is not None and row.t <= clock]
        return sorted(rows, key=lambda row: (row.t, row.arrival))

    def _answer(self, running: Running) -> None:
        due = list(self._due(running))
        for is_empty, run in groupby(due, key=lambda chunks: chunks.is_empty):
            chunks = list(run)
            if is_empty and running.case.cut.kind == "time" and len(chunks) > MOST_EMPTY:
                chunks = [chunks[0], chunks[-1]]
            for one in chunks:
                rows = running.case.answer(one.rows(), self._dim)
                self._check_answer(running.case, one, rows)
                running.epochs.append(Epoch(one.tick, rows))
        if due and running.case.cut.kind == "time":
            running.after = due[-1].tick

    # Chunks

    def _due(self, running: Running) -> Iterator[Chunks]:
        """Epochs that have ended and are not answered."""
        if running.case.cut.kind == "time":
            return self._due_by_time(running)
        return self._due_by_number(running)

    def _due_by_time(self, running: Running) -> Iterator[Chunks]:
        """Chunks [k·d, (k+1)·d), ended by the clock of every source; the first holds the first row."""
        names = list(running.began)
        length = round(running.case.cut.size * self._tables[names[0]].unit)
        rows = {name: self._released(name) for name in names}
        clocks = [self._models[name].clock for name in names]
        first = running.after
        if first is None:
            new = [row.t for name in names for row in rows[name]]
            if not new:
                return
            first = min(new) // length * length
        limit = min(clock if clock is not None else -(1 << 62) for clock in clocks)
        for end in range((first // length + 1) * length, limit + 1, length):
            kept = {}
            for source in running.case.sources:
                starts = [end - n * length for n in range(source.keep, 0, -1)]
                kept[source.alias] = [
                    [row for row in rows[source.table] if start <= row.t < start + length]
                    for start in starts
                ]
            yield Chunks(end, kept)

    def _due_by_number(self, running: Running) -> Iterator[Chunks]:
        """The k-th chunk of every source, once all have finished it."""
        chunks = {name: self._finished(running, name) for name in running.began}
        stored = {name: self._stored_before(running, name) for name in running.began}
        for number in range(len(running.epochs), min(map(len, chunks.values()))):
            tick = max(found[number][-1].t for found in chunks.values())
            kept = {}
            for source in running.case.sources:
                every = [*stored[source.table], *chunks[source.table][: number + 1]]
                kept[source.alias] = every[-source.keep :]
            yield Chunks(tick, kept)

    def _finished(self, running: Running, name: str) -> list[list[Stored]]:
        """The chunks of a table since the query began; the one still open is not among them."""
        rows = [row for row in self._released(name) if row.arrival not in running.began[name]]
        cut = running.case.cut
        if cut.kind == "rows":
            size = int(cut.size)
            return [rows[n : n + size] for n in range(0, len(rows) - size + 1, size)]
        return [list(run) for _, run in groupby(rows, key=lambda row: self._part(running, row))][
            :-1
        ]

    def _part(self, running: Running, row: Stored) -> Any:
        """The value whose change ends a chunk."""
        cut = running.case.cut
        value = row.values[cut.column]
        return value if cut.kind == "key" or value is None else value // int(cut.size)

    def _stored_before(self, running: Running, name: str) -> list[list[Stored]]:
        """Rows that were there when the query began, in chunks of so many up to the newest."""
        if running.case.cut.kind != "rows":
            return []
        size = int(running.case.cut.size)
        rows = [row for row in self._released(name) if row.arrival in running.began[name]]
        ends = range(len(rows), 0, -size)
        return [rows[max(end - size, 0) : end] for end in ends][::-1]

    # DuckDB

    def _check_answer(self, case: Case, chunks: Chunks, rows: list[tuple[Any, ...]]) -> None:
        """The judge is judged: DuckDB over the kept rows says the same."""
        if chunks.is_empty and case.grouped:
            return  # said often enough
        for source in case.sources:
            table = self._tables[source.table]
            kept = chunks.rows()[source.alias]
            self.connection.register(f"kept_{source.alias}", _arrow(table, source, kept))
        dim = {n: pa.array([row[n] for row in self._dim], ARROW[type_]) for n, type_ in DIM}
        self.connection.register("dim", pa.table(dim))
        found = self.connection.execute(case.duck).fetchall()
        assert bag(found) == bag(rows), f"DuckDB: {found}\nbrute force: {rows}\n{case.duck}"

    def close(self) -> None:
        """Ends DuckDB."""
        self.connection.close()


def _arrow(table: Table, source: Source, rows: list[Row]) -> pa.Table:
    types = {name: ARROW[type_] for name, type_ in COLUMNS}
    types["ts"] = ARROW.get(table.time_type, pa.timestamp("us", "UTC"))
    types[NEWEST] = pa.bool_()
    return pa.table({n: pa.array([row[n] for row in rows], type_) for n, type_ in types.items()})


def bag(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows in an order of their own, comparable: floats to nine digits."""
    return sorted(
        repr(tuple(f"{v:.9g}" if isinstance(v, float) else _plain(v) for v in row)) for row in rows
    )


def _plain(value: Any) -> Any:
    return value.timestamp() if hasattr(value, "timestamp") else value
