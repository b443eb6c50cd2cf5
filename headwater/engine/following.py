"""The changes of a view or table as results, for readers and sinks: one for each commit, or for several.

Owns: which rows were told last; they are the newest result of its log, so that a reader goes on from a token
after a restart, and one that comes back later gets what changed meanwhile as one result. It looks only while
somebody reads: otherwise the view is state alone. Must never: tell a part of a commit, or hold an insert up.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from headwater.engine.emit import emitted, instant_scalar
from headwater.engine.hosted import LoggedQuery
from headwater.engine.query_parts import Evaluated
from headwater.engine.result_changes import find_changes, repeated
from headwater.engine.sampling import Instant
from headwater.errors import BindError
from headwater.sql.types import TIMESTAMP
from headwater.storage.streaming.definition import instant
from headwater.storage.streaming.seen import Needs, SeenTable

LOOK_US = 200_000  # between two looks at standard tables, of whose changes nobody tells


class FollowedRows(Protocol):
    """What is followed: a view or a table."""

    polled: bool  # whether it may change without a row in a streaming table

    def state(self) -> object:
        """What its rows depend on: equal states, equal rows."""

    def read(self) -> pa.Table:
        """Its rows, of that state or a later one."""


@dataclass(kw_only=True)
class Following(LoggedQuery):
    """Tells the changes of one view or table."""

    followed: str  # its name
    source: FollowedRows

    def __post_init__(self) -> None:
        super().__post_init__()
        self._turn = threading.Lock()
        self._told: object = None  # the state that the last result was made of

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
            self._told = None

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
        """The rows as they are become a result, unless the last one says the same."""
        with self._turn:
            state = self.source.state()
            if state == self._told:
                return 0
            rows, last = self.source.read(), self.sink.log.last()
            own = pa.schema(list(self.output)[:-1])
            if rows.schema.names != own.names or rows.schema.types != own.types:
                raise columns_changed(self.followed)
            now = time.time_ns() // 1000
            tick = now if last is None else max(now, last.instant + 1)
            made = _result(rows, self.output, tick, None if last is None else last.rows)
            if made is not None:
                self.sink.append([made])
                self.results += 1
            self._told = state
            return int(made is not None)


def columns_changed(name: str) -> BindError:
    """What readers get when results would not be like those before."""
    return BindError(
        f"the columns of {name} have changed", sqlstate="55000", hint="subscribe again"
    )


def _result(
    rows: pa.Table, schema: pa.Schema, tick: int, previous: pa.Table | None
) -> Evaluated | None:
    """A result of these rows; None if the one before has the same ones."""
    moment = instant_scalar(TIMESTAMP, tick)
    timed = pa.Table.from_arrays([*rows.columns, repeated(moment, rows.num_rows)], schema=schema)
    changes = None
    if previous is not None:
        changes = find_changes(previous, timed, moment)
        before, after = (previous, timed) if changes is None else (changes.gone, changes.added)
        if not emitted("changes", before, after, moment).num_rows:
            return None
    return Evaluated(Instant(tick, tick), timed, {}, changes=changes)
