"""A continuous view: folded at each insert up to its groupings, finished when somebody reads it (CV1, CV2).

Owns: the results made so far (versions), and when a new one must be made. What is folded is in its pipelines,
which it may share with other views; a view that no fold holds may be kept whole by a circuit of operators.
Work is split: `fire` takes in what came, for the scheduler; `read` takes in the rest and runs the upper part.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import ClassVar, TypeVar

import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.engine.change_record import FollowedChanges
from headwater.engine.elsewhere import Elsewhere, HostGone
from headwater.engine.evaluation import Evaluation
from headwater.engine.fold_run import Counters
from headwater.engine.followed_groups import FollowedGroups
from headwater.engine.hosted import Hosted
from headwater.engine.pipelines import Pipelines
from headwater.engine.sampling import Instant
from headwater.engine.view_circuit import CircuitStopped, ViewCircuit
from headwater.engine.view_pipeline import Start, ViewPipeline
from headwater.engine.view_versions import Version, Versions
from headwater.fold.columns import Slots
from headwater.kernel.relation import HeldTables
from headwater.plan.folds import ContinuousPlan
from headwater.storage.streaming.fresh import ends_of
from headwater.storage.streaming.seen import Needs, SeenTable
from headwater.storage.streaming.table import StreamingTable

Answer = TypeVar("Answer")


class ViewCut(IntEnum):
    """How much of a view's circuit is done at the commit; the rest is done at the read."""

    STORED = 0  # nothing is kept: each read begins with the stored rows
    READ = 1  # groups are kept, and a read folds what came
    GROUPS = 2  # rows are folded into groups as they come
    RESULT = 3  # the result is made as they come


FEW_ROWS = 10_000  # of a view that is read whole also for one of them
FEW_ORDERED = 1_000  # rows of an ORDER BY … LIMIT: who follows them all has the order, too
STRATEGIES = {
    "split": ViewCut.GROUPS,
    "eager": ViewCut.RESULT,
    "deferred": ViewCut.STORED,
    "incremental": ViewCut.READ,
}


