"""RANDOM: any waiting key may be next; to compare with."""

from __future__ import annotations

import numpy as np

from headwater.engine.update_queue.policy import News, Policy
from headwater.fold.columns import Slots


class Random(Policy):
    """Keys in no order; the generator is passed in."""

    name = "random"

    def __init__(self, random: np.random.Generator) -> None:
        super().__init__()
        self._random = random
        self._waiting: Slots = np.empty(0, np.int64)
        self._first: Slots = np.empty(0, np.int64)  # those that were put back

    def grow(self, key_count: int) -> None:
        pass  # nothing is kept by key

    def arrived(self, news: News) -> None:
        self._waiting = np.concatenate([self._waiting, news.fresh])

    def take(self, count: int, now: int) -> Slots:  # noqa: ARG002
        first, self._first = self._first[:count], self._first[count:]
        wanted = min(count - len(first), len(self._waiting))
        chosen = self._random.permutation(len(self._waiting))[:wanted]
        taken = self._waiting[chosen]
        self._waiting = np.delete(self._waiting, chosen)
        return np.concatenate([first, taken])

    def put_back(self, slots: Slots) -> None:
        self._first = np.concatenate([slots, self._first])

    def in_order(self) -> Slots:
        return np.concatenate([self._first, self._waiting])
