"""EAGER windows at work: rows go into the partial state of their window as they come (US4).

Owns: what has come of each committed window, and how far. An aggregate is folded, by the fold that other
queries have too; a query without one gives the results of its rows at once, and they are kept. So when a
window closes only its newest rows are left to do: C_t instead of C_t·ω (UpStream §6.2.2). A restart fills
the queue again, and with it this. Must never: keep rows; where a table beside the stream has changed, those
that have come are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from headwater.engine.evaluation import Evaluation
from headwater.engine.feed import FeedCursor, stored_until
from headwater.engine.fold_run import Counters, KeyWindowsRun
from headwater.engine.reader import PlacedRows
from headwater.engine.sampling import Instant
from headwater.engine.update_evaluation import newest_first, results_by_key
from headwater.engine.update_queue import WindowBatch
from headwater.engine.update_spec import SEQ, TICK, UpdateSpec
from headwater.engine.windows import WindowRows
from headwater.fold.columns import Column, Slots
from headwater.fold.lookup import Lookup
from headwater.kernel.relation import HeldTables, Relation
from headwater.storage.streaming.definition import SEQUENCE

NO_INSTANT = Instant(0, 0)  # keys have times of their own


def why_gathered(evaluation: Evaluation) -> str | None:
    """Why rows of a window can only be looked at together; None if each can be taken as it comes."""
    specs = evaluation.specs
    if not specs:
        return evaluation.plan.reason or "the query is not understood well enough to be split"
    if len(specs) > 1:
        return "the query is split into several folds"
    fold = specs[0].plan
    return "DISTINCT compares all rows" if fold.kind == "rows" and fold.block.distinct else None


class _Kept(Protocol):
    """What has come of windows, by their numbers."""

    def take(self, rows: pa.Table, windows: Slots, held: HeldTables) -> None:
        """Rows as they waited have come, each for a window."""

    def close(self, windows: Sequence[int], held: HeldTables) -> pa.Table:
        """What the query gives for windows that have ended."""

    def clear(self) -> None:
        """Begin with nothing kept."""

    def read(self, held: HeldTables) -> dict[str, Relation | None]:
        """The tables that rows meet as they come."""

    @property
    def size(self) -> int:
        """How many groups or rows are held."""


class _Folded:
    """Partials of an aggregate."""

    def __init__(self, spec: UpdateSpec, counters: Counters) -> None:
        self._spec, self._evaluation = spec, spec.branches[0].evaluation
        evaluation = self._evaluation
        self._run = KeyWindowsRun(
            evaluation.specs[0], evaluation.world, (), None, (), evaluation.probes, counters
        )

    def take(self, rows: pa.Table, windows: Slots, held: HeldTables) -> None:
        """Folds the rows in."""
        taken = self._spec.taken(0, rows)
        if SEQUENCE not in taken.column_names:
            taken = taken.append_column(SEQUENCE, rows.column(SEQ))
        placed = PlacedRows(taken, windows, rows.column(TICK).to_numpy())
        self._run.take([placed], held, None)

    def close(self, windows: Sequence[int], held: HeldTables) -> pa.Table:
        """Finishes the groups of some windows."""
        return self._evaluation.upper([(NO_INSTANT, [self._run.close(windows)])], held)[0]

    def clear(self) -> None:
        """Begin with nothing folded."""
        self._run.clear()

    def read(self, held: HeldTables) -> dict[str, Relation | None]:
        """The tables below the fold."""
        names = self._evaluation.plan.stream_tables
        return {name: held.relations.get(name) for name in names}

    @property
    def size(self) -> int:
        """Groups held."""
        return self._run.merge.size


class _Mapped:
    """Results of rows: nothing in the query looks at two of them."""

    def __init__(self, spec: UpdateSpec) -> None:
        self._spec, self._evaluation = spec, spec.branches[0].evaluation
        self._results: dict[int, list[pa.Table]] = {}
        self.size = 0

    def take(self, rows: pa.Table, windows: Slots, held: HeldTables) -> None:
        """Evaluates the query over the rows."""
        if not rows.num_rows:
            return
        spec, order = self._spec, newest_first(rows)
        given = self._evaluation.over_rows(
            WindowRows({0: spec.taken(0, rows.take(pa.array(order)))}, {}, rows.num_rows), 0, held
        )
        lookup = Lookup([rows.schema.field(name).type for name in spec.key_columns])
        keys = lookup.slots([Column(rows.column(n)) for n in spec.key_columns], rows.num_rows)
        window_of = np.empty(len(lookup), np.int64)
        window_of[keys] = windows
        found = lookup.slots([Column(given.column(n)) for n in spec.key], given.num_rows)
        own = window_of[found]
        order = np.argsort(own, kind="stable")
        numbers, begins = np.unique(own[order], return_index=True)
        ends = [*begins.tolist(), given.num_rows][1:]
        for number, begin, end in zip(numbers.tolist(), begins.tolist(), ends, strict=True):
            part = given.take(pa.array(order[begin:end]))
            self._results.setdefault(number, []).append(part)
        self.size += given.num_rows

    def close(self, windows: Sequence[int], held: HeldTables) -> pa.Table:  # noqa: ARG002
        """The results of some windows, the newest first."""
        parts = [part for window in windows for part in self._results.pop(window, [])[::-1]]
        found = pa.concat_tables([self._evaluation.output.schema.empty_table(), *parts])
        self.size -= found.num_rows
        return found

    def clear(self) -> None:
        """Begin with nothing kept."""
        self._results.clear()
        self.size = 0

    def read(self, held: HeldTables) -> dict[str, Relation | None]:
        """All tables of the query."""
        return dict(held.relations)


@dataclass
class _Window:
    """A committed window: its number, and up to which row it has come."""

    number: int
    start: int
    tick: int = 0
    sequence: int = -1


class EagerWindows:
    """The committed windows of a query, one per key."""

    def __init__(
        self, spec: UpdateSpec, keys: Callable[[Slots], list[pa.Array]], counters: Counters
    ) -> None:
        """`keys`: the key columns of the queue's slots; `counters`: of rows that are folded."""
        self._spec, self._keys = spec, keys
        kind = spec.branches[0].evaluation.specs[0].plan.kind
        self._kept: _Kept = _Folded(spec, counters) if kind == "aggregate" else _Mapped(spec)
        self._windows: dict[int, _Window] = {}  # by slot
        self._next = 0
        self._tables: dict[str, Relation | None] = {}  # that rows have met

    @property
    def size(self) -> int:
        """How many groups or results are held."""
        return self._kept.size

    def results(self, batch: WindowBatch, held: HeldTables) -> pa.Table | None:
        """Takes the rows of a batch; what the query gives for the windows that are whole now, if any."""
        tables = self._kept.read(held)
        if tables != self._tables:
            self._tables = tables
            self._take_again(held)
        self._kept.take(batch.rows, self._noted(batch), held)
        slots = batch.slots[batch.complete]
        if not len(slots):
            return None
        ended = [self._windows.pop(slot) for slot in slots.tolist()]
        given = self._kept.close([window.number for window in ended], held)
        shape = self._spec.window
        assert shape is not None
        instants = batch.starts[batch.complete] + shape.reach
        names = [*self._spec.key_columns, SEQ]
        numbers = pa.array([window.sequence for window in ended], pa.int64())
        last = pa.Table.from_arrays([*self._keys(slots), numbers], names=names)
        return results_by_key(self._spec, last, given, instants)

    def _noted(self, batch: WindowBatch) -> Slots:
        """The number of each row's window; remembers how far each window has come."""
        ticks, sequences = (batch.rows.column(name).to_numpy() for name in (TICK, SEQ))
        numbers = []
        given = zip(batch.slots.tolist(), batch.starts.tolist(), strict=True)
        for (slot, start), end, count in zip(
            given, np.cumsum(batch.row_counts).tolist(), batch.row_counts.tolist(), strict=True
        ):
            window = self._windows.get(slot)
            if window is None:
                window = self._windows[slot] = _Window(self._next, start)
                self._next += 1
            if count:
                window.tick, window.sequence = int(ticks[end - 1]), int(sequences[end - 1])
            numbers.append(window.number)
        return np.repeat(np.array(numbers, np.int64), batch.row_counts)

    def _take_again(self, held: HeldTables) -> None:
        """A table beside the stream has changed: what has come is taken again, from the stored rows."""
        self._kept.clear()
        if not self._windows:
            return
        windows, branch = list(self._windows.values()), self._spec.branches[0]
        lookup = Lookup([self._spec.waiting.field(n).type for n in self._spec.key_columns])
        lookup.slots(self._keys(np.array(list(self._windows), np.int64)), len(windows))
        until = max(FeedCursor(window.tick, window.sequence) for window in windows)
        with branch.table.reading() as snapshot:
            low = min(window.start for window in windows)
            rows = stored_until(snapshot, low, until, branch.read)
        places = lookup.find([Column(rows.column(n)) for n in branch.key], rows.num_rows)
        definition = branch.table.definition
        ticks = definition.ticks(rows.column(definition.time))
        own = self._had(windows, places, ticks, rows.column(SEQUENCE).to_numpy())
        queued = self._spec.queued(0, rows.take(pa.array(own)), ticks[own])
        numbers = np.array([window.number for window in windows], np.int64)
        self._kept.take(queued, numbers[places[own]], held)

    @staticmethod
    def _had(windows: list[_Window], places: Slots, ticks: Slots, sequences: Slots) -> Slots:
        """Which of some rows have come to their key's window."""
        starts, lasts, numbers = (
            np.array([getattr(window, name) for window in windows], np.int64)[places]
            for name in ("start", "tick", "sequence")
        )
        seen = (ticks < lasts) | ((ticks == lasts) & (sequences <= numbers))
        return np.flatnonzero((places >= 0) & (ticks >= starts) & seen)
