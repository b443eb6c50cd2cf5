"""The results of one continuous query: kept, handed out by position, dropped at a bound.

Owns: the positions of results (0, 1, 2, … over the life of a query), and which of them are kept. One
result is one row of a hidden streaming table (`stored_results.py`), so that it is durable, recovered
and dropped as rows of streaming tables are; a result is shown to readers after it is durable. Must
never: wait for a reader, or change a result. One thread appends, any number read. DESIGN §3
(`results_kept`), §8; ST6.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.emit import instant_scalar
from headwater.engine.result_changes import KnownChanges, PlacedChanges, applied, find_changes
from headwater.engine.stored_results import (
    AHEAD_RESULTS,
    RESULT_BYTES,
    Numbers,
    ResultChanges,
    ResultEntry,
    ResultImage,
    StoredResults,
    entry_to_store,
)
from headwater.engine.stored_results import ResultSet as ResultSet
from headwater.engine.stored_results import definition as definition
from headwater.errors import ClosedError, Error, OverloadError
from headwater.storage.streaming.table import StreamingTable

RECENT_RESULTS = 1024  # results in memory where the table holds all of them …
RECENT_BYTES = 16 << 20  # … and their bytes
INSERT_BYTES = 64 << 20  # results stored in one insert, unless a single one is larger
SMALL_BYTES = 4096  # a result of fewer is stored whole without a look at what changed
MOST_PASSED = 63  # results stored whole without a look, after some of which most had changed
LEAST_STEPS = 1 << 12  # so many rows may change before a result is made whole again …
MOST_STEPS = 1 << 10  # … in so many results
Told = ResultSet | ResultChanges

SLACK = 16  # at the bound of bytes a 16th more is dropped, so that the sizes are read seldom


@dataclass(frozen=True)
class NewResult:
    """The whole result of one instant or epoch, and what was decided for it."""

    instant: int
    rows: pa.Table | None  # None: those of the result before, changed
    epoch: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    changes: KnownChanges | None = None  # since the result before, if whoever made it knows


@dataclass
class WholeResult:
    """The rows of one result, and what those after it changed: any of them can be made of it."""

    position: int
    rows: pa.Table
    steps: list[KnownChanges] = field(default_factory=list)
    changed: int = 0  # rows in all steps

    def add(self, changes: KnownChanges) -> None:
        """What the next result changed."""
        self.steps.append(changes)
        self.changed += len(changes)

    def until(self, position: int) -> list[KnownChanges] | None:
        """The steps to a result; None if it is not among those."""
        count = position - self.position
        return self.steps[:count] if 0 <= count <= len(self.steps) else None


class ResultLog:
    """The last results of one query: the newest in memory, all kept ones in a hidden table."""

    def __init__(
        self,
        table: StreamingTable | None,
        schema: pa.Schema,
        *,
        keep: Callable[[], int],
        keep_bytes: Callable[[], int],
    ) -> None:
        """Without a table (a query that lives as long as its reader) all is in memory."""
        self.schema = schema
        self._stored = None if table is None else StoredResults(table, schema)
        self._search = ChangeSearch()
        self._keep, self._keep_bytes = keep, keep_bytes
        self._empty = schema.empty_table()
        self.readers: weakref.WeakSet[object] = weakref.WeakSet()  # subscriptions that are open
        self._appending = threading.Lock()
        self._unsure = False  # an insert failed: it may have become durable all the same
        # Of everybody, under the lock of the condition; changed by the appending thread alone:
        self._changed = threading.Condition()
        self._recent: deque[ResultEntry] = deque()  # the newest, without gaps
        self._whole: WholeResult | None = None  # the last one with its rows, and those since
        self._recent_bytes = 0
        self._first = self._next = 0
        self._before = 0  # bytes before what the oldest kept result is read from, or fewer
        self._total = 0
        self._closed = False
        self._error: BaseException | None = None
        self._load()

    @property
    def first(self) -> int:
        """The position of the oldest kept result; `next` if there is none."""
        with self._changed:
            return self._first

    @property
    def next(self) -> int:
        """The position that the next result will have."""
        with self._changed:
            return self._next

    @property
    def in_memory(self) -> bool:
        """Whether it is only there: then no result before the newest can be made whole."""
        return self._stored is None

    @property
    def closed(self) -> bool:
        """Whether the query is gone: no result will follow."""
        return self._closed

    @property
    def error(self) -> BaseException | None:
        """Why the query failed; no result will follow."""
        return self._error

    # Appending

    def append(self, results: Sequence[NewResult]) -> list[Told]:
        """Stores results, durable when this returns; readers see them then, in order.

        After an error some of them may be there: ask `last()` before trying again.
        """
        made: list[Told] = []
        with self._appending:
            if self._closed:
                raise ClosedError("the query was dropped", sqlstate="55000")
            if self._unsure and self._stored is not None:
                self._stored.settle()
                self._load()
                results = [replace(new, changes=None) for new in results]  # since which result?
            assert all(new.rows is not None or new.changes is not None for new in results)
            for part in _parts(self._entries(results)):
                self._add(part)
                made += [entry.result for entry in part]
        return made

    def settle(self) -> None:
        """After an insert that failed: finds out whether it became durable all the same."""
        with self._appending:
            if self._unsure and self._stored is not None:
                self._stored.settle()
                self._load()

    def _entries(self, results: Sequence[NewResult]) -> Iterator[ResultEntry]:
        """The results at the positions that follow."""
        before, previous = self._total, self._recent[-1] if self._recent else None
        for position, new in enumerate(results, self._next):
            result = self._result(position, new)
            if self._stored is None:
                size = RESULT_BYTES + _bytes_of(result)
                image = ResultImage(position, before, size, 0)
                entry = ResultEntry(result, before, size, size, image, new.changes)
            else:
                whole = partial(self._rows_of, result)
                earlier = None if previous is None else previous.result
                changes = self._changes(self._stored, earlier, result, new.changes)
                begin = None if previous is None else previous.image
                entry = entry_to_store(result, before, changes, begin, whole)
            yield entry
            before, previous = entry.end, entry

    def _result(self, position: int, new: NewResult) -> Told:
        """A new result at its position."""
        if new.rows is not None:
            rows = self._fitting(new.rows)
            return ResultSet(position, new.instant, rows, new.epoch, new.note)
        assert new.changes is not None
        assert position == self._next, "one at a time: the result before must be there"
        return ResultChanges(position, new.instant, new.changes, None, new.epoch, new.note)

    def _changes(
        self,
        stored: StoredResults,
        previous: Told | None,
        result: Told,
        known: KnownChanges | None,
    ) -> KnownChanges | None:
        """What changed since the result before, as far as it is known or worth a look."""
        if previous is None or not stored.keeps_changes:
            return None
        if known is not None and known.gone.schema == known.added.schema == self.schema:
            return known
        if previous.rows is None or result.rows is None:
            return None
        return self._search.find(previous.rows, result.rows, stored.time(result.instant))

    def _add(self, entries: Sequence[ResultEntry]) -> None:
        if self._stored is not None:
            self._unsure = True
            self._stored.insert(entries)
            self._unsure = False
            for entry in entries:
                entry.stored_rows = entry.stored_changes = None
        self._show(entries)
        self._drop()
        self._make_whole()

    def _fitting(self, rows: pa.Table) -> pa.Table:
        """The rows in the query's schema; empty ones are all one object."""
        if not rows.num_rows:
            return self._empty
        return rows if rows.schema == self.schema else rows.cast(self.schema)

    def _show(self, entries: Sequence[ResultEntry]) -> None:
        with self._changed:
            for entry in entries:
                self._recent.append(entry)
                self._recent_bytes += entry.held
                if entry.result.rows is not None:
                    self._whole = WholeResult(entry.result.position, entry.result.rows)
                elif self._whole is not None and isinstance(entry.result, ResultChanges):
                    self._whole.add(entry.result.changes)
            if entries:
                newest = entries[-1]
                self._next = newest.result.position + 1
                self._total = newest.end
            self._forget()
            self._changed.notify_all()

    def _forget(self) -> None:
        """Lets the oldest results leave memory: those in the table too, or dropped ones."""
        recent = self._recent
        while len(recent) > 1:
            full = len(recent) > RECENT_RESULTS or self._recent_bytes > RECENT_BYTES
            dropped = recent[0].result.position < self._first
            if not dropped and (self._stored is None or not full):
                return
            self._recent_bytes -= recent.popleft().held

    # Bounds

    def _drop(self) -> None:
        """Drops the oldest results until the rest is within both bounds; the newest stays."""
        first, before = max(self._first, self._next - max(self._keep(), 1)), self._before
        limit = self._keep_bytes()
        if self._total - before > limit:
            positions, starts = self._sizes(first)
            enough = self._total - (limit - limit // SLACK)
            place = min(int(np.searchsorted(starts, enough)), len(starts) - 1)
            first, before = int(positions[place]), int(starts[place])
        if first == self._first and before == self._before:
            return
        with self._changed:
            self._first, self._before = first, before
            self._forget()
        if self._stored is not None:
            self._stored.trim(first, step=max(self._keep() // SLACK, 1))

    def _sizes(self, first: int) -> tuple[Numbers, Numbers]:
        """Positions of results from `first`, and the bytes before what each is read from."""
        if self._stored is not None:
            return self._stored.sizes(first, self._next)
        kept = [e for e in self._recent if e.result.position >= first]
        return (
            np.array([e.result.position for e in kept], np.int64),
            np.array([e.before for e in kept], np.int64),
        )

    def _load(self) -> None:
        """Finds its place in the table: at the start, and after an insert that failed."""
        self._unsure = False
        if self._stored is None or (found := self._stored.count()) == self._next:
            return
        newest = list(self._stored.entries(found - 1, found))
        if not newest:
            raise self._stored.missing(found - 1)
        oldest, before = self._stored.oldest()
        with self._changed:
            self._first, self._before = max(self._first, oldest), max(self._before, before)
            self._recent.clear()  # what is in memory has no gaps: begin with the newest
            self._recent_bytes = 0
            self._show(newest)
        self._drop()

    # Reading

    def newest(self) -> Told | None:
        """The newest result, its rows only if they are in memory; None before the first."""
        with self._changed:
            return self._recent[-1].result if self._recent else None

    def last(self) -> ResultSet | None:
        """The newest result; None before the first."""
        found = self.newest()
        return None if found is None else self._with_rows(found)

    def _with_rows(self, told: Told) -> ResultSet:
        if isinstance(told, ResultSet):
            return told
        rows = self._rows_of(told) if told.rows is None else told.rows
        return ResultSet(told.position, told.instant, rows, told.epoch, told.note)

    def _rows_of(self, told: Told) -> pa.Table:
        """The rows of a result, which may be the next one."""
        if told.rows is not None:
            return told.rows
        assert isinstance(told, ResultChanges)
        time = instant_scalar(self.schema.field(len(self.schema) - 1).type, told.instant)
        with self._changed:
            whole, next_one = self._whole, told.position == self._next
            steps = None if whole is None else whole.until(told.position - next_one)
        if whole is None or steps is None:
            assert self._stored is not None
            for entry in self._stored.entries(told.position, told.position + 1):
                return self._with_rows(entry.result).rows
            raise self._stored.missing(told.position)
        return applied(whole.rows, [*steps, *([told.changes] if next_one else [])], time)

    def _make_whole(self) -> None:
        """Once enough has changed the rows of the newest result are made, so that reading it stays cheap."""
        whole = self._whole
        if whole is None:
            return
        many = whole.changed > max(whole.rows.num_rows, LEAST_STEPS)
        if many or len(whole.steps) > MOST_STEPS:
            newest = self.last()
            assert newest is not None
            with self._changed:
                self._whole = WholeResult(newest.position, newest.rows)

    def read(self, position: int) -> ResultSet | None:
        """The result at a position; None if it is not there yet, an error if it was dropped."""
        found = self.read_from(position, most=1)
        return found[0] if found else None

    def read_from(self, position: int, most: int | None = None) -> list[ResultSet]:
        """The result at a position and some that follow; none if it is not there yet."""

        def ahead(stored: StoredResults, end: int) -> list[Told]:
            return [entry.result for entry in stored.ahead(position, end)]

        found = self._read(position, most, lambda entry: entry.result, ahead)
        return [self._with_rows(one) for one in found]

    def read_changes(self, position: int) -> list[Told]:
        """As `read_from`, for a reader of changes: those alone, where they are known."""

        def ahead(stored: StoredResults, end: int) -> list[Told]:
            known = list[Told](stored.changes_ahead(position, end))
            return known or [e.told() for e in stored.ahead(position, position + 1)]

        return self._read(position, None, ResultEntry.told, ahead)

    def _read(
        self,
        position: int,
        most: int | None,
        shown: Callable[[ResultEntry], Told],
        ahead: Callable[[StoredResults, int], list[Told]],
    ) -> list[Told]:
        """From memory one result, from the table some at once."""
        with self._changed:
            if position >= self._next:
                return []
            self._check_kept(position)
            place = position - self._recent[0].result.position
            if place >= 0:
                return [shown(self._recent[place])]
            end = min(position + (most or AHEAD_RESULTS), self._recent[0].result.position)
        assert self._stored is not None
        try:
            found = ahead(self._stored, end)
        except (Error, OSError):
            if self._closed:  # the table went with the query
                return []
            raise
        if found and found[0].position == position:
            return found
        with self._changed:
            self._check_kept(position)
        raise self._stored.missing(position)

    def _check_kept(self, position: int) -> None:
        if position < self._first:
            raise self.dropped("the reader is too slow: its next result was dropped")

    def dropped(self, message: str) -> OverloadError:
        """The error of a reader whose results are not kept any more."""
        with self._changed:
            kept = f"kept are {self._next - self._first} results, from position {self._first}"
        return OverloadError(
            message,
            sqlstate="55000",
            detail=kept,
            hint="raise results_kept, or start again with 'earliest'",
        )

    def wait(
        self,
        position: int,
        timeout: float | None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Waits until that result is there, or none will come; whether it is there."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    position < self._next or self._closed or self._error is not None or stopped()
                ),
                timeout,
            )
            return position < self._next

    def wake(self) -> None:
        """Lets waiting readers look again whether they were stopped."""
        with self._changed:
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """The query failed: readers get its error after the results before it."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def recover(self) -> None:
        """The query was resumed after its error."""
        with self._changed:
            self._error = None

    def close(self) -> None:
        """The query is gone: readers end, after what is still in memory."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@dataclass
class ChangeSearch:
    """Looks for changes; after results of which most changed, more and more seldom."""

    passed: int = 0  # so many are passed over after the last look …
    waiting: int = 0  # … of which so many are still to come

    def find(self, before: pa.Table, after: pa.Table, time: pa.Scalar) -> PlacedChanges | None:
        """What changed, if it was looked for and is not most of it."""
        if after.nbytes <= SMALL_BYTES:
            return None
        if self.waiting:
            self.waiting -= 1
            return None
        found = find_changes(before, after, time)
        self.passed = 0 if found is not None else min(2 * self.passed + 1, MOST_PASSED)
        self.waiting = self.passed
        return found


def _bytes_of(result: Told) -> int:
    rows = 0 if result.rows is None else result.rows.nbytes
    return rows + (result.changes.nbytes if isinstance(result, ResultChanges) else 0)


def _parts(entries: Iterable[ResultEntry]) -> Iterator[list[ResultEntry]]:
    """The results in as few inserts as their sizes allow: one, unless they are very large."""
    part: list[ResultEntry] = []
    size = 0
    for entry in entries:
        if part and size + entry.size > INSERT_BYTES:
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.size
    if part:
        yield part
