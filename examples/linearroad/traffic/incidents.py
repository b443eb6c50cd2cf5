"""Accidents and breakdowns: cars that stand at one place for some minutes, and slow the others.

An incident begins with a car that stops. In an accident one or two more cars, of those that come
along within the next half minutes, stop at the very same place; a breakdown stays alone. All of them
go on once it is over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .scenario import SEGMENTS, Scenario

if TYPE_CHECKING:
    from .road import Cars

MILE = 120
REACH = 100  # cells: what a car can go in half a minute
BREAKDOWNS = 0.2  # of the incidents
THIRD_CARS = 0.25  # of the accidents
HERE, BEFORE = (
    0.45,
    0.7,
)  # what an incident leaves of the flow, in its segment and the one before it
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Incident:
    """One place where cars stand."""

    way: int
    along: int
    lane: int
    until: int
    missing: int  # cars that have not come yet


class Incidents:
    """When and where traffic stands."""

    def __init__(self, scenario: Scenario, random: np.random.Generator, second: int) -> None:
        self._scenario = scenario
        self._random = random
        self._period = 3600 / scenario.accidents_per_hour if scenario.accidents_per_hour else None
        self._due = [self._later(second, 0.0) for _ in range(scenario.expressways)]
        self.present: tuple[Incident, ...] = ()
        self.capacity = np.ones(2 * scenario.expressways * SEGMENTS)

    def _later(self, second: float, least: float) -> float:
        if self._period is None:
            return float("inf")
        return second + self._period * (least + self._random.random())

    def apply(self, second: int, cars: Cars, before: Cars) -> Cars:
        """The cars as they moved, but for those that stop now."""
        known = self.present
        if known and min(incident.until for incident in known) <= second:
            self.present = tuple(i for i in known if i.until > second)
        for place, incident in enumerate(self.present):
            if incident.missing:
                cars = self._with_next(place, cars, before, second)
        if min(self._due) <= second:
            for xway, due in enumerate(self._due):
                if due <= second:
                    cars = self._with_first(xway, cars, second)
        if self.present is not known:
            self._limit_flow()
        return cars

    def _with_first(self, xway: int, cars: Cars, second: int) -> Cars:
        """A car stops where it is: one that is on its way for a while yet."""
        drives = (cars.way >> 1 == xway) & (cars.speed > 0) & (cars.lane > 0)
        drives &= cars.stays_until <= second
        found = np.flatnonzero(drives & (cars.along < cars.goal - MILE))
        if not len(found):
            return cars  # tried again in the next second
        self._due[xway] = self._later(second, 0.5)
        chosen = int(found[self._random.integers(len(found))])
        lasts = self._scenario.accident_s * (2 + 2 * self._random.random()) / 3
        alone, third = self._random.random(2)
        missing = 0 if alone < BREAKDOWNS else 1 + int(third < THIRD_CARS)
        way, along, lane = (int(c[chosen]) for c in (cars.way, cars.along, cars.lane))
        incident = Incident(way, along, lane, second + int(lasts), missing)
        self.present = (*self.present, incident)
        return _stopped(cars, chosen, incident)

    def _with_next(self, place: int, cars: Cars, before: Cars, second: int) -> Cars:
        """The nearest car that comes along runs into those that stand there, if there is one."""
        incident = self.present[place]
        away = incident.along - before.along
        comes = (before.way == incident.way) & (away > 0) & (away <= REACH)
        comes &= (before.goal > incident.along) & (before.stays_until <= second)
        found = np.flatnonzero(comes)
        if not len(found):
            return cars
        chosen = int(found[np.argmin(away[found])])
        incident = replace(incident, missing=incident.missing - 1)
        self.present = (*self.present[:place], incident, *self.present[place + 1 :])
        cars.speed[chosen] = away[chosen]
        return _stopped(cars, chosen, incident)

    def _limit_flow(self) -> None:
        self.capacity = np.ones(len(self.capacity))
        for incident in self.present:
            segment = incident.along // MILE
            self.capacity[incident.way * SEGMENTS + segment] = HERE
            if segment:
                before = incident.way * SEGMENTS + segment - 1
                self.capacity[before] = min(BEFORE, self.capacity[before])


def _stopped(cars: Cars, chosen: int, incident: Incident) -> Cars:
    """The cars with one at the incident's place, to stay there."""
    cars.along[chosen] = incident.along
    cars.lane[chosen] = incident.lane
    stays = cars.stays_until.copy()
    stays[chosen] = incident.until
    return replace(cars, stays_until=stays)
