"""What a host runs: a query as the engine sees it, whatever makes it fire.

Owns: what every query has, once: how it stands, where it is answered, its counters and timings, the keeper
of its snapshot, and the words by which the engine drives it. What makes it fire is what its kinds differ in:
instants and epochs (`query.py`), commits and reads (`view.py`), dequeues (`update_query.py`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import pyarrow as pa

from headwater.engine.elsewhere import Elsewhere, host_of
from headwater.engine.fold_run import Counters
from headwater.engine.machine import State
from headwater.engine.query_parts import Beginning, Timings
from headwater.engine.query_sinks import LogSink
from headwater.engine.sharing import Sharing
from headwater.engine.snapshots import SnapshotFile, SnapshotKeeper
from headwater.engine.world import World
from headwater.fold.share import Share
from headwater.sql.extensions import Emit
from headwater.storage.streaming.seen import NO_TICK_BEFORE, Needs, SeenTable
from headwater.storage.streaming.table import StreamingTable


@dataclass(kw_only=True)
class Hosted(ABC):
    """Something that fires when its tables have something new (DC3)."""

    number: int
    name: str
    world: World
    tables: Sequence[StreamingTable] = ()  # one per leaf
    priority: int = 0
    max_wait_s: float | None = None
    snapshot: SnapshotFile | None = None
    state: State = "running"  # as the machine has decided
    error: BaseException | None = None
    careful: bool = False  # after an error: one result at a time, so that good ones are answered
    elsewhere: Elsewhere | None = None  # the host that answers it instead of this one
    wall_due: int | None = None  # when the wall clock brings something to do, in µs
    results: int = 0
    fired: int = 0  # how often, where a firing does all there is to do
    counters: Counters = field(default_factory=Counters)
    timings: Timings = field(default_factory=Timings)
    parts: Sequence[Hosted] = ()  # that do its work, each in a host of its own; it does none then
    mine: Share | None = None  # of a part: the keys that it has

    once: ClassVar[bool] = False  # an error is told at once, without a careful attempt

    def __post_init__(self) -> None:
        self.keeper = SnapshotKeeper(self.snapshot)

    @property
    def standing(self) -> tuple[State, BaseException | None]:
        """How it stands to its users, and why."""
        return self.state, self.error

    @property
    def host(self) -> str:
        """Where it is answered."""
        return host_of(self.elsewhere)

    # Its place

    @abstractmethod
    def attach(self) -> None:
        """Takes up its place in its tables."""

    def share(self, sharing: Sharing) -> None:  # noqa: B027
        """It may do work together with others."""

    def leave(self) -> None:  # noqa: B027
        """It does its work alone from now on."""

    def lend(self) -> None:
        """Another host goes on with it: what it holds is put away, and no longer held here."""
        self.put_away()
        self.keeper.void()
        self.drop()

    @abstractmethod
    def drop(self) -> None:
        """What it holds goes out of memory."""

    # Its work

    @abstractmethod
    def pull(self, since: float | None = None) -> bool:
        """Looks at what came, the first of it at a time; whether it should fire."""

    @property
    def wants_early(self) -> bool:
        """Whether there is something to do before it must fire."""
        return False

    @abstractmethod
    def fire(self) -> int:
        """Does what there is to do; how many results it gave."""

    @property
    def writes(self) -> SeenTable | None:
        """The table that its results go to, where others may read them."""
        return None

    @property
    def is_halted(self) -> bool:
        """Whether rows wait that it may not take in for the moment: it has answered less than there is."""
        return False

    def due_until(self) -> float:
        """After a pull: what `answered_until` reaches once all that is due now is answered.

        Of one whose firing does all that was there when it began: the next firing.
        """
        return self.fired + 1

    @property
    def answered_until(self) -> float:
        """How far it has answered; it never goes back but with its place."""
        return self.fired

    @property
    def all_counters(self) -> Sequence[Counters]:
        """What was done for it in this process."""
        return [self.counters]

    # What lasts

    def put_away(self, *, beside: bool = False) -> None:
        """Writes a snapshot of its state; `beside`: while it goes on."""
        if not beside:
            self.keeper.settle()
        self.keeper.looked_at = time.monotonic()
        stamp = self.keeper.stamp
        if self.keeper.may_keep and (taken := self.to_keep()) is not None:
            self.keeper.keep(*taken, stamp, beside=beside)

    def hand_over(self) -> None:
        """It is put away for another process, which goes on with it."""
        self.put_away()

    def put_away_if_due(self, period_s: float) -> None:
        """Writes a snapshot if the last one is that old, beside the firings to come."""
        if self.keeper.is_due(period_s):
            self.put_away(beside=True)

    def to_keep(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Its state, and the position that it belongs to; None if there is nothing to keep."""
        return None

    @abstractmethod
    def needs(self, table: SeenTable) -> Needs:
        """Which rows of a table it may read again."""

    def rows_will_change(self, table: SeenTable) -> None:  # noqa: B027
        """Before stored rows of a table are deleted or replaced."""


@dataclass(kw_only=True)
class LoggedQuery(Hosted):
    """One whose results are a log: others read them, and it goes on from what was decided there."""

    statement: str
    beginning: Beginning
    sink: LogSink
    emit: Emit = "all"

    @property
    def writes(self) -> SeenTable | None:
        """The table of a materialized view."""
        return self.sink.table

    @property
    @abstractmethod
    def output(self) -> pa.Schema:
        """The columns of its result."""

    @property
    @abstractmethod
    def reached(self) -> int | None:
        """The furthest tick that it has gone beyond."""

    def time_of(self, tick: int) -> int | datetime:
        """A tick of a result as its readers see it."""
        return self.tables[0].definition.value(tick)


WORST: tuple[State, ...] = ("failed", "retrying", "paused", "running")


class InParts(Hosted):
    """One that its parts answer: it holds nothing and fires nothing itself."""

    @property
    def standing(self) -> tuple[State, BaseException | None]:
        """As the part that stands worst."""
        found = sorted((part.standing for part in self.parts), key=lambda one: WORST.index(one[0]))
        return found[0]

    @property
    def host(self) -> str:
        """Where its parts are."""
        return ", ".join(sorted({part.host for part in self.parts}))

    def attach(self) -> None:
        """Its parts have their places."""

    def share(self, sharing: Sharing) -> None:
        """Its parts have the folds."""

    def drop(self) -> None:
        """It holds nothing."""

    def put_away(self, *, beside: bool = False) -> None:
        """Its parts write snapshots."""

    def put_away_if_due(self, period_s: float) -> None:
        """Its parts write snapshots."""

    def pull(self, since: float | None = None) -> bool:  # noqa: ARG002
        """Its parts look at what came."""
        return False

    @property
    def wants_early(self) -> bool:
        """Its parts fold."""
        return False

    def fire(self) -> int:
        """Its parts do."""
        self.fired += 1
        return 0


def part_name(name: str, mine: Share) -> str:
    """What a part is called; no name of a user has a slash."""
    return f"{name}/{mine.place + 1}"


def held_from(after: int | None, table: SeenTable) -> int | None:
    """From which tick RANGE must keep rows for windows of instants after one; None: it may do as it likes."""
    reach = table.definition.range_ticks  # no window reaches beyond it
    if reach is None:
        return None
    return NO_TICK_BEFORE if after is None else after - reach
