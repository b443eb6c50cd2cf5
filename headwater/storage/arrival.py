"""The clock of a table without TIMESTAMP BY: T is the time of arrival.

Owns: the last time given out or shown.
Must never: read the wall clock (the caller passes it in), run backwards, or be advanced by users.
It has no lock: the caller calls it in commit order. DESIGN §5, Time; ST2.
"""

from __future__ import annotations

from typing import NoReturn

from headwater.errors import NotSupportedError


class ArrivalClock:
    """Gives out arrival times in µs and follows the wall clock; no row is ever late."""

    def __init__(self, last: int | None = None) -> None:
        """`last`: the largest T stored, or instant evaluated, before a restart."""
        self._last = last

    @property
    def last(self) -> int | None:
        """The largest time given out or shown."""
        return self._last

    def stamp(self, wall_us: int) -> int:
        """T for the rows of one insert; equal ones are ordered by `_seq`."""
        return self.clock(wall_us)

    def clock(self, wall_us: int) -> int:
        """c: the wall clock, or the last time if the wall clock was set back."""
        if self._last is None or wall_us > self._last:
            self._last = wall_us
        return self._last

    def closed(self, wall_us: int) -> int:
        """L: the tick before c, since more rows may arrive within the current one."""
        return self.clock(wall_us) - 1

    def complete(self, instant: int, wall_us: int, *, before_only: bool) -> bool:
        """Whether a window at the instant has all its rows, as in TableClock.complete."""
        return instant <= (self.clock(wall_us) if before_only else self.closed(wall_us))

    def advance(self, tick: int) -> NoReturn:
        """Refused: arrival time is not the user's to set."""
        raise NotSupportedError(
            "a table with arrival time cannot be advanced",
            detail=f"its clock follows the wall clock; ADVANCE TO {tick} would overtake it",
            hint="create the table with TIMESTAMP BY to let the data set its time",
        )
