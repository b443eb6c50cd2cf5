"""The scheduler against hand-made examples, a naive model and the promises of its rules."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.scheduler import JUMP_CREDIT_S, LEAST_COST_S, Scheduler


def with_factories(*names: str) -> Scheduler:
    scheduler = Scheduler()
    for name in names:
        scheduler.add(name)
    return scheduler


# Firing


def test_a_factory_fires_once_per_offer() -> None:
    """Nothing fires without an offer; several offers before a run are one run."""
    scheduler = with_factories("a")
    assert scheduler.next(0) is None
    scheduler.offer("a", 0, enough=True)
    scheduler.offer("a", 1, enough=True)
    assert scheduler.next(1) == "a"
    assert scheduler.next(1) is None
    scheduler.finished("a", 2, 1)
    assert scheduler.next(2) is None


def test_a_factory_runs_at_most_once_at_a_time_and_no_offer_is_lost() -> None:
    """An offer made during a run fires after it, not beside it."""
    scheduler = with_factories("a")
    scheduler.offer("a", 0, enough=True)
    assert scheduler.next(0) == "a"
    scheduler.offer("a", 1, enough=True)
    assert scheduler.next(1) is None
    scheduler.finished("a", 2, 2)
    assert scheduler.next(2) == "a"


def test_what_is_withdrawn_does_not_fire() -> None:
    """Whether ready, held back or offered during a run."""
    scheduler = Scheduler()
    scheduler.add("a", max_wait=1)
    scheduler.offer("a", 0, enough=True)
    scheduler.withdraw("a")
    assert scheduler.next(9) is None
    scheduler.offer("a", 9, enough=False)
    scheduler.withdraw("a")
    assert (scheduler.wake_at(9), scheduler.next(99)) == (None, None)
    scheduler.offer("a", 99, enough=True)
    assert scheduler.next(99) == "a"
    scheduler.offer("a", 99, enough=True)
    scheduler.withdraw("a")
    scheduler.finished("a", 100, 1)
    assert scheduler.next(200) is None


def test_a_removed_factory_never_runs_again() -> None:
    """Also if it was ready, or ran and had been offered more."""
    scheduler = with_factories("a", "b")
    for name in ("a", "b"):
        scheduler.offer(name, 0, enough=True)
    assert scheduler.next(0) == "a"
    scheduler.offer("a", 0, enough=True)
    scheduler.remove("a")
    scheduler.remove("b")
    assert scheduler.next(1) is None
    scheduler.finished("a", 1, 1)
    assert scheduler.next(2) is None
    scheduler.add("a")
    assert scheduler.next(3) is None


def test_a_name_may_be_used_again_while_the_removed_factory_runs() -> None:
    """DROP and CREATE during a run: the new one waits until the old one has finished."""
    scheduler = with_factories("a")
    scheduler.offer("a", 0, enough=True)
    assert scheduler.next(0) == "a"
    scheduler.remove("a")
    scheduler.add("a", priority=3)
    scheduler.offer("a", 1, enough=True)
    assert scheduler.next(1) is None
    scheduler.finished("a", 2, 2)
    assert scheduler.next(2) == "a"


def test_mistakes_of_the_caller_are_refused() -> None:
    """Unknown and doubled names, ends without a run, costs and waits that cannot be."""
    scheduler = with_factories("a")
    for mistake in (
        lambda: scheduler.add("a"),
        lambda: scheduler.add("b", max_wait=-1),
        lambda: scheduler.add("b", max_wait=float("nan")),
        lambda: scheduler.remove("b"),
        lambda: scheduler.offer("b", 0, enough=True),
        lambda: scheduler.withdraw("b"),
        lambda: scheduler.finished("a", 0, 1),
    ):
        with pytest.raises(ValueError, match=r"factory|max_wait"):
            mistake()
    scheduler.offer("a", 0, enough=True)
    assert scheduler.next(0) == "a"
    with pytest.raises(ValueError, match="costs"):
        scheduler.finished("a", 0, -1)


# Time constraints


def test_too_little_is_held_back_until_the_wait_is_over() -> None:
    """The wait counts from the first offer, and wake_at tells its end exactly."""
    scheduler = Scheduler()
    scheduler.add("a", max_wait=5)
    scheduler.offer("a", 10, enough=False)
    scheduler.offer("a", 13, enough=False)
    assert scheduler.wake_at(13) == 15
    assert scheduler.next(14.999) is None
    assert scheduler.next(15) == "a"
    assert scheduler.wake_at(15) is None


def test_enough_ends_the_wait() -> None:
    """What is held back fires at once when the inputs hold enough."""
    scheduler = Scheduler()
    scheduler.add("a", max_wait=5)
    scheduler.offer("a", 0, enough=False)
    scheduler.offer("a", 1, enough=True)
    assert scheduler.wake_at(1) is None
    assert scheduler.next(1) == "a"


def test_without_a_time_constraint_too_little_never_fires() -> None:
    """It waits for as long as it takes."""
    scheduler = with_factories("a")
    scheduler.offer("a", 0, enough=False)
    assert (scheduler.wake_at(0), scheduler.next(1e9)) == (None, None)
    scheduler.offer("a", 1e9, enough=True)
    assert scheduler.next(1e9) == "a"


def test_a_wait_that_begins_during_a_run_goes_on_after_it() -> None:
    """Neither lost nor begun anew."""
    scheduler = Scheduler()
    scheduler.add("a", max_wait=5)
    scheduler.offer("a", 0, enough=True)
    assert scheduler.next(0) == "a"
    scheduler.offer("a", 1, enough=False)
    assert scheduler.wake_at(1) is None  # it cannot fire while it runs
    scheduler.finished("a", 2, 2)
    assert scheduler.wake_at(2) == 6
    assert scheduler.next(6) == "a"


def test_overdue_factories_go_first_and_the_longest_overdue_before_all() -> None:
    """Ready ones with a time constraint count from their offer, too."""
    scheduler = with_factories("fair")
    scheduler.add("late", max_wait=3)
    scheduler.add("later", max_wait=2)
    scheduler.add("not yet", max_wait=100)
    scheduler.offer("fair", 0, enough=True)
    scheduler.offer("not yet", 0, enough=True)
    scheduler.offer("late", 1, enough=True)
    scheduler.offer("later", 1, enough=False)
    assert [scheduler.next(4) for _ in range(5)] == ["later", "late", "fair", "not yet", None]


def test_a_factory_that_had_more_than_its_share_does_not_jump_the_queue() -> None:
    """A constraint that can never be met must not starve the others."""
    scheduler = with_factories("fair")
    scheduler.add("greedy", max_wait=0)
    scheduler.offer("fair", 0, enough=True)
    runs = []
    for now in range(10):
        scheduler.offer("greedy", now, enough=True)
        name = scheduler.next(now)
        assert name is not None
        runs.append(name)
        scheduler.offer(name, now, enough=True)
        scheduler.finished(name, now, JUMP_CREDIT_S)
    assert runs[:2] == ["greedy", "greedy"]  # within its credit
    assert 4 <= runs.count("fair") <= 6


# Fair shares


def test_idle_factories_hoard_no_credit() -> None:
    """After a long idleness a factory takes turns with a busy one, and does not catch up."""
    scheduler = with_factories("busy", "idle")
    for now in range(1000):
        scheduler.offer("busy", now, enough=True)
        assert scheduler.next(now) == "busy"
        scheduler.finished("busy", now, 1)
    runs = play(scheduler, ["busy", "idle"], picks=100)
    assert abs(runs["busy"] - runs["idle"]) <= 2


def play(
    scheduler: Scheduler, names: list[str], *, picks: int, cost: float = 1
) -> dict[str, float]:
    """All names are offered all the time; the cost that each has had."""
    used = dict.fromkeys(names, 0.0)
    for name in names:
        scheduler.offer(name, 0, enough=True)
    for _ in range(picks):
        name = scheduler.next(0)
        assert name is not None
        used[name] += cost
        scheduler.offer(name, 0, enough=True)
        scheduler.finished(name, 0, cost)
    return used


@given(
    priorities=st.lists(st.integers(-10, 10), min_size=2, max_size=6),
    seed=st.integers(0, 1 << 30),
)
@settings(max_examples=60, deadline=None)
def test_shares_are_proportional_to_weights(priorities: list[int], seed: int) -> None:
    """While factories are ready all the time, cost / weight of one never leads that of another
    by more than one run of it."""
    rng, longest = random.Random(seed), 2.0
    scheduler, weights = Scheduler(), {}
    for number, priority in enumerate(priorities):
        scheduler.add(str(number), priority=priority)
        scheduler.offer(str(number), 0, enough=True)
        weights[str(number)] = 2.0 ** max(-8, min(8, priority))
    served = dict.fromkeys(weights, 0.0)
    for _ in range(400):
        name = scheduler.next(0)
        assert name is not None
        scheduler.offer(name, 0, enough=True)
        cost = rng.uniform(0.1, longest)
        scheduler.finished(name, 0, cost)
        served[name] += cost
        least = min(served[other] / weights[other] for other in served)
        assert served[name] / weights[name] - least <= longest / weights[name] + 1e-6
    scheduler.validate()


@given(priorities=st.lists(st.integers(-4, 4), min_size=2, max_size=6), seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_no_factory_starves(priorities: list[int], seed: int) -> None:
    """A ready factory runs within a bounded number of picks, though others jump the queue."""
    rng = random.Random(seed)
    scheduler, waited = Scheduler(), {}
    for number, priority in enumerate(priorities):
        scheduler.add(str(number), priority=priority, max_wait=rng.choice([None, 0, 0, 3]))
        scheduler.offer(str(number), 0, enough=True)
        waited[str(number)] = 0
    # Others may run while they are behind, or ahead by the credit: at 0.2 a run and weight 16.
    bound = len(priorities) * ((JUMP_CREDIT_S + 2 * 0.4 * 16) / (0.2 / 16) + 2)
    for now in range(3000):
        name = scheduler.next(now)
        assert name is not None
        waited = {other: picks + 1 for other, picks in waited.items()}
        waited[name] = 0
        assert max(waited.values()) <= bound
        scheduler.offer(name, now, enough=True)
        scheduler.finished(name, now, rng.uniform(0.2, 0.4))


def test_runs_that_cost_nothing_starve_nobody() -> None:
    """They are charged a least cost."""
    scheduler = with_factories("cheap", "dear")
    scheduler.offer("dear", 0, enough=True)
    assert scheduler.next(0) == "dear"
    scheduler.finished("dear", 0, 100 * LEAST_COST_S)
    scheduler.offer("dear", 0, enough=True)
    scheduler.offer("cheap", 0, enough=True)
    picks = 0
    while (name := scheduler.next(0)) == "cheap" and picks < 1000:
        picks += 1
        scheduler.offer(name, 0, enough=True)
        scheduler.finished(name, 0, 0)
    assert 90 <= picks <= 110


# The naive model


@dataclass
class NaiveFactory:
    """One factory of the model."""

    weight: float
    max_wait: float | None
    virtual: float = 0.0
    since: float | None = None  # the first offer
    enough: bool = False
    arrived: int = 0  # order in which it began to wait, or became ready
    is_ready: bool = False
    running: bool = False
    removed: bool = False
    forfeit: bool = False

    def deadline(self) -> float:
        if self.since is None or self.max_wait is None:
            return float("inf")
        return self.since + self.max_wait


@dataclass
class NaiveScheduler:
    """The rules, by looking at all factories each time."""

    factories: dict[str, NaiveFactory] = field(default_factory=dict)
    virtual_now: float = 0.0
    arrivals: int = 0

    def ready(self, factory: NaiveFactory, *, idle: bool) -> None:
        if idle:
            factory.virtual = max(factory.virtual, self.virtual_now)
        factory.is_ready = True
        self.arrive(factory)

    def arrive(self, factory: NaiveFactory) -> None:
        factory.arrived = self.arrivals
        self.arrivals += 1

    def clear(self, factory: NaiveFactory) -> None:
        factory.since = None
        factory.enough = factory.is_ready = factory.forfeit = False

    def offer(self, name: str, now: float, enough: bool) -> None:
        factory = self.factories[name]
        if factory.since is None:
            factory.since = now
            self.arrive(factory)
        factory.enough |= enough
        if factory.enough and not factory.running and not factory.is_ready:
            self.ready(factory, idle=True)

    def held(self) -> list[NaiveFactory]:
        return [
            f
            for f in self.factories.values()
            if not f.running and not f.is_ready and f.deadline() < float("inf")
        ]

    def next(self, now: float) -> str | None:
        for factory in sorted(self.held(), key=lambda f: (f.deadline(), f.arrived)):
            if factory.deadline() <= now:
                self.ready(factory, idle=True)
        ready = [(f.virtual, f.arrived, n) for n, f in self.factories.items() if f.is_ready]
        if not ready:
            return None
        least, _, name = min(ready)
        self.virtual_now = max(self.virtual_now, least)
        overdue = []
        for _, at, other in ready:
            factory = self.factories[other]
            if factory.deadline() <= now and not factory.forfeit:
                overdue.append((factory.deadline(), at, other))
        for _, _, other in sorted(overdue):
            if self.factories[other].virtual <= least + JUMP_CREDIT_S:
                name = other
                break
            self.factories[other].forfeit = True
        self.clear(self.factories[name])
        self.factories[name].running = True
        return name

    def finished(self, name: str, now: float, cost: float) -> None:
        factory = self.factories[name]
        factory.running = False
        factory.virtual += max(cost, LEAST_COST_S) / factory.weight
        if factory.removed:
            del self.factories[name]
        elif factory.enough or factory.deadline() <= now:
            self.ready(factory, idle=False)
        else:
            self.arrive(factory)


class Twins:
    """The scheduler and its model, given the same events."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.real, self.model = Scheduler(), NaiveScheduler()
        self.now = 0.0

    def step(self) -> None:
        """One event."""
        self.now += self.rng.choice([0, 0, 0.5, 1, self.rng.random()])
        name = self.rng.choice("abcdefgh")
        known = self.model.factories.get(name)
        if known is None or known.removed:
            self.add(name, known)
        elif self.rng.random() < 0.02:
            self.real.remove(name)
            self.model.clear(known)
            known.removed = True
            if not known.running:
                del self.model.factories[name]
        elif self.rng.random() < 0.05:
            self.real.withdraw(name)
            self.model.clear(known)
        elif known.running and self.rng.random() < 0.7:
            self.finish(name)
        elif self.rng.random() < 0.5:
            enough = self.rng.random() < 0.5
            self.real.offer(name, self.now, enough=enough)
            self.model.offer(name, self.now, enough)
        else:
            self.claim()

    def add(self, name: str, known: NaiveFactory | None) -> None:
        priority, wait = self.rng.randint(-2, 2), self.rng.choice([None, 0, 1, 2.5])
        self.real.add(name, priority=priority, max_wait=wait)
        if known is None:
            self.model.factories[name] = NaiveFactory(2.0**priority, wait)
        else:
            known.weight, known.max_wait, known.removed = 2.0**priority, wait, False

    def finish(self, name: str) -> None:
        cost = self.rng.choice([0, 0.25, 1, self.rng.random()])
        self.real.finished(name, self.now, cost)
        self.model.finished(name, self.now, cost)

    def claim(self) -> None:
        """A time between now and the next waking claims the same as now: wake_at is exact."""
        waking = min((f.deadline() for f in self.model.held()), default=None)
        expected = None if waking is None else max(self.now, waking)
        assert self.real.wake_at(self.now) == expected
        running = {n for n, f in self.model.factories.items() if f.running}
        name = self.real.next(self.now)
        assert name == self.model.next(self.now)
        assert name not in running


