"""The changes of a view or table as results, for readers and sinks: one for each commit, or for several.

Owns: which rows were told last; they are the newest result of its log, so that a reader goes on from a token
after a restart, and one that comes back later gets what changed meanwhile as one result. What is followed
says what has changed since it was last asked, where it knows; else all rows are compared with those told
last. It looks only while somebody reads: otherwise the view is state alone. Must never: tell a part of a
commit, or hold an insert up.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from headwater.engine.change_record import FollowedChanges
from headwater.engine.emit import emitted, instant_scalar
from headwater.engine.hosted import LoggedQuery
from headwater.engine.result_changes import BagChanges, KnownChanges, find_changes, repeated
from headwater.engine.results import NewResult
from headwater.errors import BindError
from headwater.operators.bags import consolidated
from headwater.operators.changes import Changes, come, go, together
from headwater.sql.types import TIMESTAMP
from headwater.storage.streaming.definition import instant
from headwater.storage.streaming.seen import Needs, SeenTable

LOOK_US = 200_000  # between two looks at standard tables, of whose changes nobody tells


class FollowedRows(Protocol):
    """What is followed: a view or a table."""

    polled: bool  # whether it may change without a row in a streaming table

    def state(self) -> object:
        """What its rows depend on: equal states, equal rows."""

    def follow(self, mark: str | None) -> FollowedChanges:
        """What has changed since a mark, or all rows, of that state or a later one."""


@dataclass(kw_only=True)
class Following(LoggedQuery):
    """Tells the changes of one view or table."""

    followed: str  # its name
    source: FollowedRows
    whole: bool = (
        False  # every result has all rows: its log, in memory, makes none of the one before
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._turn = threading.Lock()
        self._forget()

    @property
    def output(self) -> pa.Schema:
        """The columns of its results; `_t` is the last."""
        return self.sink.log.schema

    @property
    def reached(self) -> int | None:
        """It holds no instants back."""
        return None

    def time_of(self, tick: int) -> int | datetime:
        """When the rows were so."""
        return instant(tick)

    def attach(self) -> None:
        """Goes on from the newest result, also after an error."""
        with self._turn:
            self.sink.recover()
            self.sink.log.recover()
            self._forget()

    def _forget(self) -> None:
        """The next result is found by a comparison."""
        self._told: object = None  # the state that the last result was made of
        self._mark: str | None = None  # since which changes are asked for
        self._untold: Changes | None = None  # since the last result, but too small to be one

    def drop(self) -> None:
        """It holds nothing."""

    def needs(self, table: SeenTable) -> Needs:
        """None: it reads what is there."""
        closed = table.state.time.closed
        return Needs(None if closed is None else closed + 1)

    # Its work

    def pull(self, since: float | None = None) -> bool:  # noqa: ARG002
        """Whether somebody reads, and something has changed."""
        self.wall_due = time.time_ns() // 1000 + LOOK_US if self.source.polled else None
        return bool(self.sink.log.readers) and self.source.state() != self._told

    def fire(self) -> int:
        """Tells what has changed."""
        self.fired += 1
        return self.tell()

    def tell(self) -> int:
        """What has changed becomes a result, unless the last one says the same."""
        with self._turn:
            state = self.source.state()
            if state == self._told:
                return 0
            try:
                found = self.source.follow(None if self.whole else self._mark)
                made = self._made(found)
                if made is not None:
                    self.sink.log.append([made])
                    self.results += 1
            except BaseException:
                self._forget()
                raise
            self._told, self._mark = state, found.mark
            return int(made is not None)

    def _made(self, found: FollowedChanges) -> NewResult | None:
        """The result after some changes; None if readers would be told nothing."""
        newest = self.sink.log.newest()
        now = time.time_ns() // 1000
        tick = now if newest is None else max(now, newest.instant + 1)
        if found.changes is None:
            assert found.rows is not None
            return self._compared(self._timed(found.rows, tick), tick)
        assert newest is not None  # it was told all rows first
        parts = [found.changes] if self._untold is None else [self._untold, found.changes]
        changes = consolidated(together(parts, found.changes.rows.schema))
        gone, added = (self._timed(rows, tick) for rows in (changes.going, changes.coming))
        if not self._is_told(gone, added, tick):
            self._untold = changes
            return None
        self._untold = None
        row_count = newest.row_count - gone.num_rows + added.num_rows
        return NewResult(tick, None, changes=BagChanges(gone, added, row_count))

    def _compared(self, rows: pa.Table, tick: int) -> NewResult | None:
        """A result of all rows; None if the one before has the same ones."""
        last, self._untold = self.sink.log.last(), None
        if last is None:
            return NewResult(tick, rows)
        changes: KnownChanges | None
        changes = find_changes(last.rows, rows, instant_scalar(TIMESTAMP, tick))
        if changes is None and self.sink.log.in_memory:  # else readers compare the two
            changes = BagChanges(last.rows, rows, rows.num_rows)
        before, after = (last.rows, rows) if changes is None else (changes.gone, changes.added)
        if self._is_told(before, after, tick):
            return NewResult(tick, rows, changes=changes)
        own = pa.schema(list(self.output)[:-1])
        parts = [go(before.select(own.names)), come(after.select(own.names))]
        self._untold = together(parts, own)
        return None

    def _timed(self, rows: pa.Table, tick: int) -> pa.Table:
        own = pa.schema(list(self.output)[:-1])
        if rows.schema.names != own.names or rows.schema.types != own.types:
            raise columns_changed(self.followed)
        times = repeated(instant_scalar(TIMESTAMP, tick), rows.num_rows)
        return pa.Table.from_arrays([*rows.columns, times], schema=self.output)

    def _is_told(self, gone: pa.Table, added: pa.Table, tick: int) -> bool:
        """Whether readers see a difference: floats may differ by less than they are told apart by."""
        return bool(emitted("changes", gone, added, instant_scalar(TIMESTAMP, tick)).num_rows)


def columns_changed(name: str) -> BindError:
    """What readers get when results would not be like those before."""
    return BindError(
        f"the columns of {name} have changed", sqlstate="55000", hint="subscribe again"
    )
