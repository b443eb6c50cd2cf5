"""Simulated traffic: as much as published, cars that drive as cars do, the same for the same seed."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from headwater.examples.linearroad.traffic import SCHEMA, Scenario, Traffic, batches, reports
from headwater.examples.linearroad.traffic.road import Pool

from headwater.errors import SettingError

# Ten minutes of dense traffic on a short road: about 50 000 reports of each of two expressways.
DENSE = Scenario(
    expressways=2, duration_s=600, start_s=6000, segments=5, accidents_per_hour=40, accident_s=180
)
Numbers = np.ndarray[Any, Any]


@cache
def dense(type_: int = 0) -> dict[str, Numbers]:
    """The reports of one type, by car and time."""
    table = reports(DENSE)
    found = {name: table.column(name).to_numpy() for name in table.column_names}
    chosen = np.flatnonzero(found["type"] == type_)
    chosen = chosen[np.lexsort((found["time"][chosen], found["vid"][chosen]))]
    return {name: column[chosen] for name, column in found.items()}


def neighbours() -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """Each report that follows another of the same journey, and the one before it."""
    found = dense()
    same = found["vid"][1:] == found["vid"][:-1]
    place = np.flatnonzero(same & (found["lane"][:-1] != 4)) + 1
    return {n: c[place] for n, c in found.items()}, {n: c[place - 1] for n, c in found.items()}


def test_columns_are_within_their_ranges() -> None:
    """Every value of a position report is one that the benchmark allows."""
    found = dense()
    ranges = {"time": (6000, 6599), "vid": (0, DENSE.vehicle_count - 1), "speed": (0, 100),
              "xway": (0, 1), "lane": (0, 4), "dir": (0, 1), "seg": (0, 99),
              "pos": (0, 527_999), "qid": (-1, -1), "day": (-1, -1)}  # fmt: skip
    for name, (least, most) in ranges.items():
        assert least <= found[name].min() <= found[name].max() <= most, name
    assert (found["seg"] == found["pos"] // 5280).all()
    assert set(found["lane"]) == {0, 1, 2, 3, 4}
    assert set(found["xway"]) == {0, 1}
    assert set(found["dir"]) == {0, 1}


def test_every_car_reports_each_half_minute() -> None:
    """From its first report to the exit lane; the next journey of a car begins later, on a ramp."""
    now, before = neighbours()
    assert (now["time"] - before["time"] == 30).all()
    found = dense()
    ends = np.flatnonzero(found["lane"][:-1] == 4)
    again = ends[found["vid"][ends] == found["vid"][ends + 1]] + 1
    assert len(again) > 20
    assert (found["lane"][again] == 0).all()
    assert (found["time"][again] - found["time"][again - 1] >= 60).all()
    lasting = (found["lane"] != 4) & (found["time"] < 6570)
    assert (found["vid"][np.flatnonzero(lasting) + 1] == found["vid"][lasting]).all()


def test_positions_follow_from_speeds() -> None:
    """A mile per hour is 44 feet in half a minute, in the direction of travel."""
    now, before = neighbours()
    way = np.where(now["dir"] == 0, 1, -1)
    assert (now["pos"] - before["pos"] == way * 44 * now["speed"]).all()
    for name in ("xway", "dir"):
        assert (now[name] == before[name]).all()
    assert (now["lane"] != 0).all(), "the entry ramp is where journeys begin"


def test_crowded_segments_are_slow() -> None:
    """The more cars in a segment, the slower they are."""
    found = dense()
    drives = (found["speed"] > 0) & (found["lane"] > 0) & (found["lane"] < 4)
    key = ((found["xway"] * 2 + found["dir"]) * 100 + found["seg"])[drives]
    counts = np.bincount(key)
    speeds = np.bincount(key, found["speed"][drives]) / np.maximum(counts, 1)
    order = np.argsort(counts)[-np.count_nonzero(counts) :]
    slow, fast = speeds[order[-3:]].mean(), speeds[order[:3]].mean()
    assert slow < 40
    assert slow < fast - 5


def accidents() -> dict[tuple[int, ...], list[tuple[int, int, int]]]:
    """Places where cars stood for four reports or more: car, first and last time there."""
    found = dense()
    columns = [found[n].tolist() for n in ("vid", "xway", "lane", "dir", "pos", "time")]
    stays: dict[tuple[int, ...], list[int]] = {}
    for vid, *place, second in zip(*columns, strict=True):
        stays.setdefault((vid, *place), []).append(second)
    places: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    for (vid, *place), times in stays.items():
        if len(times) >= 4:
            places.setdefault(tuple(place), []).append((vid, times[0], times[-1]))
    return places


def test_accidents_happen_and_clear() -> None:
    """Cars stand at one place, in an accident together; some minutes later they drive on."""
    places = accidents()
    together = [cars for cars in places.values() if len(cars) > 1]
    assert len(together) >= 3
    assert any(len(cars) == 1 for cars in places.values()), "breakdowns are no accidents"
    assert any(len({first % 30 for _, first, _ in cars}) > 1 for cars in together)
    ended = [last for cars in together for _, _, last in cars if last < 6570]
    assert len(ended) >= 4
    found = dense()
    last_report = dict(zip(found["vid"], found["time"], strict=True))
    for cars in together:
        for vid, _, last in cars:
            assert last >= 6570 or last_report[vid] > last, "a car that has left did move before"


def test_an_expressway_without_accidents() -> None:
    """Cars stand only where there are accidents."""
    found = reports(replace(DENSE, accidents_per_hour=0, duration_s=120))
    positions = found.column("speed").to_numpy()[found.column("type").to_numpy() == 0]
    assert positions.min() >= 1


@pytest.mark.parametrize(("minute", "expected"), [(0, 1_118), (90, 75_500), (179, 100_000)])
def test_the_published_rates(minute: int, expected: int) -> None:
    """About 1 100 reports in the first minute, 100 000 in the last; with 0.6 % of questions."""
    scenario = Scenario(start_s=60 * minute, duration_s=60, seed=3)
    count = sum(batch.num_rows for batch in batches(scenario, 60))
    assert abs(count - expected) < 0.03 * expected


def test_three_hours_have_twelve_million_reports() -> None:
    """As published: "over 12 million position reports" of one expressway."""
    scenario = Scenario()
    assert 12.0e6 < sum(map(scenario.cars_reporting, range(10_800))) < 12.2e6


def test_each_expressway_has_the_same_rate() -> None:
    """No expressway is emptier than another."""
    counts = np.bincount(dense()["xway"])
    assert abs(int(counts[0]) - int(counts[1])) < 0.01 * counts[0]


def test_questions() -> None:
    """Half a percent of balance requests, a tenth of that of expenditure requests, all answerable."""
    balances, expenditures, count = dense(2), dense(3), len(dense()["vid"])
    assert 0.004 < len(balances["vid"]) / count < 0.006
    assert 0.0006 < len(expenditures["vid"]) / count < 0.0014
    numbers = np.sort(np.concatenate((balances["qid"], expenditures["qid"])))
    assert (numbers == np.arange(len(numbers))).all()
    assert (balances["day"] == -1).all()
    assert 1 <= expenditures["day"].min() <= expenditures["day"].max() <= 69
    assert set(expenditures["xway"]) == {0, 1}
    for name in ("speed", "lane", "dir", "seg", "pos"):
        assert set(balances[name]) == set(expenditures[name]) == {-1}


def test_the_same_seed_gives_the_same_reports() -> None:
    """However many seconds are taken at once; another seed gives others."""
    scenario = replace(DENSE, duration_s=90)
    whole = reports(scenario)
    assert whole.schema == SCHEMA
    assert whole.equals(pa.Table.from_batches(batches(scenario, 7)))
    assert not reports(replace(scenario, seed=2)).equals(whole)


def test_seconds_come_in_order() -> None:
    """Each batch has the reports of one second, and the end is the scenario's."""
    traffic = Traffic(replace(DENSE, duration_s=5))
    seconds = []
    while not traffic.ended:
        rows = traffic.next_numbers()
        seconds.append(set(rows[1].tolist()))
    assert seconds == [{6000}, {6001}, {6002}, {6003}, {6004}]


