"""A continuous query at work: a factory that keeps its place and its state between firings (DC3).

Owns: the readers of its tables, its folds, the choice between folding and re-evaluation, and what is
told about it. A firing takes every instant that is complete, folds all their rows in one go, and gives
each its own result. What it decided goes into the sink before anybody sees the result; a restarted query
goes on from what the sink holds. One thread at a time fires a query; the scheduler sees to that.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.engine.chunks import chunks_of
from headwater.engine.early_chunks import EarlyChunks
from headwater.engine.evaluation import Evaluation
from headwater.engine.feed import Feed, FeedCursor
from headwater.engine.fold_run import FoldRun
from headwater.engine.hosted import LoggedQuery, held_from
from headwater.engine.mode import FOLD, REEVALUATE, ModeChooser
from headwater.engine.places import (
    closed_until,
    early_rows,
    fitting,
    overfull,
    stored_places,
    take_open,
    take_turns,
    take_until,
    turn_note,
)
from headwater.engine.progress import Progress
from headwater.engine.query_folds import QueryFolds
from headwater.engine.query_functions import QueryFunctions
from headwater.engine.query_parts import Beginning, Evaluated, Firing
from headwater.engine.reader import LeafReader, PlacedRows, read_columns
from headwater.engine.sampling import Instant, Sampling
from headwater.engine.sharing import Sharing
from headwater.engine.timeline import all_empty, next_on_wall, timeline
from headwater.engine.windows import Windows
from headwater.errors import DataError, Error, NotSupportedError, StorageError
from headwater.fold.pane import Panes, Window
from headwater.kernel.relation import HeldTables
from headwater.plan.folds import ContinuousPlan, Leaf
from headwater.storage.streaming.seen import NO_TICK_BEFORE, Needs, SeenTable
from headwater.storage.streaming.table import StreamingTable

ALL_INSTANTS = 1 << 40
BOUNDED = ("interval", "chunks")  # windows that do not need all rows before
LEAST_SECONDS_PER_ROW = 40e-9  # measured: 100 ns by operators
LEAST_SECONDS_ON_SPARK = 0.025
EARLY_CHUNKS_OF_A_CUT = 16  # how many they are to begin with


@dataclass(kw_only=True)
class ContinuousQuery(LoggedQuery):
    """One registered query."""

    plan: ContinuousPlan
    specs: Sequence[FoldSpec]
    evaluation: Evaluation
    sampling: Sampling
    wish: str = "auto"
    readers: list[LeafReader] = field(default_factory=list)
    folds: QueryFolds = field(default_factory=QueryFolds)
    early: EarlyChunks = field(default_factory=EarlyChunks)
    budget_s: float | None = None  # an epoch should not take longer
    due_since: float | None = None  # when the instants that wait could first be answered
    functions: QueryFunctions = field(default_factory=QueryFunctions)
    _versions: dict[str, Any] = field(default_factory=dict)
    version_numbers: dict[str, int | None] = field(default_factory=dict)
    _empty: tuple[Any, pa.Table] | None = None
    _pane_rows: int = 0  # taken since the last result, or since the place was taken up

    def __post_init__(self) -> None:
        super().__post_init__()
        wish = self.wish if self.specs else REEVALUATE
        streams = [t.definition.kind == "stream" for t in self.tables]
        if any(map(self._is_kept_by_state, compress(self.plan.leaves, streams))):
            wish = FOLD  # what a stream has let go cannot be evaluated again
        self.chooser = ModeChooser(wish, FOLD if self.specs else REEVALUATE)
        operators = self.world.settings.operators
        by_chunks = self.sampling.cut or self._tumbles
        if by_chunks and operators and all(s.tier == "operators" for s in self.specs):
            self.early = EarlyChunks(start=EARLY_CHUNKS_OF_A_CUT)
        self.progress = Progress(self.budget_s, time.perf_counter, self.world.kernel.jobs_of)

    # Place

    def attach(self) -> None:
        """Takes up the place that the sink says, with feeds from there; folds are built when needed."""
        self.sink.recover()
        last, kept = self.sink.last(), None
        self.sampling.begun, self._pane_rows = None, 0
        cursors = list(self.beginning.cursors)
        if last is not None:
            tick, note = last
            saved = note.get("cursors")
            cursors = (
                [FeedCursor(*c) for c in saved] if saved else [FeedCursor(tick) for _ in cursors]
            )
            self.sampling.after, self.sampling.count = tick, note.get("count", 0)
            kept = note.get("bounds")
        elif not self.beginning.from_beginning:
            ticks = [cursor.tick for cursor in cursors if cursor is not None]
            self.sampling.after = min(ticks, default=None)
        readers: list[LeafReader] = []
        for leaf, table, cursor in zip(self.plan.leaves, self.tables, cursors, strict=True):
            columns = read_columns(leaf, bool(self.specs))
            hidden = not self.beginning.from_beginning
            feed = Feed(self.world, table, cursor, columns, hidden=hidden)
            joined = any(other is not table for other in self.tables)
            reader = LeafReader(leaf, feed, cursor, self._before_only(table), joined)
            if leaf.window.kind == "chunks":
                bounds = [cursor] if kept is None else kept[leaf.number]
                reader.chunks = chunks_of(leaf, self.sampling.count, bounds)
            readers.append(reader)
        self.readers = readers  # others read it while this one is being attached
        self._make_folds()

    def _before_only(self, table: StreamingTable) -> bool:
        """Whether only BEFORE windows stand on a table: they do not wait for ties of the instant."""
        leaves = [leaf for leaf, t in zip(self.plan.leaves, self.tables, strict=True) if t is table]
        return all(leaf.window.kind == "interval" and leaf.window.before for leaf in leaves)

    @property
    def _tumbles(self) -> bool:
        """Whether every window is a chunk: half-open, and as long as the slide."""
        return self.sampling.kind == "interval" and all(
            leaf.window.before
            and leaf.window.duration is not None
            and table.definition.duration_ticks(leaf.window.duration.microseconds)
            == self.sampling.step
            for leaf, table in zip(self.plan.leaves, self.tables, strict=True)
        )

    def _make_folds(self) -> None:
        windows = [self._window(leaf) for leaf in self.plan.leaves]
        paned = tuple(dict.fromkeys(window for window in windows if window is not None))
        slide = 1 if self.sampling.kind == "realtime" else self.sampling.step
        panes = Panes(slide, paned or (Window(0),))
        runs = []
        for spec in self.specs:
            numbers = [leaf.number for leaf in spec.plan.leaves]
            readers = tuple(self.readers[number] for number in numbers)
            mine = tuple(windows[number] or Window(0) for number in numbers)
            own = Panes(slide, tuple(dict.fromkeys(mine))) if spec.plan.kind != "join" else panes
            probes = self.evaluation.probes
            run = FoldRun(spec, self.world, readers, own, mine, probes, self.counters)
            run.share = self.mine
            runs.append(run)
        self.folds.make(runs)

    def _window(self, leaf: Leaf) -> Window | None:
        """A leaf's window in the unit of places."""
        reader = self.readers[leaf.number]
        if leaf.window.kind == "interval":
            assert reader.window_ticks is not None
            return Window(reader.window_ticks, leaf.window.before)
        if self.sampling.counted and leaf.window.rows is not None and not leaf.window.keys:
            return Window(leaf.window.rows - 1)  # of positions, or of chunks
        return None

    def share(self, sharing: Sharing) -> None:
        """The folds may be one with equal folds of other queries; each firing settles which are."""
        if self.specs and self.wish != REEVALUATE and not self.plan.stream_tables:
            members = sharing.add(self.name, self.specs, self.tables, self.sampling, self.world)
            self.folds.join(sharing, members)

    def leave(self) -> None:
        """It folds alone from now on."""
        self.folds.leave()

    # Firing

    def pull(self, since: float | None = None) -> bool:
        """Takes over new rows, the first of which came at a time; whether an instant is complete."""
        for reader in self.readers:
            if not reader.feed.pull():
                self.attach()  # stored rows were changed
                self.keeper.forget()
                break
        due = bool(self.sampling.due(self.readers, 1))
        if due and self.due_since is None:
            self.due_since = since
        self.wall_due = next_on_wall(self.sampling, self.tables, self.readers)
        return due

    @property
    def output(self) -> pa.Schema:
        """The columns of its result."""
        return self.evaluation.output.schema

    def due_until(self) -> float:
        """The last complete instant, or how many are answered then."""
        due = self.sampling.due(self.readers, ALL_INSTANTS)
        if self.sampling.counted:
            return self.sampling.count + len(due)
        return due[-1].tick if due else -math.inf

    @property
    def answered_until(self) -> float:
        """The last instant that was answered, or how many were."""
        if self.sampling.counted:
            return self.sampling.count
        return -math.inf if self.sampling.after is None else self.sampling.after

    def fire(self) -> int:
        """Answers the instants that are complete; how many."""
        started = time.perf_counter()
        instants = self.sampling.due(self.readers)
        if not instants:
            return self._fold_early()
        since, self.due_since = self.due_since or started, None
        with self.world.held(self.plan.identifiers) as held:
            with self.progress.firing(self.sampling.count, threading.get_ident(), since):
                firing, results = self._evaluate(instants, held)
                with self.progress.at("storing the result"):
                    self.sink.append(results)
            self.results += len(results)
            ended, count = time.perf_counter(), max(len(results), 1)
            self.timings.add(ended - since, count)
            self.early.observe((ended - started) / count, self._pane_rows)
            self._try_other(firing, held)
        if results and self.folds.ready and self.sampling.kind != "realtime":
            self.folds.answered(results[-1].instant.place + self.sampling.step)
        for result in results:
            self.sampling.evaluated(result.instant)
            self.functions.delivered(result.instant)
        for reader in self.readers:
            reader.answered(len(results))
        self._pane_rows = 0
        return len(results)

    def _fold_early(self) -> int:
        """Rows of the newest pane are folded before its instant, in m chunks (DC7) or a basket's fill."""
        if not self.wants_early:
            return 0
        with self.world.held(self.plan.identifiers) as held:
            self._check_versions(held)
            if not self.folds.ready:
                place = self.sampling.next_place(self.readers)
                assert place is not None  # rows wait
                self._rebuild(place, held)
            before = [reader.cursor for reader in self.readers]
            chunks = take_open(self.readers, self.sampling)
            self._pane_rows += sum(chunk.rows.num_rows for chunk in chunks)
            self._give(chunks, before, None, held)
            self.folds.push_early(closed_until(self.readers), held, self.counters)
        return 0

    @property
    def wants_early(self) -> bool:
        """Whether rows wait that should be folded before their instant."""
        modes = self.chooser.plan()
        if self.sampling.kind == "realtime" or modes[0] != FOLD:
            return False
        waiting = early_rows(self.readers, self.sampling)
        return (
            self.early.due(waiting, self._pane_rows)
            or waiting > self._most_at_once // 2 > 0
            or overfull(self.readers, waiting)
        )

    @property
    def _most_at_once(self) -> int:
        """The largest chunk that is folded by operators; 0 if a fold cannot be."""
        return self.world.settings.rows_at_once if self.folds.all_by_operators else 0

    def _evaluate(
        self, instants: list[Instant], held: HeldTables
    ) -> tuple[Firing, list[Evaluated]]:
        self._check_versions(held)
        interval = self.sampling.kind == "interval"
        last = instants[-1]
        instants = fitting(self.readers, self.sampling, instants, self._most_at_once, self.careful)
        first, taken_until = instants[0], instants[-1].tick
        modes = self.chooser.plan()
        if FOLD not in modes:
            self.folds.passed(taken_until)
        elif self.folds.settle(first.tick, taken_until):
            self.keeper.forget()  # it would be too old when it is needed
        ready = self.folds.ready
        if FOLD in modes and not ready:
            self._rebuild(first.place, held)
        before = [reader.cursor for reader in self.readers]
        if interval:
            chunks = take_until(self.readers, taken_until)
            most = self.world.settings.integer("max_empty_instants")
            ends = (first, last, taken_until)
            wanted = list(timeline(self.sampling, self.readers, *ends, most))
        else:
            counted = self.sampling.counted
            chunks = (
                take_turns(self.readers, self.sampling, len(instants))
                if counted
                else take_until(self.readers, taken_until)
            )
            wanted = [(instant, all_empty(self.readers, instant)) for instant in instants]
        self._pane_rows += sum(chunk.rows.num_rows for chunk in chunks)
        firing = Firing(wanted, chunks, before, modes, ready)
        results = self._run(modes[0], firing, held)
        self.folds.ready = FOLD in modes
        return firing, results

    def _run(self, mode: str, firing: Firing, held: HeldTables) -> list[Evaluated]:
        """One mode over the instants of a firing; its cost is told to the chooser."""
        started = time.perf_counter()
        if mode == FOLD:
            results = self._fold(firing.wanted, firing.chunks, firing.before, held)
        else:
            results = self._reevaluate(firing.wanted, held)
        if mode == REEVALUATE or firing.ready:
            self.chooser.observe(mode, (time.perf_counter() - started) / len(firing.wanted))
        return results

    def _try_other(self, firing: Firing, held: HeldTables) -> None:
        """A trial of the other mode, after the result is delivered; only its cost counts."""
        for mode in firing.modes[1:]:
            if mode == FOLD:
                self._run(mode, firing, held)
                continue
            least, known = self._least_cost(firing), self.chooser.cost(FOLD)
            if known is not None and least > known:
                self.chooser.observe(mode, least)  # a bound from below says enough
                continue
            last = len(firing.wanted) - 1
            started = time.perf_counter()
            with contextlib.suppress(Error):  # the result is delivered: a trial fails nothing
                self._reevaluate(firing.wanted[last:], held, last)
                self.chooser.observe(mode, time.perf_counter() - started)

    def _least_cost(self, firing: Firing) -> float:
        """What re-evaluating a slide costs at least: its windows' rows, at the speed of memory."""
        rows = 0.0
        for reader, chunk in zip(self.readers, firing.chunks, strict=True):
            window = self._window(reader.leaf)
            if window is not None:
                slides = (window.size + 1) / self.sampling.step
                rows += slides * chunk.rows.num_rows / len(firing.wanted)
            elif reader.leaf.window.kind == "landmark":
                rows += reader.table.state.next_sequence
        least = 0.0 if self.evaluation.evaluates_by_operators else LEAST_SECONDS_ON_SPARK
        return max(rows * LEAST_SECONDS_PER_ROW, least)

    def _give(
        self,
        chunks: Sequence[PlacedRows],
        before: Sequence[FeedCursor | None],
        first: int | None,
        held: HeldTables,
    ) -> None:
        self.folds.give(chunks, before, first, held, self.progress)

    # Empty windows

    def _empty_result(self, instant: Instant, held: HeldTables) -> pa.Table | None:
        """The result over empty windows, made once per version of the tables."""
        if self._empty is None or self._empty[0] != held.versions or self.plan.reads_instant:
            return None
        rows = self._empty[1]
        if not rows.num_rows:
            return rows
        times = pa.repeat(self.evaluation.output.instant(instant.tick), rows.num_rows)
        return rows.set_column(rows.num_columns - 1, rows.schema.field(rows.num_columns - 1), times)

    # Modes

    def _fold(
        self,
        wanted: Sequence[tuple[Instant, bool]],
        chunks: Sequence[PlacedRows],
        before: Sequence[FeedCursor | None],
        held: HeldTables,
    ) -> list[Evaluated]:
        self._give(chunks, before, wanted[0][0].place, held)
        relations_at = self.folds.relations(wanted, held, self.counters)
        ready: dict[int, pa.Table] = {}
        merged: list[tuple[Instant, list[pa.Table]]] = []
        for number, (instant, empty) in enumerate(wanted):
            known = self._empty_result(instant, held) if empty else None
            if known is not None:
                ready[number] = known
                continue
            merged.append((instant, relations_at(instant)))
            if empty and not self.plan.reads_instant:
                ready[number] = self.evaluation.upper([merged.pop()], held)[0]
                self._empty = (dict(held.versions), ready[number])
        with self.progress.at("the upper part"):
            made = iter(self.evaluation.upper(merged, held))
        rows = [ready[n] if n in ready else next(made) for n in range(len(wanted))]
        return self._noted(wanted, rows, held)

    def _reevaluate(
        self,
        wanted: Sequence[tuple[Instant, bool]],
        held: HeldTables,
        first: int = 0,  # which instant of the chunks is the first wanted
    ) -> list[Evaluated]:
        found = []
        in_pieces = self.evaluation.evaluates_by_operators
        asked = (self.world, self.readers, self.plan.in_order, self.functions, in_pieces)
        with Windows(*asked) as windows:
            for number, (instant, empty) in enumerate(wanted, first):
                known = self._empty_result(instant, held) if empty else None
                if known is None:
                    turn = number if self.sampling.counted else None
                    with self.progress.at("the whole query over its windows"):
                        rows = windows.at(instant, self.beginning.landmark, turn)
                        known = self.evaluation.over_rows(rows, instant.tick, held)
                    if empty:
                        self._empty = (dict(held.versions), known)
                found.append(known)
        return self._noted(wanted, found, held)

    def _noted(
        self,
        wanted: Sequence[tuple[Instant, bool]],
        rows: Sequence[pa.Table],
        held: HeldTables,
    ) -> list[Evaluated]:
        """The results with what a replay must not decide again."""
        found = []
        for number, ((instant, _), table) in enumerate(zip(wanted, rows, strict=True)):
            note: dict[str, Any] = {"count": self.sampling.count + number + 1}
            if held.versions:
                note["versions"] = dict(held.versions)
            if self.sampling.counted:
                note |= turn_note(self.readers, number)
            epoch = note["count"] - 1 if self.sampling.cut else None
            found.append(Evaluated(instant, table, note, epoch))
        return found

    # State

    def _check_versions(self, held: HeldTables) -> None:
        """A table below the folds that changed: what was folded is folded again from the stored rows."""
        now = {name: held.relations.get(name) for name in self.plan.stream_tables}
        if self.folds.ready and (self.folds.are_elsewhere or now != self._versions):
            self.folds.ready = False
            self.keeper.forget()
        self._versions = now
        self.version_numbers = {name: held.versions.get(name) for name in self.plan.stream_tables}

    def _rebuild(self, place: int, held: HeldTables) -> None:
        """The folds' state at the readers' place: from the snapshot, else from stored rows."""
        self.folds.clear()
        if not self.folds.is_shared and self._take_up(held):
            self.folds.ready = True
            return
        self.folds.clear()
        self._check_rows()
        if self.folds.own:
            self._give(self._stored(place), [None] * len(self.readers), place, held)
        else:
            for reader in self.readers:
                reader.look_back(place)
        self.folds.ready = True
        self.keeper.begin_anew()

    def _check_rows(self) -> None:
        """Where a stream has let rows go there is a snapshot of them, or there never was one."""
        for reader in self.readers:
            table = reader.table
            stands = table.definition.kind == "stream" and self._is_kept_by_state(reader.leaf)
            if stands and table.let_go and self.keeper.file is not None and self.keeper.file.exists:
                raise _rows_missing(table.definition.name, self.keeper.file.name)

    def _stored(self, place: int) -> list[PlacedRows]:
        """The stored rows of every leaf that an instant's windows hold, up to the readers' place."""
        chunks = []
        for reader in self.readers:
            with reader.table.reading() as snapshot:
                landmark = self.beginning.landmark[reader.leaf.number]
                tick = 0 if self.sampling.counted else place
                rows, ticks = reader.stored(snapshot, tick, landmark)
            places = stored_places(reader, self.sampling, rows, ticks)
            chunks.append(PlacedRows(rows, places, ticks))
        return chunks

    # Snapshots

    def drop(self) -> None:
        """Readers and folds are not held any more."""
        self.readers = []
        self.folds.make(())

    def put_away(self, *, beside: bool = False) -> None:
        """Writes snapshots of the functions, and of the folds with the place that they belong to."""
        self.functions.put_away()
        super().put_away(beside=beside)

    def to_keep(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The folds, with the place that they belong to; kept chunks of a cut are read again."""
        cursors = [reader.cursor for reader in self.readers]
        chunked = self.sampling.kind == "chunks" or self.sampling.after is None
        if not self.folds.may_be_kept or chunked or None in cursors:
            return None
        position = {
            **self._signature(),
            "count": self.sampling.count,
            "after": self.sampling.after,
            "cursors": [[c.tick, c.sequence] for c in cursors if c is not None],
            "early": [reader.early for reader in self.readers],
            "latest": [reader.newest for reader in self.readers],
            "versions": self.version_numbers,
        }
        try:
            return self.folds.state(), position
        except (DataError, NotSupportedError):
            return None  # a row that cannot be joined, of which its instant tells; nested values

    def _signature(self) -> dict[str, Any]:
        """What a snapshot must have in common with the query that takes it up."""
        return {
            "statement": self.statement,
            "merges": self.folds.kinds,
            "landmark": self.beginning.as_json()["landmark"],
        }

    def _take_up(self, held: HeldTables) -> bool:
        """Brings the folds to the readers' place by the snapshot; False if there is none that fits.

        Rows between its place and theirs are folded from the tables, so it may be of any age.
        """
        if not self.keeper.may_keep or self.sampling.after is None:
            return False
        position = self.keeper.read(self.folds)
        if position is None or any(position.get(k) != v for k, v in self._signature().items()):
            return False
        versions = {name: held.versions.get(name) for name in self.plan.stream_tables}
        if position["versions"] != versions or position["after"] > self.sampling.after:
            return False
        chunks = []
        kept = zip(position["cursors"], position["latest"], position["early"], strict=True)
        for reader, (cursor, latest, early) in zip(self.readers, kept, strict=True):
            rows, ticks = reader.between(FeedCursor(*cursor), latest, early)
            places = ticks
            if self.sampling.kind == "rows":
                start = position["count"] * self.sampling.step + early
                places = np.arange(start + 1, start + 1 + rows.num_rows)
            chunks.append(PlacedRows(rows, places, ticks))
        self._give(chunks, [reader.cursor for reader in self.readers], None, held)
        self.keeper.kept = position
        return True

    def rows_will_change(self, table: SeenTable) -> None:
        """No snapshot until the folds are made again; calls were made for the rows as they are now."""
        self.keeper.hold_off(table)
        with contextlib.suppress(Error):
            self.functions.put_away()

    # What is still needed of the tables

    def needs(self, table: SeenTable) -> Needs:
        """What windows and functions may read again; RANGE waits for both."""
        from_tick = self._needed_from(table.definition.id)
        held = held_from(self.sampling.after, table)
        if held is not None and self.functions:  # state may be made of rows that RANGE hides
            held = NO_TICK_BEFORE if from_tick is None else min(held, from_tick)
        return Needs(from_tick, held)

    def _needed_from(self, number: int) -> int | None:
        """The oldest tick of a table that may be read again; None for all of it."""
        oldest: list[int | None] = []
        readers, kept = self.readers, self.keeper.kept
        if len(readers) < len(self.plan.leaves):
            return None
        for reader in readers:
            if reader.table.definition.id != number:
                continue
            if self.sampling.after is None:
                return None
            start = None
            if reader.window_ticks is not None and self.sampling.kind != "rows":
                start = self.sampling.after - reader.window_ticks
            if reader.chunks is not None:
                bound = reader.chunks.bounds[0]
                oldest.append(None if bound is None else bound.tick)
            elif kept is not None and self._is_kept_by_state(reader.leaf):
                place: int = kept["cursors"][reader.leaf.number][0]
                oldest.append(place if start is None else max(place, start))
            elif start is not None:
                oldest.append(start)
            elif not self.functions:
                return None
            if self.functions:
                oldest.append(self.functions.needed_from(reader.leaf.number))
        return None if None in oldest else min(o for o in oldest if o is not None)

    def _is_kept_by_state(self, leaf: Leaf) -> bool:
        """Whether a snapshot stands for the rows of a leaf: folds alone answer, and read none again (DC5).

        A join reads the rows of its windows, and so does a landmark that is set back beside other windows.
        """
        if not self.specs or self.plan.stream_tables:
            return False
        if leaf.window.kind not in BOUNDED or self.sampling.kind == "rows":
            return True
        reads = any(spec.plan.kind == "join" for spec in self.specs)
        landmarks = any(other.window.kind == "landmark" for other in self.plan.leaves)
        asked = self.wish == REEVALUATE
        return leaf.window.kind == "interval" and not (reads or landmarks or asked)

    @property
    def reached(self) -> int | None:
        """The furthest tick that it has gone beyond."""
        ticks = [reader.cursor.tick for reader in self.readers if reader.cursor is not None]
        return max(
            [*ticks, *([] if self.sampling.after is None else [self.sampling.after])], default=None
        )

    # Landmarks

    def reset_landmark(self, cursors: Sequence[FeedCursor | None]) -> None:
        """Landmark windows begin anew after these places."""
        self.beginning = Beginning(
            self.beginning.cursors, tuple(cursors), self.beginning.from_beginning
        )
        self.folds.ready = False
        self.keeper.forget()


def _rows_missing(table: str, snapshot: str) -> StorageError:
    """A stream has let go what the snapshot held."""
    return StorageError(
        f"rows of stream {table} that the query needs are gone",
        sqlstate="XX001",
        detail=f"the snapshot of the query's state, {snapshot}, is damaged or another query's",
        hint="put the newest snapshot back; or DROP QUERY and create it again: it then begins anew",
    )
