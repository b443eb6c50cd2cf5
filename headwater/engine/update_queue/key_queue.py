"""The queue of keys: slots in the order in which they are served.

Owns: the order. A key stands in it once; put in again it leaves its older place, which is passed
over when it comes to the front. Must never: look at rows or times. UpStream §7, "QoK": there a
linked list, here a vector, so that a batch of keys goes in and out at once.
"""

from __future__ import annotations

import numpy as np

from headwater.engine.update_queue.vectors import grown
from headwater.fold.columns import Slots, Vector

NOWHERE = -1
SMALLEST = 64


class KeyQueue:
    """Distinct slots from front to back."""

    def __init__(self) -> None:
        self._slots: Slots = np.empty(SMALLEST, np.int64)
        self._begin = self._end = SMALLEST // 2
        self._place: Slots = np.empty(0, np.int64)  # by slot: where it stands
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def grow(self, key_count: int) -> None:
        """Make room for keys."""
        self._place = grown(self._place, key_count, NOWHERE)

    def push_back(self, slots: Slots) -> None:
        """Put distinct slots at the back, the first of them foremost."""
        self._make_room(0, len(slots))
        self._put(self._end, slots)
        self._end += len(slots)

    def push_front(self, slots: Slots) -> None:
        """Put distinct slots at the front, the first of them foremost."""
        self._make_room(len(slots), 0)
        self._begin -= len(slots)
        self._put(self._begin, slots)

    def pop_front(self, count: int) -> Slots:
        """Take out up to `count` slots from the front."""
        taken: list[Slots] = []
        wanted = min(count, self._count)
        while wanted:
            there = self._live(self._begin, min(self._end, self._begin + 2 * wanted + SMALLEST))
            there = there[:wanted]
            if len(there) == wanted:
                self._begin = int(there[-1]) + 1
            else:
                self._begin = min(self._end, self._begin + 2 * wanted + SMALLEST)
            slots = self._slots[there]
            self._place[slots] = NOWHERE
            taken.append(slots)
            wanted -= len(slots)
            self._count -= len(slots)
        return np.concatenate(taken) if taken else np.empty(0, np.int64)

    def remove(self, slots: Slots) -> None:
        """Take out distinct slots from wherever they stand."""
        self._count -= int(self.holds(slots).sum())
        self._place[slots] = NOWHERE

    def holds(self, slots: Slots) -> Vector:
        """Which of the slots are in the queue."""
        return self._place[slots] != NOWHERE

    @property
    def front(self) -> int:
        """The foremost slot; there must be one."""
        while self._place[self._slots[self._begin]] != self._begin:
            self._begin += 1
        return int(self._slots[self._begin])

    def in_order(self) -> Slots:
        """All slots from front to back."""
        return self._slots[self._live(self._begin, self._end)]

    def _live(self, begin: int, end: int) -> Slots:
        """Which places between hold a slot that was not put elsewhere."""
        places = np.arange(begin, end)
        return places[self._place[self._slots[begin:end]] == places]

    def _put(self, first: int, slots: Slots) -> None:
        self._count += len(slots) - int(self.holds(slots).sum())
        self._slots[first : first + len(slots)] = slots
        self._place[slots] = np.arange(first, first + len(slots))

    def _make_room(self, front: int, back: int) -> None:
        if front <= self._begin and self._end + back <= len(self._slots):
            return
        live = self.in_order()
        space = 2 * (len(live) + front + back) + SMALLEST
        self._slots = np.empty(2 * space + len(live), np.int64)
        self._begin, self._end = space, space + len(live)
        self._slots[self._begin : self._end] = live
        self._place[live] = np.arange(self._begin, self._end)
