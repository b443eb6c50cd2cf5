"""A continuous view: folded at each insert up to its groupings, finished when somebody reads it (CV1, CV2).

Owns: the results made so far (versions), and when a new one must be made. What is folded is in its pipelines,
which it may share with other views. Work is split: `fire` folds what came, for the scheduler; `read` folds
the rest and runs the upper part.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.engine.elsewhere import Elsewhere, HostGone
from headwater.engine.evaluation import Evaluation
from headwater.engine.fold_run import Counters
from headwater.engine.sampling import Instant
from headwater.engine.view_pipeline import Pipelines, Start, ViewPipeline
from headwater.engine.view_versions import Version, Versions
from headwater.engine.world import World
from headwater.kernel.relation import HeldTables
from headwater.plan.folds import ContinuousPlan
from headwater.storage.streaming.fresh import ends_of
from headwater.storage.streaming.table import StreamingTable

FOLDED_AT_INSERT = ("split", "eager")


@dataclass
class ContinuousView:
    """One continuous view."""

    number: int
    name: str
    incarnation: str  # of this query: a view that is replaced gets another
    plan: ContinuousPlan
    specs: Sequence[FoldSpec]
    evaluation: Evaluation
    tables: Sequence[StreamingTable]  # one per leaf
    world: World
    static: HeldTables  # the tables below the folds, as of creation
    starts: Sequence[Start]
    versions: Versions
    over_stored: Callable[
        [int], pa.Table
    ]  # the query over all stored rows at a time in µs, by Spark
    registry: Pipelines
    pipelines: Sequence[ViewPipeline]  # one per fold
    maintenance: str = "split"
    priority: int = 0
    max_wait_s: float | None = None
    state: str = "running"
    error: BaseException | None = None
    elsewhere: Elsewhere | None = None
    careful: bool = True  # an error is told at once
    wall_due: int | None = None

    def __post_init__(self) -> None:
        self.on_version: Callable[[Version], None] = lambda _version: None  # made at an insert
        self._reading = threading.Lock()  # one makes a version, the others wait for it

    # What the engine asks

    def attach(self) -> None:
        """Its pipelines take up their places, if another host had them."""
        for pipeline in self.pipelines:
            pipeline.take_back()

    def lend(self) -> None:
        """Another host goes on with it: what it holds is put away, and no longer held here."""
        for pipeline in self.pipelines:
            pipeline.lend()

    @property
    def folds_at_insert(self) -> bool:
        """Whether rows are folded as they come."""
        return bool(self.specs) and self.maintenance in FOLDED_AT_INSERT

    @property
    def waiting(self) -> int:
        """Rows that came and are not folded."""
        return sum(pipeline.waiting for pipeline in self.pipelines)

    @property
    def progress(self) -> float:
        """Which part of the rows is folded, 1 for all."""
        waiting = self.waiting
        if not waiting:
            return 1.0
        total = sum(p.place.table.rows_since(p.place.start.sequence) for p in self.pipelines)
        return max(1.0 - waiting / total, 0.0) if total > 0 else 1.0

    def pull(self, since: float | None = None) -> bool:  # noqa: ARG002
        """Whether rows wait that should be folded now."""
        return self.folds_at_insert and any(p.is_behind or p.changed for p in self.pipelines)

    @property
    def wants_early(self) -> bool:
        """Nothing is early: a view has no instants."""
        return False

    def fire(self) -> int:
        """Folds what came; an eager view makes its result too."""
        for pipeline in self.pipelines:
            pipeline.catch_up()
        if self.maintenance == "eager":
            made = self._read_here()  # while it moves, the next host waits for the end of this firing
            if made is not None:
                self.on_version(made)
        return 0

    def share(self, sharing: object) -> None:
        """Views share pipelines, whatever the scheduler does."""

    def leave(self) -> None:
        """Its pipelines stay."""

    def end(self) -> None:
        """The view is gone: pipelines that no other view needs go too."""
        for number, pipeline in enumerate(self.pipelines):
            self.registry.leave(member_name(self.incarnation, number), pipeline)

    def needed_from(self, number: int) -> int | None:
        """The oldest tick of a table that the view may read again: none that is closed."""
        table = next(table for table in self.tables if table.definition.id == number)
        closed = table.state.time.closed
        return None if closed is None else closed + 1

    def needed_sequence(self, number: int) -> int | None:
        """The first row of a table that no snapshot holds."""
        mine = [p for p in self.pipelines if p.place.table.definition.id == number]
        return min((pipeline.kept for pipeline in mine), default=None)

    @property
    def all_counters(self) -> list[Counters]:
        """What was done for it in this process."""
        return [pipeline.counters for pipeline in self.pipelines]

    remembers = False
    holds = False  # sequence numbers hold what a view needs

    @property
    def held_after(self) -> int | None:
        """No tick: a view has no instants."""
        return None

    # Reading

    def catch_up(self) -> None:
        """Folds every row that was acknowledged before the call, none that came after another."""
        ends = ends_of(pipeline.place.table for pipeline in self.pipelines)
        while True:
            for pipeline in self.pipelines:
                pipeline.catch_up(ends[pipeline.place.table.definition.id])
            if not any(pipeline.changed for pipeline in self.pipelines):
                break  # else a DELETE came between two of them
        if self.state in ("failed", "retrying"):
            self.state, self.error = "running", None

    def read(self) -> Version:
        """The view over every row acknowledged before the call; unchanged input costs nothing."""
        while True:
            known, elsewhere = self.unchanged(), self.elsewhere
            if known is None and elsewhere is None:
                known = self._read_here()  # None: it has just moved
            elif known is None and elsewhere is not None:
                elsewhere.wait_there()
                try:
                    with self._reading:
                        return self.unchanged() or elsewhere.read_view(self)
                except HostGone:
                    elsewhere.wait_gone()
            if known is not None:
                return known

    def _read_here(self) -> Version | None:
        """The same by the groups of this host; None if they are in another one by now."""
        with (
            self._reading,
            self.world.held(self.plan.identifiers) as held,
            contextlib.ExitStack() as reading,
        ):
            if not self.specs or self.maintenance == "deferred":
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
        if not self.specs or self.maintenance == "deferred":
            return list(self.tables)
        return [pipeline.place.table for pipeline in self.pipelines]

    def _read_stored(self, held: HeldTables) -> Version:
        key = self._key(held, _places(self.tables))
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

    def put_away(self) -> None:
        """Writes snapshots of its pipelines."""
        for pipeline in self.pipelines:
            pipeline.put_away()

    def put_away_if_due(self, period_s: float) -> None:
        """Writes snapshots if the last ones are that old."""
        for pipeline in self.pipelines:
            pipeline.put_away_if_due(period_s)

    def rows_will_change(self, table: StreamingTable) -> None:
        """Before stored rows of a table are deleted or replaced: no snapshot of the old ones stays."""
        for pipeline in self.pipelines:
            if pipeline.place.table is table:
                pipeline.rows_will_change()


def _places(tables: Iterable[StreamingTable]) -> list[tuple[int, int | None]]:
    """The next sequence number and the generation of each table."""
    return [(table.state.next_sequence, table.generation) for table in tables]


def member_name(incarnation: str, fold: int) -> str:
    """What a pipeline calls one fold of one view."""
    return f"{incarnation}.{fold}"
