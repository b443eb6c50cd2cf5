"""How many keys to dequeue so that one run takes the target time.

Owns: the estimate of what a run costs: a fixed part and a part for each row, by least squares
over past runs, older ones forgotten by and by. Must never: measure anything itself.

* While runs are equally long the two parts cannot be told apart; then the fixed part stays as it
  was and the part of a row follows the mean. So the second run, and later one in many, takes
  more rows than it would.
* If the fixed part alone is more than half of the target, fewer rows would hardly shorten a run:
  then so many are taken that the rows cost as much as the fixed part.
* The count at most doubles from run to run, and one slow run counts for no more than a few times
  what was expected.
"""

from __future__ import annotations

REMEMBERED = 0.85  # of the weight of past runs, when one more is observed
SPIKE = 4.0  # a run counts for at most so many times what was expected
SPREAD = 0.01  # of the counts (variance over squared mean), below which parts are not told apart
GROWTH = 2.0
PROBE_EVERY = 32  # runs
PROBE = 1.25  # times the rows, and one more


class BatchSizer:
    """The next count, from measured runs."""

    def __init__(self, target_s: float, *, first: int = 1, most: int = 1_000_000) -> None:
        """`first`: the count of the first run. `most`: the largest count."""
        if target_s <= 0 or not 1 <= first <= most:
            raise ValueError("the target is above 0, and the first count from 1 to the most")
        self.target_s = target_s
        self._most = most
        self._count = first
        self._runs = 0
        self._weight = self._rows = self._squares = self._seconds = self._products = 0.0
        self.fixed_s = 0.0
        self.row_s: float | None = None  # None before the first run

    @property
    def count(self) -> int:
        """How many keys to take in the next run."""
        return self._count

    def expected_s(self, count: int) -> float | None:
        """What a run with so many rows would take; None before the first run."""
        return None if self.row_s is None else self.fixed_s + count * self.row_s

    def observe(self, count: int, seconds: float) -> None:
        """A run with so many rows took so long; runs without rows say nothing."""
        if count <= 0:
            return
        expected = self.expected_s(count)
        if expected is not None and expected > 0:
            seconds = min(seconds, SPIKE * expected)
        self._remember(count, max(seconds, 0.0))
        self._estimate()
        self._runs += 1
        wanted = self._wanted()
        if self._runs % PROBE_EVERY == 1:
            wanted = int(PROBE * wanted) + 1
        self._count = max(1, min(wanted, int(GROWTH * max(count, self._count)), self._most))

    def _remember(self, count: int, seconds: float) -> None:
        self._weight = self._weight * REMEMBERED + 1
        self._rows = self._rows * REMEMBERED + count
        self._squares = self._squares * REMEMBERED + count * count
        self._seconds = self._seconds * REMEMBERED + seconds
        self._products = self._products * REMEMBERED + count * seconds

    def _estimate(self) -> None:
        rows, seconds = self._rows / self._weight, self._seconds / self._weight
        spread = self._squares / self._weight - rows * rows
        if spread > SPREAD * rows * rows:
            slope = (self._products / self._weight - rows * seconds) / spread
            slope = min(max(slope, 0.0), seconds / rows)
            self.fixed_s = seconds - slope * rows
        self.fixed_s = min(self.fixed_s, seconds)
        self.row_s = (seconds - self.fixed_s) / rows

    def _wanted(self) -> int:
        assert self.row_s is not None
        if self.row_s <= 0:
            return self._most
        left = max(self.target_s - self.fixed_s, self.fixed_s)
        return max(1, round(min(left / self.row_s, self._most)))
