"""The clock of one streaming table: which rows are released, which are late, what is closed.

Owns: the table's clock c, its closed mark L, the marks of its sources and the ticks of the rows
that wait for the watermark. A pure state machine: events in, stamps out.
Must never: read or write anything, look at the wall clock, start a thread, or turn c or L back; `back`
makes another clock.
It has no lock: the caller calls it in commit order.

This is the input manager of ST2 ("a streaming table is written in timestamp order", Streaming
tables §III, Definition 2) and the ordering that EQ6 needs at a cut. The contract is DESIGN §5,
Clock and Late; docs/internals/clock.md has it with examples. Two facts carry the code:

* L is c − 1 (c is the T of a row, its ties may come) or c (c was advanced to).
* The waiting rows are exactly the stored rows with T > c.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.errors import DataError

Ticks = npt.NDArray[np.int64]

TICK_MIN = -(1 << 63)
TICK_MAX = (1 << 63) - 1
DIRECT = ""  # the source of rows that are inserted directly
NO_TICKS: Ticks = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What one event decided. Written to the WAL with it, so that recovery infers nothing."""

    late_count: int  # rows are sorted by T, so the late ones are the first `late_count`
    clock: int | None  # c after the event
    closed: int | None  # L after the event
    seen: int | None  # the event's source after it: as in Mark
    advanced: int | None
    live: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """How far one source is. The direct one is never live: it holds nothing back."""

    seen: int | None = None  # M: the largest T seen, as far as it moves the watermark
    advanced: int | None = None  # the source has promised that no T up to here will come
    live: bool = False


