"""Which runs there are: whole ones, numbers of expressways at the peak, and questions beside them."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.linearroad.replay import Ride

LAST_MINUTE = 180


@dataclass(frozen=True)
class Sizes:
    """One set of runs."""

    whole: tuple[int, ...]  # of B7, from the first second to the last
    whole_minutes: int  # in so many the rate grows from its least to its peak
    expressways: tuple[int, ...]  # of B7 at the peak, until one fails
    minutes: int  # the last ones of the three hours
    question_expressways: tuple[int, ...]  # of B8: L++
    questions_per_minute: tuple[int, ...]
    question_minutes: int
    search_s: float  # once the search for the rating has taken so long, no larger run is begun

    def whole_rides(self) -> list[Ride]:
        """The runs from the empty road to the peak."""
        return [
            Ride(number, 0, self.whole_minutes, growth_minutes=self.whole_minutes)
            for number in self.whole
        ]

    def peak_rides(self) -> list[Ride]:
        """The last minutes, for more and more expressways."""
        start = LAST_MINUTE - self.minutes
        return [Ride(number, start, self.minutes) for number in self.expressways]

    def question_rides(self) -> list[Ride]:
        """The last minutes with questions about the past, with an index and without."""
        start, minutes = LAST_MINUTE - self.question_minutes, self.question_minutes
        return [
            Ride(number, start, minutes, questions_per_minute=asked, indexed=indexed)
            for number in self.question_expressways
            for asked in self.questions_per_minute
            for indexed in (True, False)
        ]


QUICK = Sizes((1,), 10, (1, 5), 2, (1,), (100,), 2, 120.0)
FULL = Sizes(
    whole=(1, 10),
    whole_minutes=LAST_MINUTE,
    expressways=(1, 2, 5, 10, 20, 50, 75, 100, 150, 200),
    minutes=3,
    question_expressways=(1, 2),
    questions_per_minute=(20, 100, 200),
    question_minutes=3,
    search_s=600.0,
)
