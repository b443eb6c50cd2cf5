"""The query machine against hand-made examples and a small world that does what it says."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.machine import (
    Fire,
    FlushWait,
    Found,
    Instruction,
    Pull,
    QueryMachine,
    Retry,
    Task,
    Wait,
)
from headwater.engine.retries import FIRST_PAUSE_S, LONGEST_PAUSE_S

TABLE = 1


def machine_with(*names: str, **options: object) -> QueryMachine:
    """Queries over one table that have been looked at once."""
    machine = QueryMachine()
    for name in names:
        machine.added(name, {TABLE}, **options)  # type: ignore[arg-type]
    for _ in names:
        task = begin(machine)
        machine.pulled(task.name, "nothing", 0.0)
    return machine


def begin(machine: QueryMachine, now: float = 0.0, wall_us: int = 0) -> Task:
    """The next task, of which there is one."""
    task = machine.next(now, wall_us)
    assert not isinstance(task, Wait)
    machine.validate()
    return task


def idle(machine: QueryMachine, now: float = 0.0, wall_us: int = 0) -> bool:
    """Whether there is nothing to do now."""
    return isinstance(machine.next(now, wall_us), Wait)


def bring_to_fire(machine: QueryMachine, mark: float | None = None) -> None:
    machine.rows(TABLE, 0.0)
    task = begin(machine)
    machine.pulled(task.name, "due", 0.0, mark=mark)
    assert isinstance(begin(machine), Fire)


# Pulling and firing


def test_new_rows_are_pulled_and_what_is_due_is_fired_and_looked_at_again() -> None:
    machine = machine_with("a")
    assert idle(machine)
    machine.rows(TABLE, 7.0)
    assert begin(machine) == Pull("a", 7.0, False)
    machine.pulled("a", "due", 7.0)
    assert begin(machine) == Fire("a", False)
    machine.fired("a", 8.0, 1.0, 1)
    assert begin(machine) == Pull("a", None, False)
    machine.pulled("a", "nothing", 8.0)
    assert idle(machine)


def test_rows_that_come_during_a_pull_or_a_firing_are_looked_at_afterwards() -> None:
    machine = machine_with("a")
    machine.rows(TABLE, 1.0)
    begin(machine)
    machine.rows(TABLE, 2.0)
    assert idle(machine)
    machine.pulled("a", "nothing", 2.0)
    assert begin(machine) == Pull("a", 2.0, False)
    machine.pulled("a", "due", 2.0)
    begin(machine)
    machine.rows(TABLE, 3.0)
    assert idle(machine)
    machine.fired("a", 4.0, 1.0, 1)
    assert begin(machine) == Pull("a", 3.0, False)


def test_what_is_held_back_does_not_fire_while_it_is_pulled() -> None:
    """Its wait may end in the middle of a pull; it fires right after that."""
    machine = machine_with("a", max_wait=1.0)
    machine.rows(TABLE, 0.0)
    begin(machine)
    machine.pulled("a", "due", 0.0)
    machine.rows(TABLE, 0.5)
    assert begin(machine) == Pull("a", 0.5, False)
    assert idle(machine, now=2.0)
    machine.pulled("a", "due", 2.0)
    assert begin(machine, now=2.0) == Fire("a", False)


def test_the_wall_clock_is_waited_for_exactly() -> None:
    machine = machine_with("a")
    machine.rows(TABLE, 0.0)
    begin(machine)
    machine.pulled("a", "nothing", 0.0, wall_due=2_000_000)
    task = machine.next(0.0, 1_000_000)
    assert isinstance(task, Wait)
    assert task.seconds == pytest.approx(1.0, abs=0.01)
    assert begin(machine, wall_us=2_000_000) == Pull("a", None, False)


def test_whoever_is_chosen_fires_in_the_place_of_another() -> None:
    machine = machine_with("a", "b")
    machine.rows(TABLE, 0.0)
    for _ in "ab":
        machine.pulled(begin(machine).name, "due", 0.0)
    task = machine.next(0.0, 0, lambda _first, others: others[0])
    machine.validate()
    assert task == Fire("b", False)
    machine.fired("b", 1.0, 1.0, 1)
    machine.pulled(begin(machine, 1.0).name, "nothing", 1.0)
    assert begin(machine, 1.0) == Fire("a", False)


# Coming and going


def test_a_paused_query_does_nothing_and_goes_on_when_resumed() -> None:
    machine = machine_with("a")
    bring_to_fire(machine)
    machine.paused("a")
    assert machine.is_busy("a")
    machine.fired("a", 1.0, 1.0, 1)
    machine.rows(TABLE, 1.0)
    assert not machine.is_busy("a")
    assert idle(machine, 1.0)
    machine.resumed("a")
    assert isinstance(begin(machine, 1.0), Pull)


def test_a_pull_that_ends_after_a_pause_fires_nothing() -> None:
    machine = machine_with("a")
    machine.rows(TABLE, 0.0)
    begin(machine)
    machine.paused("a")
    machine.pulled("a", "due", 0.0)
    machine.validate()
    assert idle(machine)


def test_a_lent_query_is_left_alone_until_it_is_taken_back() -> None:
    machine = machine_with("a")
    machine.lent("a")
    machine.told("a", "retrying")
    machine.rows(TABLE, 0.0)
    assert idle(machine, now=100.0)
    machine.taken_back("a")
    assert machine.state_of("a") == "running"
    assert isinstance(begin(machine), Pull)


def test_the_work_of_a_replaced_query_says_nothing_of_the_new_one() -> None:
    """The new one waits until it is over, and does not take over its error."""
    machine = machine_with("a")
    bring_to_fire(machine)
    machine.added("a", {TABLE})
    assert idle(machine)
    machine.failed("a", 1.0, passing=False)
    machine.validate()
    assert machine.state_of("a") == "running"
    assert isinstance(begin(machine, 1.0), Pull)


def test_a_query_of_the_name_of_a_removed_one_waits_for_its_end() -> None:
    machine = machine_with("a")
    bring_to_fire(machine)
    machine.removed("a")
    machine.validate()
    machine.added("a", {TABLE})
    assert idle(machine)
    machine.fired("a", 1.0, 1.0, 9)
    assert isinstance(begin(machine, 1.0), Pull)


def test_what_is_not_under_way_cannot_end() -> None:
    machine = machine_with("a")
    with pytest.raises(ValueError, match="no Pull under way"):
        machine.pulled("a", "nothing", 0.0)
    with pytest.raises(ValueError, match="knows no query"):
        machine.paused("b")


def test_a_flush_waits_for_one_that_is_halted() -> None:
    """It has answered less than there is, and is looked at again when the halt is over."""
    machine = machine_with("a")
    machine.rows(TABLE, 0.0)
    waited = machine.flush_begins()
    machine.pulled(begin(machine).name, "halted", 0.0, wall_due=2_000_000)
    assert not waited.done
    assert idle(machine, 1.0, 1_000_000)
    task = begin(machine, 2.0, 2_000_000)
    machine.pulled(task.name, "due", 2.0, mark=1)
    assert not waited.done
    assert isinstance(begin(machine, 2.0, 2_000_000), Fire)
    machine.fired("a", 3.0, 1.0, 1)
    assert waited.done
    machine.flush_ends(waited)


# Errors


def test_an_error_of_the_query_gets_one_careful_attempt() -> None:
    """Care ends once what was due then is answered."""
    machine = machine_with("a")
    bring_to_fire(machine)
    assert machine.tries_again("a", "lasting")
    machine.fired("a", 1.0, 1.0, 0)
    assert begin(machine, 1.0) == Pull("a", None, True)
    machine.pulled("a", "due", 1.0, mark=5)
    assert begin(machine, 1.0) == Fire("a", True)
    machine.fired("a", 2.0, 1.0, 4)
    machine.pulled(begin(machine, 2.0).name, "due", 2.0)
    assert begin(machine, 2.0) == Fire("a", True)
    machine.fired("a", 3.0, 1.0, 5)
    machine.pulled(begin(machine, 3.0).name, "due", 3.0)
    assert begin(machine, 3.0) == Fire("a", False)
    machine.tries_again("a", "lasting")
    assert not machine.tries_again("a", "lasting")
    machine.failed("a", 4.0, passing=False)
    assert (machine.state_of("a"), idle(machine, 1000.0)) == ("failed", True)


def test_an_error_that_may_pass_is_tried_again_after_growing_pauses() -> None:
    machine, now = machine_with("a"), 0.0
    bring_to_fire(machine)
    assert not machine.tries_again("a", "passing")
    machine.failed("a", now, passing=True)
    pauses = []
    for _ in range(12):
        task = machine.next(now, 0)
        assert isinstance(task, Wait)
        steps = (0.05 * n for n in range(1, 1000))
        wait = next(wait for wait in steps if not idle(machine, now + wait))
        pauses.append(wait)
        now += wait
        machine.failed("a", now, passing=True)
        machine.validate()
    assert pauses == sorted(pauses)
    assert pauses[0] == pytest.approx(FIRST_PAUSE_S, abs=0.06)
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE_S, abs=0.06)


def test_a_success_makes_the_next_pause_short_again() -> None:
    machine, now = machine_with("a"), 0.0
    bring_to_fire(machine)
    for _ in range(5):
        machine.failed("a", now, passing=True)
        now += LONGEST_PAUSE_S
        assert begin(machine, now) == Retry("a")
    machine.retried("a")
    machine.pulled(begin(machine, now).name, "due", now)
    begin(machine, now)
    machine.fired("a", now, 1.0, 1)
    machine.pulled(begin(machine, now).name, "due", now)
    begin(machine, now)
    machine.failed("a", now, passing=True)
    assert idle(machine, now)
    assert begin(machine, now + FIRST_PAUSE_S) == Retry("a")


def test_who_needs_spark_waits_for_it_and_others_do_not() -> None:
    machine = machine_with("a", "b")
    machine.rows(TABLE, 0.0)
    for _ in "ab":
        machine.pulled(begin(machine).name, "due", 0.0)
    first = begin(machine)
    assert machine.tries_again(first.name, "no spark")
    machine.fired(first.name, 1.0, 1.0, 0, without_spark=True)
    machine.rows(TABLE, 1.0)
    second = begin(machine, 1.0)
    assert second.name != first.name
    machine.fired(second.name, 2.0, 1.0, 1)
    machine.pulled(begin(machine, 2.0).name, "nothing", 2.0)
    assert idle(machine, 2.0)
    machine.spark_settled()
    assert begin(machine, 2.0) == Pull(first.name, 1.0, False)


def test_a_view_that_was_read_goes_on() -> None:
    machine = machine_with("a")
    bring_to_fire(machine)
    machine.failed("a", 0.0, passing=True)
    machine.well("a")
    machine.validate()
    assert machine.state_of("a") == "running"
    assert isinstance(begin(machine), Pull)


# Flushes


def test_a_flush_waits_for_what_was_there_and_not_for_what_comes() -> None:
    machine = machine_with("a")
    machine.rows(TABLE, 0.0)
    flush = machine.flush_begins()
    for answered in range(1, 10):
        machine.rows(TABLE, 0.0)
        task = begin(machine)
        assert isinstance(task, Pull)
        machine.pulled("a", "due", 0.0, mark=4 + answered if task.marked else None)
        begin(machine)
        assert not flush.done
        machine.fired("a", 0.0, 0.1, answered)
        if answered == 5:
            break
    assert flush.done
    machine.flush_ends(flush)


def test_a_pull_that_began_before_a_flush_says_nothing_of_it() -> None:
    machine = machine_with("a")
    machine.rows(TABLE, 0.0)
    begin(machine)
    flush = machine.flush_begins()
    machine.pulled("a", "nothing", 0.0)
    assert not flush.done
    assert begin(machine) == Pull("a", None, True)
    machine.pulled("a", "nothing", 0.0)
    assert flush.done


def test_a_flush_follows_results_from_query_to_query() -> None:
    """A reader of results is looked at after they are there."""
    machine = QueryMachine()
    machine.added("second", {2})
    machine.added("first", {1}, writes=2)
    for _ in range(2):
        machine.pulled(begin(machine).name, "nothing", 0.0)
    flush = machine.flush_begins()
    assert begin(machine).name == "first"
    machine.pulled("first", "due", 0.0, mark=1)
    begin(machine)
    machine.fired("first", 1.0, 1.0, 1)
    machine.validate()
    assert list(flush.goals) == ["second"]
    machine.pulled(begin(machine, 1.0).name, "nothing", 1.0)
    machine.pulled(begin(machine, 1.0).name, "nothing", 1.0)
    assert flush.done


def test_a_flush_gives_what_retries_its_attempts_and_then_goes_on() -> None:
    machine = machine_with("a")
    bring_to_fire(machine)
    machine.failed("a", 0.0, passing=True)
    flush = machine.flush_begins()
    for _ in range(2):
        assert not flush.done
        assert begin(machine, 0.0) == Retry("a")
        machine.failed("a", 0.0, passing=True)
    assert flush.done
    machine.validate()


def test_a_flush_does_not_wait_for_what_stands_still() -> None:
    machine = machine_with("a", "b", "c", "d")
    flush = machine.flush_begins()
    machine.paused("a")
    machine.lent("b")
    machine.removed("c")
    assert list(flush.goals) == ["d"]
    machine.failed("d", 0.0, passing=False)
    assert flush.done


def test_a_flush_holds_nothing_back() -> None:
    machine = machine_with("a", max_wait=100.0)
    machine.rows(TABLE, 0.0)
    machine.pulled(begin(machine).name, "due", 0.0)
    assert idle(machine)
    machine.flush_begins()
    machine.pulled(begin(machine).name, "due", 0.0, mark=1)
    assert isinstance(begin(machine), Fire)


# A world that does what the machine says


@dataclass
class Query:
    """Answers every row of its table; what it has taken in is due."""

    table: int
    taken: int = 0
    answered: int = 0
    out: int | None = None
    pauses: list[float] = field(default_factory=list)


@dataclass
class World:
    """Tables that only count their rows, queries over them, and threads with a task each."""

    random: random.Random
    machine: QueryMachine = field(default_factory=QueryMachine)
    now: float = 0.0
    rows: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(3), 0))
    queries: dict[str, Query] = field(default_factory=dict)
    standing: dict[str, str] = field(default_factory=dict)  # paused, lent or failed
    under_way: list[tuple[Task, Query]] = field(default_factory=list)
    flushes: list[tuple[FlushWait, dict[str, int]]] = field(default_factory=list)

    def insert(self, table: int) -> None:
        self.rows[table] += 1
        self.machine.rows(table, self.now)

    def add(self, name: str) -> None:
        if name in self.queries:
            return
        table = self.random.randrange(3)
        out = self.random.choice([None, table + 1]) if table < 2 else None
        if any(query.out == out for query in self.queries.values()):
            out = None
        wait = self.random.choice([None, None, 1.0])
        self.queries[name] = Query(table, out=out)
        self.machine.added(name, {table}, writes=out, max_wait=wait)
        self.standing.pop(name, None)
        self._forget(name)

    def remove(self, name: str) -> None:
        if self.queries.pop(name, None) is not None:
            self.machine.removed(name)
            self._forget(name)

    def _forget(self, name: str) -> None:
        for _, wanted in self.flushes:
            wanted.pop(name, None)

    def stop(self, name: str, how: str) -> None:
        if name in self.queries and name not in self.standing:
            getattr(self.machine, how)(name)
            self.standing[name] = how
            self._forget(name)

    def go_on(self, name: str) -> None:
        how = self.standing.get(name)
        if name not in self.queries or how is None or self.machine.is_busy(name):
            return
        getattr(self.machine, "taken_back" if how == "lent" else "resumed")(name)
        del self.standing[name]

    def flush(self) -> None:
        """Every row that is there now is to be answered, by readers of results too where they exist."""
        wanted = {n: self.rows[q.table] for n, q in self.queries.items() if n not in self.standing}
        self.flushes.append((self.machine.flush_begins(), wanted))

    def begin(self) -> Instruction:
        task = self.machine.next(self.now, int(self.now * 1e6))
        if isinstance(task, Wait):
            self.now += task.seconds * self.random.random()
            return task
        query = self.queries[task.name]
        busy = [t.name for t, other in self.under_way if other is query]
        assert not busy, f"{task} while {busy} is under way"
        assert task.name not in self.standing, f"{task} although it stands still"
        self.under_way.append((task, query))
        if isinstance(task, Pull):
            query.taken = self.rows[query.table]
        return task

    def end(self, number: int, trouble: str | None = None) -> None:
        task, query = self.under_way.pop(number % len(self.under_way))
        self.now += 0.001
        name, own = task.name, self.queries.get(task.name) is query
        if trouble in ("passing", "lasting") and not (
            isinstance(task, Fire) and self.machine.tries_again(name, "lasting")
        ):
            going = own and name not in self.standing
            self.machine.failed(name, self.now, passing=trouble == "passing")
            if going and trouble == "lasting":
                self.standing[name] = "failed"
            if going:
                self._forget(name)  # how often it is tried is another test's
        elif isinstance(task, Pull):
            found: Found = "due" if query.taken > query.answered else "nothing"
            mark = query.taken if task.marked else None
            self.machine.pulled(name, found, self.now, mark=mark)
        elif isinstance(task, Retry):
            self.machine.retried(name)
        else:
            self._fired(task, query, trouble == "no spark")

    def _fired(self, task: Fire, query: Query, waits: bool) -> None:
        if not waits:
            left = query.taken - query.answered
            count = min(left, 1 if task.careful else self.random.randint(1, 3))
            query.answered += count
            if query.out is not None and count:
                self.insert(query.out)
        cost = self.random.random()
        reached = query.answered
        self.machine.fired(task.name, self.now, cost, reached, without_spark=waits)

    def check(self) -> None:
        self.machine.validate()
        for flush, wanted in [one for one in self.flushes if one[0].done]:
            for name, count in wanted.items():
                assert self.queries[name].answered >= count, f"{name} was not waited for"
            self.machine.flush_ends(flush)
            self.flushes.remove((flush, wanted))

    def settle(self) -> None:
        """Without new rows everything that runs here comes to its end, within bounded work."""
        self.machine.spark_settled()
        for _ in range(100 * (sum(self.rows.values()) + len(self.queries) + 10)):
            if self.under_way:
                self.end(0)
            elif isinstance(self.begin(), Wait):
                self.now += 1000.0
                if isinstance(self.begin(), Wait):
                    break
            self.check()
        for name, query in self.queries.items():
            if name not in self.standing:
                assert query.answered == self.rows[query.table], f"{name} has rows left"
        assert not self.flushes, "a flush never ended"


NAMES = ("a", "b", "c", "d")


def step(world: World, act: int, which: int) -> None:
    """One event; most of them are work."""
    name = NAMES[which % len(NAMES)]
    if act < 40 or not world.under_way:
        world.begin()
    elif act < 70:
        world.end(which)
    elif act < 80:
        world.insert(which % 3)
    elif act < 84:
        world.end(which, ("passing", "lasting", "no spark")[which % 3])
    elif act < 88:
        world.add(name)
    elif act < 90:
        world.remove(name)
    elif act < 92:
        world.stop(name, ("paused", "lent")[which % 2])
    elif act < 96:
        world.go_on(name)
    elif act < 98:
        world.flush()
    else:
        world.machine.spark_settled()
    world.check()


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_or_done_twice_at_once(seed: int) -> None:
    """Thousands of events of all kinds; in the end whatever runs has answered every row."""
    world = World(random.Random(seed))
    for name in NAMES:
        world.add(name)
    for _ in range(4000):
        step(world, world.random.randrange(100), world.random.randrange(12))
    world.settle()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 11)), max_size=120), st.integers(0, 99)
)
def test_any_order_of_events_settles(events: list[tuple[int, int]], seed: int) -> None:
    """The same, in sequences that shrink."""
    world = World(random.Random(seed))
    for name in NAMES[:2]:
        world.add(name)
    for act, which in events:
        step(world, act, which)
    world.settle()


def test_a_flush_ends_under_steady_inserts() -> None:
    """Each firing answers one row and one comes with it: nothing is ever quiet."""
    world = World(random.Random(1))
    world.add("a")
    query = world.queries["a"]
    for _ in range(20):
        world.insert(query.table)
    world.flush()
    for _ in range(10_000):
        if not world.flushes:
            break
        if isinstance(world.begin(), Wait):
            world.now += 1.0
        elif world.under_way:
            world.end(0)
            world.insert(query.table)
            world.insert(query.table)
            world.insert(query.table)
        world.check()
    assert not world.flushes
    assert query.answered < world.rows[query.table]
