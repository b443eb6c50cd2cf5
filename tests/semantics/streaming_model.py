"""What a streaming table must answer, in plain Python, written from DESIGN §5 and nothing else.

No storage, no Arrow, no numpy: a list of rows, a clock, a closed mark. Slow and obvious.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Row:
    """A stored row: its time in ticks, the order of its arrival, and its values."""

    t: int
    arrival: int
    values: dict[str, Any]
    late: bool = False
    was_hidden: bool = False  # RANGE has hidden it once: it may be gone for good


@dataclass
class Model:
    """One table."""

    watermark: int = 0
    late: str = "keep"
    range: int | None = None
    rows: list[Row] = field(default_factory=list)
    clock: int | None = None  # c
    closed: int | None = None  # L
    seen: int | None = None
    waiting: list[int] = field(default_factory=list)
    late_total: int = 0
    arrivals: int = 0
    batch_ids: set[str] = field(default_factory=set)

    def insert(self, rows: list[tuple[int, dict[str, Any]]], batch_id: str | None = None) -> Any:
        """How many rows were added; "refused" if the policy says so."""
        if batch_id is not None and batch_id in self.batch_ids:
            return 0
        rows = sorted(rows, key=lambda row: row[0])  # stable: equal T stay in the order given
        flags = [self.closed is not None and t <= self.closed for t, _ in rows]
        self.late_total += sum(flags)
        if self.late == "reject" and any(flags):
            return "refused"
        if batch_id is not None:
            self.batch_ids.add(batch_id)
        added = 0
        for (t, values), late in zip(rows, flags, strict=True):
            if late and self.late == "drop":
                continue
            self.rows.append(Row(t, self.arrivals, values, late))
            self.arrivals += 1
            added += 1
        in_time = [t for (t, _), late in zip(rows, flags, strict=True) if not late]
        for t in in_time:
            self.seen = t if self.seen is None else max(self.seen, t)
        self.waiting += in_time
        if self.seen is not None:
            self._release(self.seen - self.watermark)
        return added

    def _release(self, level: int) -> None:
        """Every waiting row with T ≤ level is released; releasing T sets L ≥ T − 1."""
        if self.clock is not None:
            level = max(level, self.clock)
        for t in sorted(t for t in self.waiting if t <= level):
            self.clock = t if self.clock is None else max(self.clock, t)
            self.closed = t - 1 if self.closed is None else max(self.closed, t - 1)
        self.waiting = [t for t in self.waiting if t > level]
        self._hide()

    def advance(self, t: int) -> None:
        """No more rows with T ≤ t."""
        self._release(t)
        self.clock = t if self.clock is None else max(self.clock, t)
        self.closed = t if self.closed is None else max(self.closed, t)
        self._hide()

    def set_clock(self, t: int) -> bool:
        """ALTER TABLE … SET CLOCK TO t; False if it is refused."""
        if self.clock is None or t > self.clock:
            return False
        self.clock, self.closed = t, t - 1
        self.seen = None if self.seen is None else min(self.seen, t)
        self.wait_again()
        return True

    def wait_again(self) -> None:
        """The waiting rows are those beyond the clock that came in time."""
        assert self.clock is not None
        self.waiting = [row.t for row in self.rows if row.t > self.clock and not row.late]

    def _hide(self) -> None:
        for row in self.rows:
            row.was_hidden |= not self._in_range(row)

    def _in_range(self, row: Row) -> bool:
        return self.range is None or self.clock is None or row.t >= self.clock - self.range

    def set_range(self, ticks: int | None) -> None:
        """ALTER TABLE … SET RANGE."""
        self._hide()
        self.range = ticks
        self._hide()

    def visible(self) -> list[Row]:
        """Rows that a one-time query without a window sees, by (T, arrival)."""
        found = [row for row in self.rows if self._in_range(row)]
        return sorted(found, key=lambda row: (row.t, row.arrival))

    def scan(
        self,
        test: Callable[[Row], bool | None],
        low: int | None,
        high: int | None,
        descending: bool,
        limit: int | None,
    ) -> list[Row]:
        """A plain scan."""
        found = [
            row
            for row in self.visible()
            if (low is None or row.t >= low) and (high is None or row.t <= high) and test(row)
        ]
        found = found[::-1] if descending else found
        return found if limit is None else found[:limit]

    def interval(self, at: int | None, size: int, before: bool) -> list[Row]:
        """[INTERVAL i] and [INTERVAL i BEFORE] at an instant, newest first."""
        if at is None:
            return []
        rows = [
            r for r in self.visible() if at - size <= r.t and (r.t < at if before else r.t <= at)
        ]
        return rows[::-1]

    def last(self, at: int | None, count: int, key: Callable[[Row], Any] | None) -> list[Row]:
        """[ROWS k] and [A ROWS k] at an instant, newest first."""
        if at is None:
            return []
        taken: dict[Any, int] = {}
        found = []
        for row in reversed([r for r in self.visible() if r.t <= at]):
            name = None if key is None else key(row)
            taken[name] = taken.get(name, 0) + 1
            if taken[name] <= count:
                found.append(row)
        return found

    def remove(self, gone: Iterable[Row]) -> None:
        """DELETE."""
        numbers = {row.arrival for row in gone}
        self.rows = [row for row in self.rows if row.arrival not in numbers]


def compared(op: str, left: Any, right: Any) -> bool | None:
    """SQL's comparison: unknown with NULL; NaN equals itself and is larger than any number."""
    if left is None:
        return None
    if isinstance(left, float):
        left, right = (math.isnan(left), left), (math.isnan(right), right)
        if left[0] and right[0]:
            left = right = (True, 0.0)
        elif left[0] or right[0]:
            left, right = (left[0], 0.0), (right[0], 0.0)
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]


def both(values: Iterable[bool | None]) -> bool | None:
    """Three-valued AND."""
    found = list(values)
    return False if False in found else None if None in found else True


def either(values: Iterable[bool | None]) -> bool | None:
    """Three-valued OR."""
    found = list(values)
    return True if True in found else None if None in found else False


def negated(value: bool | None) -> bool | None:
    """Three-valued NOT."""
    return None if value is None else not value
