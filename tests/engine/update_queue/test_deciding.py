"""Classes that decide from measurements: batch size, append or updates, which queue is next."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from headwater.engine.update_queue import BatchSizer, LoadSwitch, Offer, choose
from headwater.engine.update_queue.load_switch import APPEND, UPDATES
from headwater.engine.update_queue.vectors import NONE

Cost = Callable[[int], float]


def play(sizer: BatchSizer, cost: Cost, runs: int, waiting: int = 10**9) -> list[int]:
    counts = []
    for _ in range(runs):
        count = min(sizer.count, waiting)
        counts.append(count)
        sizer.observe(count, cost(count))
    return counts


@pytest.mark.parametrize("row_s", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("fixed_s", [0.0, 0.02])
def test_runs_come_to_the_target_time(row_s: float, fixed_s: float) -> None:
    """With ±20 % of noise the mean of later runs is within 30 % of the target."""
    noise = random.Random(1)
    sizer = BatchSizer(0.1)
    cost: Cost = lambda n: (fixed_s + n * row_s) * noise.uniform(0.8, 1.2)  # noqa: E731
    play(sizer, cost, 40)
    taken = [fixed_s + n * row_s for n in play(sizer, cost, 60)]
    assert sum(taken) / len(taken) == pytest.approx(0.1, rel=0.3)


def test_an_expensive_row_is_taken_alone() -> None:
    """As in the paper: one key at a time."""
    sizer = BatchSizer(0.1, first=64)
    counts = play(sizer, lambda n: 0.3 * n, 42)[10:]
    assert counts.count(1) == 31  # and once two, to see whether rows or runs are dear


def test_a_dear_start_is_not_paid_for_one_row() -> None:
    """A fixed cost above the target: rows worth as much are taken, not one."""
    sizer = BatchSizer(0.1)
    counts = play(sizer, lambda n: 0.2 + 0.001 * n, 40)
    assert 100 <= counts[-1] <= 400


def test_a_change_of_cost_is_followed() -> None:
    """Ten times dearer, ten times cheaper: within a few runs."""
    sizer = BatchSizer(0.1)
    play(sizer, lambda n: n * 1e-4, 30)
    assert sizer.count == pytest.approx(1000, rel=0.2)
    play(sizer, lambda n: n * 1e-3, 30)
    assert sizer.count == pytest.approx(100, rel=0.3)
    play(sizer, lambda n: n * 1e-4, 30)
    assert sizer.count == pytest.approx(1000, rel=0.3)


def test_one_slow_run_changes_little_and_growth_is_bounded() -> None:
    """A pause of a second hardly shrinks the next run; the count at most doubles."""
    sizer = BatchSizer(0.1)
    counts = play(sizer, lambda n: n * 1e-4, 30)
    assert all(b <= 2 * a for a, b in pairwise(counts))
    sizer.observe(sizer.count, 1.0)
    assert sizer.count > 400
    sizer.observe(0, 5.0)  # a run without rows says nothing
    assert sizer.count > 400


def test_sizes_that_make_no_sense_are_refused() -> None:
    for arguments in ({"target_s": 0.0}, {"target_s": 1.0, "first": 0}):
        with pytest.raises(ValueError, match="target"):
            BatchSizer(**arguments)


def test_updates_while_behind_and_append_while_it_keeps_up() -> None:
    """To updates at once; back only after the load has been low for the limit."""
    switch = LoadSwitch(limit=100)
    assert switch.observe(0, behind=100, load=3.0) == APPEND
    assert switch.observe(10, behind=101, load=3.0) == UPDATES
    assert switch.observe(20, behind=5, load=1.2) == UPDATES  # fresh, but append would not keep up
    assert switch.observe(30, behind=5, load=0.5) == UPDATES
    assert switch.observe(120, behind=5, load=0.5) == UPDATES
    assert switch.observe(125, behind=80, load=0.5) == UPDATES  # not yet empty: from the beginning
    assert switch.observe(130, behind=5, load=0.5) == UPDATES
    assert switch.observe(230, behind=5, load=0.5) == APPEND


def test_it_does_not_swing() -> None:
    """A load that comes back each time brings ever fewer switches."""
    switch, modes = LoadSwitch(limit=100), []
    for now in range(0, 100_000, 10):
        behind = 150 if switch.mode == APPEND and now % 500 == 0 else 0
        modes.append(switch.observe(now, behind, load=0.5))
    changes = sum(a != b for a, b in pairwise(modes))
    late = sum(a != b for a, b in pairwise(modes[5000:]))
    assert 4 <= changes < 60
    assert late <= 16


def offer(name: str, starts: list[int], **costs: float) -> Offer:
    return Offer(name, np.array(starts, np.int64), **{"row_cost": 1.0, **costs})


def test_the_stalest_key_of_all_queues_is_next() -> None:
    """At equal costs: IN-PLACE over all queries."""
    offers = [offer("a", [5, 9]), offer("b", [3, 8]), offer("c", [])]
    assert choose(offers, 10) == ("b", 1)
    assert choose(offers[2:], 10) is None
    assert choose([offer("a", [NONE, 9])], 10) == ("a", 1)


def test_a_dear_query_is_served_less_often_and_a_weighty_one_more() -> None:
    """By staleness² / cost; and several keys at once where a run has a cost of its own."""
    assert choose([offer("dear", [0], row_cost=9.0), offer("cheap", [6])], 10) == ("cheap", 1)
    assert choose([offer("dear", [0], row_cost=4.0), offer("cheap", [6])], 10) == ("dear", 1)
    assert choose([offer("dear", [0], row_cost=9.0, weight=2.0), offer("cheap", [6])], 10) == (
        "dear",
        1,
    )
    assert choose([offer("a", [0, 1, 2, 9], run_cost=10.0)], 10) == ("a", 3)


def test_mean_staleness_over_queries_is_lower_than_in_turn() -> None:
    """Eight cheap and two dear queries, always behind: 128 against 200 of round robin, in theory."""
    costs = {f"{n}": 16 if n >= 8 else 1 for n in range(10)}

    def mean(pick: Callable[[dict[str, int], int], str]) -> float:
        starts = dict.fromkeys(costs, 0)  # always updated again as soon as they are served
        now, area = 0, 0.0
        while now < 4000:
            name = pick(starts, now)
            cost = costs[name]
            starts[name] = now
            area += sum((now - s) * cost + cost * cost / 2 for s in starts.values())
            now += cost
        return area / now

    def by_gain(starts: dict[str, int], now: int) -> str:
        offers = [offer(n, [s], row_cost=float(costs[n])) for n, s in starts.items()]
        chosen = choose(offers, now)
        assert chosen is not None
        return str(chosen[0])

    turns = iter(sorted(costs) * 4000)
    assert mean(by_gain) < 0.75 * mean(lambda *_: next(turns))
