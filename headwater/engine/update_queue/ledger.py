"""Where every row is: nothing is dropped without being counted.

Owns: the equation  rows in = processed + superseded + shed + waiting + in process.
Must never: hold a row. A row is in process from its dequeue, or from the commit of its window,
and processed once the result is delivered, whether or not a filter let it pass.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Ledger:
    """Counts of rows; `waiting` and `in_process` go up and down, the others only up."""

    rows_in: int = 0
    processed: int = 0
    superseded: int = 0
    shed: int = 0
    waiting: int = 0
    in_process: int = 0

    @property
    def skipped(self) -> int:
        """Rows that no result will ever be computed from."""
        return self.superseded + self.shed

    def came(self, count: int, *, waiting: int, superseded: int, shed: int = 0) -> None:
        """So many rows came; by how many more wait now, and what became of the others."""
        self.rows_in += count
        self.waiting += waiting
        self.superseded += superseded
        self.shed += shed

    def drop(self, count: int) -> None:
        """Waiting rows were superseded."""
        self.waiting -= count
        self.superseded += count

    def take(self, count: int) -> None:
        """Waiting rows are in process now."""
        self.waiting -= count
        self.in_process += count

    def put_back(self, count: int, superseded: int) -> None:
        """Rows in process wait again, or were superseded meanwhile."""
        self.in_process -= count
        self.waiting += count - superseded
        self.superseded += superseded

    def deliver(self, count: int) -> None:
        """The results of rows in process were delivered."""
        self.in_process -= count
        self.processed += count

    def validate(self, waiting: int, in_process: int) -> None:
        """Fails unless the equation holds and the two counts are what the queue really holds."""
        total = self.processed + self.superseded + self.shed + self.waiting + self.in_process
        assert self.rows_in == total, f"{self}: {self.rows_in} rows came, {total} are accounted for"
        assert self.waiting == waiting, f"{self}: {waiting} rows wait"
        assert self.in_process == in_process, f"{self}: {in_process} rows are in process"
        assert min(asdict(self).values()) >= 0, f"{self}: a count is below zero"

    def counts(self) -> dict[str, int]:
        """By name, for `headwater.staleness` and snapshots."""
        return asdict(self)
