"""Keys that are to be refreshed at a given rate (`REFRESH EVERY … FOR key IN (…)`, US8).

Owns: when each named key is due: one interval after it was last served. Due keys are served
before all others, the longest overdue first; then come keys without a target, in the order of the
policy; a named key that is not due is served only if nothing else waits. UpStream §8: "GOOG every
minute, GM every hour". Must never: let a named key into the policy's queue.
"""

from __future__ import annotations

import numpy as np

from headwater.engine.update_queue.policy import News, Policy
from headwater.engine.update_queue.vectors import NONE, grown
from headwater.fold.columns import Slots


class RefreshTimes(Policy):
    """A policy for most keys, deadlines for the named ones."""

    def __init__(self, inner: Policy) -> None:
        super().__init__()
        self.name = inner.name
        self._inner = inner
        self._interval: Slots = np.empty(0, np.int64)  # by slot; 0: not named
        self._served: Slots = np.empty(0, np.int64)  # by slot: when it was last taken
        self._waiting: Slots = np.empty(0, np.int64)  # named keys

    def target(self, slots: Slots, interval: int) -> None:
        """Refresh these keys every so many ticks; none of them may be waiting."""
        self._interval[slots] = interval

    def due(self, now: int) -> Slots:
        """The named keys that wait and are due, the longest overdue first."""
        deadlines = self._deadlines()
        order = np.argsort(deadlines, kind="stable")
        return self._waiting[order[deadlines[order] <= now]]

    def observe_cost(self, ticks: float) -> None:
        super().observe_cost(ticks)
        self._inner.observe_cost(ticks)

    def grow(self, key_count: int) -> None:
        self._inner.grow(key_count)
        self._interval = grown(self._interval, key_count, 0)
        self._served = grown(self._served, key_count, NONE)

    def arrived(self, news: News) -> None:
        named = self._interval[news.slots] > 0
        if not named.any():
            self._inner.arrived(news)
            return
        self._inner.arrived(news.only(~named))
        self._waiting = np.concatenate([self._waiting, news.only(named).fresh])

    def take(self, count: int, now: int) -> Slots:
        if not len(self._waiting):
            return self._inner.take(count, now)
        due = self.due(now)[:count]
        self._remove(due, now)
        others = self._inner.take(count - len(due), now)
        deadlines = self._deadlines()
        early = self._waiting[np.argsort(deadlines, kind="stable")]
        early = early[: count - len(due) - len(others)]
        self._remove(early, now)
        return np.concatenate([due, others, early])

    def put_back(self, slots: Slots) -> None:
        named = self._interval[slots] > 0
        self._inner.put_back(slots[~named])
        self._served[slots[named]] = NONE
        self._waiting = np.concatenate([self._waiting, slots[named]])

    def in_order(self) -> Slots:
        early = self._waiting[np.argsort(self._deadlines(), kind="stable")]
        return np.concatenate([early, self._inner.in_order()])

    def _deadlines(self) -> Slots:
        served = self._served[self._waiting]
        return np.where(served == NONE, NONE, served + self._interval[self._waiting])

    def _remove(self, slots: Slots, now: int) -> None:
        self._served[slots] = now
        self._waiting = self._waiting[~np.isin(self._waiting, slots)]
