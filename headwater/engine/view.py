"""A continuous view: folded at each insert up to its groupings, finished when somebody reads it (CV1, CV2).

Owns: the folds of the view's stream pipelines, how far each table is folded, and the results made so far
(versions). Rows come by their sequence numbers, late ones too: a view shows all that was acknowledged.
Work is split: `fire` folds what came, for the scheduler; `read` folds the rest and runs the upper part.
Inserts take no lock of a view: what is not folded yet waits in the table (CV5).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.evaluation import Evaluation
from headwater.engine.fold_run import Counters, FoldRun
from headwater.engine.fold_spec import FoldSpec
from headwater.engine.query_parts import Timings
from headwater.engine.query_snapshot import Folds
from headwater.engine.sampling import Instant
from headwater.engine.snapshots import SnapshotFile
from headwater.engine.view_versions import Version, Versions
from headwater.engine.world import HeldTables, World
from headwater.plan.continuous.folds import INSTANT, ContinuousPlan
from headwater.storage.streaming.fresh import each_since
from headwater.storage.streaming.table import StreamingTable

FOLDED_AT_INSERT = ("split", "eager")


@dataclass(frozen=True)
class Start:
    """Where a view began in one table."""

    sequence: int  # the first row of a view that begins now; 0 for all rows
    oldest: int | None = None  # the tick before which RANGE hid rows when the view began


@dataclass
class ContinuousView:
    """One continuous view."""

    number: int
    name: str
    statement: str
    plan: ContinuousPlan
    specs: Sequence[FoldSpec]
    evaluation: Evaluation
    tables: Sequence[StreamingTable]  # one per leaf
    world: World
    static: HeldTables  # the tables below the folds, as of creation
    starts: Sequence[Start]
    versions: Versions
    over_stored: Callable[[], pa.Table]  # the query over all stored rows, by Spark
    maintenance: str = "split"
    snapshot: SnapshotFile | None = None
    priority: int = 0
    max_wait_s: float | None = None
    state: str = "running"
    error: BaseException | None = None
    careful: bool = True  # an error is told at once
    wall_due: int | None = None
    counters: Counters = field(default_factory=Counters)
    timings: Timings = field(default_factory=Timings)
    sequences: list[int] = field(default_factory=list)
    recovery_s: float | None = None  # how long the last start took to reach the present
    _generations: list[int | None] = field(default_factory=list)
    _kept: list[int] = field(default_factory=list)  # the place of the snapshot on disk
    _kept_at: float = 0.0
    _seeded: bool = False
    _replacing: list[int] = field(default_factory=list)  # generations whose rows are being replaced

    def __post_init__(self) -> None:
        self._lock = threading.RLock()  # over the folds
        self._reading = threading.Lock()  # one makes a version, the others wait for it
        self._probes = self.evaluation.probes

    # Place

    def attach(self) -> None:
        """Takes up the snapshot, if there is one that fits; rows after it are folded when they are needed."""
        with self._lock:
            self._begin()
            position = None if self.snapshot is None else self.snapshot.read(Folds(self.folds))
            if position is not None and position["statement"] == self.statement:
                self.sequences = list(position["sequences"])
                self._kept = list(self.sequences)
                self._generations = [table.generation for table in self.tables]
                self._seeded = True
            else:
                self._begin()
                self._seeded = not any(self.waiting())

    def _begin(self) -> None:
        """Folds that hold nothing."""
        self.folds = [
            FoldRun(
                spec,
                self.world,
                (),
                None,
                (),
                self._probes,
                self.plan.identifiers,
                self.counters,
                now=_microseconds,
            )
            for spec in self.specs
        ]
        self.sequences = [start.sequence for start in self.starts]
        self._generations = [None] * len(self.tables)
        self._kept = list(self.sequences)

    @property
    def folds_at_insert(self) -> bool:
        """Whether rows are folded as they come."""
        return bool(self.specs) and self.maintenance in FOLDED_AT_INSERT

    def waiting(self) -> list[int]:
        """By table: rows that came and are not folded."""
        ends = [table.state.next_sequence for table in self.tables]
        return [end - place for end, place in zip(ends, self.sequences, strict=True)]

    @property
    def progress(self) -> float:
        """Which part of the rows is folded, 1 for all."""
        total = sum(table.state.next_sequence for table in self.tables)
        total -= sum(start.sequence for start in self.starts)
        return 1.0 if total <= 0 else 1.0 - sum(self.waiting()) / total

    # What the engine asks

    def pull(self, since: float | None = None) -> bool:  # noqa: ARG002
        """Whether rows wait that should be folded now."""
        return self.folds_at_insert and (any(self.waiting()) or self._changed())

    @property
    def wants_early(self) -> bool:
        """Nothing is early: a view has no instants."""
        return False

    def fire(self) -> int:
        """Folds what came; an eager view makes its result too."""
        self.catch_up()
        if self.maintenance == "eager":
            self.read()
        return 0

    def share(self, sharing: object) -> None:
        """Views share with other views only."""

    def leave(self) -> None:
        """Nothing is shared."""

    def needed_from(self, number: int) -> int | None:
        """The oldest tick of a table that the view may read again: none that is closed."""
        table = next(table for table in self.tables if table.definition.id == number)
        closed = table.state.time.closed
        return None if closed is None else closed + 1

    def needed_sequence(self, number: int) -> int | None:
        """The first row of a table that the snapshot does not hold."""
        places = zip(self.tables, self._kept, strict=True)
        return min((place for t, place in places if t.definition.id == number), default=None)

    holds = False  # sequence numbers hold what a view needs

    @property
    def held_after(self) -> int | None:
        """No tick: a view has no instants."""
        return None

    # Folding

    def catch_up(self) -> None:
        """Folds every row that was acknowledged before the call."""
        started = time.perf_counter()
        with self._lock:
            before = list(self.sequences)
            try:
                changed = False
                for leaf in range(len(self.tables)):
                    changed |= not self._fold_leaf(leaf)
                if changed:
                    self._rebuild()
            except BaseException:
                self._begin()  # a part of the rows may be in some folds and not in others
                self._seeded = False
                raise
            if self.sequences != before:
                self.timings.add(time.perf_counter() - started, 1)
            if not self._seeded:
                self._seeded = True
                self.recovery_s = time.perf_counter() - started

    def _fold_leaf(self, leaf: int) -> bool:
        """Folds what came of one table; False if its stored rows were changed meanwhile."""
        table, known = self.tables[leaf], self._generations[leaf]
        end, generation = each_since(
            table, self.sequences[leaf], known, lambda rows: self._take(leaf, rows)
        )
        if known is not None and generation != known:
            return False
        self.sequences[leaf], self._generations[leaf] = end, generation
        return True

    def _changed(self) -> bool:
        known = zip(self.tables, self._generations, strict=True)
        return any(g is not None and table.generation != g for table, g in known)

    def _rebuild(self) -> None:
        """Stored rows were deleted or replaced: everything is folded again."""
        while True:
            self.forget_snapshot()
            self._begin()
            done = [self._fold_leaf(leaf) for leaf in range(len(self.tables))]
            if all(done):
                return

    def _take(self, leaf: int, rows: pa.Table) -> None:
        """One piece of a table's rows into the folds that read it."""
        definition = self.tables[leaf].definition
        start = self.starts[leaf]
        most = max(self.world.settings.integer("inline_rows"), 1)
        ticks = definition.ticks(rows.column(definition.time))
        if start.oldest is not None and len(ticks) and ticks.min() < start.oldest:
            shown = ticks >= start.oldest
            rows, ticks = rows.filter(pa.array(shown)), ticks[shown]
        for fold in self.folds:
            if fold.spec.plan.leaves[0].number != leaf:
                continue
            step = most if fold.tier == "in line" else max(rows.num_rows, 1)
            for place in range(0, rows.num_rows, step):
                part, times = rows.slice(place, step), ticks[place : place + step]
                zeros = np.zeros(part.num_rows, np.int64)
                fold.take([(part, zeros, times)], self.static, None)
                fold.merge.push_early()

    # Reading

    def read(self) -> Version:
        """The view over every row acknowledged before the call; unchanged input costs nothing."""
        with self._reading, self.world.held(self.plan.identifiers) as held:
            if not self.specs or self.maintenance == "deferred":
                return self._read_stored(held)
            with self._lock:
                self.catch_up()
                key = self._key(held)
                known = self.versions.last
                if known is not None and known.key == key:
                    return known
                merged = [fold.merge.result() for fold in self.folds]
            now = _microseconds()
            rows = self.evaluation.upper([(Instant(now, now), merged)], held)[0]
            return self.versions.add(rows, key)

    def _read_stored(self, held: HeldTables) -> Version:
        self.sequences = [table.state.next_sequence for table in self.tables]
        key = self._key(held)
        known = self.versions.last
        if known is not None and known.key == key:
            return known
        return self.versions.add(self.over_stored(), key)

    def _key(self, held: HeldTables) -> object:
        """What a result depends on."""
        text = self.plan.upper if self.specs else self.plan.whole
        if INSTANT in (text or ""):
            return object()  # it depends on the time
        generations = tuple(table.generation for table in self.tables)
        return tuple(self.sequences), generations, tuple(sorted(held.versions.items()))

    # Snapshots

    def put_away(self) -> None:
        """Writes a snapshot of the folds with the place that it belongs to."""
        if self.snapshot is None or not self.specs:
            return
        with self._lock:
            replacing = self._replacing == [table.generation for table in self.tables]
            if self.sequences == self._kept or replacing or self._changed():
                return
            position: dict[str, Any] = {
                "statement": self.statement,
                "sequences": list(self.sequences),
            }
            self.snapshot.write(Folds(self.folds), position)
            self._kept = list(self.sequences)
            self._kept_at = time.monotonic()

    def put_away_if_due(self, period_s: float) -> None:
        """Writes a snapshot if the last one is that old."""
        if time.monotonic() - self._kept_at >= period_s:
            self.put_away()

    def forget_snapshot(self) -> None:
        """What was made of old rows is not to be used again."""
        if self.snapshot is not None:
            self.snapshot.remove()

    def rows_will_change(self) -> None:
        """Before stored rows are deleted or replaced: no snapshot of them any more."""
        with self._lock:
            self._replacing = [table.generation for table in self.tables]
            self.forget_snapshot()
            self._kept = [start.sequence for start in self.starts]


def _microseconds() -> int:
    return time.time_ns() // 1000