@dataclass(kw_only=True)
class ContinuousView(Hosted):
    """One continuous view."""

    incarnation: str  # of this query: a view that is replaced gets another
    plan: ContinuousPlan
    specs: Sequence[FoldSpec]
    evaluation: Evaluation
    static: HeldTables  # the tables below the folds, as of creation
    starts: Sequence[Start]
    versions: Versions
    over_stored: Callable[
        [int], pa.Table
    ]  # the query over all stored rows at a time in µs, by Spark
    registry: Pipelines
    pipelines: Sequence[ViewPipeline]  # one per fold
    circuit: ViewCircuit | None = None  # where there is no fold
    maintenance: str = "split"

    once: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on_version: Callable[[Version], None] = lambda _version: None  # made at an insert
        self.on_well: Callable[[], None] = lambda: None  # it was read after an error
        self.on_free: Callable[[], None] = lambda: None  # it may fold on: rows may have come
        self._reading = threading.Lock()  # one makes a version, the others wait for it
        self._followed: FollowedGroups | None = None  # while somebody follows a grouping

    def called(self, number: int, name: str) -> None:
        """It has that number in the catalog, and that name."""
        self.number, self.name = number, name

    # What the engine asks

    def attach(self) -> None:
        """Its pipelines take up their places, if another host had them."""
        for pipeline in self._states:
            pipeline.take_back()

    def drop(self) -> None:
        """Its state is not held any more."""
        for pipeline in self._states:
            pipeline.lend()

    @property
    def _states(self) -> Sequence[ViewPipeline | ViewCircuit]:
        """What holds its state."""
        return self.pipelines if self.circuit is None else [self.circuit]

    @property
    def circuits(self) -> list[ViewCircuit]:
        """The circuit that keeps it, or those of its parts."""
        return [] if self.circuit is None else [self.circuit]

    @property
    def kept(self) -> ViewCircuit | None:
        """The circuit that keeps the view, if one does."""
        operators = self.maintenance != "deferred" and self.world.settings.operators
        return self.circuit if operators else None

    @property
    def cut(self) -> ViewCut:
        """Where its circuit is cut between commit and read."""
        held = bool(self.specs) or self.kept is not None
        return STRATEGIES[self.maintenance] if held else ViewCut.STORED

    @property
    def waiting(self) -> int:
        """Rows that came and are not folded; none where nothing is kept, and a read begins anew."""
        return 0 if self.cut is ViewCut.STORED else sum(state.waiting for state in self._states)

    @property
    def progress(self) -> float:
        """Which part of the rows is folded, 1 for all."""
        waiting = self.waiting
        if not waiting:
            return 1.0
        total = sum(table.rows_since(start.sequence) for table, start in self._begun)
        return max(1.0 - waiting / total, 0.0) if total > 0 else 1.0

    @property
    def _begun(self) -> list[tuple[StreamingTable, Start]]:
        """The tables that its parts read, and where each began."""
        if self.circuit is not None:
            return [(source.table, source.start) for source in self.circuit.streams]
        return [(p.place.table, p.place.start) for p in self.pipelines]

    def pull(self, since: float | None = None) -> bool:  # noqa: ARG002
        """Whether rows wait that should be folded now."""
        return self._is_behind and self.cut >= ViewCut.GROUPS and not self._is_asking

    @property
    def is_halted(self) -> bool:
        """Whether rows wait until Spark has answered a reader."""
        return self._is_behind and self._is_asking

    @property
    def _is_behind(self) -> bool:
        return any(state.is_behind or state.changed for state in self._states)

    @property
    def _is_asking(self) -> bool:
        return self.circuit is not None and self.circuit.is_asking

    def fire(self) -> int:
        """Folds what came; an eager view makes its result too."""
        self.fired += 1
        if self.kept is not None:
            self._go_through(self.kept)
        for pipeline in self.pipelines:
            pipeline.catch_up()
        if self.cut is ViewCut.RESULT:
            made = self._read_here()  # the host that it moves to waits for the end of this firing
            if made is not None:
                self.on_version(made)
        return 0

    def end(self) -> None:
        """The view is gone: pipelines that no other view needs go too."""
        for number, pipeline in enumerate(self.pipelines):
            self.registry.leave(member_name(self.incarnation, number), pipeline)
        for circuit in self.circuits:
            circuit.remove()

    def needs(self, table: SeenTable) -> Needs:
        """Rows that no snapshot holds, by their numbers; of a stream none that is closed."""
        closed = table.state.time.closed
        number = table.definition.id
        kept = [p.kept for p in self.pipelines if p.place.table.definition.id == number]
        return Needs(None if closed is None else closed + 1, None, min(kept, default=None))

    @property
    def all_counters(self) -> list[Counters]:
        """What was done for it in this process."""
        return [state.counters for state in self._states]

    # Reading

    def catch_up(self) -> None:
        """Folds every row that was acknowledged before the call, none that came after another."""
        ends = ends_of(pipeline.place.table for pipeline in self.pipelines)
        while True:
            for pipeline in self.pipelines:
                pipeline.catch_up(ends[pipeline.place.table.definition.id])
            if not any(pipeline.changed for pipeline in self.pipelines):
                break  # else a DELETE came between two of them
        self._is_well()

    def _is_well(self) -> None:
        if self.state in ("failed", "retrying"):
            self.on_well()

    def _go_through(self, circuit: ViewCircuit) -> None:
        """What came goes through the circuit; one that stops leaves the view to Spark."""
        with self.world.held(self.plan.identifiers) as held, contextlib.suppress(CircuitStopped):
            circuit.catch_up(held)

    @contextlib.contextmanager
    def _brought_up(self, circuit: ViewCircuit, held: HeldTables) -> Iterator[bool]:
        """The circuit's result is that of all that was acknowledged; False if another host has it."""
        try:
            with circuit.brought_up(held, ends_of(circuit.tables.values())) as here:
                if here:
                    self._is_well()
                yield here
        finally:
            if circuit.is_behind or circuit.changed:
                self.on_free()  # while Spark was at work nothing was taken in

    def read(self) -> Version:
        """The view over every row acknowledged before the call; unchanged input costs nothing."""
        return self.unchanged() or self._answered(
            lambda: self.unchanged() or self._read_here(), self._read_there
        )

    def _read_there(self, host: Elsewhere) -> Version:
        """By the host that has it, one reader at a time."""
        with self._reading:
            return self.unchanged() or host.read_view(self)

    def _read_here(self) -> Version | None:
        """The same by the groups of this host; None if they are in another one by now."""
        with (
            self._reading,
            self.world.held(self.plan.identifiers) as held,
            contextlib.ExitStack() as reading,
        ):
            if self.kept is not None:
                return self._read_kept(self.kept, held)
            if self.cut is ViewCut.STORED:
                return self._read_stored(held)
            with contextlib.ExitStack() as stack:
                for pipeline in sorted(self.pipelines, key=lambda p: p.number):
                    stack.enter_context(pipeline.lock)  # in one order for all readers
                if any(pipeline.is_lent for pipeline in self.pipelines):
                    return None
                self.catch_up()
                key = self._key(held, [(p.sequence, p.generation) for p in self.pipelines])
                known = self.versions.last
                if known is not None and known.key == key:
                    return known
                results = [
                    reading.enter_context(pipeline.reading(spec))
                    for pipeline, spec in zip(self.pipelines, self.specs, strict=True)
                ]
            merged = [make() for make in results]
            now = time.time_ns() // 1000
            rows = self.evaluation.upper([(Instant(now, now), merged)], held)[0]
            return self.versions.add(rows, key, now)

    # One key

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        """The columns by which a row is found without the others, in the order of its groups' keys."""
        if self.circuit is not None:
            return self._circuit_key(self.circuit)
        places = self.specs[0].plan.key_places if self.plan.single and self.specs else None
        if places is None or self.evaluation.upper_tier != "operators":
            return None
        names = self.evaluation.output.schema.names
        return tuple(names[place] for place in places)

    def _circuit_key(self, circuit: ViewCircuit) -> tuple[str, ...] | None:
        """The same of a view that a circuit keeps, where its columns are as the circuit has them."""
        schema, shown, places = self.evaluation.output.schema, circuit.spec.shown, circuit.key
        if places is None or any(schema.field(n).type != shown[n].type for n in places):
            return None
        return tuple(schema.names[place] for place in places)

    def find(self, keys: pa.Table) -> pa.Table | None:
        """The rows of one key, every acknowledged insert in them; None if the view is to be read whole.

        One of few rows is: what was read serves the next readers, too.
        """
        known = self.versions.last
        if known is not None and known.rows.num_rows <= FEW_ROWS:
            return None
        (found,) = self._answered(
            lambda: self._find_unmoved(keys), lambda host: (host.find_in_view(self, keys),)
        )
        return found

    def _answered(
        self, here: Callable[[], Answer | None], there: Callable[[Elsewhere], Answer]
    ) -> Answer:
        """What the host that has it answers; `here` gives None when it has just moved."""
        while True:
            host = self.elsewhere
            if host is None:
                found = here()
                if found is not None:
                    return found
                continue
            host.wait_there()
            try:
                return there(host)
            except HostGone:
                host.wait_gone()

    @property
    def _few(self) -> int:
        return FEW_ROWS

    def _find_unmoved(self, keys: pa.Table) -> tuple[pa.Table | None] | None:
        if self.circuit is not None:
            return self._find_kept(keys)
        with self.world.held(self.plan.identifiers) as held, self.pipelines[0].lock:
            return None if self.pipelines[0].is_lent else (self._find_here(keys, held),)

    def _find_kept(self, keys: pa.Table) -> tuple[pa.Table | None] | None:
        """By the circuit; a view that it does not keep now is read whole."""
        circuit = self.kept
        if circuit is None:
            return (None,)
        try:
            with (
                self.world.held(self.plan.identifiers) as held,
                self._brought_up(circuit, held) as here,
            ):
                if not here:
                    return None
                if circuit.row_count <= self._few:
                    return (None,)
                rows = circuit.find(keys)
        except CircuitStopped:
            return (None,)
        return (self.evaluation.output.result(rows, 0),)

    def _find_here(self, keys: pa.Table, held: HeldTables) -> pa.Table | None:
        if self.cut is ViewCut.STORED:
            return None
        self.catch_up()
        if self.pipelines[0].groups <= self._few:
            return None
        columns = [column.combine_chunks() for column in keys.columns]
        merged = self.pipelines[0].find(self.specs[0], columns)
        if merged is None:
            return None
        now = time.time_ns() // 1000
        return self.evaluation.upper([(Instant(now, now), [merged])], held)[0]

    # Who follows it

    def follow(self, mark: str | None) -> FollowedChanges:
        """What has changed since a mark, every acknowledged insert in it; all rows where nobody knows."""
        return self._answered(
            lambda: self._follow_here(mark), lambda host: host.follow_view(self, mark)
        )

    def _follow_here(self, mark: str | None) -> FollowedChanges | None:
        with self.world.held(self.plan.identifiers) as held:
            if self.kept is not None:
                found = self._follow_kept(self.kept, held, mark)
            else:
                found = self._follow_groups(held, mark)
        if found is not None:
            return found
        version = self._read_here()
        return None if version is None else FollowedChanges(None, None, version.rows)

    def _follow_kept(
        self, circuit: ViewCircuit, held: HeldTables, mark: str | None
    ) -> FollowedChanges | None:
        """By the circuit; None if it does not keep the view, or the view is a few rows in an order."""
        try:
            with self._brought_up(circuit, held) as here:
                limit = circuit.spec.limit
                if not here or (limit is not None and limit <= FEW_ORDERED):
                    return None
                taken, changes = circuit.changes_since(mark)
                if changes is None:
                    rows = self.evaluation.output.result(circuit.result(), 0)
                    return FollowedChanges(taken, None, rows)
        except CircuitStopped:
            return None
        return FollowedChanges(
            taken, changes.with_rows(self.evaluation.output.result(changes.rows, 0))
        )

    def _follow_groups(self, held: HeldTables, mark: str | None) -> FollowedChanges | None:
        """By the groups that were touched; None if a group is not a row of its own, or not in memory."""
        if not self.specs or self.key is None or self.cut is ViewCut.STORED:
            return None
        pipeline, spec = self.pipelines[0], self.specs[0]
        schema = self.evaluation.output.schema
        assert spec.aggregation is not None
        if [schema.field(name).type for name in self.key] != list(spec.aggregation.key_types):
            return None
        with pipeline.lock:
            if pipeline.is_lent:
                return None
            self.catch_up()
            if pipeline.runs:
                return None
            touched = pipeline.touched(member_name(self.incarnation, 0))
            functions = self.world.functions_in(self.plan.identifiers)
            known, groups = self._followed, pipeline.groups_held

            def made(slots: Slots) -> pa.Table:
                now = time.time_ns() // 1000
                merged = pipeline.rows_of(spec, slots)
                return self.evaluation.upper([(Instant(now, now), [merged])], held)[0]

            if known is not None and known.has(mark, groups, functions):
                return known.follow(touched, made)
            self._followed = FollowedGroups(groups, schema, self.key, functions)
            return self._followed.begin(made(groups.present()))

    def _read_kept(self, circuit: ViewCircuit, held: HeldTables) -> Version | None:
        """The same from the circuit; None if it is in another host by now."""
        try:
            with self._brought_up(circuit, held) as here:
                if not here:
                    return None
                key = self._key(held, circuit.places)
                known = self.versions.last
                if known is not None and known.key == key:
                    return known
                rows = circuit.result()
        except CircuitStopped:
            return self._read_stored(held)
        now = time.time_ns() // 1000
        return self.versions.add(self.evaluation.output.result(rows, 0), key, now)

    def unchanged(self) -> Version | None:
        """The last version, if nothing that it was made of has changed since."""
        known = self.versions.last
        if known is None or self.world.reads_tables(self.plan.identifiers):
            return None
        ends = _places(self._read_tables)
        return known if known.key == self._key(HeldTables({}, {}), ends) else None

    @property
    def _read_tables(self) -> list[StreamingTable]:
        """The tables whose sequence numbers a version goes by."""
        if self.kept is not None:
            return [source.table for source in self.kept.streams]
        if self.cut is ViewCut.STORED:
            return list(self.tables)
        return [pipeline.place.table for pipeline in self.pipelines]

    def _read_stored(self, held: HeldTables) -> Version:
        key = self._key(held, _places(self._read_tables))
        known = self.versions.last
        if known is not None and known.key == key:
            return known
        now = time.time_ns() // 1000
        return self.versions.add(self.over_stored(now), key, now)

    def inputs(self) -> object:
        """How far each table that is read has come; equal before and after: nothing changed meanwhile."""
        with self.world.held(self.plan.identifiers) as held:
            return _places(self.tables), dict(held.versions)

    def key_of(
        self, places: Sequence[tuple[int, int | None]] | None, versions: Mapping[str, int]
    ) -> object:
        """What a result that another host made depends on; no places: on the time."""
        return object() if places is None else self._key(HeldTables({}, versions), places)

    def _key(self, held: HeldTables, places: Sequence[tuple[int, int | None]]) -> object:
        """What a result depends on: how far each table was read, of which generation, tables, functions."""
        text = self.plan.upper if self.specs else self.plan.whole
        if text is not None and text.reads_instant:
            return object()  # it depends on the time
        functions = self.world.functions_in(self.plan.identifiers)
        return tuple(places), tuple(sorted(held.versions.items())), functions

    # Snapshots

    def put_away(self, *, beside: bool = False) -> None:  # noqa: ARG002
        """Writes snapshots of its parts, under the lock of each only while its state is copied."""
        for state in self._states:
            state.put_away()

    def hand_over(self) -> None:
        """The same, and who waits here for Spark's answer is sent away."""
        if self.circuit is not None:
            self.circuit.leave()
        self.put_away()

    def put_away_if_due(self, period_s: float) -> None:
        """Writes snapshots if the last ones are that old."""
        for state in self._states:
            if state.keeper.is_due(period_s):
                state.put_away()

    def rows_will_change(self, table: SeenTable) -> None:
        """No snapshot of the old rows stays."""
        for pipeline in self.pipelines:
            if pipeline.place.table is table:
                pipeline.rows_will_change()
        if self.circuit is not None and table in self.circuit.tables.values():
            self.circuit.rows_will_change(table)


def _places(tables: Iterable[StreamingTable]) -> list[tuple[int, int | None]]:
    """The next sequence number and the generation of each table."""
    return [(table.state.next_sequence, table.generation) for table in tables]


def member_name(incarnation: str, fold: int) -> str:
    """What a pipeline calls one fold of one view."""
    return f"{incarnation}.{fold}"