@dataclass(frozen=True, slots=True)
class ClockState:
    """All of a clock but the waiting ticks: small, for checkpoints."""

    clock: int | None = None
    closed: int | None = None
    marks: Mapping[str, Mark] = field(default_factory=dict)

    def back(self, tick: int) -> ClockState:
        """The state with the clock set back to a tick, as if a row at it had been the furthest."""
        marks = {
            name: Mark(_nearest(mark.seen, tick), _nearest(mark.advanced, tick), mark.live)
            for name, mark in self.marks.items()
        }
        return ClockState(tick, tick - 1, marks)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, numbers and None."""
        marks = {name: asdict(mark) for name, mark in self.marks.items()}
        return {"clock": self.clock, "closed": self.closed, "marks": marks}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ClockState:
        """The state that to_json() wrote."""
        marks = {name: Mark(**mark) for name, mark in data["marks"].items()}
        return cls(data["clock"], data["closed"], marks)


class TableClock:
    """The clock of a table with TIMESTAMP BY."""

    def __init__(
        self, *, watermark: int = 0, max_step: int | None = None, state: ClockState | None = None
    ) -> None:
        """`watermark` and `max_step` are ticks; `state` is that of a clock without waiting rows."""
        if watermark < 0 or (max_step is not None and max_step < 1):
            raise ValueError("watermark is at least 0 and max_step at least 1")
        state = state or ClockState()
        self._watermark = watermark
        self._max_step = max_step
        self._clock = state.clock
        self._closed = state.closed
        self._marks = {DIRECT: Mark(), **state.marks}
        self._waiting = _WaitingTicks()

    @classmethod
    def restore(
        cls,
        state: ClockState,
        waiting_ticks: Ticks,
        *,
        watermark: int = 0,
        max_step: int | None = None,
    ) -> TableClock:
        """The clock of a state and the ticks, in any order, of the rows stored when it was taken.

        Only those beyond state.clock matter (all if it is None); others may be left out or given.
        """
        made = cls(watermark=watermark, max_step=max_step, state=state)
        made._wait(np.sort(waiting_ticks))
        return made

    # What it shows

    @property
    def clock(self) -> int | None:
        """c: the largest T released or advanced to."""
        return self._clock

    @property
    def closed(self) -> int | None:
        """L: no row with T ≤ L can still come in time."""
        return self._closed

    @property
    def waiting_count(self) -> int:
        """How many rows wait. A live source that stands still makes it grow: bound it."""
        return self._waiting.count

    @property
    def marks(self) -> Mapping[str, Mark]:
        """How far each source is; "" stands for rows inserted directly."""
        return MappingProxyType(self._marks)

    def state(self) -> ClockState:
        """What restore() needs besides the waiting ticks."""
        return ClockState(self._clock, self._closed, dict(self._marks))

    def late_count(self, ticks: Ticks) -> int:
        """How many of these sorted ticks would be late now, for LATE REJECT; changes nothing."""
        if self._closed is None or len(ticks) == 0 or ticks[0] > self._closed:
            return 0
        return int(np.searchsorted(ticks, self._closed, side="right"))

    def complete(self, instant: int, *, before_only: bool) -> bool:
        """Whether a window at the instant has all its rows that come in time.

        `before_only`: only BEFORE windows and time cuts, which leave out T = instant, stand on it.
        """
        reached = self._clock if before_only else self._closed
        return reached is not None and instant <= reached

    # Events

    def rows(self, ticks: Ticks, source: str = DIRECT, limit: int | None = None) -> Stamp:
        """One insert: its rows' T, ascending (not checked). Wakes an idle source.

        Rows beyond the limit move no mark: they wait until others get there.
        """
        if ticks.dtype != np.int64:
            raise ValueError(f"ticks are int64, not {ticks.dtype}")
        mark = self._mark(source)
        if len(ticks) == 0:
            return self._stamp(source)
        late_count = self.late_count(ticks)
        seen = mark.seen
        near = _count_until(ticks, limit) if limit is not None else len(ticks)
        if late_count < near:
            seen = _furthest(seen, self._bounded(int(ticks[near - 1]), mark))
        self._marks[source] = Mark(seen, mark.advanced, source != DIRECT)
        self._release(ticks[late_count:])
        return self._stamp(source, late_count)

    def advance(self, tick: int, source: str | None = None) -> Stamp:
        """Time has come to `tick`: for the whole table (None), or as far as one source knows.

        That wakes the source if it was idle. Back in time nothing happens.
        """
        tick = int(tick)
        if not TICK_MIN <= tick <= TICK_MAX:
            raise DataError(f"time {tick} is out of range", sqlstate="22003")
        if source is None:
            self._close(tick)
            return self._stamp(DIRECT)
        mark = self._mark(source)
        advanced = _furthest(mark.advanced, tick)
        self._marks[source] = Mark(mark.seen, advanced, source != DIRECT)
        self._release(NO_TICKS)
        return self._stamp(source)

    def reach(self, tick: int) -> Stamp:
        """Time has come to `tick` as a row at it would bring it: ties may still come."""
        self._waiting.release(tick)
        self._move_to_row(tick)
        return self._stamp(DIRECT)

    def add_source(self, name: str) -> Stamp:
        """A live source, which holds the clock until it has rows; one that is known wakes."""
        return self._set_live(name, self._marks.get(name, Mark()), True)

    def awake(self, name: str) -> Stamp:
        """The source holds the clock back again; where the clock is it stays."""
        return self._set_live(name, self._mark(name), True)

    def idle(self, name: str) -> Stamp:
        """The source no longer holds the clock back: `idle_timeout`, paused, or failed."""
        return self._set_live(name, self._mark(name), False)

    def remove_source(self, name: str) -> Stamp:
        """Forget the source. From now on its rows count as inserted directly."""
        self._forget(name)
        self._release(NO_TICKS)
        return self._stamp(DIRECT)

    def back(self, tick: int, ticks: Ticks) -> tuple[TableClock, Stamp]:
        """Another clock, set back to a tick; `ticks`: of all stored rows beyond it that came in time.

        Those wait again. What was late stays late.
        """
        state = self.state().back(tick)
        made = TableClock.restore(state, ticks, watermark=self._watermark, max_step=self._max_step)
        return made, made._stamp(DIRECT)

    # Recovery

    def replay(self, stamp: Stamp, ticks: Ticks = NO_TICKS, source: str = DIRECT) -> None:
        """Repeat an event as its stamp says; only a removal has its own method."""
        self._marks[source] = Mark(stamp.seen, stamp.advanced, stamp.live)
        self._clock, self._closed = stamp.clock, stamp.closed
        self._wait(ticks)  # late ones lie below the clock

    def replay_removal(self, stamp: Stamp, source: str) -> None:
        """Repeat a remove_source() as its stamp says."""
        self._forget(source)
        self.replay(stamp)

    # Tests

    def validate(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        clock, closed = self._clock, self._closed
        if clock is None or closed is None:
            assert closed is None, "closed without a clock"
            assert clock in (None, TICK_MIN), "a clock without closed"
        else:
            assert TICK_MIN <= closed <= clock <= TICK_MAX, "out of range"
            assert clock - closed <= 1, "the closed mark is left behind"
        assert not self._marks[DIRECT].live, "the direct source holds the clock"
        self._waiting.validate()
        first, level = self._waiting.first(), self._level()
        assert first is None or level is None or first > level, "a row waits that is released"

    # Steps

    def _mark(self, source: str) -> Mark:
        if source not in self._marks:
            raise ValueError(f"the clock knows no source {source!r}")
        return self._marks[source]

    def _set_live(self, name: str, mark: Mark, live: bool) -> Stamp:
        if name == DIRECT:
            raise ValueError("the direct source cannot be added, idle or awake")
        self._marks[name] = Mark(mark.seen, mark.advanced, live)
        self._release(NO_TICKS)
        return self._stamp(name)

    def _forget(self, name: str) -> None:
        if name == DIRECT:
            raise ValueError("the direct source cannot be removed")
        gone, direct = self._mark(name), self._marks[DIRECT]
        del self._marks[name]
        seen = _furthest(direct.seen, gone.seen)
        self._marks[DIRECT] = Mark(seen, _furthest(direct.advanced, gone.advanced))

    def _bounded(self, tick: int, mark: Mark) -> int:
        """How far a row with this T may move its source's mark."""
        if self._max_step is None:
            return tick
        seen = mark.seen
        if seen is None:
            seen = _largest(other.seen for other in self._marks.values())
        if seen is None:
            return tick  # the very first row of the table
        base = seen if self._clock is None else max(seen, self._clock)
        return min(tick, base + self._max_step)

    def _release(self, ticks: Ticks) -> None:
        """Let out what the marks allow, of new rows in time and of those that wait."""
        level = self._level()
        released = _count_until(ticks, level)
        if released:
            self._move_to_row(int(ticks[released - 1]))
        if released < len(ticks):
            self._waiting.add(ticks[released:].copy())
        largest = self._waiting.release(level)
        if largest is not None:
            self._move_to_row(largest)
        promised = self._promised()
        if promised is not None:
            self._close(promised)

    def _wait(self, ticks: Ticks) -> None:
        """Rows of the past, sorted: those beyond the clock wait, and no others."""
        kept = ticks[_count_until(ticks, self._clock) :]
        if len(kept):
            self._waiting.add(kept.copy())
        self._waiting.release(self._clock)

    def _move_to_row(self, tick: int) -> None:
        """A row is released: ties of it may still come, so L stays one tick behind."""
        if self._clock is None or tick > self._clock:
            self._clock = tick
        if tick > TICK_MIN and (self._closed is None or tick - 1 > self._closed):
            self._closed = tick - 1

    def _close(self, tick: int) -> None:
        self._waiting.release(tick)
        self._clock = _furthest(self._clock, tick)
        self._closed = _furthest(self._closed, tick)

    def _stamp(self, source: str, late_count: int = 0) -> Stamp:
        mark = self._marks[source]
        return Stamp(late_count, self._clock, self._closed, mark.seen, mark.advanced, mark.live)

    # Several sources

    def _level(self) -> int | None:
        """Rows up to here are released: what the marks allow, and never less than the clock."""
        marks = self._marks.values()
        holding = [self._reach(mark) for mark in marks if mark.live]
        if holding:
            allowed = _smallest(holding)
        else:
            allowed = _largest(self._reach(mark) for mark in marks)
        return _furthest(self._clock, allowed)

    def _reach(self, mark: Mark) -> int | None:
        """Up to where one source lets rows out."""
        seen = None if mark.seen is None else mark.seen - self._watermark
        return _furthest(seen, mark.advanced)

    def _promised(self) -> int | None:
        """Up to where advances of sources close the table.

        The furthest of them counts as far as every other live source has advanced too or lets
        out later rows (ties at its own reach may still come).
        """
        marks = self._marks.values()
        live = [mark for mark in marks if mark.live]
        top = _largest(mark.advanced for mark in live or marks)
        if top is None or not live:
            return top
        passed = _smallest(self._passed(mark) for mark in live)
        return None if passed is None or passed < TICK_MIN else min(top, passed)

    def _passed(self, mark: Mark) -> int | None:
        """Up to where one source has done with time."""
        seen = None if mark.seen is None else mark.seen - self._watermark - 1
        return _furthest(seen, mark.advanced)


