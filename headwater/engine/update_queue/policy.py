"""What a policy is: the order in which waiting keys are served.

Owns: the interface, and what a policy is told about a batch of arrivals. Must never: hold rows.
Each policy is a file of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from headwater.engine.update_queue.key_queue import KeyQueue
from headwater.engine.update_queue.vectors import first_rows, newest_rows
from headwater.fold.columns import Slots, Vector


class News:
    """A batch of arrivals as policies see it: which keys, and when."""

    def __init__(self, slots: Slots, times: Slots, waiting: Vector, waiting_count: int) -> None:
        """`slots`, `times`: of the rows, in order. `waiting`: by slot, before these rows came."""
        self.slots = slots
        self.times = times
        self._waiting = waiting
        self._waiting_count = waiting_count

    def only(self, rows: Vector) -> News:
        """The news of some of the rows."""
        return News(self.slots[rows], self.times[rows], self._waiting, self._waiting_count)

    @cached_property
    def first_row(self) -> Slots:
        """The first row of each key, in order."""
        return first_rows(self.slots, self._scratch())

    @cached_property
    def newest_row(self) -> Slots:
        """The newest row of each key, in order."""
        return newest_rows(self.slots, self._scratch())

    @cached_property
    def fresh_row(self) -> Slots:
        """The first row of each key that did not wait before, in order."""
        return self.first_row[~self._waiting[self.slots[self.first_row]]]

    @property
    def fresh(self) -> Slots:
        """The keys that did not wait before, by their first row."""
        return self.slots[self.fresh_row]

    @property
    def newest(self) -> Slots:
        """All keys of the batch, by their newest row."""
        return self.slots[self.newest_row]

    @property
    def row_counts(self) -> Slots:
        """How many rows each key of `newest` has in the batch."""
        numbers = self._scratch()
        numbers[self.newest] = np.arange(len(self.newest))
        return np.bincount(numbers[self.slots], minlength=len(self.newest))

    @property
    def residents(self) -> Slots:
        """How many keys waited when the newest row of each key of `newest` came, itself included."""
        return self._waiting_count + np.searchsorted(self.fresh_row, self.newest_row, "right")

    def _scratch(self) -> Slots:
        return np.empty(len(self._waiting), np.int64)


class Policy(ABC):
    """An order of waiting keys."""

    name: str

    def __init__(self) -> None:
        self.cost = 0.0

    def observe_cost(self, ticks: float) -> None:
        """What processing one row takes, as the engine has measured it."""
        self.cost = ticks

    @abstractmethod
    def grow(self, key_count: int) -> None:
        """Make room for keys."""

    @abstractmethod
    def arrived(self, news: News) -> None:
        """Updates have arrived: put their keys in order."""

    @abstractmethod
    def take(self, count: int, now: int) -> Slots:
        """The next keys to serve, which then no longer wait."""

    @abstractmethod
    def put_back(self, slots: Slots) -> None:
        """Keys that were taken go back, before all others."""

    @abstractmethod
    def in_order(self) -> Slots:
        """All waiting keys, the next one first."""


class QueuePolicy(Policy):
    """A policy whose order is a queue of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = KeyQueue()

    def grow(self, key_count: int) -> None:
        self.keys.grow(key_count)

    def take(self, count: int, now: int) -> Slots:  # noqa: ARG002
        return self.keys.pop_front(count)

    def put_back(self, slots: Slots) -> None:
        self.keys.push_front(slots)

    def in_order(self) -> Slots:
        return self.keys.in_order()
