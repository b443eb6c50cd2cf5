"""A stream pipeline of continuous views: one table's rows into one grouping, folded as they come (CV1, CV10).

Owns: the groups and their aggregates, how far the table is folded, and the snapshot of both. Views whose
pipelines have the same source, filter and keys share one, with their aggregates united; each gets its own
columns of it. An argument that is more than a column may fail for some row, and that must stop its own views
alone: only views with the same such arguments share. Rows come by their sequence numbers, late ones too.
Inserts take no lock of a pipeline: what is not folded yet waits in the table (CV5).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.compile.fold import FoldSpec, GroupsSpec, partial_text
from headwater.engine.fold_run import Counters, FoldRun, StaticProbes
from headwater.engine.halting import Halting
from headwater.engine.merges import LandmarkMerge, SomeGroupsMerge, Ticks
from headwater.engine.query_parts import Timings
from headwater.engine.reader import PlacedRows
from headwater.engine.snapshots import SnapshotFile, SnapshotKeeper
from headwater.engine.state_runs import StateRuns
from headwater.engine.united import AggregateKey, aggregate_keys, united
from headwater.engine.world import World
from headwater.errors import Error, StorageError
from headwater.fold.columns import Slots
from headwater.fold.lookup import Lookup
from headwater.fold.share import Share
from headwater.fold.snapshot import detached
from headwater.fold.state import ChangedSlots, GroupState
from headwater.kernel.relation import HeldTables, Relation
from headwater.kernel.state_merge import StateShape
from headwater.settings import MEBIBYTE
from headwater.sql.types import quoted
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.fresh import each_since
from headwater.storage.streaming.seen import SeenTable
from headwater.storage.streaming.table import StreamingTable

PartKey = tuple[str, str | None]  # a kind of partial, and the text of its argument


@dataclass(frozen=True)
class Start:
    """Where a view began in one table."""

    sequence: int  # the first row of a view that begins now; 0 for all rows
    oldest: int | None = None  # the tick before which RANGE hid rows when the view began
    end: int = 0  # the first row that came after the view began: whatever its T, it counts


@dataclass(frozen=True)
class PipelinePlace:
    """What the views of one pipeline have in common besides their fold."""

    table: StreamingTable
    start: Start
    static: HeldTables  # the tables below the fold, as of the views' creation
    at_insert: bool  # whether rows are folded as they come
    owner: str | None = (
        None  # of a view that calls functions, which may be missing at a start: itself
    )
    time_zone: str = "UTC"  # in which the views' texts are read
    share: Share | None = None  # of parts of views: the groups that they have


def part_keys(spec: FoldSpec) -> tuple[list[PartKey], list[str]]:
    """The partials of a fold in the order of its state: families, and distinct values."""
    assert spec.aggregation is not None
    texts = [str(piece) for piece in spec.argument_pieces]
    parts = [(kind, None if arg is None else texts[arg]) for kind, arg in spec.aggregation.parts]
    return parts, [texts[argument] for argument in spec.aggregation.distinct]


def shape_of(spec: FoldSpec) -> StateShape:
    """What spilled states of a fold have in common."""
    assert spec.aggregation is not None
    parts, distinct = part_keys(spec)
    names = tuple(kind if text is None else f"{kind} {text}" for kind, text in parts)
    aggregation = spec.aggregation
    return StateShape(aggregation.keys, aggregation.aggregates, names, tuple(distinct))


def projected(
    state: dict[str, Any],
    known: tuple[Sequence[PartKey], Sequence[str]],
    wanted: tuple[Sequence[PartKey], Sequence[str]],
) -> dict[str, Any] | None:
    """A state with the partials that are wanted; None if one is not there."""
    parts, distinct = ([tuple(p) for p in known[0]], list(known[1]))
    if not set(wanted[0]) <= set(parts) or not set(wanted[1]) <= set(distinct):
        return None
    vectors = [state["vectors"][parts.index(part)] for part in wanted[0]]
    values = [state["distinct"][distinct.index(text)] for text in wanted[1]]
    return {**state, "vectors": vectors, "distinct": values}


@dataclass
class ViewPipeline(Halting):
    """One pipeline, of one view or shared by several."""

    number: str  # never given out again
    place: PipelinePlace
    world: World
    probes: StaticProbes
    snapshot: SnapshotFile
    runs: StateRuns
    counters: Counters = field(default_factory=Counters)
    timings: Timings = field(default_factory=Timings)
    recovery_s: float | None = None  # how long it took to reach the present after the start
    members: dict[str, FoldSpec] = field(default_factory=dict)  # by view and fold

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.may_halt()
        self._writing = threading.Lock()  # one snapshot at a time; taken before the other
        self.keeper = SnapshotKeeper(self.snapshot, self.lock)
        self.sequence = self.kept = self.place.start.sequence
        self._generation: int | None = None
        self._caught_up = False
        self._began_at = (
            0  # where the table stood when folding began: rows before that hold nobody back
        )
        self.oldest: int | None = None  # the smallest T that was folded
        self.is_lent = False  # another host holds its groups
        self.awaited = False  # its snapshot has groups of a view that could not start, and stays
        self._touched: dict[str, ChangedSlots] = {}  # by member that somebody follows
        self._tracked: GroupState | None = None  # of which groups

    # Members

    def join(self, member: str, spec: FoldSpec) -> bool:
        """A fold takes part; False if rows that it needs cannot be folded again."""
        with self.lock:
            if self.members and not self._can_begin_anew and not self._covers(spec):
                return False
            grown = not self.members or not self._covers(spec)
            self.members[member] = spec
            if grown:
                self._begin()
                self._hold_writers()
            return True

    def leave(self, member: str) -> None:
        """A fold takes part no more; what only it needed stays until the next start."""
        with self.lock:
            self.members.pop(member, None)
            self._touched.pop(member, None)

    def _covers(self, spec: FoldSpec) -> bool:
        return set(aggregate_keys(spec)) <= set(aggregate_keys(self.spec))

    @property
    def _can_begin_anew(self) -> bool:
        """Whether the rows since the start are all there."""
        table, start = self.place.table, self.place.start
        untouched = self.sequence == start.sequence
        stored = table.definition.kind != "stream" and table.definition.range_ticks is None
        return untouched or stored

    def _begin(self) -> None:
        """A fold that holds nothing, with the aggregates of all members."""
        self._unite()
        self.forget_snapshot()
        self._clear()

    def _unite(self) -> None:
        """One fold for all members."""
        specs = list(self.members.values())
        self.spec = united(specs, self.world.terms()) if len(specs) > 1 else specs[0]
        self._shape = shape_of(self.spec)

    def _clear(self) -> None:
        """Nothing is folded."""
        self.fold = self._new_fold()
        self.runs.drop()
        self.keeper.begin_anew()
        self.sequence = self.place.start.sequence
        self._began_at = self.place.table.state.next_sequence
        self._generation = self.oldest = None

    def _new_fold(self) -> FoldRun:
        return FoldRun(
            self.spec,
            self.world,
            (),
            None,
            (),
            self.probes,
            self.counters,
            now=_microseconds,
            share=self.place.share,
        )

    # Start

    def take_up(self, specs: dict[str, FoldSpec]) -> None:
        """After a restart: the members, and their state from the snapshot where it holds all of it."""
        with self.lock:
            self.members = dict(specs)
            self._unite()
            self._go_back()
            self.runs.clean()
            self._hold_writers()

    def groups_for(self, spec: FoldSpec) -> pa.Table:
        """All groups as a table of keys and one member's partials; holds the lock, and nothing is spilled."""
        known, wanted = part_keys(self.spec), part_keys(spec)
        state = projected(detached(self.fold.merge.state())["groups"], known, wanted)
        assert state is not None
        assert spec.aggregation is not None
        groups = GroupState(spec.aggregation, tracked=False)
        groups.restore(state)
        return shape_of(spec).columns().table(groups)

    def begin_with(
        self, member: str, spec: FoldSpec, groups: pa.Table, at: Sequence[ViewPipeline]
    ) -> None:
        """Begins with its share of the groups of other pipelines, where all stand; holds their locks."""
        mine, share = groups, self.place.share
        if share is not None:
            keys = [groups.column(place).combine_chunks() for place in range(len(_keys(spec)))]
            mine = groups.take(pa.array(share.rows(keys, groups.num_rows)))
        with self.lock:
            self.members[member] = spec
            self._unite()
            self._clear()
            self._shape.columns().merge(self.groups_held, mine)
            self.sequence, self._generation = at[0].sequence, at[0].generation
            self.oldest = min((p.oldest for p in at if p.oldest is not None), default=None)
            self._hold_writers()

    def lend(self) -> None:
        """Another host goes on with it: the groups are put away, and no longer held here."""
        if not self.is_lent:
            self.put_away()
            with self._writing, self.lock:  # the next host writes where a snapshot may be under way
                self.is_lent, self._halt = True, None
                self.keeper.void()
                self.place.table.folded_by.pop(self.number, None)
                self.fold.clear()
                self.runs = self.runs.anew()

    def take_back(self) -> None:
        """Its groups are held here again: from the snapshot, and the rows since."""
        with self.lock:
            if self.is_lent:
                self.is_lent = False
                self.take_up(dict(self.members))

    def _go_back(self) -> None:
        """To the last snapshot, or to the start: the rows since then are all there."""
        self._clear()
        kept = _Kept()
        position = self.keeper.read(kept)
        mine = {"number": self.number, "share": self._share}
        if position is not None and {n: position.get(n) for n in mine} == mine:
            parts = (position["parts"], position["distinct"])
            state = projected(kept.content["groups"], parts, part_keys(self.spec))
            whole = self.runs.take_up(position.get("runs", ()))
            if state is not None and whole:
                self.fold.merge.restore({"groups": state})
                self.sequence, self.oldest = position["sequence"], position["oldest"]
                self._generation = self.place.table.generation
            else:
                self.runs.drop()
        self.kept = self.sequence

    # Folding

    @property
    def is_behind(self) -> bool:
        """Whether rows came that are not folded."""
        return self.place.table.state.next_sequence > self.sequence

    @property
    def waiting(self) -> int:
        """Rows that came and are not folded."""
        return self.place.table.rows_since(self.sequence) if self.is_behind else 0

    @property
    def generation(self) -> int | None:
        """The generation of the stored rows that are folded; None before any is."""
        return self._generation

    @property
    def changed(self) -> bool:
        """Whether stored rows were deleted or replaced since they were folded."""
        known = self._generation is not None and not self.is_lent
        return known and self.place.table.generation != self._generation

    # One instant for several

    @property
    def read_tables(self) -> Sequence[StreamingTable]:
        """The table that it folds."""
        return [self.place.table]

    @property
    def places(self) -> list[tuple[int, int | None]]:
        """How far it is folded, and of which generation."""
        return [(self.sequence, self._generation)]

    def fold_to(self, held: HeldTables, ends: Mapping[int, int]) -> None:  # noqa: ARG002
        """Folds every row before a sequence number."""
        self.catch_up(ends[self.place.table.definition.id])

    def catch_up(self, end: int | None = None) -> None:
        """Folds every row that was acknowledged before the call, or before a sequence number."""
        with self.lock:
            if self.is_lent or (end is None and self.halted_until is not None):
                return  # another host does, or a reader says how far
            here = end is not None and end <= self.sequence
            if self._caught_up and (here or not self.is_behind) and not self.changed:
                return
            started, before = time.perf_counter(), self.sequence
            try:
                while not self._fold_new(end):  # stored rows were changed
                    self.forget_snapshot()
                    self._clear()
            except BaseException:
                self.place.table.folded_by.pop(self.number, None)
                self._caught_up = False
                self.keeper.void()  # a snapshot that is being written would be ahead
                if self.members:
                    self._unite()  # without what only a view needed that is gone
                self._go_back()  # a part of the rows may be in
                raise
            if self.sequence != before:
                self.timings.add(time.perf_counter() - started, 1)
            if not self._caught_up:
                self._caught_up = True
                self.recovery_s = time.perf_counter() - started
                self._hold_writers()
        self.place.table.made_room()

    def _hold_writers(self) -> None:
        """Writers wait while too many rows wait here; not for rows that were there when it began."""
        if self.place.at_insert and self.members:
            folded_by = self.place.table.folded_by
            folded_by[self.number] = lambda: max(self.sequence, self._began_at)

    def _fold_new(self, end: int | None) -> bool:
        """Folds what came; False if stored rows were changed meanwhile."""
        known, table = self._generation, self.place.table
        if table.definition.kind == "stream" and self.sequence < table.let_go:
            count = table.let_go - self.sequence
            raise _rows_missing(table.definition.name, count, self.snapshot.name)
        end, generation = each_since(table, self.sequence, known, self._take, end)
        if known is not None and generation != known:
            return False
        self.sequence, self._generation = end, generation
        return True

    def _take(self, rows: pa.Table) -> None:
        """One piece of the table's rows."""
        rows, ticks = self._seen(rows)
        if len(ticks):
            first = int(ticks.min())
            self.oldest = first if self.oldest is None else min(self.oldest, first)
        self._fold_into(self.fold, rows, ticks)

    def _seen(self, rows: pa.Table) -> tuple[pa.Table, Ticks]:
        """The rows that the views have begun with, or that came since, and their ticks."""
        definition, start = self.place.table.definition, self.place.start
        ticks = definition.ticks(rows.column(definition.time))
        if start.oldest is not None and len(ticks) and ticks.min() < start.oldest:
            shown = (ticks >= start.oldest) | (rows.column(SEQUENCE).to_numpy() >= start.end)
            rows, ticks = rows.filter(pa.array(shown)), ticks[shown]
        return rows, ticks

    def _fold_into(self, fold: FoldRun, rows: pa.Table, ticks: Ticks) -> None:
        most = max(self.world.settings.rows_at_once, 1)
        step = most if fold.tier == "operators" else max(rows.num_rows, 1)
        for first in range(0, rows.num_rows, step):
            part, times = rows.slice(first, step), ticks[first : first + step]
            zeros = np.zeros(part.num_rows, np.int64)
            fold.take([PlacedRows(part, zeros, times)], self.place.static, None)
            fold.merge.push_early()
            if fold is self.fold:
                self._spill_if_large()

    # Rows that are deleted or replaced

    def rows_replaced(self, table: SeenTable, gone: pa.Table, added: pa.Table, was: int) -> None:
        """Stored rows have gone and others come in their place; the caller holds the lock.

        `was`: the table's generation before. A pipeline that is not as far, or cannot take rows back,
        begins anew when it goes on.
        """
        if not self._takes_back(was, gone.num_rows + added.num_rows):
            return
        self._generation = table.generation
        try:
            self._exchange(self._folded_of(gone), self._folded_of(added))
        except Error:
            self._clear()  # what is wrong is found once more when it goes on
        except BaseException:
            self._clear()  # a part of the rows may be in
            raise
        self.keeper.begin_anew()

    def _takes_back(self, was: int, row_count: int) -> bool:
        """Whether rows folded of a generation can be taken back as they were folded, and it pays."""
        here = bool(self.members) and not self.is_lent and not self.runs and self._generation == was
        spec, folded = self.spec, self.sequence - self.place.start.sequence
        if not here or row_count >= folded or self.place.owner is not None:
            return False
        assert isinstance(spec, GroupsSpec)
        timeless = not partial_text(spec).reads_instant  # else each row was folded at its time
        return timeless and self.fold.tier == "operators"

    def _folded_of(self, stored: pa.Table) -> pa.Table:
        numbers = stored.column(SEQUENCE).to_numpy()
        mine = (numbers >= self.place.start.sequence) & (numbers < self.sequence)
        return stored.filter(pa.array(mine))

    def _exchange(self, gone: pa.Table, added: pa.Table) -> None:
        """Rows go and others come."""
        old, groups = self._new_fold(), self.groups_held
        self._fold_into(old, *self._seen(gone))
        wrong = groups.take_back(_groups_of(old))
        self._take(added)
        if 2 * len(wrong) > len(groups) or self.groups_held is not groups:
            self._clear()  # it may as well begin anew; or there was no room for all
        elif len(wrong):
            self._make_again(wrong)

    def _make_again(self, slots: Slots) -> None:
        """Some groups, from the stored rows."""
        groups, fold = self.groups_held, self._new_fold()
        wanted = Lookup(groups.lookup.types)
        wanted.slots(groups.lookup.keys(slots), len(slots))
        fold.merge = SomeGroupsMerge(groups.aggregation, wanted)

        def take(rows: pa.Table) -> None:
            self._fold_into(fold, *self._seen(rows))

        each_since(self.place.table, self.place.start.sequence, None, take, self.sequence)
        groups.exchange(slots, _groups_of(fold))

    @property
    def groups_held(self) -> GroupState:
        """The groups in memory."""
        return _groups_of(self.fold)

    def _spill_if_large(self) -> None:
        """Groups that memory has no room for go to disk."""
        bound = self.world.settings.integer("view_state_mb") * MEBIBYTE
        if self.groups_held.nbytes <= bound or not len(self.groups_held):
            return
        self.runs.spill(self._shape, self.groups_held)
        assert isinstance(self.fold.merge, LandmarkMerge)
        self.fold.merge.renew()
        pa.default_memory_pool().release_unused()

    @property
    def outlives_rows(self) -> bool:
        """Whether rows were folded that RANGE has dropped since: it cannot be made again."""
        with self.place.table.reading() as snapshot:
            visible = snapshot.oldest_visible
        return visible is not None and self.oldest is not None and self.oldest < visible

    @contextlib.contextmanager
    def reading(self, spec: FoldSpec) -> Iterator[Callable[[], pa.Table | Relation]]:
        """The groups as they are now, with one member's aggregates; entered under the lock.

        What is given makes them, without the lock; as files, which stay while inside, if they are many.
        """
        if not self.runs:
            rows = self._result(spec)
            yield lambda: rows
            return
        names = self._names_of(spec)
        with self.runs.reading(self._shape, self.groups_held, self.lock) as make:
            yield lambda: _renamed(make(), spec, names)

    def _result(self, spec: FoldSpec) -> pa.Table:
        merge = self.fold.merge
        if spec is self.spec:
            return merge.result()
        assert isinstance(merge, LandmarkMerge)
        return merge.some(self._places_of(spec)).rename_columns(spec.schema.names)

    def find(self, spec: FoldSpec, keys: Sequence[pa.Array]) -> pa.Table | None:
        """The groups of some keys, with one member's aggregates; None if they are not ordered on disk."""
        groups: GroupState | None = self.groups_held
        if self.runs:
            groups = self.runs.find(self._shape, self.groups_held, keys)
        if groups is None or spec is self.spec:
            return None if groups is None else groups.get(keys)
        found = groups.get(keys, self._places_of(spec))
        return found.rename_columns(spec.schema.names)

    def touched(self, member: str) -> Slots:
        """The groups that rows touched since a member last asked; none the first time."""
        groups = self.groups_held
        if self._tracked is not groups:
            self._tracked, self._touched = groups, {}
            groups.track()
        mine = self._touched.setdefault(member, ChangedSlots())
        fresh = groups.touched()
        for slots in self._touched.values():
            slots.add(fresh, len(groups.lookup))
        return mine.take()

    def rows_of(self, spec: FoldSpec, slots: Slots) -> pa.Table:
        """Some groups, with one member's aggregates."""
        if spec is self.spec:
            return self.groups_held.of(slots)
        found = self.groups_held.of(slots, self._places_of(spec))
        return found.rename_columns(spec.schema.names)

    def _places_of(self, spec: FoldSpec) -> list[int]:
        """Which of all aggregates are a member's."""
        known = aggregate_keys(self.spec)
        return [known.index(key) for key in aggregate_keys(spec)]

    def _names_of(self, spec: FoldSpec) -> list[str] | None:
        """The columns of a member among all; None if it is the only one."""
        if spec is self.spec:
            return None
        mine = {key: a.name for key, a in zip(*_named(self.spec), strict=True)}
        return [*(key.name for key in _keys(spec)), *(mine[k] for k in aggregate_keys(spec))]

    @property
    def groups(self) -> int:
        """How many groups are held; one in memory and in spilled runs counts in each."""
        return self.fold.merge.size + self.runs.row_count

    @property
    def state_bytes(self) -> int:
        """How much memory the groups take."""
        return self.groups_held.nbytes

    # Snapshots

    def put_away(self) -> None:
        """Writes a snapshot of the groups with the place that it belongs to.

        The groups are copied under the lock and written without it.
        """
        with self._writing, contextlib.ExitStack() as stack:
            with self.lock:
                same = self.sequence == self.kept and self.runs.are_named
                if same or not self._may_put_away:
                    return
                runs = stack.enter_context(self.runs.held(self.lock))
                stamp, sequence = self.keeper.stamp, self.sequence
                state = self.keeper.copy_of(self.fold.merge.state())
                position = self._position(runs)

            def placed() -> None:
                self.runs.name(runs)
                self.kept = sequence

            self.runs.sync(runs)
            self.keeper.keep(state, position, stamp, placed=placed)

    @property
    def _may_put_away(self) -> bool:
        """Whether a view needs it, and the rows that were folded are still the table's."""
        needed = bool(self.members) and not self.is_lent and not self.awaited
        return needed and self.keeper.may_keep and not self.changed

    def _position(self, runs: list[dict[str, Any]]) -> dict[str, Any]:
        parts, distinct = part_keys(self.spec)
        return {
            "number": self.number,
            "share": self._share,
            "sequence": self.sequence,
            "oldest": self.oldest,
            "parts": parts,
            "distinct": distinct,
            "runs": runs,
        }

    @property
    def _share(self) -> list[int] | None:
        """The groups that it has, as a snapshot says it."""
        return None if self.place.share is None else list(self.place.share)

    def rows_will_change(self) -> None:
        """Before stored rows are deleted or replaced: no snapshot of the old ones any more."""
        with self.lock:
            self.keeper.hold_off(self.place.table)
            self._forget_kept()

    def forget_snapshot(self) -> None:
        """What was made of old rows is not to be used again."""
        self.keeper.forget()
        self._forget_kept()

    def _forget_kept(self) -> None:
        self.kept = self.place.start.sequence
        self.runs.name(())

    def remove(self) -> None:
        """Nothing of it is left on disk."""
        with self.lock:
            self.forget_snapshot()
            self.runs.remove()


