"""The query machine: what is done next with which query, and who waits for whom.

Owns: for every query whether it runs here, what is under way, what is still to be looked at, what is due, who
waits for Spark or for a next attempt, and what each FLUSH waits for. Events are calls, and say what happened;
`next` gives the instruction for a thread that has nothing to do. Must never: look at a clock, start a thread,
touch a query or a table. It has no lock: the caller calls it under its own.
docs/internals/query-machine.md has its states and events as a table.

A query is pulled when one of its tables has something new, and fired when the pull found something due; never
both at once. What comes while it is busy is looked at afterwards. An error of the query itself gets a second,
careful attempt, one result at a time; one that may pass by itself is tried again after growing pauses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf

from headwater.engine.retries import Retries
from headwater.engine.scheduler import Scheduler

State = OneOf["running", "paused", "retrying", "failed"]
Found = OneOf["nothing", "early", "due", "halted"]
Trouble = OneOf["passing", "lasting", "no spark"]

IDLE_S = 5.0
WALL_MARGIN_S = 0.0005  # the wall clock may be that much behind when a wait ends
FLUSH_ATTEMPTS = 2  # of what retries: the first may meet an error of the past


@dataclass(frozen=True)
class Pull:
    """See what came, the first of it at a time; `marked`: say up to where it is due."""

    name: str
    since: float | None
    marked: bool


@dataclass(frozen=True)
class Fire:
    """Answer what is due; `careful`: one result at a time."""

    name: str
    careful: bool


@dataclass(frozen=True)
class Retry:
    """Take up the place again after an error."""

    name: str


@dataclass(frozen=True)
class Wait:
    """Nothing can be done before so many seconds have passed, or an event comes."""

    seconds: float


Instruction = Pull | Fire | Retry | Wait
Task = Pull | Fire | Retry
Chooser = Callable[[str, Sequence[str]], str]  # the one whose turn it is, others due: who fires


@dataclass(eq=False)
class _Entry:
    """One query as the machine sees it."""

    name: str
    reads: frozenset[int]
    writes: int | None
    max_wait: float | None
    once: bool  # no second, careful attempt
    state: State
    lent: bool = False  # another host answers it
    removed: bool = False  # forgotten when its work ends
    task: Task | None = None  # under way
    disowned: bool = False  # what is under way is of a query that was removed or replaced
    stale: bool = False  # to be pulled
    since: float | None = None  # when the first of what came since the last pull did
    due: bool = False  # fired before it is pulled again
    late: bool = False  # what was held back may not wait longer
    parked: bool = False  # until Spark runs again
    careful: bool = False
    careful_until: float | None = None  # the mark that ends it, once a pull has said it
    wall_due: int | None = None  # when the wall clock brings something to do, in µs
    pulls: int = 0  # begun so far

    @property
    def here(self) -> bool:
        """Whether it may be pulled and fired."""
        return self.state == "running" and not self.lent and not self.removed

    @property
    def retries(self) -> bool:
        """Whether it waits for its next attempt, or has it."""
        return self.state == "retrying" and not self.lent and not self.removed

    @property
    def pullable(self) -> bool:
        """Whether it can be pulled now."""
        return self.here and self.task is None and not self.due and not self.parked


@dataclass
class _Goal:
    """What a flush waits for in one query."""

    since: int | None = None  # a pull after so many counts; None: its inputs are not there yet
    mark: float | None = None  # what was due then is answered when this is reached
    attempts: int = FLUSH_ATTEMPTS


@dataclass(eq=False)
class FlushWait:
    """One flush: what was acknowledged and complete at its beginning is to be answered."""

    goals: dict[str, _Goal] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether nothing is left to wait for."""
        return not self.goals


