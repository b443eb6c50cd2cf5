"""What an update query is, as its planner found it: where rows come from, and how they wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

import numpy as np
import pyarrow as pa

from headwater.engine.evaluation import Evaluation
from headwater.engine.newest_results import stored_schema
from headwater.engine.update_queue import Choice, WindowSpec
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.table import StreamingTable

Mode = OneOf["append", "updates", "shedding"]

BRANCH, TICK, SEQ = "branch", "tick", "seq"  # of the rows that wait
ROW_NUMBER = "headwater_row"  # what a select list gives beside the user's columns: `_seq`
OTHER_ROW_NUMBER = "headwater_other_row"  # of a join's second stream
ROW_NUMBERS = (ROW_NUMBER, OTHER_ROW_NUMBER)


@dataclass(frozen=True)
class Branch:
    """One SELECT of an update query over one table; a union has several."""

    table: StreamingTable
    key: tuple[str, ...]  # the table's update key
    columns: tuple[str, ...]  # what the SELECT reads
    evaluation: Evaluation

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read of the table."""
        return tuple(
            dict.fromkeys([*self.columns, *self.key, self.table.definition.time, SEQUENCE])
        )


@dataclass(frozen=True)
class WindowShape:
    """The windows of an update query: `[INTERVAL reach [BEFORE]] … SAMPLE INTERVAL slide`."""

    reach: int  # from a window's start to its instant, in ticks
    slide: int
    before: bool
    kind: OneOf["lazy", "eager"]
    gathered: str | None = None  # why EAGER windows cannot be taken row by row

    @property
    def commits(self) -> OneOf["lazy", "eager"]:
        """Which windows are taken: rows that can only be looked at together wait as with LAZY."""
        return "lazy" if self.gathered is not None else self.kind

    def spec(self, first: int | None) -> WindowSpec:
        """The grid of windows, none of them starting before `first`."""
        size = self.reach if self.before else self.reach + 1
        origin = -self.reach % self.slide
        return WindowSpec(size, self.slide, origin, first, closes_at_last_tick=False)

    def next_instant(self, closed: int) -> int:
        """The first instant of a window that is open when no row up to a tick can come any more."""
        return -(-(closed + 1 + self.before) // self.slide) * self.slide

    def first_after(self, clock: int) -> int:
        """The start of the first window whose instant comes after the clock."""
        return (clock // self.slide + 1) * self.slide - self.reach


@dataclass(frozen=True)
class UpdateJoinSide:
    """One windowed table of a join; only its keys wait, its rows are read when a key is processed."""

    table: StreamingTable
    key: tuple[str, ...]
    columns: tuple[str, ...]
    reach: int  # ticks before the newest row of the key
    before: bool


@dataclass(frozen=True)
class UpdateSpec:
    """An update query, planned and typed."""

    branches: Sequence[Branch]
    shown: pa.Schema  # of the result, `_t` last
    key: tuple[str, ...]  # the columns of the result that are the update key
    mode: Mode
    schedule: str = "inplace"
    window: WindowShape | None = None
    behind_us: int | None = None
    refresh: tuple[pa.Array, int] | None = None  # values of the key, and every how many µs
    fraction: float = 0.0  # of the rows that are shed
    join: tuple[UpdateJoinSide, ...] = ()  # of two streams: its sides; the branches are their keys

    @property
    def stored(self) -> pa.Schema:
        """How results are kept."""
        return stored_schema(self.shown)

    @property
    def is_union(self) -> bool:
        """Whether several streams are one."""
        return len(self.branches) > 1 and not self.join

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key's columns in the queue."""
        return tuple(f"key.{number}" for number in range(len(self.key)))

    @property
    def waiting(self) -> pa.Schema:
        """The rows that wait: the key, where each comes from, and what its SELECT reads."""
        stored = self.branches[0].table.definition.stored_schema
        keys = [stored.field(name).type for name in self.branches[0].key]
        fields = [pa.field(n, t) for n, t in zip(self.key_columns, keys, strict=True)]
        fields += [pa.field(name, pa.int64()) for name in (BRANCH, TICK, SEQ)]
        for number, branch in enumerate(self.branches):
            own = branch.table.definition.stored_schema
            fields += [pa.field(f"{number}.{n}", own.field(n).type) for n in branch.columns]
        return pa.schema(fields)

    def queued(self, number: int, rows: pa.Table, ticks: np.ndarray) -> pa.Table:
        """Rows of a branch's table as they wait."""
        branch, count = self.branches[number], rows.num_rows
        found = dict(zip(self.key_columns, (rows.column(name) for name in branch.key), strict=True))
        found |= {BRANCH: pa.array(np.full(count, number)), TICK: pa.array(ticks)}
        found[SEQ] = rows.column(SEQUENCE)
        found |= {f"{number}.{name}": rows.column(name) for name in branch.columns}
        columns = [
            found[f.name] if f.name in found else pa.nulls(count, f.type) for f in self.waiting
        ]
        return pa.Table.from_arrays(columns, schema=self.waiting)

    def taken(self, number: int, queued: pa.Table) -> pa.Table:
        """Rows that waited, as a branch's SELECT reads them."""
        names = self.branches[number].columns
        return queued.select([f"{number}.{name}" for name in names]).rename_columns(list(names))

    def choice(self, mode: Mode, random: np.random.Generator) -> Choice:
        """The policy of a mode."""
        if mode == "append":
            return Choice("append")
        if mode == "shedding":
            return Choice("shedding", random=random, shed_fraction=self.fraction)
        return Choice(self.schedule)

    def describe(self, mode: Mode | None = None) -> str:
        """How rows wait, in words; `mode`: which of two it is now."""
        if self.mode == "shedding":
            return f"shedding {self.fraction:g}"
        if self.mode == "append":
            return "append"
        text = f"updates, {self.schedule}"
        if self.window is not None:
            text += f", windows {self.window.kind}"
        if self.refresh is not None:
            values, every = self.refresh
            text += f", {len(values)} keys every {every / 1e6:g} s"
        if self.behind_us is not None:
            now = f", now {mode}" if mode is not None else ""
            text += f", when behind {self.behind_us / 1e6:g} s{now}"
        return text
