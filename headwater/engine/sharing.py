"""Equal stream pipelines of several queries are one, with their aggregates united (DC9; DESIGN §7).

Owns: which folds are equal, the one fold that stands for them, and the merged relations that some of its
members have not taken yet. Whoever asks first for an instant folds the rows up to it; the others find it.
Must never: change a query (each decides at its own firing whether it takes part), or let the error of one
member's expression reach another: whoever cannot be served by the common fold gets its relation from a
fold of its own over the stored rows.

Two locks: a short one over who takes part and what is kept, and one that is held while rows are folded.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.engine.feed import Feed, FeedCursor
from headwater.engine.fold_run import Counters, FoldRun, StaticProbes
from headwater.engine.reader import LeafReader
from headwater.engine.sampling import Sampling
from headwater.engine.united import AggregateKey, aggregate_keys, pipeline_signature, united
from headwater.engine.world import World
from headwater.errors import Error
from headwater.fold.pane import Panes, Window
from headwater.kernel.relation import HeldTables
from headwater.storage.streaming.table import StreamingTable

MOST_KEPT = 1024  # instants whose relations wait for members that are behind
MOST_KEPT_ROWS = 4_000_000  # rows of all of them
FAR_BEHIND_ROWS = 1_000_000  # that a fold which nobody asked for long would have to catch up with
READER = "shared"

Signature = tuple[object, ...]


def signature(
    spec: FoldSpec, tables: Sequence[StreamingTable], sampling: Sampling
) -> Signature | None:
    """What folds must have in common to be one; None for a fold that is never shared.

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
        (leaf.window.duration.microseconds, leaf.window.before),
        (sampling.kind, sampling.step),
        pipeline_signature(spec),
    )


@dataclass(frozen=True)
class _Place:
    """The tables and marks that all members of a shared fold have in common."""

    table: StreamingTable
    sampling: str
    step: int
    world: World


class _Running:
    """A fold over a feed of its own: it begins at one instant and goes on to later ones."""

    def __init__(self, spec: FoldSpec, place: _Place, first: int, held: HeldTables) -> None:
        self.spec, self.aggregates = spec, aggregate_keys(spec)
        leaf, table = spec.plan.leaves[0], place.table
        before = FeedCursor(first - 1)  # rows up to there are final: the instant is complete
        while True:
            feed = Feed(place.world, table, before, READER, leaf.needed)
            with table.reading() as snapshot:
                if snapshot.generation != feed.generation:
                    continue
                self.reader = LeafReader(leaf, feed, READER, before, leaf.window.before)
                rows, ticks = self.reader.stored(snapshot, first, None)
                break
        self.seen = table.state.next_sequence
        assert self.reader.window_ticks is not None
        window = Window(self.reader.window_ticks, leaf.window.before)
        panes = Panes(1 if place.sampling == "realtime" else place.step, (window,))
        probes = StaticProbes(place.world)
        self.fold = FoldRun(spec, place.world, (self.reader,), panes, (window,), probes)
        self.fold.take([(rows, ticks, ticks)], held, first)

    @property
    def is_current(self) -> bool:
        """Whether the rows it was made of are still those of the table."""
        feed = self.reader.feed
        return feed.table.generation == feed.generation

    def go_on(
        self, instants: Sequence[int], held: HeldTables, counters: Counters
    ) -> dict[int, pa.Table] | None:
        """The merged relations at instants, in order; None if stored rows were changed meanwhile."""
        self.fold.counters = counters
        self.seen = self.reader.table.state.next_sequence
        if not self.reader.feed.pull():
            return None
        rows, ticks = self.reader.take_until(instants[-1])
        self.fold.take([(rows, ticks, ticks)], held, instants[0])
        found = {}
        for instant in instants:
            self.fold.merge.advance(instant, instant)
            found[instant] = self.fold.merge.result()
        return found


@dataclass(frozen=True)
class _Kept:
    """A merged relation, and the aggregates that its columns are."""

    table: pa.Table
    aggregates: tuple[AggregateKey, ...]


@dataclass(eq=False)
class Member:
    """One fold of one query, as a shared fold knows it."""

    name: str  # of the query
    spec: FoldSpec
    shared: SharedFold
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

    def passed(self, until: int) -> None:
        """The member has answered instants without the shared fold."""
        self.shared.passed(self, until)

    @property
    def others(self) -> list[str]:
        """The names of the other queries that take part."""
        return self.shared.others(self)


