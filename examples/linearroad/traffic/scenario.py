"""What is simulated, and how much traffic there is when.

The published run of one expressway begins with about 1 100 reports in its first minute and ends, three
hours later, with 100 000 a minute, 12 million in all: a rate that grows as x (2 − x) with the share
x of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import SettingError

GROUPS = 30  # seconds between two reports of a car
SEGMENTS = 100
HOURS_3 = 3 * 3600
FIRST_RATE, LAST_RATE = 570.0, 100_000.0  # reports a minute and expressway, at both ends
POOL_MINUTES = 90  # in so many minutes, as many cars come anew as are there at the peak
MOST_EXPRESSWAYS = 1000
SHORTEST_ACCIDENT_S = 180  # it must last four reports of each car to be one


@dataclass(frozen=True)
class Scenario:
    """All that the reports depend on."""

    expressways: int = 1
    duration_s: int | None = HOURS_3  # None: without end
    seed: int = 1
    start_s: int = 0  # the first second; the road is as full then as if it had begun at 0
    growth_s: int = HOURS_3  # when the rate has reached its peak
    segments: int = SEGMENTS  # with fewer, as dense on a shorter road, so with fewer reports
    accidents_per_hour: float = 3.0  # on each expressway; breakdowns of single cars among them
    accident_s: int = 900  # how long one lasts on average: two to four thirds of it

    def __post_init__(self) -> None:
        _check("expressways", self.expressways, 1, MOST_EXPRESSWAYS)
        _check("segments", self.segments, 2, SEGMENTS)
        _check("seed", self.seed, 0, 2**63)
        _check("start", self.start_s, 0, 2**30)
        _check("duration", 1 if self.duration_s is None else self.duration_s, 1, 2**30)
        _check("growth", self.growth_s, 1, 2**30)
        _check("accidents_per_hour", self.accidents_per_hour, 0, 3600)
        _check("accident", self.accident_s, SHORTEST_ACCIDENT_S, 2**30)

    @property
    def end_s(self) -> int | None:
        """The second after the last one; None if there is no end."""
        return None if self.duration_s is None else self.start_s + self.duration_s

    def cars_reporting(self, second: int) -> int:
        """How many cars report in a second on each expressway."""
        grown = min(second / self.growth_s, 1.0)
        rate = FIRST_RATE + (LAST_RATE - FIRST_RATE) * grown * (2.0 - grown)
        return max(round(rate * self.segments / SEGMENTS / 60), 1)

    @property
    def vehicle_count(self) -> int:
        """Cars are numbered from 0 to one less than this."""
        minutes = (HOURS_3 if self.duration_s is None else self.duration_s) / 60
        last = self.start_s + (HOURS_3 if self.duration_s is None else self.duration_s)
        most = self.cars_reporting(max(last, self.start_s)) * self.expressways
        return GROUPS * (round(most * (1 + minutes / POOL_MINUTES)) + 1)


def _check(name: str, value: float, least: int, most: int) -> None:
    if not least <= value <= most:
        raise SettingError(f"{name} is {value}, not between {least} and {most}")