class _WaitingTicks:
    """The ticks of waiting rows, as a few sorted runs of falling size.

    A new run is merged with those before it while they are less than twice its size. So each run
    was made with at most half the ticks of the one before: there are at most 64, a release looks
    at each once, and a tick is merged O(log n) times in its life.
    """

    def __init__(self) -> None:
        self.count = 0
        self._runs: list[Ticks] = []

    def first(self) -> int | None:
        return min((int(run[0]) for run in self._runs), default=None)

    def add(self, ticks: Ticks) -> None:
        """Takes the array, which is sorted and not empty, over."""
        self.count += len(ticks)
        while self._runs and len(self._runs[-1]) < 2 * len(ticks):
            ticks = np.concatenate((self._runs.pop(), ticks))
            ticks.sort(kind="stable")  # two runs: one merge
        self._runs.append(ticks)

    def release(self, level: int | None) -> int | None:
        """Drop all ticks up to the level; the largest of them."""
        largest = None
        for place in range(len(self._runs) - 1, -1, -1):
            run = self._runs[place]
            released = _count_until(run, level)
            if released == 0:
                continue
            largest = _furthest(largest, int(run[released - 1]))
            self.count -= released
            if released < len(run):
                self._runs[place] = _trimmed(run[released:])
            else:
                del self._runs[place]
        return largest

    def validate(self) -> None:
        assert self.count == sum(len(run) for run in self._runs), "wrong count"
        assert len(self._runs) <= 64, "too many runs"
        for run in self._runs:
            assert len(run), "an empty run"
            assert (run[:-1] <= run[1:]).all(), "ticks out of order"


def _trimmed(ticks: Ticks) -> Ticks:
    """The same ticks, without a base twice as large that they would keep in memory."""
    if ticks.base is not None and ticks.base.nbytes >= 2 * ticks.nbytes:
        return ticks.copy()
    return ticks


def _count_until(ticks: Ticks, level: int | None) -> int:
    """How many of the sorted ticks are at or below the level, which may lie below all int64."""
    if level is None or len(ticks) == 0 or ticks[0] > level:
        return 0
    if ticks[-1] <= level:
        return len(ticks)
    return int(np.searchsorted(ticks, level, side="right"))


def _furthest(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _nearest(one: int | None, bound: int) -> int | None:
    return None if one is None else min(one, bound)


def _largest(ticks: Iterable[int | None]) -> int | None:
    """The largest, where None has not begun: it does not count."""
    return max((tick for tick in ticks if tick is not None), default=None)


def _smallest(ticks: Iterable[int | None]) -> int | None:
    """The smallest, where None has not begun: it is smaller than all."""
    found: list[int] = []
    for tick in ticks:
        if tick is None:
            return None
        found.append(tick)
    return min(found, default=None)
