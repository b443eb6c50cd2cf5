"""Equal stream pipelines of several queries are one, with their aggregates united (DC9; DESIGN §7).

Owns: which folds are equal, the panes that stand for them, and the merged relations that some of its
members have not taken yet. Windows of any length, and slides that are multiples of the smallest, stand on
one set of panes: a row is folded into a partial once, the longest window keeps it longest. Whoever asks
first for an instant folds the rows up to it; the others find it. Must never: change a query (each decides
at its own firing whether it takes part), or let the error of one member's expression reach another: whoever
cannot be served by the common fold gets its relation from a fold of its own over the stored rows.

Two locks: a short one over who takes part and what is kept, and one that is held while rows are folded.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.engine.feed import Feed, FeedCursor
from headwater.engine.fold_run import Counters, FoldRun, StaticProbes
from headwater.engine.pane_merge import PaneMerge, PaneWindow
from headwater.engine.reader import LeafReader, PlacedRows
from headwater.engine.sampling import Sampling
from headwater.engine.united import AggregateKey, aggregate_keys, pipeline_signature, united
from headwater.engine.world import World
from headwater.errors import Error
from headwater.fold.pane import Panes, Window
from headwater.kernel.relation import HeldTables
from headwater.storage.streaming.table import StreamingTable

MOST_KEPT = 1024  # instants whose relations wait for members that are behind
MOST_KEPT_ROWS = 4_000_000  # rows of all of them
MOST_WAITING = 4096  # panes that wait for a window whose members are behind
FAR_BEHIND_ROWS = 1_000_000  # that a fold which nobody asked for long would have to catch up with

Signature = tuple[object, ...]


def signature(
    spec: FoldSpec, tables: Sequence[StreamingTable], sampling: Sampling
) -> Signature | None:
    """What folds must have in common to stand on the same panes; None for a fold that is never shared.

    `tables` has one for each leaf of the query: for SAMPLE REALTIME all of them decide the instants.
    """
    plan = spec.plan
    if plan.kind != "aggregate" or plan.statics or spec.aggregation is None:
        return None
    leaf = plan.leaves[0]
    table = tables[leaf.number]
    if leaf.window.kind != "interval" or leaf.window.duration is None or leaf.previous:
        return None
    if sampling.kind == "rows" or table.definition.kind == "stream":
        return None
    pieces = (*plan.where, *plan.keys, *spec.argument_pieces)
    if any(piece.text.reads_instant for piece in pieces):
        return None
    realtime = sampling.kind == "realtime"
    return (
        table.definition.id,
        frozenset(t.definition.id for t in tables) if realtime else None,
        sampling.kind,
        pipeline_signature(spec),
    )


@dataclass(frozen=True)
class _Place:
    """What all members of a shared fold have in common: table, kind of instants, world."""

    table: StreamingTable
    sampling: str
    world: World


@dataclass(frozen=True)
class _Kept:
    """A merged relation, and the aggregates that its columns are."""

    table: pa.Table
    aggregates: tuple[AggregateKey, ...]


@dataclass(eq=False)
class SharedWindow:
    """A window and a slide over the panes: who has them, and what some have not taken yet."""

    window: Window
    step: int
    members: list[Member] = field(default_factory=list)
    position: int | None = None  # the last instant that was merged
    kept: dict[int, _Kept] = field(default_factory=dict)  # in the order of instants
    kept_rows: int = 0

    @property
    def mark(self) -> int | None:
        """The instant that all members that take part have passed; None if none does."""
        return min((m.mark for m in self.members if m.mark is not None), default=None)

    @property
    def following(self) -> int | None:
        """The next instant that is to be merged; None if nobody takes part."""
        mark = self.mark
        if mark is None:
            return None
        last = mark if self.position is None else max(mark, self.position)
        return (last // self.step + 1) * self.step

    def keep(self, made: Mapping[int, _Kept]) -> None:
        """Relations for those who have not asked yet; not too many."""
        for instant, one in made.items():
            self.kept[instant] = one
            self.kept_rows += one.table.num_rows
            self.position = instant
        self.drop_passed()
        while len(self.kept) > MOST_KEPT or self.kept_rows > MOST_KEPT_ROWS:
            self._drop(next(iter(self.kept)))

    def drop_passed(self) -> None:
        """What all have passed is not needed."""
        least = self.mark
        while self.kept:
            instant = next(iter(self.kept))
            if least is not None and instant > least:
                return
            self._drop(instant)

    def _drop(self, instant: int) -> None:
        self.kept_rows -= self.kept.pop(instant).table.num_rows

    def forget(self) -> None:
        """Begin anew."""
        self.position, self.kept_rows = None, 0
        self.kept.clear()


class _Running:
    """Panes over a feed of their own: they begin at one instant and go on to later ones."""

    def __init__(
        self,
        spec: FoldSpec,
        place: _Place,
        windows: Sequence[SharedWindow],
        first: int,
        held: HeldTables,
    ) -> None:
        """`spec`: the leaf has the longest of the windows. `first`: the first instant of any of them."""
        self.aggregates, self.first = aggregate_keys(spec), first
        leaf, table = spec.plan.leaves[0], place.table
        before = FeedCursor(first - 1)  # rows up to there are final: the instant is complete
        while True:
            feed = Feed(place.world, table, before, leaf.needed)
            with table.reading() as snapshot:
                if snapshot.generation != feed.generation:
                    continue
                self.reader = LeafReader(leaf, feed, before, leaf.window.before)
                rows, ticks = self.reader.stored(snapshot, first, None)
                break
        self.seen = table.state.next_sequence
        panes = Panes(gcd(*(w.step for w in windows)), tuple(w.window for w in windows))
        probes = StaticProbes(place.world)
        self.fold = FoldRun(spec, place.world, (self.reader,), panes, panes.windows, probes)
        self.windows = dict(zip(windows, self.merge.windows, strict=True))
        self.fold.take([PlacedRows(rows, ticks, ticks)], held, first)

    @property
    def merge(self) -> PaneMerge:
        """The partials and what each window makes of them."""
        assert isinstance(self.fold.merge, PaneMerge)
        return self.fold.merge

    @property
    def is_current(self) -> bool:
        """Whether the rows it was made of are still those of the table."""
        feed = self.reader.feed
        return feed.table.generation == feed.generation

    def drop(self, window: SharedWindow) -> None:
        """Nobody asks for a window any more."""
        self.merge.windows.remove(self.windows.pop(window))

    def take(self, until: int, held: HeldTables, counters: Counters) -> bool:
        """Rows up to a tick go into their panes; False if stored rows were changed meanwhile."""
        self.fold.counters = counters
        self.seen = self.reader.table.state.next_sequence
        if not self.reader.feed.pull():
            return False
        rows, ticks = self.reader.take_until(until)
        self.fold.take([PlacedRows(rows, ticks, ticks)], held, None)
        return True

    def merged(self, window: SharedWindow, instants: Sequence[int]) -> dict[int, pa.Table]:
        """The merged relations of a window at instants, in order; all their rows were taken."""
        own, found = self.windows[window], {}
        for instant in instants:
            own.advance(instant)
            found[instant] = self.merge.result_of(own)
        return found


@dataclass(eq=False)
class Member:
    """One fold of one query, as a shared fold knows it."""

    name: str  # of the query
    spec: FoldSpec
    shared: SharedFold
    window: SharedWindow
    mark: int | None = None  # it has passed this instant; None: it goes on alone

    def enter(self, first: int, last: int) -> bool:
        """Whether a firing over these instants is served by the shared fold.

        One that is behind goes on alone, and takes part after the firing that brings it up.
        """
        return self.shared.enter(self, first, last)

    def results(
        self, instants: Sequence[int], until: int, held: HeldTables, counters: Counters
    ) -> dict[int, pa.Table]:
        """The fold's merged relation at instants, in order; the member has passed `until` then."""
        return self.shared.results(self, instants, until, held, counters)

    def push_early(self, until: int, held: HeldTables, counters: Counters) -> None:
        """Rows up to a tick, which are all there, are folded before their instant."""
        self.shared.push_early(until, held, counters)

    def passed(self, until: int) -> None:
        """The member has answered instants without the shared fold."""
        self.shared.passed(self, until)

    @property
    def others(self) -> list[str]:
        """The names of the other queries that take part."""
        return self.shared.others(self)

    @property
    def running(self) -> PaneWindow | None:
        """Its window as it runs now, for EXPLAIN."""
        running = self.shared.running
        return None if running is None else running.windows.get(self.window)

    @property
    def size(self) -> int:
        """How many partials are told of it: those of all, once, where the longest window is."""
        return self.shared.size if self.shared.keeper is self else 0


