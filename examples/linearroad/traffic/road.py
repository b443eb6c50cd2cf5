"""The cars on the road, second by second.

A car moves once in 30 seconds, when it reports. Distances are counted in cells of 44 feet, because one
mile per hour is one cell in 30 seconds: a mile has 120 cells, and the speed of a report is the number
of cells since the last one. The road is seen in the direction of travel: *along* is the number of
cells from the beginning of the direction, whichever it is.

Owns: where cars are, how fast they go, when they come and leave. Must never: look at a clock, or
draw random numbers from anywhere but its own generator; what happens depends on the scenario alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .incidents import Incident, Incidents
from .scenario import GROUPS, SEGMENTS, Scenario

MILE = 120  # cells
FASTEST, SLOWEST = 100, 5  # miles per hour of a car that drives
FREE_SPEED, FREE_SPREAD = 74.0, 9.0  # what drivers would like
ROOM = (130.0, 390.0)  # cars in a segment at which they go at half that speed; it varies on the way
BEND = 8  # miles between two places where the room is drawn
CRAWL = 0.3  # of that speed is left in the worst jam
JOURNEY = 9.0  # miles after the first, on average
CENTRE_SHARE = 0.2  # of the journeys begin near the middle of the road
LANE_CHANGES = 0.1
RETURNING = 0.5  # of the journeys are made by cars that were there before, if they are
ENTRY, EXIT = 0, 4
WARM_UP_S = 600
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cars:
    """Cars that report in the same second of each half minute."""

    vid: Numbers
    way: Numbers  # 2 · xway + dir
    along: Numbers
    speed: Numbers
    lane: Numbers
    goal: Numbers  # where along the car leaves
    wish: Numbers  # the speed that the driver would like
    stays_until: Numbers  # a car in an accident does not move before this second

    def __len__(self) -> int:
        return len(self.vid)

    def chosen(self, which: Numbers) -> Cars:
        """Some of the cars."""
        return Cars(*(getattr(self, field.name)[which] for field in fields(self)))

    def joined(self, other: Cars) -> Cars:
        """These and others."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Cars(*(np.concatenate(pair) for pair in pairs))


def no_cars() -> Cars:
    """An empty road."""
    nobody = np.zeros(0, np.int32)
    return Cars(nobody, nobody, nobody, nobody, nobody, nobody, np.zeros(0, np.float32), nobody)


class Pool:
    """Which cars may come: some that were never there, some that were there before."""

    def __init__(self, vehicle_count: int) -> None:
        self._fresh = [0] * GROUPS
        self._each = vehicle_count // GROUPS
        self._returned = [np.zeros(0, np.int32) for _ in range(GROUPS)]

    def take(self, group: int, count: int) -> Numbers:
        """So many cars, or as many as there are, those that left long ago first."""
        back = self._returned[group]
        left = self._each - self._fresh[group]
        old = min(len(back), max(int(count * RETURNING), count - left))
        new = min(count - old, left)
        first = self._fresh[group]
        self._fresh[group] += new
        self._returned[group] = back[old:]
        fresh = np.arange(first, first + new, dtype=np.int32) * GROUPS + np.int32(group)
        return np.concatenate((back[:old], fresh))

    def give_back(self, group: int, vids: Numbers) -> None:
        """Cars that have left the road."""
        if len(vids):
            self._returned[group] = np.concatenate((self._returned[group], vids))