class _Kept:
    """A snapshot's content as it is."""

    def __init__(self) -> None:
        self.content: dict[str, Any] = {}

    def state(self) -> dict[str, Any]:
        """Nothing: it is only read into."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the content."""
        self.content = state


def _renamed(
    rows: pa.Table | Relation, spec: FoldSpec, names: Sequence[str] | None
) -> pa.Table | Relation:
    if names is None:
        return rows
    if isinstance(rows, Relation):
        renamed = zip(spec.schema.names, map(quoted, names), strict=True)
        return replace(rows, columns=(), computed=tuple(renamed))
    return rows.select(names).rename_columns(spec.schema.names)


def _rows_missing(table: str, count: int, snapshot: str) -> StorageError:
    """A stream keeps what no snapshot holds; if it does not, the snapshot is gone."""
    return StorageError(
        f"up to {count} rows of stream {table} that the view needs are gone",
        sqlstate="XX001",
        detail=f"the snapshot of the view's state, {snapshot}, is missing, damaged or an older copy",
        hint="put the newest snapshot back; or DROP VIEW and create it again: it then counts from now on; "
        "a view on a STREAMING TABLE is made again from its history",
    )


def _groups_of(fold: FoldRun) -> GroupState:
    assert isinstance(fold.merge, LandmarkMerge)  # a view's windows have no end
    return fold.merge.groups


def _microseconds() -> int:
    return time.time_ns() // 1000


def _keys(spec: FoldSpec) -> Sequence[pa.Field]:
    assert spec.aggregation is not None
    return spec.aggregation.keys


def _named(spec: FoldSpec) -> tuple[tuple[AggregateKey, ...], Sequence[Any]]:
    assert spec.aggregation is not None
    return aggregate_keys(spec), spec.aggregation.aggregates