@dataclass
class SharedFold:
    """The panes of several queries whose stream pipelines are equal."""

    place: _Place
    _short: threading.Lock
    windows: list[SharedWindow] = field(default_factory=list)
    running: _Running | None = None
    _folding: threading.Lock = field(default_factory=threading.Lock)

    @property
    def members(self) -> list[Member]:
        """All that may take part."""
        return [member for window in self.windows for member in window.members]

    @property
    def keeper(self) -> Member | None:
        """Of those that take part, the one with the longest window."""
        there = [member for member in self.members if member.mark is not None]
        return max(there, key=lambda m: (m.window.window.size, m.name), default=None)

    @property
    def size(self) -> int:
        """Partials held, each once."""
        running = self.running
        return 0 if running is None or not running.windows else running.merge.size

    # Who takes part

    def fits(self, step: int) -> bool:
        """Whether windows of a slide can stand on these panes: all are multiples of the smallest."""
        steps = [step, *(window.step for window in self.windows)]
        return gcd(*steps) == min(steps)

    def add(
        self, name: str, spec: FoldSpec, slide: tuple[Window, int], after: int | None
    ) -> Member:
        """A new member that has passed an instant; under the short lock."""
        found = [window for window in self.windows if (window.window, window.step) == slide]
        window = found[0] if found else SharedWindow(*slide)
        if not found:
            self.windows.append(window)
        level = after is not None and self._is_level(window, after + 1)
        member = Member(name, spec, self, window, after if level else None)
        window.members.append(member)
        return member

    def remove(self, member: Member) -> None:
        """A member leaves, and its window with the last one; under the short lock."""
        member.mark = None
        member.window.members.remove(member)
        self.windows = [window for window in self.windows if window.members]

    def enter(self, member: Member, first: int, last: int) -> bool:
        """Whether a member's firing is served here; see Member."""
        window = member.window
        with self._short:
            if len(self.members) < 2:
                self._forget()
                member.mark = None
                return False
            if member.mark is not None:
                return True
            if self._is_level(window, first):
                member.mark = first - 1
                return True
            if self._is_level(window, last + window.step):
                member.mark = last
            return False

    def _is_level(self, window: SharedWindow, first: int) -> bool:
        """Whether an instant of a window, and all after it, are still ahead of what was merged."""
        positions = [w.position for w in self.windows if w.position is not None]
        front = max(positions, default=None)
        ahead = window.position is None or first > window.position
        return ahead and (front is None or first + window.step > front)

    def passed(self, member: Member, until: int) -> None:
        """The member needs nothing up to an instant."""
        with self._short:
            if member.mark is not None:
                member.mark = max(member.mark, until)
            member.window.drop_passed()

    def others(self, member: Member) -> list[str]:
        """The names of the queries that take part beside a member's."""
        with self._short:
            found = {m.name for m in self.members if m.mark is not None}
        return sorted(found - {member.name})

    # Relations

    def results(
        self,
        member: Member,
        instants: Sequence[int],
        until: int,
        held: HeldTables,
        counters: Counters,
    ) -> dict[int, pa.Table]:
        """A member's merged relations at instants, which rise; see Member."""
        found = self._find(member, instants)
        if len(found) < len(instants):
            with self._folding:
                found |= self._find(member, instants)
                missing = [instant for instant in instants if instant not in found]
                found |= self._fold(member, missing, held, counters)
        self.passed(member, until)
        return {instant: _columns(found[instant], member.spec) for instant in instants}

    def _find(self, member: Member, instants: Sequence[int]) -> dict[int, _Kept]:
        """What is kept of it, if the table's rows are still the same."""
        wanted = set(aggregate_keys(member.spec))
        with self._short:
            if self.running is not None and not self.running.is_current:
                self._forget()
            kept = {i: member.window.kept[i] for i in instants if i in member.window.kept}
        return {i: one for i, one in kept.items() if wanted <= set(one.aggregates)}

    def _fold(
        self, member: Member, missing: Sequence[int], held: HeldTables, counters: Counters
    ) -> dict[int, _Kept]:
        """Folds up to instants that nobody has asked for yet; those behind are the member's alone."""
        position = member.window.position
        behind = [i for i in missing if position is not None and i <= position]
        ahead = list(missing[len(behind) :])
        found = self._alone(member, behind, held, counters) if behind else {}
        if ahead:
            try:
                made = self._advance(member.window, ahead, held, counters)
            except Error:  # some member's expression fails: whose, shows when each runs alone
                with self._short:
                    self.running = None
                return found | self._alone(member, ahead, held, counters)
            found |= made
        return found

    def _alone(
        self, member: Member, instants: Sequence[int], held: HeldTables, counters: Counters
    ) -> dict[int, _Kept]:
        """From stored rows, for a member that is not served; it goes on alone from the next firing."""
        with self._short:
            member.mark = None
        window, taken = member.window, False
        while not taken:
            running = _Running(member.spec, self.place, [window], instants[0], held)
            taken = running.take(instants[-1], held, counters)
        made = running.merged(window, instants)
        return {i: _Kept(table, running.aggregates) for i, table in made.items()}

    def _advance(
        self, window: SharedWindow, instants: Sequence[int], held: HeldTables, counters: Counters
    ) -> dict[int, _Kept]:
        running, taken = self.running, False
        while not taken:
            if running is None or not self._serves(running, window, instants[0]):
                running = self._begin(instants[0], held)
            taken = running.take(instants[-1], held, counters)
            if not taken:
                running = None  # stored rows were changed: again from those that are there now
        assert running is not None
        made = running.merged(window, instants)
        found = {i: _Kept(table, running.aggregates) for i, table in made.items()}
        with self._short:
            self.running = running  # tells whether what is kept is still current
            window.keep(found)
        self._let_go(running)
        return found

    def _begin(self, first: int, held: HeldTables) -> _Running:
        """Panes for all members, from the first instant that any window has to merge."""
        with self._short:
            specs, windows = [m.spec for m in self.members], list(self.windows)
            following = [window.following for window in windows]
        longest = max(windows, key=lambda window: window.window.size)
        specs.sort(key=lambda spec: all(m.spec is not spec for m in longest.members))
        first = min([first, *(instant for instant in following if instant is not None)])
        return _Running(united(specs, self.place.world.terms()), self.place, windows, first, held)

    def _serves(self, running: _Running, window: SharedWindow, first: int) -> bool:
        """Whether the panes can go on: with the window, all aggregates, not too many, not far behind."""
        with self._short:
            wanted = {key for m in self.members for key in aggregate_keys(m.spec)}
        own = running.windows.get(window)
        if own is None or first < (running.first if own.place is None else own.place):
            return False
        if not wanted <= set(running.aggregates) or len(running.aggregates) > 2 * len(wanted):
            return False
        missed = self.place.table.state.next_sequence - running.seen
        apart = window.position is not None and first - window.window.size > window.position
        return not (apart and missed > FAR_BEHIND_ROWS)

    def push_early(self, until: int, held: HeldTables, counters: Counters) -> None:
        """Rows up to a tick go into their panes before an instant asks for them (DC7)."""
        with self._folding:
            running = self.running
            if running is None or not running.is_current:
                return
            try:
                if running.take(until, held, counters):
                    self._let_go(running)
                    for window, own in running.windows.items():
                        following = self._following(window)
                        if following is not None:
                            own.advance(following)
            except Error:  # it is told at the instant
                with self._short:
                    self.running = None

    def _following(self, window: SharedWindow) -> int | None:
        with self._short:
            return window.following

    def _let_go(self, running: _Running) -> None:
        """Windows that nobody takes part in any more, or only members that are far behind."""
        for window, own in list(running.windows.items()):
            following = self._following(window)
            if following is not None and len(own.waiting) > MOST_WAITING:
                own.advance(following)
            if following is None or len(own.waiting) > MOST_WAITING:
                running.drop(window)
                with self._short:
                    for member in window.members:
                        member.mark = None

    def _forget(self) -> None:
        self.running = None
        for window in self.windows:
            window.forget()