class Road:
    """All expressways of a scenario; `step()` is one second."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = np.random.Generator(np.random.PCG64(scenario.seed))
        self.second = max(scenario.start_s - WARM_UP_S, 0)
        self._pool = Pool(scenario.vehicle_count)
        self._incidents = Incidents(scenario, self.random, self.second)
        self._groups = [no_cars() for _ in range(GROUPS)]
        keys = 2 * scenario.expressways * SEGMENTS
        self._counts = np.zeros((GROUPS, keys), np.int64)  # cars of each group in each segment
        self._total = np.zeros(keys, np.int64)
        self._room = _rooms(self.random, 2 * scenario.expressways)
        if scenario.start_s:
            for second in range(self.second, self.second + GROUPS):
                self._fill(second)
            while self.second < scenario.start_s:
                self.step()

    def step(self) -> Cars:
        """The cars that report in this second, where they are now; then it is the next second."""
        second, group = self.second, self.second % GROUPS
        cars = self._groups[group]
        stays = cars.lane != EXIT
        gone = cars.vid[~stays]
        if len(gone):
            cars = cars.chosen(stays)
        cars = self._incidents.apply(second, self._moved(cars, second), cars)
        cars = cars.joined(self._entering(cars, second))
        self._pool.give_back(group, gone)
        self._keep(group, cars)
        self.second += 1
        return cars

    def _keep(self, group: int, cars: Cars) -> None:
        counts = np.bincount(_keys(cars), minlength=len(self._total))
        self._total += counts - self._counts[group]
        self._counts[group] = counts
        self._groups[group] = cars

    # Driving

    def _moved(self, cars: Cars, second: int) -> Cars:
        """The cars half a minute later."""
        count = len(cars)
        chance = self.random.random(count, np.float32)
        flow = np.maximum(1.0 / (1.0 + np.square(self._total / self._room)), CRAWL)
        flow *= self._incidents.capacity
        wanted = cars.wish * flow.astype(np.float32)[_keys(cars)]
        speed = (cars.speed + wanted) * np.float32(0.5) + (chance - np.float32(0.5)) * 8
        speed = np.clip(speed, SLOWEST, FASTEST).astype(np.int32)
        speed *= cars.stays_until <= second
        along = np.minimum(cars.along + speed, cars.goal)
        speed = along - cars.along
        changes = ((chance < LANE_CHANGES) | (cars.lane == ENTRY)) & (speed > 0)
        lane = np.where(changes, (chance * 30000).astype(np.int32) % 3 + 1, cars.lane)
        lane = np.where(along == cars.goal, np.int32(EXIT), lane)
        return replace(cars, along=along, speed=speed, lane=lane)

    # Coming

    def _entering(self, cars: Cars, second: int) -> Cars:
        """New journeys, so many that each expressway has its number of cars."""
        ways = 2 * self.scenario.expressways
        there = np.bincount(cars.way, minlength=ways).reshape(-1, 2).sum(axis=1)
        missing = np.maximum(self.scenario.cars_reporting(second) - there, 0)
        xway = np.repeat(np.arange(self.scenario.expressways, dtype=np.int32), missing)
        vid = self._pool.take(second % GROUPS, len(xway))
        return self._journeys(vid, xway[: len(vid)])

    def _journeys(self, vid: Numbers, xway: Numbers) -> Cars:
        random, count = self.random, len(vid)
        way = 2 * xway + random.integers(0, 2, count, dtype=np.int32)
        along = self._ramps(way) * MILE + random.integers(0, 30, count, dtype=np.int32)
        miles = 1.0 + random.exponential(JOURNEY, count)
        last = self.scenario.segments * MILE - 1
        goal = np.minimum(along + (miles * MILE).astype(np.int32), last)
        wish = random.normal(FREE_SPEED, FREE_SPREAD, count).astype(np.float32)
        speed = random.integers(10, 40, count, dtype=np.int32)
        nothing = np.zeros(count, np.int32)
        return Cars(vid, way, along, speed, nothing, goal, wish, nothing)

    def _ramps(self, way: Numbers) -> Numbers:
        """Where journeys begin: near the middle or anywhere, at the emptier of two ramps."""
        random, count, length = self.random, 2 * len(way), self.scenario.segments
        anywhere = random.integers(0, length - 1, count)
        centre = np.clip(random.normal(length * 0.5, length * 0.12, count), 0, length - 2)
        ramps = np.where(random.random(count) < CENTRE_SHARE, centre, anywhere).astype(np.int32)
        one, other = ramps[: len(way)], ramps[len(way) :]
        first = way * SEGMENTS
        return np.where(self._total[first + one] <= self._total[first + other], one, other)

    def _fill(self, second: int) -> None:
        """Cars as if the road had been open before: somewhere on their journeys."""
        cars = self._entering(no_cars(), second)
        part = self.random.random(len(cars))
        along = cars.along + ((cars.goal - cars.along) * part * 0.98).astype(np.int32)
        lane = self.random.integers(1, 4, len(cars), dtype=np.int32)
        self._keep(second % GROUPS, replace(cars, along=along, lane=lane))

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Accidents and breakdowns at present."""
        return self._incidents.present


def _rooms(random: np.random.Generator, ways: int) -> Numbers:
    """How much traffic each segment takes: narrow places and wide ones, changing slowly."""
    places = np.arange(0, SEGMENTS + BEND, BEND)
    drawn = random.uniform(*ROOM, (ways, len(places)))
    return np.concatenate([np.interp(np.arange(SEGMENTS), places, way) for way in drawn])


def _keys(cars: Cars) -> Numbers:
    """The segments of the cars, all expressways and directions one after the other."""
    return cars.way * SEGMENTS + cars.along // MILE
