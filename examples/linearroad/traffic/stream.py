"""The reports of a scenario as Arrow batches, one a second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from .history import DAYS, expressway_of
from .road import MILE, Cars, Road
from .scenario import SEGMENTS, Scenario

NAMES = ("type", "time", "vid", "speed", "xway", "lane", "dir", "seg", "pos", "qid", "day")
SCHEMA = pa.schema([pa.field(name, pa.int32(), nullable=False) for name in NAMES])
TYPE, TIME, VID, SPEED, XWAY, LANE, DIR, SEG, POS, QID, DAY = range(len(NAMES))
POSITION, BALANCE, EXPENDITURE = 0, 2, 3
CELL_FEET = 44
BALANCES, EXPENDITURES = 0.005, 0.001  # requests for each position report
NOTHING = -1
Numbers = np.ndarray[Any, Any]


class Traffic:
    """The reports of a scenario; each call of `next_numbers` gives those of one second."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._road = Road(scenario)
        self._asked = 0
        # Questions have their own generator, so that cars drive the same whatever is asked.
        self._random = np.random.Generator(np.random.PCG64([scenario.seed, 1]))

    @property
    def second(self) -> int:
        """The second that comes next."""
        return self._road.second

    @property
    def ended(self) -> bool:
        """Whether the scenario has no further second."""
        end = self.scenario.end_s
        return end is not None and self.second >= end

    def next_numbers(self) -> Numbers:
        """The reports of the next second, positions before questions; one row for each column."""
        second = self._road.second
        cars = self._road.step()
        chance = self._random.random(len(cars))
        asking = np.flatnonzero(chance < BALANCES + EXPENDITURES)
        rows = np.empty((len(NAMES), len(cars) + len(asking)), np.int32)
        rows[TIME] = second
        _put_positions(rows[:, : len(cars)], cars)
        if len(asking):
            wants_balance = chance[asking] < BALANCES
            self._put_questions(rows[:, len(cars) :], cars.chosen(asking), wants_balance)
        return rows

    def _put_questions(self, rows: Numbers, cars: Cars, wants_balance: Numbers) -> None:
        count, scenario = len(cars), self.scenario
        rows[SPEED:QID] = NOTHING
        rows[TYPE] = np.where(wants_balance, BALANCE, EXPENDITURE)
        rows[VID] = cars.vid
        rows[QID] = np.arange(self._asked, self._asked + count)
        self._asked += count
        day = self._random.integers(1, DAYS + 1, count)
        paid = expressway_of(cars.vid, day, scenario.expressways, scenario.seed)
        # Every second question is about where the car did pay, the others about where it is.
        asked = np.where(rows[QID] % 2, paid, cars.way >> 1)
        rows[DAY] = np.where(wants_balance, NOTHING, day)
        rows[XWAY] = np.where(wants_balance, NOTHING, asked)


def _put_positions(rows: Numbers, cars: Cars) -> None:
    direction = cars.way & 1
    cell = np.where(direction, SEGMENTS * MILE - 1 - cars.along, cars.along)
    rows[TYPE] = POSITION
    rows[VID] = cars.vid
    rows[SPEED] = cars.speed
    rows[XWAY] = cars.way >> 1
    rows[LANE] = cars.lane
    rows[DIR] = direction
    rows[SEG] = cell // MILE
    rows[POS] = cell * CELL_FEET
    rows[QID:] = NOTHING


def _batch(rows: Numbers) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(row) for row in rows], schema=SCHEMA)


def batch_of(traffic: Traffic, seconds: int) -> pa.RecordBatch:
    """The reports of the next seconds, fewer at the end."""
    parts = [traffic.next_numbers()]
    while len(parts) < seconds and not traffic.ended:
        parts.append(traffic.next_numbers())
    return _batch(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))


def batches(scenario: Scenario, seconds: int = 1) -> Iterator[pa.RecordBatch]:
    """All reports, so many seconds at a time."""
    traffic = Traffic(scenario)
    while not traffic.ended:
        yield batch_of(traffic, seconds)


def reports(scenario: Scenario) -> pa.Table:
    """All reports of a scenario that ends."""
    return pa.Table.from_batches(batches(scenario, 60), schema=SCHEMA)
