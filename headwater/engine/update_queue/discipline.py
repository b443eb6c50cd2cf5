"""What waits between two dequeues: the newest row per key, or every row.

Owns: the interface of the two, so that a queue may change from one to the other. Must never:
count rows or measure staleness; the queue does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.fold.columns import Slots


@dataclass(frozen=True)
class QueueArrivals:
    """Rows that come in, or that wait: each with its key, arrival time and `_seq`."""

    rows: pa.Table
    slots: Slots
    times: Slots
    seqs: Slots

    def __len__(self) -> int:
        return len(self.slots)

    def take(self, numbers: Slots) -> QueueArrivals:
        """Some of the rows."""
        return QueueArrivals(
            self.rows.take(pa.array(numbers)),
            self.slots[numbers],
            self.times[numbers],
            self.seqs[numbers],
        )


@dataclass(frozen=True)
class Dequeued(QueueArrivals):
    """Rows that were dequeued, in the order of the policy."""

    number: int
    starts: Slots  # of each row's key: when its oldest update arrived that waited


@dataclass(frozen=True)
class Admitted:
    """What became of rows that came: which keys wait since when, and what was not kept."""

    slots: Slots  # distinct
    times: Slots
    waiting: int  # by how many more rows wait
    superseded: int
    shed: int = 0


class Discipline(ABC):
    """Waiting rows and their order."""

    name: str

    @property
    @abstractmethod
    def waiting_count(self) -> int:
        """How many rows wait."""

    @property
    @abstractmethod
    def allocated_rows(self) -> int:
        """How many rows the memory that is taken has room for."""

    @abstractmethod
    def grow(self, key_count: int) -> None:
        """Make room for keys."""

    @abstractmethod
    def observe_cost(self, ticks: float) -> None:
        """What processing one row takes."""

    @abstractmethod
    def admit(self, given: QueueArrivals) -> Admitted:
        """Rows have arrived."""

    @abstractmethod
    def take(self, count: int, now: int) -> tuple[QueueArrivals, Slots, Slots]:
        """The next rows; their distinct keys, and when the next waiting update of each arrived."""

    @abstractmethod
    def delivered(
        self, batch: Dequeued, later: Sequence[Dequeued], starts: Slots
    ) -> tuple[Slots, Slots]:
        """The batch's distinct keys, and the arrival of each one's oldest update after it.

        `later`: batches in process that were dequeued after it. `starts`: queue staleness.
        """

    @abstractmethod
    def put_back(self, batch: QueueArrivals) -> int:
        """A batch waits again; how many of its rows were superseded meanwhile."""

    @abstractmethod
    def contents(self) -> QueueArrivals:
        """All waiting rows, the next one first."""

    @property
    @abstractmethod
    def oldest_seq(self) -> int | None:
        """The smallest `_seq` of a waiting row; None if none waits."""

    @abstractmethod
    def next_slots(self, count: int) -> Slots:
        """The keys of the next rows."""

    @abstractmethod
    def restore(self, parts: Sequence[QueueArrivals]) -> int:
        """Take up rows, the next one first, in an empty waiting room; how many are superseded."""

    @abstractmethod
    def take_over(self, held: QueueArrivals) -> int:
        """Take up rows that waited under another policy, in order of arrival; as `restore`."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all waiting rows."""