@dataclass
class SharedFold:
    """The fold of several queries whose stream pipelines are equal."""

    place: _Place
    _short: threading.Lock
    members: list[Member] = field(default_factory=list)
    _folding: threading.Lock = field(default_factory=threading.Lock)
    _running: _Running | None = None
    _position: int | None = None  # the last instant that was folded
    _kept: dict[int, _Kept] = field(default_factory=dict)  # in the order of instants
    _kept_rows: int = 0

    @property
    def run(self) -> FoldRun | None:
        """The fold as it runs now, for EXPLAIN."""
        running = self._running
        return None if running is None else running.fold

    # Who takes part

    def add(self, name: str, spec: FoldSpec, after: int | None) -> Member:
        """A new member that has passed an instant; under the short lock."""
        level = after is not None and (self._position is None or after >= self._position)
        member = Member(name, spec, self, after if level else None)
        self.members.append(member)
        return member

    def enter(self, member: Member, first: int, last: int) -> bool:
        """Whether a member's firing is served here; see Member."""
        with self._short:
            if len(self.members) < 2:
                self._forget()
                member.mark = None
                return False
            if member.mark is not None:
                return True
            position = self._position
            if position is None or first > position:
                member.mark = first - 1
                return True
            if last >= position:
                member.mark = last
            return False

    def passed(self, member: Member, until: int) -> None:
        """The member needs nothing up to an instant."""
        with self._short:
            if member.mark is not None:
                member.mark = max(member.mark, until)
            self._drop_passed()

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
            if self._running is not None and not self._running.is_current:
                self._forget()
            kept = {i: self._kept[i] for i in instants if i in self._kept}
        return {i: one for i, one in kept.items() if wanted <= set(one.aggregates)}

    def _fold(
        self, member: Member, missing: Sequence[int], held: HeldTables, counters: Counters
    ) -> dict[int, _Kept]:
        """Folds up to instants that nobody has asked for yet; those behind are the member's alone."""
        position = self._position
        behind = [i for i in missing if position is not None and i <= position]
        ahead = list(missing[len(behind) :])
        found = self._alone(member, behind, held, counters) if behind else {}
        if ahead:
            try:
                made = self._advance(ahead, held, counters)
            except Error:  # some member's expression fails: whose, shows when each runs alone
                with self._short:
                    self._running = None
                return found | self._alone(member, ahead, held, counters)
            found |= made
        return found

    def _alone(
        self, member: Member, instants: Sequence[int], held: HeldTables, counters: Counters
    ) -> dict[int, _Kept]:
        """From stored rows, for a member that is not served; it goes on alone from the next firing."""
        with self._short:
            member.mark = None
        made = None
        while made is None:
            running = _Running(member.spec, self.place, instants[0], held)
            made = running.go_on(instants, held, counters)
        return {i: _Kept(table, running.aggregates) for i, table in made.items()}

    def _advance(
        self, instants: Sequence[int], held: HeldTables, counters: Counters
    ) -> dict[int, _Kept]:
        running = self._running
        while True:
            if running is None or not self._serves(running, instants[0]):
                spec = united(self._specs(), self.place.world.terms())
                running = _Running(spec, self.place, instants[0], held)
            made = running.go_on(instants, held, counters)
            if made is not None:
                break
            running = None  # stored rows were changed: again from those that are there now
        found = {i: _Kept(table, running.aggregates) for i, table in made.items()}
        self._keep(running, found)
        return found

    def _specs(self) -> list[FoldSpec]:
        with self._short:
            return [member.spec for member in self.members]

    def _serves(self, running: _Running, first: int) -> bool:
        """Whether the fold can go on: with all aggregates, not too many, and not far behind."""
        wanted = {key for spec in self._specs() for key in aggregate_keys(spec)}
        if not wanted <= set(running.aggregates) or len(running.aggregates) > 2 * len(wanted):
            return False
        table, window = self.place.table, running.reader.window_ticks
        missed = table.state.next_sequence - running.seen
        assert window is not None
        apart = self._position is not None and first - window > self._position
        return not (apart and missed > FAR_BEHIND_ROWS)

    # What is kept; under the short lock

    def _keep(self, running: _Running, made: Mapping[int, _Kept]) -> None:
        with self._short:
            self._running = running  # tells whether what is kept is still current
            for instant, one in made.items():
                self._kept[instant] = one
                self._kept_rows += one.table.num_rows
                self._position = instant
            self._drop_passed()
            while len(self._kept) > MOST_KEPT or self._kept_rows > MOST_KEPT_ROWS:
                self._drop(next(iter(self._kept)))

    def _drop_passed(self) -> None:
        if not self._kept:
            return
        marks = [member.mark for member in self.members if member.mark is not None]
        least = min(marks, default=None)
        while self._kept:
            instant = next(iter(self._kept))
            if least is not None and instant > least:
                return
            self._drop(instant)

    def _drop(self, instant: int) -> None:
        self._kept_rows -= self._kept.pop(instant).table.num_rows

    def _forget(self) -> None:
        self._running, self._position = None, None
        self._kept.clear()
        self._kept_rows = 0


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
        self._folds: dict[Signature, SharedFold] = {}

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
            common = (*common, world.time_zone)
            table = tables[spec.plan.leaves[0].number]
            found.append((common, spec, _Place(table, sampling.kind, sampling.step, world)))
        members = {}
        with self._lock:
            for number, (common, spec, place) in enumerate(found):
                shared = self._folds.setdefault(common, SharedFold(place, self._lock))
                members[number] = shared.add(name, spec, sampling.after)
        return members

    def remove(self, members: Mapping[int, Member]) -> None:
        """A query's folds leave; a shared fold without members is gone."""
        with self._lock:
            for member in members.values():
                member.mark = None
                member.shared.members.remove(member)
            self._folds = {key: fold for key, fold in self._folds.items() if fold.members}
