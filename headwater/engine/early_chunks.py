"""How many chunks the newest basic window is folded in before it is complete.

Owns: m, and the search for the best one. Must never: measure anything itself, or fold.
DataCell §3, "optimized incremental plans", and Fig. 8 (DC7): the rows of a basic window (a pane)
come in steadily, so most of them can be folded before the last one is there, and less is left to
do once it is. More chunks mean more merging; no model predicts the best m, so it is searched for.

m starts at 1, or at more where response time is all that counts, and doubles every period while
the response time falls, then returns to the best.
Periods are compared by their medians, so that single slow slides do not decide. When the load
changes, the search begins again. Of the first pane nobody knows how large it will be: it is taken
for what has come of it so far, so that its chunks grow with it and an m-th of it is left in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

CHANGE = 2.0  # the load has changed when rows or response have by this factor
EQUAL_S = 1e-5  # response times closer than this are equal
ROWS_WEIGHT = 0.25  # of the newest pane in the moving average
LEAST_OF_FIRST = 1000  # rows of a chunk of the first pane


@dataclass(frozen=True, slots=True)
class _Period:
    """What the slides of one period showed."""

    response_s: float
    rows: float


class EarlyChunks:
    """How many chunks the newest basic window is folded in before it is complete.

    m starts at `start`, doubles every few slides while response time falls, then returns to the best.
    """

    def __init__(
        self, period: int = 8, most: int = 512, worthwhile: float = 0.05, start: int = 1
    ) -> None:
        """`most`: the largest m. `worthwhile`: by what part a response must fall to count."""
        if period < 1 or not 1 <= start <= most or not 0 <= worthwhile < 1:
            raise ValueError("period and most are at least 1, worthwhile is a part of 1")
        self._start = start
        self._period = period
        self._most = most
        self._worthwhile = worthwhile
        self._expected_rows: float | None = None
        self._search()

    @property
    def m(self) -> int:
        """The number of chunks now."""
        return self._m

    def observe(self, response_s: float, rows: int) -> None:
        """One slide: from the last row of the pane to the result; and the rows of the pane.

        Empty panes say nothing about a load and are passed over.
        """
        if rows <= 0:
            return
        expected = self._expected_rows
        self._expected_rows = (
            float(rows) if expected is None else expected + ROWS_WEIGHT * (rows - expected)
        )
        if self._skip:  # the pane was begun with another m
            self._skip -= 1
            return
        self._slides.append((response_s, rows))
        if len(self._slides) == self._period:
            responses, counts = zip(*self._slides, strict=True)
            self._slides.clear()
            self._judge(_Period(median(responses), median(counts)))

    def due(self, waiting_rows: int, folded_rows: int = 0) -> bool:
        """Whether so many rows of the newest pane should be folded now, after others of it."""
        if self._m == 1:
            return False
        if self._expected_rows is None:
            return waiting_rows >= max(LEAST_OF_FIRST, (folded_rows + waiting_rows) / self._m)
        return waiting_rows >= max(1.0, self._expected_rows / self._m)

    # Steps

    def _search(self) -> None:
        """Begin from the start."""
        self._searching = True
        self._inconclusive = False
        self._best: _Period | None = None
        self._best_m = self._start
        self._slides: list[tuple[float, int]] = []
        self._set(self._start)

    def _set(self, m: int) -> None:
        self._m = m
        self._skip = 1

    def _judge(self, seen: _Period) -> None:
        """A period is over."""
        best = self._best
        if best is not None and self._load_changed(best, seen):
            self._search()
        elif self._searching:
            self._compare(best, seen)

    def _load_changed(self, best: _Period, seen: _Period) -> bool:
        """While m is being searched the response says nothing about the load."""
        if _apart(best.rows, seen.rows):
            return True
        return (
            not self._searching
            and _apart(best.response_s, seen.response_s)
            and abs(best.response_s - seen.response_s) > EQUAL_S
        )

    def _compare(self, best: _Period | None, seen: _Period) -> None:
        """Take the better m; go on while it gets better, and once more if that is not clear."""
        gain = 0.0 if best is None else best.response_s - seen.response_s
        least = 0.0 if best is None else max(self._worthwhile * best.response_s, EQUAL_S)
        better = best is None or gain > least
        if better:
            self._best, self._best_m, self._inconclusive = seen, self._m, False
        unclear = not better and gain > -least and not self._inconclusive
        if (better or unclear) and self._can_double(seen):
            self._inconclusive = unclear
            self._set(2 * self._m)
            return
        self._searching = False
        if self._m != self._best_m:
            self._set(self._best_m)

    def _can_double(self, seen: _Period) -> bool:
        """A chunk has at least one row."""
        return 2 * self._m <= min(self._most, seen.rows)


def _apart(one: float, other: float) -> bool:
    return max(one, other) > CHANGE * min(one, other)
