"""Instants and windows in plain Python, and DuckDB over the rows of each window.

Written from DESIGN §5 and nothing else: a list of rows per table, their clocks, the instants that are
complete after each action. Slow and obvious.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from tests.harness.continuous.queries import Case, WindowOf
from tests.harness.continuous.streams import (
    ARROW,
    DIM,
    Advance,
    Change,
    Create,
    History,
    Insert,
    Row,
    Stream,
)
from tests.semantics.streaming_model import Model
from tests.semantics.streaming_model import Row as Stored


@dataclass
class Table:
    """A stream with its clock and rows."""

    stream: Stream
    model: Model

    def released(self) -> list[Stored]:
        """Rows in time that are released, by (T, arrival)."""
        clock = self.model.clock
        rows = [r for r in self.model.rows if not r.late and clock is not None and r.t <= clock]
        return sorted(rows, key=lambda r: (r.t, r.arrival))


@dataclass
class Running:
    """A query at work: how far it is."""

    case: Case
    began: dict[str, set[int]]  # by table: arrivals of the rows that were released when it began
    after: int | None  # the last instant, or the clock at the start
    count: int = 0
    results: list[tuple[int, list[Row] | None]] = field(default_factory=list)


class Oracle:
    """What every query must answer, action by action."""

    def __init__(self, history: History, cases: list[Case], zone: str = "UTC") -> None:
        self.tables = {
            s.name: Table(s, Model(watermark=s.watermark * s.unit)) for s in history.streams
        }
        self.dim = list(history.dim)
        self.cases = cases
        self.running: list[Running] = []
        self.connection = duckdb.connect()
        self.connection.execute(f"SET TimeZone = '{zone}'; SET threads = 1")

    def act(self, action: Any) -> None:
        """One action; then every instant that is complete is answered."""
        if isinstance(action, Insert):
            self.tables[action.stream].model.insert([(t, {"row": r}) for t, r in action.rows])
        elif isinstance(action, Advance):
            self.tables[action.stream].model.advance(action.tick)
        elif isinstance(action, Change):
            if action.removed is not None:
                self.dim = [row for row in self.dim if row[0] != action.removed]
            self.dim += action.added
        elif isinstance(action, Create):
            self.running = [self._begin(case) for case in self.cases]
        for running in self.running:
            self._answer(running)

    def _begin(self, case: Case) -> Running:
        names = {window.table for window in case.windows}
        if case.from_beginning:
            return Running(case, {name: set() for name in names}, None)
        began = {n: {r.arrival for r in self.tables[n].released()} for n in names}
        clocks = [self.tables[n].model.clock for n in names if self.tables[n].model.rows]
        known = [clock for clock in clocks if clock is not None]
        return Running(case, began, min(known, default=None))

    # Instants

    def _answer(self, running: Running) -> None:
        for tick, seen in self._due(running):
            rows = self._evaluate(running, tick, seen)
            running.results.append((tick, rows))
            running.after = tick
            running.count += 1

    def _new_rows(self, running: Running, name: str) -> list[Stored]:
        return [r for r in self.tables[name].released() if r.arrival not in running.began[name]]

    def _due(self, running: Running) -> list[tuple[int, dict[str, int] | None]]:
        """The instants that are complete, each with how many new rows it sees (SAMPLE n ROWS)."""
        case, names = running.case, list(running.began)
        if case.sample == "rows":
            found: list[tuple[int, dict[str, int] | None]] = []
            new = {name: self._new_rows(running, name) for name in names}
            ready = min(len(rows) for rows in new.values()) // case.step
            for turn in range(running.count + 1, ready + 1):
                seen = turn * case.step
                found.append(
                    (max(rows[seen - 1].t for rows in new.values()), dict.fromkeys(names, seen))
                )
            return found
        limits = [self._reached(case, name) for name in names]
        if None in limits:
            return []
        limit = min(limit for limit in limits if limit is not None)
        if case.sample == "realtime":
            ticks = {r.t for name in names for r in self._new_rows(running, name)}
            return [
                (t, None)
                for t in sorted(ticks)
                if t <= limit and (running.after is None or t > running.after)
            ]
        step = case.step * self.tables[names[0]].stream.unit
        if running.after is not None:
            first = (running.after // step + 1) * step
        else:
            ticks = {r.t for name in names for r in self._new_rows(running, name)}
            if not ticks:
                return []
            first = -(-min(ticks) // step) * step
        return [(tick, None) for tick in range(first, limit + 1, step)]

    def _reached(self, case: Case, name: str) -> int | None:
        model = self.tables[name].model
        before = all(w.kind == "before" for w in case.windows if w.table == name)
        return model.clock if before else model.closed

    # Windows

    def window(
        self, running: Running, window: WindowOf, tick: int, seen: dict[str, int] | None
    ) -> list[Stored]:
        """The rows of a window at an instant, by (T, arrival)."""
        table = self.tables[window.table]
        rows = [r for r in table.released() if r.t <= tick]
        if seen is not None:
            new = {r.arrival for r in self._new_rows(running, window.table)[: seen[window.table]]}
            old = running.began[window.table]
            rows = [r for r in rows if r.arrival in new or r.arrival in old]
        unit = table.stream.unit
        if table.stream.range is not None:
            rows = [r for r in rows if r.t >= tick - table.stream.range * unit]
        if window.kind == "interval":
            return [r for r in rows if tick - window.size * unit <= r.t]
        if window.kind == "before":
            return [r for r in rows if tick - window.size * unit <= r.t < tick]
        if window.kind == "landmark":
            return [r for r in rows if r.arrival not in running.began[window.table]]
        return self._last(table.stream, window, rows)

    def _last(self, stream: Stream, window: WindowOf, rows: list[Stored]) -> list[Stored]:
        taken: dict[Any, int] = {}
        found = []
        for row in reversed(rows):
            key = self._key(stream, window, row)
            taken[key] = taken.get(key, 0) + 1
            if taken[key] <= window.size:
                found.append(row)
        return found[::-1]

    def _key(self, stream: Stream, window: WindowOf, row: Stored) -> tuple[Any, ...]:
        names = [n for n, _ in stream.columns]
        return tuple(row.values["row"][names.index(key)] for key in window.keys)

    def _table(self, window: WindowOf, rows: list[Stored]) -> pa.Table:
        """The rows as DuckDB reads them: with PREV columns and their place in the order."""
        stream = self.tables[window.table].stream
        names = [n for n, _ in stream.columns]
        columns = {
            name: pa.array([r.values["row"][place] for r in rows], ARROW[type_])
            for place, (name, type_) in enumerate(stream.columns)
        }
        columns["_rank"] = pa.array(range(len(rows)), pa.int64())
        for column, steps in window.previous:
            values = []
            for place, row in enumerate(rows):
                key = self._key(stream, window, row)
                mine = [r for r in rows[:place] if self._key(stream, window, r) == key]
                there = len(mine) >= steps
                values.append(mine[-steps].values["row"][names.index(column)] if there else None)
            columns[f"prev{steps}_{column}"] = pa.array(values, ARROW[dict(stream.columns)[column]])
        return pa.table(columns)

    def _evaluate(
        self, running: Running, tick: int, seen: dict[str, int] | None
    ) -> list[Row] | None:
        case = running.case
        if case.duck is None:
            return None
        for number, window in enumerate(case.windows):
            rows = self.window(running, window, tick, seen)
            self.connection.register(f"w{number}", self._table(window, rows))
        dim = {
            name: pa.array([row[place] for row in self.dim], ARROW[type_])
            for place, (name, type_) in enumerate(DIM)
        }
        self.connection.register("dim", pa.table(dim))
        integer = self.tables[case.windows[0].table].stream.unit == 1
        instant = f"CAST({tick} AS BIGINT)" if integer else f"make_timestamptz({tick})"
        moment = f"to_timestamp({tick})" if integer else instant
        text = case.duck.replace("$today", f"CAST({moment} AS DATE)")
        text = re.sub(r"\$instant", instant, text)
        return list(map(tuple, self.connection.execute(text).fetchall()))

    def close(self) -> None:
        """Ends DuckDB."""
        self.connection.close()