@pytest.mark.parametrize("seed", range(40))
def test_random_events_go_as_in_the_naive_model(seed: int) -> None:
    """Adds, removals, offers, withdrawals, claims and ends in any order: the same decisions."""
    twins = Twins(seed)
    for number in range(600):
        twins.step()
        if number % 10 == 0:
            twins.real.validate()


# Size


def test_offers_that_are_withdrawn_leave_nothing_behind() -> None:
    """Entries of the past are dropped though nothing is ever claimed."""
    scheduler = Scheduler()
    scheduler.add("a", max_wait=1)
    for turn in range(1000):
        scheduler.offer("a", turn, enough=turn % 2 == 0)
        scheduler.withdraw("a")
    scheduler.validate()


def test_ten_thousand_factories() -> None:
    """A round of all of them takes a fraction of a second, and entries of the past do not pile up."""
    scheduler = Scheduler()
    names = [str(number) for number in range(10_000)]
    for name in names:
        scheduler.add(name, max_wait=1)
    began = time.thread_time()  # not the time that others have the machine
    for turn in range(3):
        for name in names:
            scheduler.offer(name, turn, enough=False)
            scheduler.withdraw(name)
            scheduler.offer(name, turn, enough=False)
            scheduler.offer(name, turn, enough=True)
        for _ in names:
            claimed = scheduler.next(turn)
            assert claimed is not None
            scheduler.finished(claimed, turn, 0.1)
    took = time.thread_time() - began
    assert took / 30_000 < 0.0005  # measured 0.00001
    scheduler.validate()
    for name in names:
        scheduler.remove(name)
    scheduler.validate()


def test_a_factory_that_gives_way_changes_places_in_line() -> None:
    """The other runs at its cost in the first one's place; both keep their share together."""
    scheduler = Scheduler()
    for name in ("a", "b", "c"):
        scheduler.add(name)
        scheduler.offer(name, 0.0, enough=True)
    assert scheduler.next(0.0) == "a"
    scheduler.give_way("a", "b")
    scheduler.validate()
    with pytest.raises(ValueError, match="cannot give way"):
        scheduler.give_way("a", "c")  # it does not run
    assert scheduler.next(0.0) in ("a", "c")
    scheduler.finished("b", 1.0, 1.0)
    assert scheduler.next(1.0) in ("a", "c")  # b has run and nothing more is offered
    assert scheduler.next(1.0) is None
    scheduler.validate()