def test_a_shorter_growth_is_steeper() -> None:
    """With growth of ten minutes, the last of them is as full as the third hour's end."""
    scenario = Scenario(growth_s=600)
    assert scenario.cars_reporting(600) == Scenario().cars_reporting(10_800)
    assert scenario.cars_reporting(0) == Scenario().cars_reporting(0)


def test_cars_come_back() -> None:
    """Half of those that come were there before, as soon as there are such; none is there twice."""
    pool = Pool(30 * 10)
    first = pool.take(3, 6)
    assert first.tolist() == [3, 33, 63, 93, 123, 153]
    pool.give_back(3, first[:4])
    assert pool.take(3, 4).tolist() == [3, 33, 183, 213]
    assert pool.take(3, 9).tolist() == [63, 93, 243, 273], "there are no more"


@pytest.mark.parametrize(
    "wrong",
    [{"expressways": 0}, {"segments": 1}, {"segments": 101}, {"duration_s": 0}, {"start_s": -1},
     {"growth_s": 0}, {"accidents_per_hour": -1}, {"accident_s": 60}],
)  # fmt: skip
def test_what_cannot_be_simulated_is_refused(wrong: dict[str, int]) -> None:
    """A scenario is checked when it is made."""
    with pytest.raises(SettingError, match="not between"):
        Scenario(**wrong)


def test_it_is_fast() -> None:
    """Much more than a hundred thousand reports a second; a million and more on a quiet machine."""
    traffic = Traffic(Scenario(start_s=10_000, duration_s=60))
    begun, count = time.thread_time(), 0
    while not traffic.ended:
        count += traffic.next_numbers().shape[1]
    assert count / (time.thread_time() - begun) > 200_000
