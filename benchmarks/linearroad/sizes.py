"""Which runs there are: numbers of expressways at the peak of the three hours, and questions beside them."""

from __future__ import annotations

from dataclasses import dataclass

LAST_MINUTE = 180


@dataclass(frozen=True)
class Sizes:
    """One set of runs."""

    expressways: tuple[int, ...]  # of B7, until one fails
    minutes: int  # the last ones of the three hours
    question_expressways: tuple[int, ...]  # of B8: L++
    questions_per_minute: tuple[int, ...]
    question_minutes: int

    @property
    def start_minute(self) -> int:
        """Where a run of B7 begins."""
        return LAST_MINUTE - self.minutes


QUICK = Sizes((1, 5), 2, (1,), (100,), 2)
FULL = Sizes((1, 2, 5, 10, 20, 50, 75), 5, (1, 2), (20, 100, 200), 5)
