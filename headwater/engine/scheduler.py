"""The scheduler: a Petri net whose places are baskets and whose transitions are factories.

Owns: which factory runs next. Events in (an offer, a claim, an end), a name or a time out.
Must never: look at a clock, start a thread, run a factory or know what is in a basket; the caller
passes in the time and the measured cost, and says whether the inputs suffice. It has no lock: the
caller calls it under its own. DataCell §2 (DC3); docs/internals/scheduler.md has the rules.

Fairness is start-time fair queueing. A factory's virtual time is the cost of its runs divided by
its weight; the smallest goes first. A factory that was idle starts at the smallest virtual time
of those that were ready when one was last picked: idleness earns nothing and costs nothing.

Every operation is O(log n), amortised: a heap entry is left where it is when its factory moves
on, and dropped when it comes to the top or when half of a heap is such entries.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from enum import Enum
from itertools import count

MOST_PRIORITY = 8  # weights lie between 1/256 and 256
LEAST_COST_S = (
    1e-5  # a run is charged at least this, or a run that costs nothing could go on forever
)
JUMP_CREDIT_S = 1.0  # how far in virtual time a factory may be ahead and still jump the queue
_SLACK = 64  # entries of the past that a small heap may hold


class _Offer(Enum):
    """What the inputs of a factory hold."""

    NOTHING = "nothing"
    SOME = "some"
    ENOUGH = "enough"


@dataclass(slots=True, eq=False)
class _Factory:
    name: str
    weight: float
    max_wait: float | None
    virtual_time: float = 0.0
    offer: _Offer = _Offer.NOTHING
    deadline: float = math.inf  # when what was offered first must fire
    running: bool = False
    ready: bool = False
    removed: bool = False
    turn: int = 0  # heap entries of earlier turns are void


# A key (virtual time or deadline), a number that settles ties in order of arrival, the turn.
_Heap = list[tuple[float, int, int, _Factory]]


class Scheduler:
    """Picks factories that can fire: overdue ones first, then by fair share."""

    def __init__(self) -> None:
        self._factories: dict[str, _Factory] = {}
        self._ready: _Heap = []  # by virtual time
        self._due: _Heap = []  # ready ones with a time constraint, by deadline
        self._held: _Heap = []  # those that wait for more until their deadline
        self._virtual_now = 0.0
        self._arrivals = count()

    def add(self, factory: str, *, priority: int = 0, max_wait: float | None = None) -> None:
        """A new factory. `max_wait`: how long inputs may be held back while they hold too little.

        The name may be that of a removed factory that still runs: the new one runs after it.
        """
        if max_wait is not None and not 0 <= max_wait < math.inf:
            raise ValueError(f"max_wait is at least 0, not {max_wait}")
        weight = 2.0 ** max(-MOST_PRIORITY, min(MOST_PRIORITY, priority))
        known = self._factories.get(factory)
        if known is None:
            self._factories[factory] = _Factory(factory, weight, max_wait)
            return
        if not known.removed:
            raise ValueError(f"the scheduler already has a factory {factory!r}")
        known.weight, known.max_wait, known.removed = weight, max_wait, False

    def remove(self, factory: str) -> None:
        """It never runs again; if it runs now, it is forgotten when it finishes."""
        gone = self._known(factory)
        self._clear(gone)
        gone.removed = True
        if not gone.running:
            self._forget(gone)

    def offer(self, factory: str, now: float, *, enough: bool) -> None:
        """Its inputs hold something new; not enough: it fires once `max_wait` has passed.

        The wait counts from the first offer since the factory last fired or was withdrawn. An
        offer of less after one of enough changes nothing.
        """
        offered = self._known(factory)
        if offered.offer is _Offer.NOTHING and offered.max_wait is not None:
            offered.deadline = now + offered.max_wait
        new = _Offer.ENOUGH if enough else _Offer.SOME
        if new is offered.offer or offered.offer is _Offer.ENOUGH:
            return
        offered.offer = new
        if offered.running or offered.ready:
            return
        if enough:
            self._make_ready(offered, idle=True)
        else:
            self._hold(offered)

    def withdraw(self, factory: str) -> None:
        """Nothing to do any more: paused, or its inputs are consumed. A run goes on."""
        self._clear(self._known(factory))

    def next(self, now: float) -> str | None:
        """Claim the factory to run now; None if none can fire."""
        self._fire_held(now)
        first = _top(self._ready)
        if first is None:
            return None
        self._virtual_now = max(self._virtual_now, first.virtual_time)
        claimed = self._overdue(now, first.virtual_time + JUMP_CREDIT_S) or first
        self._clear(claimed)
        claimed.running = True
        return claimed.name

    def give_way(self, claimed: str, other: str) -> None:
        """Claims another ready factory in place of the one just claimed; they change places in line.

        So their runs together count for no more than one's would have.
        """
        one, two = self._known(claimed), self._known(other)
        if not one.running or not two.ready:
            raise ValueError(f"{claimed!r} cannot give way to {other!r}")
        one.running = False
        self._clear(two)
        two.running = True
        one.virtual_time, two.virtual_time = two.virtual_time, one.virtual_time
        one.offer = _Offer.ENOUGH
        self._make_ready(one, idle=False)

    def finished(self, factory: str, now: float, cost: float) -> None:
        """Its run has ended and cost so much; what was offered meanwhile may fire now."""
        ended = self._factories.get(factory)
        if ended is None or not ended.running:
            raise ValueError(f"the factory {factory!r} does not run")
        if not 0 <= cost < math.inf:
            raise ValueError(f"a run costs at least 0, not {cost}")
        ended.running = False
        ended.virtual_time += max(cost, LEAST_COST_S) / ended.weight
        if ended.removed:
            self._forget(ended)
        elif ended.offer is _Offer.ENOUGH or ended.deadline <= now:
            self._make_ready(ended, idle=False)
        elif ended.offer is _Offer.SOME:
            self._hold(ended)

    def wake_at(self, now: float) -> float | None:
        """When a time constraint will make something ready; None if nothing waits on time."""
        first = _top(self._held)
        return None if first is None else max(now, first.deadline)

    def is_running(self, factory: str) -> bool:
        """Whether it is claimed."""
        known = self._factories.get(factory)
        return known is not None and known.running

    def is_offered(self, factory: str) -> bool:
        """Whether its inputs hold something that it has not been claimed for."""
        known = self._factories.get(factory)
        return known is not None and known.offer is not _Offer.NOTHING

    # Tests

    def validate(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        entries = {
            place: [entry for entry in heap if _current(entry)]
            for place, heap in (("ready", self._ready), ("due", self._due), ("held", self._held))
        }
        most = 2 * len(self._factories) + _SLACK
        assert max(len(self._ready), len(self._due), len(self._held)) <= most, "a heap leaks"
        for name, factory in self._factories.items():
            found = {p for p, current in entries.items() for e in current if e[3] is factory}
            assert factory.name == name, "a wrong name"
            assert not factory.removed or factory.running, "a removed factory is remembered"
            assert found in self._right_places(factory), f"{name} is in {found}"
        for place, current in entries.items():
            assert len({entry[3].name for entry in current}) == len(current), f"twice in {place}"

    def _right_places(self, factory: _Factory) -> list[set[str]]:
        """The heaps a factory may be in."""
        if factory.running or factory.offer is _Offer.NOTHING:
            assert not factory.ready, "ready without a reason"
            return [set()]
        timed = factory.max_wait is not None
        if not factory.ready:
            return [{"held"}] if timed else [set()]
        return [{"ready"}, {"ready", "due"}] if timed else [{"ready"}]

    # Steps

    def _known(self, name: str) -> _Factory:
        factory = self._factories.get(name)
        if factory is None or factory.removed:
            raise ValueError(f"the scheduler knows no factory {name!r}")
        return factory

    def _forget(self, factory: _Factory) -> None:
        del self._factories[factory.name]
        for heap in (self._ready, self._due, self._held):
            self._tidy(heap)

    def _clear(self, factory: _Factory) -> None:
        """Nothing is offered: it leaves all heaps."""
        factory.turn += 1
        factory.ready = False
        factory.offer = _Offer.NOTHING
        factory.deadline = math.inf

    def _hold(self, factory: _Factory) -> None:
        """It waits for more; without a time constraint for as long as it takes."""
        if factory.max_wait is not None:
            self._push(self._held, factory.deadline, factory)

    def _make_ready(self, factory: _Factory, *, idle: bool) -> None:
        factory.turn += 1  # it may have been held
        factory.ready = True
        if idle:
            factory.virtual_time = max(factory.virtual_time, self._virtual_now)
        self._push(self._ready, factory.virtual_time, factory)
        if factory.max_wait is not None:
            self._push(self._due, factory.deadline, factory)

    def _fire_held(self, now: float) -> None:
        """Those that have been held back for long enough are ready with what there is."""
        while (first := _top(self._held)) is not None and first.deadline <= now:
            self._make_ready(first, idle=True)

    def _overdue(self, now: float, limit: float) -> _Factory | None:
        """The longest overdue that has not had more than its share; the others wait their turn."""
        while (first := _top(self._due)) is not None and first.deadline <= now:
            if first.virtual_time <= limit:
                return first
            heapq.heappop(self._due)
        return None

    def _push(self, heap: _Heap, key: float, factory: _Factory) -> None:
        self._tidy(heap)
        heapq.heappush(heap, (key, next(self._arrivals), factory.turn, factory))

    def _tidy(self, heap: _Heap) -> None:
        """Drop the entries of the past once they are the larger part."""
        if len(heap) >= 2 * len(self._factories) + _SLACK:
            heap[:] = [entry for entry in heap if _current(entry)]
            heapq.heapify(heap)


def _current(entry: tuple[float, int, int, _Factory]) -> bool:
    return entry[2] == entry[3].turn


def _top(heap: _Heap) -> _Factory | None:
    """The factory at the top, once entries of the past are gone."""
    while heap and not _current(heap[0]):
        heapq.heappop(heap)
    return heap[0][3] if heap else None
