"""The table clock against hand-made examples and a model written straight from DESIGN §5."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import DataError
from headwater.storage.clock import (
    TICK_MAX,
    TICK_MIN,
    ClockState,
    Mark,
    Stamp,
    TableClock,
    Ticks,
)


def ticks(*values: int) -> Ticks:
    return np.array(values, np.int64)


def at(clock: TableClock) -> tuple[int | None, int | None]:
    clock.validate()
    return clock.clock, clock.closed


def insert(clock: TableClock, *values: int, source: str = "") -> Stamp:
    stamp = clock.rows(ticks(*values), source)
    assert (stamp.clock, stamp.closed) == at(clock)
    return stamp


def is_late(clock: TableClock, tick: int) -> bool:
    """Whether a row with this T would be late now."""
    closed = at(clock)[1]
    return closed is not None and tick <= closed


def with_sources(*names: str, watermark: int = 0, max_step: int | None = None) -> TableClock:
    clock = TableClock(watermark=watermark, max_step=max_step)
    for name in names:
        clock.add_source(name)
    return clock


# Without a watermark


def test_nothing_is_known_before_the_first_row() -> None:
    clock = TableClock()
    assert at(clock) == (None, None)
    assert not is_late(clock, TICK_MIN)
    assert not clock.complete(TICK_MIN, before_only=True)
    assert insert(clock) == Stamp(0, None, None, None, None, False)


def test_a_row_is_released_at_once_and_closes_the_tick_before_it() -> None:
    clock = TableClock()
    assert insert(clock, 5) == Stamp(0, 5, 4, 5, None, False)
    assert clock.waiting_count == 0


def test_a_tie_is_not_late_and_the_tick_before_is() -> None:
    clock = TableClock()
    insert(clock, 5)
    assert is_late(clock, 4)
    assert not is_late(clock, 5)
    assert insert(clock, 5).late_count == 0
    assert insert(clock, 4) == Stamp(1, 5, 4, 5, None, False)


def test_no_row_is_late_because_of_another_in_the_same_insert() -> None:
    clock = TableClock()
    insert(clock, 10)
    assert insert(clock, 1, 9, 10, 11, 90) == Stamp(2, 90, 89, 90, None, False)


def test_late_rows_alone_move_nothing() -> None:
    clock = TableClock()
    insert(clock, 3)
    clock.advance(100)
    assert insert(clock, 50, 60) == Stamp(2, 100, 100, 3, None, False)


def test_late_count_asks_without_changing() -> None:
    clock = TableClock()
    insert(clock, 10)
    assert clock.late_count(ticks(8, 9, 9, 10, 11)) == 3
    assert clock.late_count(ticks()) == 0
    assert at(clock) == (10, 9)


def test_complete_needs_closed_or_for_before_the_clock() -> None:
    clock = TableClock()
    insert(clock, 10)
    assert clock.complete(9, before_only=False)
    assert not clock.complete(10, before_only=False)
    assert clock.complete(10, before_only=True)
    assert not clock.complete(11, before_only=True)
    clock.advance(10)
    assert clock.complete(10, before_only=False)


def test_figure_1() -> None:
    clock = TableClock()
    for tick in (0, 1, 3, 4, 6):
        assert insert(clock, tick).late_count == 0
    clock.advance(7)
    assert at(clock) == (7, 7)


# Advance


def test_advance_closes_its_own_tick() -> None:
    clock = TableClock()
    assert clock.advance(7) == Stamp(0, 7, 7, None, None, False)
    assert insert(clock, 7).late_count == 1
    assert insert(clock, 8).late_count == 0
    assert at(clock) == (8, 7)


def test_advance_to_the_clock_closes_it_and_further_back_does_nothing() -> None:
    clock = TableClock()
    insert(clock, 10)
    clock.advance(9)
    assert at(clock) == (10, 9)
    clock.advance(10)
    assert at(clock) == (10, 10)
    clock.advance(-5)
    assert at(clock) == (10, 10)


def test_advance_releases_what_waits_up_to_it() -> None:
    clock = TableClock(watermark=100)
    insert(clock, 1, 5, 9)
    assert clock.waiting_count == 3
    clock.advance(6)
    assert at(clock) == (6, 6)
    assert clock.waiting_count == 1


def test_reach_leaves_its_own_tick_open() -> None:
    """As a row at it would: for a view with several results at one instant."""
    clock = TableClock()
    assert clock.reach(7) == Stamp(0, 7, 6, None, None, False)
    assert insert(clock, 7).late_count == 0
    clock.reach(5)
    assert at(clock) == (7, 6)


@pytest.mark.parametrize("tick", [TICK_MIN - 1, TICK_MAX + 1])
def test_advance_out_of_range_is_an_error(tick: int) -> None:
    clock = TableClock()
    with pytest.raises(DataError) as caught:
        clock.advance(tick)
    assert caught.value.sqlstate == "22003"
    assert at(clock) == (None, None)


# Watermark


def test_a_watermark_puts_rows_in_order() -> None:
    clock = TableClock(watermark=5)
    assert insert(clock, 10) == Stamp(0, None, None, 10, None, False)
    assert insert(clock, 7).clock is None
    assert insert(clock, 14).clock == 7
    assert insert(clock, 8).clock == 8  # after 10 and 14, and yet in its place
    assert insert(clock, 7).late_count == 1
    insert(clock, 15)
    assert at(clock) == (10, 9)
    assert clock.waiting_count == 2


def test_the_clock_is_the_time_of_a_row_and_not_of_the_watermark() -> None:
    clock = TableClock(watermark=10)
    insert(clock, 50, 100)
    assert at(clock) == (50, 49)
    assert insert(clock, 60).late_count == 0  # below 100 - 10, but nothing has closed it
    assert at(clock) == (60, 59)


def test_a_row_is_released_when_exactly_its_time_plus_d_is_seen() -> None:
    clock = TableClock(watermark=5)
    insert(clock, 10)
    insert(clock, 14)
    assert clock.clock is None
    insert(clock, 15)
    assert clock.clock == 10


def test_late_rows_never_wait() -> None:
    clock = TableClock(watermark=5)
    insert(clock, 10, 15)
    assert clock.waiting_count == 1
    assert insert(clock, 1, 9, 10).late_count == 2
    assert clock.waiting_count == 1


def test_waiting_rows_do_not_follow_the_callers_array() -> None:
    clock = TableClock(watermark=5)
    given_ticks = ticks(1, 2, 3)
    clock.rows(given_ticks)
    given_ticks[:] = 99
    insert(clock, 8)
    assert at(clock) == (3, 2)


# max_step


def test_a_row_from_the_future_moves_the_mark_one_step_and_waits() -> None:
    clock = TableClock(max_step=10)
    insert(clock, 100)
    assert insert(clock, 5000) == Stamp(0, 100, 99, 110, None, False)
    assert clock.waiting_count == 1
    insert(clock, 101)
    insert(clock, 112)
    assert at(clock) == (112, 111)
    for tick in range(120, 5001, 10):
        assert insert(clock, tick).late_count == 0
    assert clock.waiting_count == 0


def test_a_step_of_exactly_max_step_does_not_wait() -> None:
    clock = TableClock(max_step=10)
    insert(clock, 0)
    insert(clock, 10)
    assert at(clock) == (10, 9)
    insert(clock, 21)
    assert at(clock) == (10, 9)


def test_the_first_insert_sets_the_mark_freely_even_after_an_advance() -> None:
    clock = TableClock(max_step=10)
    clock.advance(3)
    insert(clock, 1_000_000)
    assert clock.clock == 1_000_000


def test_the_step_is_counted_from_an_advance_beyond_the_mark() -> None:
    clock = TableClock(max_step=10)
    insert(clock, 0)
    clock.advance(1000)
    insert(clock, 1010)
    assert at(clock) == (1010, 1009)


def test_a_new_source_steps_from_the_furthest_mark_of_the_table() -> None:
    clock = with_sources("a", max_step=10)
    insert(clock, 100, source="a")
    clock.idle("a")
    clock.add_source("b")
    assert insert(clock, 5000, source="b").seen == 110
    assert insert(clock, 50, source="b").late_count == 1


def test_a_source_that_was_away_steps_from_the_clock() -> None:
    clock = with_sources("a", "b", max_step=10)
    insert(clock, 0, source="a")
    clock.idle("a")
    for tick in range(0, 101, 10):
        insert(clock, tick, source="b")
    assert insert(clock, 105, source="a").seen == 105


# Several sources


def test_the_slowest_live_source_holds_the_clock() -> None:
    clock = with_sources("a", "b")
    insert(clock, 10, 20, 30, source="a")
    assert at(clock) == (None, None)  # b has no rows yet
    assert clock.waiting_count == 3
    insert(clock, 12, 25, source="b")
    assert at(clock) == (25, 24)
    assert clock.waiting_count == 1
    insert(clock, 40, source="b")
    assert at(clock) == (30, 29)


def test_the_watermark_is_counted_per_source() -> None:
    clock = with_sources("a", "b", watermark=5)
    insert(clock, 10, 20, 30, source="a")
    insert(clock, 10, 25, source="b")
    assert at(clock) == (20, 19)  # the largest row up to min(30, 25) - 5


def test_an_idle_source_does_not_hold_and_does_not_turn_back() -> None:
    clock = with_sources("a", "b")
    insert(clock, 10, source="b")
    insert(clock, 50, source="a")
    assert at(clock) == (10, 9)
    assert clock.idle("b").clock == 50
    assert clock.awake("b").clock == 50
    assert insert(clock, 20, 50, source="b").late_count == 1
    insert(clock, 60, source="a")
    assert at(clock) == (50, 49)
    insert(clock, 55, source="b")
    assert at(clock) == (55, 54)


def test_a_row_wakes_an_idle_source_and_an_empty_insert_does_not() -> None:
    clock = with_sources("a", "b")
    clock.idle("a")
    assert not insert(clock, source="a").live
    assert insert(clock, 3, source="a").live
    assert clock.marks["a"] == Mark(3, None, True)
    assert clock.clock is None


def test_the_order_in_which_sources_fall_silent_does_not_matter() -> None:
    for order in ("ab", "ba"):
        clock = with_sources("a", "b")
        insert(clock, 10, source="a")
        insert(clock, 50, source="b")
        for name in order:
            clock.idle(name)
        assert at(clock) == (50, 49)
        clock = with_sources("a", "b")
        insert(clock, 10, source="a")
        insert(clock, 50, source="b")
        for name in order:
            clock.remove_source(name)
        assert at(clock) == (50, 49)


def test_direct_rows_neither_hold_nor_drive_while_a_source_lives() -> None:
    clock = with_sources("a")
    insert(clock, 70)
    assert at(clock) == (None, None)
    insert(clock, 20, source="a")
    assert at(clock) == (20, 19)
    insert(clock, 75, source="a")
    assert at(clock) == (75, 74)
    clock.idle("a")
    insert(clock, 90)
    assert at(clock) == (90, 89)


def test_a_new_source_holds_the_clock_where_it_is() -> None:
    clock = TableClock()
    insert(clock, 10)
    clock.add_source("a")
    insert(clock, 11)
    assert at(clock) == (10, 9)
    assert insert(clock, 10).late_count == 0
    assert clock.waiting_count == 1
    clock.remove_source("a")
    assert at(clock) == (11, 10)
    assert "a" not in clock.marks


def test_a_tie_of_the_clock_does_not_wait_for_a_source_that_is_behind() -> None:
    clock = with_sources("a")
    insert(clock, 50, source="a")
    clock.add_source("b")
    insert(clock, 50, source="a")
    assert clock.waiting_count == 0


def test_the_users_advance_is_for_the_whole_table() -> None:
    clock = with_sources("a", "b")
    insert(clock, 10, 90, source="a")
    clock.advance(20)
    assert at(clock) == (20, 20)
    assert clock.waiting_count == 1


def test_all_sources_that_advance_close_the_smallest_of_it() -> None:
    clock = with_sources("a", "b")
    insert(clock, 10, 44, 60, source="a")
    assert clock.advance(100, "a") == Stamp(0, None, None, 60, 100, True)
    assert clock.advance(45, "b") == Stamp(0, 45, 45, None, 45, True)
    assert clock.waiting_count == 1
    clock.idle("b")
    assert at(clock) == (100, 100)


def test_one_source_advances_as_far_as_the_others_have_passed() -> None:
    clock = with_sources("a", "b")
    insert(clock, 40, 50, source="b")
    clock.advance(45, "a")
    assert at(clock) == (45, 45)
    clock.advance(60, "a")
    assert at(clock) == (50, 49)  # a tie at 50 may still come from b
    assert insert(clock, 50, source="b").late_count == 0


def test_a_passed_time_below_all_ticks_closes_nothing() -> None:
    clock = with_sources("a", "b", watermark=5)
    insert(clock, TICK_MIN, source="b")
    clock.advance(0, "a")
    assert at(clock) == (None, None)


def test_unknown_and_unnamed_sources_are_refused() -> None:
    clock = TableClock()
    for call in (clock.idle, clock.awake, clock.remove_source):
        with pytest.raises(ValueError, match="no source 'x'"):
            call("x")
        with pytest.raises(ValueError, match="direct source"):
            call("")
    with pytest.raises(ValueError, match="direct source"):
        clock.add_source("")
    with pytest.raises(ValueError, match="no source 'x'"):
        clock.rows(ticks(1), "x")
    with pytest.raises(ValueError, match="no source 'x'"):
        clock.advance(1, "x")
    assert list(clock.marks) == [""]


@pytest.mark.parametrize(("watermark", "max_step"), [(-1, None), (0, 0)])
def test_settings_out_of_range_are_refused(watermark: int, max_step: int | None) -> None:
    with pytest.raises(ValueError, match="at least"):
        TableClock(watermark=watermark, max_step=max_step)


def test_ticks_of_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match="float64"):
        TableClock().rows(np.array([1.0]))


# Extremes


def test_negative_ticks() -> None:
    clock = TableClock(watermark=3)
    insert(clock, -10, -8, -5)
    assert at(clock) == (-8, -9)
    assert is_late(clock, -9)
    clock.advance(-5)
    assert at(clock) == (-5, -5)


def test_the_smallest_tick_closes_nothing_and_the_largest_fits() -> None:
    clock = TableClock()
    insert(clock, TICK_MIN)
    assert at(clock) == (TICK_MIN, None)
    assert insert(clock, TICK_MIN, TICK_MAX).late_count == 0
    assert at(clock) == (TICK_MAX, TICK_MAX - 1)
    clock.advance(TICK_MAX)
    assert insert(clock, TICK_MIN, TICK_MAX).late_count == 2


@pytest.mark.parametrize("watermark", [1, TICK_MAX, 1 << 70])
def test_a_watermark_below_all_ticks_releases_nothing(watermark: int) -> None:
    clock = TableClock(watermark=watermark, max_step=TICK_MAX)
    insert(clock, TICK_MIN)
    insert(clock, TICK_MIN)
    assert at(clock) == (None, None)
    clock.advance(TICK_MIN)
    assert at(clock) == (TICK_MIN, TICK_MIN)
    insert(clock, TICK_MAX)
    clock.advance(TICK_MAX)
    assert at(clock) == (TICK_MAX, TICK_MAX)
    assert clock.waiting_count == 0


# Recovery


def test_state_survives_json_and_restores_the_waiting_rows() -> None:
    clock = with_sources("a", watermark=5)
    insert(clock, 1, 7, 9, source="a")
    clock.advance(3, "a")
    state = ClockState.from_json(json.loads(json.dumps(clock.state().to_json())))
    assert state == clock.state()
    assert state.marks["a"] == Mark(9, 3, True)
    restored = TableClock.restore(state, ticks(9, 1, 7), watermark=5)
    assert restored.waiting_count == clock.waiting_count == 2
    for each in (clock, restored):
        insert(each, 12, source="a")
        assert at(each) == (7, 6)


def test_restore_with_no_clock_yet_takes_every_row() -> None:
    clock = TableClock(watermark=50)
    insert(clock, 1, 7)
    restored = TableClock.restore(clock.state(), ticks(7, 1), watermark=50)
    insert(restored, 52)
    assert at(restored) == (1, 0)


def test_replay_of_a_removal() -> None:
    clock, twin = with_sources("a"), TableClock()
    twin.replay(clock.add_source("a"), source="a")
    twin.replay(insert(clock, 30), ticks(30))
    twin.replay(insert(clock, 10, source="a"), ticks(10), "a")
    assert twin.state() == clock.state()
    twin.replay_removal(clock.remove_source("a"), "a")
    assert twin.state() == clock.state()
    assert at(twin) == (30, 29)


def test_a_long_waiting_row_does_not_keep_its_whole_insert() -> None:
    clock = TableClock(watermark=10**10)
    clock.rows(np.append(np.arange(1000, dtype=np.int64), 10**9))
    assert clock.waiting_count == 1001
    clock.advance(1000)
    (kept,) = clock._waiting._runs
    assert clock.waiting_count == 1
    assert kept.base is None or kept.base.nbytes <= 16


# The model: every row is kept, everything is recomputed from the words of DESIGN §5.


@dataclass
class Source:
    seen: list[int] = field(default_factory=list)  # as far as each insert moved the watermark
    advances: list[int] = field(default_factory=list)
    live: bool = False


@dataclass
class Row:
    tick: int
    late: bool
    released: bool = False


class Model:
    def __init__(self, watermark: int, max_step: int | None) -> None:
        self.d, self.max_step = watermark, max_step
        self.rows: list[Row] = []
        self.sources = {"": Source()}
        self.clocks: list[int] = []  # every T released or advanced to
        self.closes: list[int] = []  # everything L was ever set to

    @property
    def clock(self) -> int | None:
        return max(self.clocks, default=None)

    @property
    def closed(self) -> int | None:
        return max(self.closes, default=None)

    def insert(self, values: list[int], name: str) -> int:
        before = [Row(tick, any(tick <= mark for mark in self.closes)) for tick in values]
        source = self.sources[name]
        moving = [row.tick for row in before if not row.late]
        if moving:
            source.seen.append(min(max(moving), self.limit(source)))
        if values and name:
            source.live = True
        self.rows += before
        self.settle()
        return sum(row.late for row in before)

    def limit(self, source: Source) -> int:
        everything = [tick for other in self.sources.values() for tick in other.seen]
        if self.max_step is None or not everything:
            return TICK_MAX
        return max((source.seen or everything) + self.clocks) + self.max_step

    def advance(self, tick: int, name: str | None) -> None:
        if name is None:
            self.close(tick)
        else:
            self.sources[name].advances.append(tick)
            self.sources[name].live = name != ""
        self.settle()

    def remove(self, name: str) -> None:
        gone = self.sources.pop(name)
        self.sources[""].seen += gone.seen
        self.sources[""].advances += gone.advances
        self.settle()

    def close(self, tick: int) -> None:
        for row in self.rows:
            row.released |= not row.late and row.tick <= tick
        self.clocks.append(tick)
        self.closes.append(tick)

    def settle(self) -> None:
        for row in self.rows:
            if not row.late and not row.released and self.may_go(row.tick):
                row.released = True
                self.clocks.append(row.tick)
                if row.tick > TICK_MIN:
                    self.closes.append(row.tick - 1)
        tops = [t for s in self.sources.values() for t in s.advances]
        passes = [t - self.d - 1 for s in self.sources.values() for t in s.seen]
        for tick in tops + passes:
            if tick >= TICK_MIN and self.may_close(tick):
                self.close(tick)

    def may_go(self, tick: int) -> bool:
        if any(tick <= reached for reached in self.clocks):
            return True
        lets = [
            any(tick + self.d <= seen for seen in source.seen)
            or any(tick <= advanced for advanced in source.advances)
            for source in self.voters()
        ]
        return all(lets) if self.someone_lives() else any(lets)

    def may_close(self, tick: int) -> bool:
        promised = [any(tick <= t for t in source.advances) for source in self.voters()]
        if not self.someone_lives():
            return any(promised)
        passed = [any(tick + self.d < t for t in source.seen) for source in self.voters()]
        done = [p or q for p, q in zip(promised, passed, strict=True)]
        return any(promised) and all(done)

    def someone_lives(self) -> bool:
        return any(source.live for source in self.sources.values())

    def voters(self) -> list[Source]:
        everyone = list(self.sources.values())
        return [s for s in everyone if s.live] if self.someone_lives() else everyone

    def waiting_count(self) -> int:
        return sum(not row.late and not row.released for row in self.rows)


# An event is (verb, source, ticks). It goes to the clock, to a twin that knows only stamps, and
# to the model; then all three are compared.

Event = tuple[str, str, tuple[int, ...]]


class Trio:
    def __init__(self, watermark: int, max_step: int | None) -> None:
        self.watermark, self.max_step = watermark, max_step
        self.clock = TableClock(watermark=watermark, max_step=max_step)
        self.twin = TableClock(watermark=watermark, max_step=max_step)
        self.model = Model(watermark, max_step)

    def run(self, event: Event) -> bool:
        """Whether the event could be applied: its source is there, and has a name if need be."""
        verb, name, values = event
        if verb not in ("add", "restart") and name not in self.model.sources:
            return False
        if name == "" and verb in ("add", "idle", "awake", "remove"):
            return False
        before = at(self.clock)
        getattr(self, verb)(name, sorted(values))
        self.check(before)
        return True

    def rows(self, name: str, values: list[int]) -> None:
        stamp = self.clock.rows(ticks(*values), name)
        assert stamp.late_count == self.model.insert(values, name)
        self.twin.replay(stamp, ticks(*values), name)

    def advance(self, name: str, values: list[int]) -> None:
        self.twin.replay(self.clock.advance(values[0]))
        self.model.advance(values[0], None)

    def advance_source(self, name: str, values: list[int]) -> None:
        self.twin.replay(self.clock.advance(values[0], name), source=name)
        self.model.advance(values[0], name)

    def add(self, name: str, values: list[int]) -> None:
        self.twin.replay(self.clock.add_source(name), source=name)
        self.model.sources.setdefault(name, Source()).live = True
        self.model.settle()

    def idle(self, name: str, values: list[int]) -> None:
        self.twin.replay(self.clock.idle(name), source=name)
        self.model.sources[name].live = False
        self.model.settle()

    def awake(self, name: str, values: list[int]) -> None:
        self.twin.replay(self.clock.awake(name), source=name)
        self.model.sources[name].live = True
        self.model.settle()

    def remove(self, name: str, values: list[int]) -> None:
        self.twin.replay_removal(self.clock.remove_source(name), name)
        self.model.remove(name)

    def restart(self, name: str, values: list[int]) -> None:
        stored = ticks(*(row.tick for row in self.model.rows))
        state = ClockState.from_json(json.loads(json.dumps(self.clock.state().to_json())))
        self.clock = TableClock.restore(
            state, stored, watermark=self.watermark, max_step=self.max_step
        )

    def check(self, before: tuple[int | None, int | None]) -> None:
        model, waiting = self.model, self.model.waiting_count()
        for clock in (self.clock, self.twin):
            assert at(clock) == (model.clock, model.closed)
            assert clock.waiting_count == waiting
        assert self.clock.state() == self.twin.state()
        for old, new in zip(before, at(self.clock), strict=True):
            assert old is None or (new is not None and new >= old), "turned back"
        probe = (model.clock or 0) + 1
        for tick in (probe - 2, probe - 1, probe):
            late = model.closed is not None and tick <= model.closed
            assert is_late(self.clock, tick) == late
            assert self.clock.complete(tick, before_only=False) == late
            reached = model.clock is not None and tick <= model.clock
            assert self.clock.complete(tick, before_only=True) == reached


VERBS = ["rows"] * 12 + ["advance", "restart", "remove", "add", "add", "idle", "idle", "awake"]
VERBS += ["advance_source"] * 3


def random_event(rng: random.Random, now: int) -> Event:
    verb = rng.choice(VERBS)
    name = rng.choice(["", "a", "a", "b", "b", "c"])
    if verb != "rows":
        return verb, name, (now + rng.randint(-15, 10),)
    values = [now + rng.randint(-20, 6) for _ in range(rng.choice([0, 1, 1, 2, 5]))]
    if rng.random() < 0.05:
        values.append(now + rng.randint(20, 300))
    return verb, name, tuple(values)


@pytest.mark.parametrize("watermark", [0, 1, 7])
@pytest.mark.parametrize("max_step", [None, 1, 25])
@pytest.mark.parametrize("start", [0, -1000, TICK_MIN + 20])
def test_random_sequences_equal_the_model(watermark: int, max_step: int | None, start: int) -> None:
    rng = random.Random(f"{watermark} {max_step} {start}")
    for _ in range(10):
        trio, now = Trio(watermark, max_step), start
        ran = 0
        while ran < 60:  # 27 × 10 × 60 = 16 200 events
            event = random_event(rng, now)
            if min(event[2], default=TICK_MIN) >= TICK_MIN:
                ran += trio.run(event)
            now += rng.choice([0, 0, 1, 2, 5])


small = st.integers(-6, 6)
extreme = st.sampled_from([TICK_MIN, TICK_MIN + 1, -1, 0, 1, TICK_MAX - 1, TICK_MAX])
names = st.sampled_from(["", "a", "b"])
inserts = st.tuples(st.just("rows"), names, st.lists(small | extreme, max_size=4).map(tuple))
others = st.tuples(
    st.sampled_from(sorted(set(VERBS) - {"rows"})), names, st.tuples(small | extreme)
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([0, 1, 3, TICK_MAX]),
    st.sampled_from([None, 1, 4, TICK_MAX]),
    st.lists(inserts | others, max_size=25),
)
def test_any_sequence_equals_the_model(
    watermark: int, max_step: int | None, events: list[Event]
) -> None:
    trio = Trio(watermark, max_step)
    for event in events:
        trio.run(event)


# Speed. The bounds are far above what is measured (docs/internals/clock.md).


def test_rows_without_a_watermark_do_not_look_at_every_row() -> None:
    clock, times = TableClock(), []
    for insert_number in range(50):
        values = np.arange(100_000, dtype=np.int64) + insert_number * 100_000
        start = time.thread_time()
        clock.rows(values)
        times.append(time.thread_time() - start)
    assert min(times) < 100e-6


def test_many_waiting_inserts_stay_fast() -> None:
    clock, rng = TableClock(watermark=10_000), random.Random(1)
    start = time.thread_time()
    for now in range(30_000):
        clock.rows(ticks(now + rng.randint(0, 5000)))
    assert 5_000 < clock.waiting_count < 15_000
    assert time.thread_time() - start < 6
    clock.validate()


def test_many_overlapping_inserts_stay_fast() -> None:
    clock, rng = TableClock(watermark=10_000), np.random.default_rng(1)
    inserts = [np.sort(rng.integers(n * 10, n * 10 + 9000, 1000)) for n in range(1000)]
    start = time.thread_time()
    for values in inserts:
        clock.rows(values)
    assert clock.waiting_count > 400_000
    assert time.thread_time() - start < 3  # a million rows
    clock.validate()