class QueryMachine:
    """Decides what the threads of a host do."""

    def __init__(self) -> None:
        self._scheduler = Scheduler()
        self._retries = Retries()
        self._entries: dict[str, _Entry] = {}
        self._readers: dict[int, dict[str, None]] = {}  # by table, in the order they came
        self._dirty: dict[int, float] = {}  # tables with something new, and since when
        self._to_pull: dict[str, None] = {}  # in the order in which they became stale
        self._due: dict[str, None] = {}
        self._flushes: list[FlushWait] = []
        self._wall_next: float = math.inf  # no query waits for an earlier wall clock

    # Queries come and go

    def added(
        self,
        name: str,
        reads: Collection[int],
        *,
        state: State = "running",
        writes: int | None = None,
        priority: int = 0,
        max_wait: float | None = None,
        once: bool = False,
    ) -> None:
        """A query that has its place in its tables; it may take the place of another, at once."""
        known = self._entries.get(name)
        if known is not None and not known.removed:
            self.removed(name)
            known = self._entries.get(name)  # gone, unless it is busy
        self._scheduler.add(name, priority=priority, max_wait=max_wait)
        entry = _Entry(name, frozenset(reads), writes, max_wait, once, state)
        if known is not None:
            entry.task, entry.disowned = known.task, True
        self._entries[name] = entry
        for table in entry.reads:
            self._readers.setdefault(table, {})[name] = None
        self._look_again(entry)

    def removed(self, name: str) -> None:
        """It is never pulled or fired again; what is under way ends."""
        entry = self._known(name)
        entry.removed = True
        self._stop(entry)
        self._scheduler.remove(name)
        for table in entry.reads:
            del self._readers[table][name]
            if not self._readers[table]:
                del self._readers[table]
        self._let_off(entry)
        if entry.task is None:
            del self._entries[name]

    def paused(self, name: str) -> None:
        """No work on it begins any more."""
        entry = self._known(name)
        entry.state = "paused"
        self._stop(entry)
        self._let_off(entry)

    def resumed(self, name: str) -> None:
        """It goes on, from a place that it has taken up again."""
        entry = self._known(name)
        entry.state = "running"
        self._stop(entry)
        self._look_again(entry)

    def lent(self, name: str) -> None:
        """Another host answers it."""
        entry = self._known(name)
        entry.lent = True
        self._stop(entry)
        self._let_off(entry)

    def taken_back(self, name: str) -> None:
        """It is answered here again."""
        entry = self._known(name)
        entry.lent = False
        if entry.state == "retrying":
            entry.state = "running"
        self._look_again(entry)

    def told(self, name: str, state: State) -> None:
        """How a query stands that another host answers."""
        entry = self._known(name)
        if entry.lent:
            entry.state = state

    def well(self, name: str) -> None:
        """It was read without an error: what had failed goes on."""
        entry = self._known(name)
        if entry.state in ("failed", "retrying"):
            entry.state = "running"
            self._retries.forget(name)
            self._look_again(entry)

    # What happens around them

    def rows(self, table: int, since: float) -> None:
        """A table has something new; costs the same however many read it."""
        self._dirty.setdefault(table, since)

    def spark_settled(self) -> None:
        """Spark runs again, or never will: whoever waited for it goes on."""
        for entry in self._entries.values():
            entry.parked = False
            self._line_up(entry)

    def flush_begins(self, names: Collection[str] | None = None) -> FlushWait:
        """What is acknowledged now for these (or all) is looked at, in the order in which results flow."""
        flush = FlushWait()
        for name, entry in self._entries.items():
            if (names is None or name in names) and (entry.here or entry.retries):
                flush.goals[name] = _Goal()
        self._flushes.append(flush)
        self._open_goals(flush)
        return flush

    def flush_ends(self, flush: FlushWait) -> None:
        """Nobody waits for it any more."""
        self._flushes.remove(flush)

    # What was done with them

    def pulled(
        self,
        name: str,
        found: Found,
        now: float,
        wall_due: int | None = None,
        mark: float | None = None,
    ) -> None:
        """A pull has ended. `mark`: where the query stands once it has answered what is due now."""
        entry = self._ended(name, Pull)
        if entry is None:
            return
        entry.wall_due = wall_due
        if wall_due is not None:
            self._wall_next = min(self._wall_next, wall_due)
        if found == "nothing":
            entry.careful, entry.careful_until, entry.late = False, None, False
            self._retries.forget(name)
        elif found != "halted":  # else it is looked at again, by the wall clock at the latest
            held = entry.max_wait is not None and not entry.late and not self._flushed(name)
            self._scheduler.offer(name, now, enough=not held)
            entry.due, entry.late = not held, False
            if entry.careful and entry.careful_until is None:
                entry.careful_until = mark
        self._pull_counts(entry, found, mark)
        self._line_up(entry)

    def fired(
        self, name: str, now: float, cost: float, reached: float, *, without_spark: bool = False
    ) -> None:
        """A firing has ended; `reached`: the mark up to which the query has answered.

        `without_spark`: it did not come about, and is to be done when Spark runs again.
        """
        self._scheduler.finished(name, now, cost)
        entry = self._ended(name, Fire)
        if entry is None:
            return
        self._retries.forget(name)
        if entry.careful_until is not None and reached >= entry.careful_until:
            entry.careful, entry.careful_until = False, None
        entry.parked = without_spark
        if not without_spark:
            self._reached(entry, reached)
        self._look_again(entry)  # more may have come, or be left, since

    def tries_again(self, name: str, trouble: Trouble) -> bool:
        """After an error in a firing: whether the query takes up its place and goes on.

        What the query itself raised is looked for one result at a time, so that good ones are answered.
        """
        entry = self._known(name, gone=True)
        own = trouble == "lasting"
        if trouble == "passing" or (own and (entry.careful or entry.once)):
            return False
        if not entry.disowned:
            entry.careful, entry.careful_until = entry.careful or own, None
            for flush in self._flushes:  # marks of another place count no more
                if name in flush.goals:
                    flush.goals[name].mark = None
        return True

    def retried(self, name: str) -> None:
        """It has taken up its place again after an error."""
        entry = self._ended(name, Retry)
        if entry is not None:
            entry.state = "running"
            self._look_again(entry)

    def failed(self, name: str, now: float, *, passing: bool, cost: float = 0.0) -> None:
        """What was under way, if anything, has raised an error; one that may pass is tried again."""
        entry = self._entries[name]
        if entry.task is not None:
            kind = type(entry.task)
            if kind is Fire:
                self._scheduler.finished(name, now, cost)
            if self._ended(name, kind) is None:
                return  # somebody stopped it meanwhile
        entry.lent, entry.state = False, "retrying" if passing else "failed"
        self._stop(entry, for_good=not passing)
        if not passing:
            self._let_off(entry)
            return
        self._retries.failed(name, now)
        for flush in self._flushes:
            goal = flush.goals.get(name)
            if goal is not None:
                self._hurry(flush, goal, name)

    # What to do

    def next(self, now: float, wall_us: int, choose: Chooser | None = None) -> Instruction:
        """The next instruction for a thread; it is under way until its end is told.

        `choose`: of those due, who fires in the place of the one whose turn it is (US10).
        """
        self._spread_rows()
        self._look_at_wall(wall_us)
        tried = self._retries.take(now)
        if tried is not None:
            task = self._entries[tried].task = Retry(tried)
            return task
        if self._to_pull:
            return self._pull(self._entries[next(iter(self._to_pull))])
        return self._fire(now, choose) or Wait(self._patience(now, wall_us))

    def _pull(self, entry: _Entry) -> Pull:
        entry.stale, entry.pulls = False, entry.pulls + 1
        goals = [goal for flush in self._flushes if (goal := flush.goals.get(entry.name))]
        asked = any(goal.since is not None and goal.mark is None for goal in goals)
        marked = asked or (entry.careful and entry.careful_until is None)
        task = entry.task = Pull(entry.name, entry.since, marked)
        entry.since = None
        self._line_up(entry)
        return task

    def _fire(self, now: float, choose: Chooser | None) -> Fire | None:
        while (name := self._scheduler.next(now)) is not None:
            entry = self._entries[name]
            if entry.task is not None:  # it is pulled just now: it fires after that
                entry.late = True
                self._scheduler.finished(name, now, 0.0)
                continue
            if choose is not None:
                entry = self._preferred(entry, choose)
            entry.due = entry.late = False
            task = entry.task = Fire(entry.name, entry.careful)
            self._line_up(entry)
            return task
        return None

    def _preferred(self, entry: _Entry, choose: Chooser) -> _Entry:
        others = [name for name in self._due if name != entry.name]
        chosen = choose(entry.name, others) if others else entry.name
        if chosen != entry.name:
            self._scheduler.give_way(entry.name, chosen)
            entry.due = True
            self._line_up(entry)
        return self._entries[chosen]

    def _patience(self, now: float, wall_us: int) -> float:
        """How long nothing can become due without an event."""
        wakes = (self._scheduler.wake_at(now), self._retries.wake_at())
        waits = [max(wake - now, 0.0) for wake in wakes if wake is not None]
        if self._wall_next < math.inf:
            waits.append(max(self._wall_next - wall_us, 0.0) / 1e6 + WALL_MARGIN_S)
        return min([IDLE_S, *waits])

    def _look_at_wall(self, wall_us: int) -> None:
        """Queries over arrival times whose next instant has come are pulled."""
        if wall_us < self._wall_next:
            return
        self._wall_next = math.inf
        for entry in self._entries.values():
            if entry.wall_due is None or not entry.pullable:
                continue  # it is pulled when its work is over
            if entry.wall_due <= wall_us:
                self._look_again(entry)
            else:
                self._wall_next = min(self._wall_next, entry.wall_due)

    def _spread_rows(self) -> None:
        for table, since in self._dirty.items():
            for name in self._readers.get(table, ()):
                self._look_again(self._entries[name], since)
        self._dirty.clear()

    # What is known

    def state_of(self, name: str) -> State:
        """How a query stands."""
        return self._known(name).state

    def is_busy(self, name: str) -> bool:
        """Whether work on a query of that name is under way, of one that was removed too."""
        entry = self._entries.get(name)
        return entry is not None and entry.task is not None

    def readers_of(self, table: int) -> Iterable[str]:
        """The names of the queries that read a table."""
        return self._readers.get(table, ())

    # Steps

    def _known(self, name: str, *, gone: bool = False) -> _Entry:
        entry = self._entries.get(name)
        if entry is None or (entry.removed and not gone):
            raise ValueError(f"the machine knows no query {name!r}")
        return entry

    def _ended(self, name: str, kind: type[Task]) -> _Entry | None:
        """A task is over; its query, if what it says counts."""
        entry = self._known(name, gone=True)
        if type(entry.task) is not kind:
            raise ValueError(f"{name!r} has no {kind.__name__} under way, but {entry.task}")
        going = entry.here or (kind is Retry and entry.retries)
        counts = going and not entry.disowned
        entry.task, entry.disowned = None, False
        if entry.removed:
            del self._entries[name]
            return None
        if not counts:
            entry.stale = True
            self._line_up(entry)
        return entry if counts else None

    def _stop(self, entry: _Entry, *, for_good: bool = True) -> None:
        """Nothing that was decided for it counts any more."""
        self._scheduler.withdraw(entry.name)
        if for_good:
            self._retries.forget(entry.name)
        entry.due = entry.late = entry.parked = entry.careful = False
        entry.careful_until = entry.wall_due = None
        self._line_up(entry)

    def _look_again(self, entry: _Entry, since: float | None = None) -> None:
        entry.stale = True
        if entry.since is None:
            entry.since = since
        self._line_up(entry)

    def _line_up(self, entry: _Entry) -> None:
        """It is in line to be pulled exactly if it should and can be, and among the due if it is."""
        if entry.due:
            self._due.setdefault(entry.name)
        else:
            self._due.pop(entry.name, None)
        if entry.stale and entry.pullable:
            self._to_pull.setdefault(entry.name)
        else:
            self._to_pull.pop(entry.name, None)

    # Flushes

    def _flushed(self, name: str) -> bool:
        return any(name in flush.goals for flush in self._flushes)

    def _open_goals(self, flush: FlushWait) -> None:
        """Queries all of whose inputs have been answered are looked at from now on."""
        writers = {
            entry.writes: name
            for name in flush.goals
            if (entry := self._entries[name]).writes is not None
        }
        for name, goal in list(flush.goals.items()):
            entry = self._entries[name]
            if goal.since is not None or any(writers.get(t, name) != name for t in entry.reads):
                continue
            goal.since = entry.pulls
            if entry.retries:
                self._hurry(flush, goal, name)
            else:
                self._look_again(entry)

    def _hurry(self, flush: FlushWait, goal: _Goal, name: str) -> None:
        """What waits for its next attempt gets it now; what fails then goes on waiting."""
        if goal.since is None:
            return
        goal.attempts -= 1
        if goal.attempts < 0:
            self._answered(flush, name)
        else:
            goal.since, goal.mark = self._entries[name].pulls, None
            self._retries.hurry(name)

    def _pull_counts(self, entry: _Entry, found: Found, mark: float | None) -> None:
        for flush in list(self._flushes):
            goal = flush.goals.get(entry.name)
            if goal is None or goal.since is None or entry.pulls <= goal.since:
                continue
            if found == "nothing":
                self._answered(flush, entry.name)
            elif goal.mark is None and found != "halted":
                goal.mark = -math.inf if found == "early" else mark

    def _reached(self, entry: _Entry, mark: float) -> None:
        """A query has answered up to a mark."""
        for flush in list(self._flushes):
            goal = flush.goals.get(entry.name)
            if goal is not None and goal.mark is not None and mark >= goal.mark:
                self._answered(flush, entry.name)

    def _let_off(self, entry: _Entry) -> None:
        """Nobody waits for a query that goes on no more."""
        for flush in list(self._flushes):
            if entry.name in flush.goals:
                self._answered(flush, entry.name)

    def _answered(self, flush: FlushWait, name: str) -> None:
        del flush.goals[name]
        if self._entries[name].writes is not None:
            self._open_goals(flush)

    # Tests

    def validate(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        self._scheduler.validate()
        readers: dict[int, set[str]] = {}
        for name, entry in self._entries.items():
            assert entry.name == name, "a wrong name"
            for table in () if entry.removed else entry.reads:
                readers.setdefault(table, set()).add(name)
            self._validate_entry(entry)
        known = {table: set(names) for table, names in self._readers.items()}
        assert readers == known, "a table with wrong readers"
        assert set(self._to_pull) == {
            e.name for e in self._entries.values() if e.stale and e.pullable
        }, "a query is not in line, or wrongly"
        due = {entry.name for entry in self._entries.values() if entry.due}
        assert set(self._due) == due, "who is due is not known"
        for flush in self._flushes:
            for name, goal in flush.goals.items():
                self._validate_goal(self._entries[name], goal)
            opened = [goal.since is not None for goal in flush.goals.values()]
            assert any(opened) or not opened, "a flush that waits for nothing that comes"

    def _validate_entry(self, entry: _Entry) -> None:
        waits = entry.name in self._retries
        firing = isinstance(entry.task, Fire)
        assert self._scheduler.is_running(entry.name) == firing, "fires without the scheduler"
        assert not entry.removed or entry.task is not None, "a removed query is remembered"
        assert not entry.disowned or entry.task is not None, "nothing is under way, of another"
        trying = isinstance(entry.task, Retry) and not entry.disowned
        assert waits == (entry.retries and not trying), "a retry that never comes, or is not wanted"
        if not entry.here or entry.parked:
            assert not entry.due, "due, but it may not fire"
            assert not self._scheduler.is_offered(entry.name), "offered, but it may not fire"
        if entry.due:
            assert self._scheduler.is_offered(entry.name), "due, but nobody will fire it"
            assert not isinstance(entry.task, Pull), "due, and pulled"
        assert not entry.parked or entry.here, "waits for Spark, and may not fire"

    def _validate_goal(self, entry: _Entry, goal: _Goal) -> None:
        """Whoever a flush waits for has something to do."""
        going = entry.stale or entry.due or entry.task is not None or entry.parked
        held = self._scheduler.is_offered(entry.name)
        assert not entry.removed, "waits for a removed query"
        assert not entry.lent, "waits for a query that is answered elsewhere"
        assert entry.state in ("running", "retrying"), "waits for a query that stands still"
        waits = goal.since is None or going or held or entry.name in self._retries
        assert waits, "waits for a query that does nothing"
