"""What the engine runs: a continuous query or a continuous view, seen from the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headwater.engine.elsewhere import Elsewhere
from headwater.engine.fold_run import Counters
from headwater.engine.sharing import Sharing
from headwater.storage.streaming.table import StreamingTable


class Hosted(Protocol):
    """Something that fires when its tables have something new (DC3)."""

    name: str
    tables: Sequence[StreamingTable]
    priority: int
    max_wait_s: float | None
    state: str  # "running" | "paused" | "retrying" | "failed"
    error: BaseException | None
    careful: bool  # an error is told at once; else the firing is tried again, instant by instant
    elsewhere: Elsewhere | None  # the host that answers it instead of this one
    wall_due: int | None  # when the wall clock brings something to do, in µs

    def attach(self) -> None:
        """Takes up its place in its tables."""

    def share(self, sharing: Sharing) -> None:
        """It may do work together with others."""

    def leave(self) -> None:
        """It does its work alone from now on."""

    def pull(self, since: float | None = None) -> bool:
        """Looks at what came, the first of it at a time; whether it should fire."""

    def is_due(self) -> bool:
        """Whether it should fire again for what the last pull saw."""

    @property
    def wants_early(self) -> bool:
        """Whether there is something to do before it must fire."""

    def fire(self) -> int:
        """Does what there is to do; how many results it gave."""

    def lend(self) -> None:
        """Another host goes on with it: what it holds is put away, and no longer held here."""

    def put_away(self) -> None:
        """Writes a snapshot of its state."""

    def put_away_if_due(self, period_s: float) -> None:
        """Writes a snapshot if the last one is that old."""

    def needed_from(self, number: int) -> int | None:
        """The oldest tick of a table that it may read again; None for all of it."""

    def needed_sequence(self, number: int) -> int | None:
        """The first row of a table that it may have to fold again; None where ticks say enough."""

    @property
    def all_counters(self) -> Sequence[Counters]:
        """What was done for it in this process."""

    @property
    def remembers(self) -> bool:
        """Whether state of functions may have to be made again from rows that RANGE hides."""

    @property
    def holds(self) -> bool:
        """Whether RANGE must wait for it."""

    @property
    def held_after(self) -> int | None:
        """The last tick that it has answered; rows of its windows before stay."""
