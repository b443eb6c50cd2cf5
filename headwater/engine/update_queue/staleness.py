"""How stale each key is, now and on average.

Owns: the definition (UpStream §3.3). A key's staleness at t is 0 if no update of it is pending,
else t minus the arrival of its oldest pending update, superseded ones included. Averages are
integrals over time divided by the time. One tracker holds queue staleness, where an update is
pending until it, or a newer one, is dequeued (§5.1); another application staleness, where it is
pending until its result, or a newer one, is delivered. Must never: read a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.engine.update_queue.vectors import NONE, grown
from headwater.fold.columns import Slots, Vector

Floats = npt.NDArray[np.float64]


class Staleness:
    """The oldest pending update of each key, and the area under each key's staleness."""

    def __init__(self, began: int) -> None:
        """`began`: when observation begins, in ticks."""
        self.began = began
        self._count = 0
        self._starts: Slots = np.empty(0, np.int64)  # arrival of the oldest pending update
        self._until: Slots = np.empty(0, np.int64)  # to where the area reaches
        self._areas: Floats = np.empty(0, np.float64)

    def grow(self, key_count: int) -> None:
        """Make room for keys; new ones are fresh."""
        self._starts = grown(self._starts, key_count, NONE)
        self._until = grown(self._until, key_count, self.began)
        self._areas = grown(self._areas, key_count, 0.0)
        self._count = max(self._count, key_count)

    @property
    def starts(self) -> Slots:
        """The arrival of each key's oldest pending update, or NONE; not to be written to."""
        return self._starts[: self._count]

    def pending(self, slots: Slots, times: Slots) -> None:
        """Updates of distinct keys have arrived; only fresh keys become stale by them."""
        fresh = self._starts[slots] == NONE
        if not fresh.all():
            slots, times = slots[fresh], times[fresh]
        self._starts[slots] = times
        self._until[slots] = np.maximum(self._until[slots], times)

    def covered(self, slots: Slots, now: int, starts: Slots | int = NONE) -> None:
        """The oldest updates of distinct keys are no longer pending; those at `starts` still are."""
        self._areas[slots] += self._open(slots, now)
        self._until[slots] = now
        self._starts[slots] = starts

    def reopen(self, slots: Slots, starts: Slots, now: int | None = None) -> None:
        """What was covered is pending again from now on; it had been since `starts`.

        Without `now`: from where it was covered.
        """
        until = self._until[slots] if now is None else np.full(len(slots), now)
        self._areas[slots] += self._open(slots, until)
        self._until[slots] = until
        before = self._starts[slots]
        self._starts[slots] = np.where(before == NONE, starts, np.minimum(before, starts))

    def forget_pending(self) -> None:
        """All keys are fresh; their areas so far stay."""
        self._starts[:] = NONE

    def now(self, now: int) -> Slots:
        """Each key's staleness in ticks."""
        starts = self.starts
        return np.where(starts == NONE, 0, now - starts)

    def areas(self, now: int) -> Floats:
        """Each key's integral from the beginning to now; differences are integrals between."""
        return self._areas[: self._count] + self._open(np.arange(self._count), now)

    def means(self, now: int) -> Floats:
        """Each key's average from the beginning to now."""
        return self.areas(now) / max(now - self.began, 1)

    def mean(self, now: int) -> float:
        """The average over all keys."""
        return float(self.means(now).mean()) if self._count else 0.0

    def _open(self, slots: Slots, now: Slots | int) -> Vector:
        """The part of the areas that is not yet in them: a trapezium for each stale key."""
        starts = self._starts[slots]
        stale = starts != NONE
        high = np.where(stale, now - starts, 0).astype(np.float64)
        low = np.where(stale, self._until[slots] - starts, 0).astype(np.float64)
        return (high * high - low * low) / 2

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        count = self._count
        return {
            "began": self.began,
            "starts": self._starts[:count].copy(),
            "until": self._until[:count].copy(),
            "areas": self._areas[:count].copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.began, self._count = state["began"], len(state["starts"])
        self._starts, self._until = state["starts"].copy(), state["until"].copy()
        self._areas = state["areas"].copy()


class _Stale(Protocol):
    """A queue that measures both."""

    key: tuple[str, ...]
    queue_staleness: Staleness
    application_staleness: Staleness

    def keys(self) -> Sequence[pa.Array]:
        """The key columns of all keys."""


def staleness_table(queue: _Stale, now: int) -> pa.Table:
    """Keys with both kinds of staleness, now and on average, in ticks."""
    in_queue, application = queue.queue_staleness, queue.application_staleness
    columns = dict(zip(queue.key, queue.keys(), strict=True))
    columns["queue_staleness"] = pa.array(in_queue.now(now))
    columns["application_staleness"] = pa.array(application.now(now))
    columns["mean_queue_staleness"] = pa.array(in_queue.means(now))
    columns["mean_application_staleness"] = pa.array(application.means(now))
    return pa.table(columns)
