"""What every system can do in these experiments, and which there are.

A system is opened with customers and views, takes batches of calls, and answers a view with rows. Reads
and inserts may come from two threads unless it says otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

Rows = list[tuple[Any, ...]]


class System(Protocol):
    """One system with its views."""

    two_threads: bool

    def prepare(self, events: pa.Table) -> Any:
        """A batch as the system takes it; not on the clock."""

    def insert(self, batch: Any) -> None:
        """Returns when the rows are durable."""

    def settle(self) -> None:
        """Returns when everything inserted has been processed."""

    def read(self, view: str) -> Rows:
        """The view over all rows inserted so far."""


Open = Callable[[pa.Table, Sequence[str]], contextlib.AbstractContextManager[System]]


def opener(name: str) -> Open:
    """How a system is opened; its modules are imported only now."""
    if name.startswith("Headwater"):
        from benchmarks.aim.ours import opened

        return opened
    if name.startswith("DuckDB"):
        from benchmarks.aim.duck import deferred

        return deferred
    if name.startswith("PostgreSQL"):
        from benchmarks.aim import postgresql

        return postgresql.plain if "plain" in name else postgresql.upserting
    if name.startswith("ClickHouse"):
        from benchmarks.aim import clickhouse

        return clickhouse.unsynced if "without" in name else clickhouse.synced
    raise ValueError(name)


def same(mine: Rows, theirs: Rows) -> bool:
    """Whether two answers are equal as bags; numbers within 1e-9."""
    if len(mine) != len(theirs):
        return False
    pairs = zip(sorted(map(_numbers, mine)), sorted(map(_numbers, theirs)), strict=True)
    return all(_close(a, b) for one, other in pairs for a, b in zip(one, other, strict=True))


def _numbers(row: tuple[Any, ...]) -> tuple[float, ...]:
    """NULL is less than all numbers."""
    return tuple(-1e300 if value is None else float(value) for value in row)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1.0)


@contextlib.contextmanager
def open_system(name: str, customers: pa.Table, views: Sequence[str]) -> Iterator[System]:
    """The system of that name with these views."""
    with opener(name)(customers, views) as system:
        yield system