def _columns(kept: _Kept, spec: FoldSpec) -> pa.Table:
    """The columns that a member's fold has, under its own names."""
    keys = len(spec.plan.keys)
    places = {key: place for place, key in enumerate(kept.aggregates, keys)}
    wanted = [*range(keys), *(places[key] for key in aggregate_keys(spec))]
    return kept.table.select(wanted).rename_columns(spec.schema.names)


class Sharing:
    """The shared folds of an engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folds: dict[Signature, list[SharedFold]] = {}

    def add(
        self,
        name: str,
        specs: Sequence[FoldSpec],
        tables: Sequence[StreamingTable],
        sampling: Sampling,
        world: World,
    ) -> dict[int, Member]:
        """A query's folds among those of others, by number; none if one of them is never shared.

        Such a query must keep its state in snapshots, which a shared fold does not go into.
        """
        found = []
        for spec in specs:
            common = signature(spec, tables, sampling)
            if common is None:
                return {}
            table = tables[spec.plan.leaves[0].number]
            found.append(((*common, world.time_zone), spec, _Place(table, sampling.kind, world)))
        members = {}
        with self._lock:
            for number, (common, spec, place) in enumerate(found):
                slide = (_window_of(spec, place.table), _step_of(sampling))
                shared = self._fitting(common, place, slide[1])
                members[number] = shared.add(name, spec, slide, sampling.after)
        return members

    def _fitting(self, common: Signature, place: _Place, step: int) -> SharedFold:
        """The panes that a slide can stand on; new ones if none do."""
        there = self._folds.setdefault(common, [])
        for shared in there:
            if shared.fits(step):
                return shared
        there.append(SharedFold(place, self._lock))
        return there[-1]

    def remove(self, members: Mapping[int, Member]) -> None:
        """A query's folds leave; a shared fold without members is gone."""
        with self._lock:
            for member in members.values():
                member.shared.remove(member)
            there = {key: [f for f in folds if f.windows] for key, folds in self._folds.items()}
            self._folds = {key: folds for key, folds in there.items() if folds}


def _window_of(spec: FoldSpec, table: StreamingTable) -> Window:
    window = spec.plan.leaves[0].window
    assert window.duration is not None
    return Window(table.definition.duration_ticks(window.duration.microseconds), window.before)


def _step_of(sampling: Sampling) -> int:
    return 1 if sampling.kind == "realtime" else sampling.step
