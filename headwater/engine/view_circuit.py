"""The rows of a view kept by a circuit: every change of its tables goes through the operators once.

Owns: the circuit, its result, how far each streaming table was read and which version of each standard table;
the snapshot of all that. Rows come by their sequence numbers, late ones too, as in the pipelines of folded
views. The first time that stored rows of a streaming table are deleted or replaced it begins anew, with
operators that take rows back; from then on those rows go through alone, as what changes in a standard table
does. An expression that raises stops the circuit until rows are deleted or changed: Spark then decides at
each read whether the query raises. A state that memory has no room for goes to disk, operator by operator.
While Spark answers an opaque node nobody holds the lock: who needs what it will say waits, others do not, and
nothing goes through the operators until it is there. Must never: give a result of a part of the changes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import pyarrow as pa

from headwater.compile.circuit import CircuitSpec
from headwater.engine.arrangement_runs import CircuitRuns, Record
from headwater.engine.change_record import ChangeRecord
from headwater.engine.elsewhere import HostGone
from headwater.engine.fold_run import Counters
from headwater.engine.halting import CannotKeep, Halting
from headwater.engine.query_parts import Timings
from headwater.engine.snapshots import SnapshotFile, SnapshotKeeper
from headwater.engine.view_pipeline import Start
from headwater.engine.world import World, run_over
from headwater.errors import DataError, NotSupportedError
from headwater.kernel.relation import HeldTables
from headwater.operators.bags import bag_difference
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.circuit import Circuit, CircuitNode
from headwater.operators.kept_rows import KeptRows
from headwater.operators.opaque import OpaqueOperator
from headwater.operators.operator import Operator
from headwater.plan.relational.nodes import input_rows
from headwater.settings import MEBIBYTE
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.fresh import each_since, ends_of
from headwater.storage.streaming.seen import SeenTable
from headwater.storage.streaming.table import StreamingTable

PIECE_ROWS = 1 << 16  # that go through the circuit at once
WAITING_ROWS = 1 << 18  # that opaque nodes may hold until somebody reads the view
LEAST_STATE = MEBIBYTE  # what cannot go to disk may take as much in any case


@dataclass
class _StreamSource:
    """A streaming table, and how far it was read."""

    number: int  # of the circuit's source
    table: StreamingTable
    start: Start
    columns: tuple[str, ...]  # stored names
    schema: pa.Schema  # as the circuit calls them
    sequence: int = 0
    generation: int | None = None
    later: list[tuple[Changes, int]] = field(default_factory=list)  # of DELETEs, and the generation

    def clear(self) -> None:
        """Nothing was read."""
        self.sequence, self.generation, self.later = self.start.sequence, None, []

    @property
    def generation_then(self) -> int | None:
        """The generation once what waits has gone through."""
        return self.later[-1][1] if self.later else self.generation

    @property
    def changed(self) -> bool:
        """Whether stored rows were deleted or replaced since they were read."""
        return self.generation is not None and self.table.generation != self.generation

    def read_before(self, stored: pa.Table) -> pa.Table:
        """Of stored rows those that went through, as the circuit takes them."""
        numbers = stored.column(SEQUENCE).to_numpy()
        mine = (numbers >= self.start.sequence) & (numbers < self.sequence)
        return self.rows(stored.filter(pa.array(mine)))

    def rows(self, stored: pa.Table) -> pa.Table:
        """Stored rows as the circuit takes them."""
        return stored.select(list(self.columns)).rename_columns(self.schema.names)


@dataclass
class _TableSource:
    """A standard table: its rows at the version that the circuit has."""

    number: int
    name: str
    columns: tuple[str, ...]
    schema: pa.Schema
    version: object = None
    stored: pa.Table | None = None  # as the host's circuits share them
    rows: pa.Table | None = None  # the same by the circuit's names

    def clear(self) -> None:
        """Nothing was read."""
        self.version = self.stored = self.rows = None


class CircuitStopped(CannotKeep):
    """The circuit cannot keep the view: Spark evaluates it."""


@dataclass
class ViewCircuit(Halting):
    """The circuit of one view."""

    number: str  # never given out again
    spec: CircuitSpec
    tables: Mapping[str, StreamingTable]  # by name, as the spec has it
    starts: Mapping[str, Start]
    world: World
    snapshot: SnapshotFile
    runs: CircuitRuns
    counters: Counters = field(default_factory=Counters)
    timings: Timings = field(default_factory=Timings)
    stopped: str | None = None  # why it keeps nothing

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.may_halt()
        self.streams: list[_StreamSource] = []
        self.statics: list[_TableSource] = []
        for number, scan in enumerate(self.spec.scans):
            schema = pa.schema(scan.columns)
            if scan.table in self.tables:
                table, start = self.tables[scan.table], self.starts[scan.table]
                self.streams.append(_StreamSource(number, table, start, scan.stored, schema))
            else:
                self.statics.append(_TableSource(number, scan.table, scan.stored, schema))
        self.is_lent = False
        self.is_asking = False  # Spark is at work: the operators stay as they are meanwhile
        self._answered = threading.Condition(self.lock)
        self._is_gone = False
        self._inputs_then: tuple[object, ...] = ()  # when it stopped
        self._takes_back = False  # stored rows were deleted or replaced since the view was made
        self.keeper = SnapshotKeeper(self.snapshot, self.lock)
        self._writing = threading.Lock()  # one snapshot at a time
        self._record = ChangeRecord()  # for whoever follows
        self._began = False
        self._clear()

    def _clear(self) -> None:
        spec = self.spec.taking_back if self._takes_back else self.spec
        self.circuit: Circuit = spec.circuit()
        self.kept: KeptRows = spec.kept()
        self.runs.drop()
        self._lend_runs()
        self._began = False
        self._record.lose()
        self.keeper.begin_anew()
        for stream in self.streams:
            stream.clear()
        for static in self.statics:
            static.clear()

    def _lend_runs(self) -> None:
        """Every state that may go to disk knows where."""
        states: list[Operator | KeptRows] = [*self.circuit.spilling(), self.kept]
        parts = [part for state in states for part in state.spilled]
        for number, part in enumerate(parts):
            part.runs = self.runs.part(number)

    # Reading its tables

    @property
    def is_behind(self) -> bool:
        """Whether rows came that did not go through; a circuit that stopped waits for none."""
        going = self.stopped is None and not self.is_lent
        return going and any(s.table.state.next_sequence > s.sequence for s in self.streams)

    @property
    def changed(self) -> bool:
        """Whether stored rows were deleted or replaced since they went through."""
        return any(source.changed for source in self.streams)

    @property
    def waiting(self) -> int:
        """Rows that came and did not go through."""
        behind = self.streams if self.is_behind else ()
        return sum(source.table.rows_since(source.sequence) for source in behind)

    @property
    def places(self) -> list[tuple[int, int | None]]:
        """How far each streaming table was read, and of which generation."""
        return [(source.sequence, source.generation) for source in self.streams]

    @property
    def read_tables(self) -> Sequence[StreamingTable]:
        """The streaming tables that it reads."""
        return [source.table for source in self.streams]

    def fold_to(self, held: HeldTables, ends: Mapping[int, int]) -> None:
        """All rows before some places go through; what Spark makes of some is left to who reads."""
        with self.lock:
            while self.is_asking:
                self._answered.wait()
            if not (self.is_lent or self._is_gone):
                self._take_changes(held, ends)

    @contextlib.contextmanager
    def brought_up(self, held: HeldTables, ends: Mapping[int, int]) -> Iterator[bool]:
        """Inside, the result is that of all that was acknowledged; False if another host has it.

        CircuitStopped if it cannot be; the caller does not hold the lock.
        """
        with self.lock:
            yield self._bring_up(held, ends)

    def _bring_up(self, held: HeldTables, ends: Mapping[int, int]) -> bool:
        while True:
            while self.is_asking:
                self._answered.wait()
            if self._is_gone:
                raise HostGone("the view is not here any more")
            if self.is_lent:
                return False
            self._take_changes(held, ends)
            if self.ask_all(held):
                return True

    def catch_up(self, held: HeldTables) -> None:
        """All that was acknowledged before the call goes through, of all tables as of one moment.

        CircuitStopped if it cannot. What opaque nodes make of it is left to readers, unless too many rows
        wait for it. While Spark answers a reader nothing goes through.
        """
        with self.lock:
            elsewhere = self.is_lent or self._is_gone
            if elsewhere or self.is_asking or self.halted_until is not None:
                return  # another host does, or a reader says how far
            self._take_changes(held, ends_of(self.read_tables))
            if self.circuit.waiting_rows > WAITING_ROWS:
                self.ask_all(held)

    def _take_changes(self, held: HeldTables, ends: Mapping[int, int]) -> None:
        if self.stopped is not None:
            if self._inputs_then == self._now(held):
                raise CircuitStopped(self.stopped)
            self._begin_anew()
        started = time.perf_counter()
        with self._stopped_by_errors(held):
            moved = self._go_on(held, ends)
            while self.changed:
                self._takes_back = True
                self._begin_anew()
                moved = self._go_on(held, ends)
        if moved:
            self.timings.add(time.perf_counter() - started, 1)
        if self.circuit.staying_bytes > max(self._bound, LEAST_STATE):
            self._stop("what cannot go to disk takes more than view_state_mb", held)

    def ask_all(self, held: HeldTables) -> bool:
        """Spark answers each opaque node that waits, one after the other; what follows goes through.

        Whether it is done: the view may have moved while Spark was at work, or what raised may be gone.
        """
        mine, self.is_asking = self.circuit, True
        try:
            while (node := mine.waiting()) is not None:
                answer = self._asked(node)
                if self.circuit is not mine or self._is_gone:
                    return False
                if isinstance(answer, DataError):
                    if self.changed:
                        return False  # the rows that raise may be gone
                    self._stop(f"an expression raises: {answer.message}", held)
                with self._stopped_by_errors(held):
                    self._give(mine.answer(node, answer))
                    self._spill_if_large()
            return True
        finally:
            self.is_asking = False
            self._answered.notify_all()

    @contextlib.contextmanager
    def _stopped_by_errors(self, held: HeldTables) -> Iterator[None]:
        """Changes go through: what their rows raise stops the circuit, anything else clears it."""
        try:
            yield
        except DataError as error:
            self._stop(f"an expression raises: {error.message}", held)
        except NotSupportedError as error:
            self._stop(error.message, held)
        except BaseException:
            self._clear()  # a part of the changes may be in
            raise

    def _asked(self, node: CircuitNode) -> pa.Table | DataError:
        """What Spark makes of the rows that a node hands out, as files; the lock is let go meanwhile."""
        operator = node.operator
        assert isinstance(operator, OpaqueOperator)
        tables = operator.question()
        self.counters.spark_runs += 1
        self.counters.rows_on_spark += sum(table.num_rows for table in tables)
        named = {input_rows(number): table for number, table in enumerate(tables)}
        self.lock.release()
        try:
            return run_over(self.world, [operator.text], named, {})[0]
        except DataError as error:
            return error
        finally:
            self.lock.acquire()

    @property
    def _bound(self) -> int:
        return self.world.settings.integer("view_state_mb") * MEBIBYTE

    def _begin_anew(self) -> None:
        self._forget_snapshot()
        self.stopped = None
        self._clear()

    def _now(self, held: HeldTables) -> tuple[object, ...]:
        """What must change before a circuit that stopped is tried again."""
        versions = [held.relations.get(source.name) for source in self.statics]
        bound = self.world.settings.integer("view_state_mb")
        return (bound, *(source.table.generation for source in self.streams), *versions)

    def _stop(self, reason: str, held: HeldTables) -> NoReturn:
        self._forget_snapshot()
        self._clear()
        self.stopped, self._inputs_then = reason, self._now(held)
        raise CircuitStopped(reason)

    def _go_on(self, held: HeldTables, ends: Mapping[int, int]) -> bool:
        """What came goes through; whether anything did."""
        moved = False
        if not self._began:
            self._began = moved = True
            self._give(self.circuit.begin())
        moved |= self._take_later()
        for static in self.statics:
            change = _changed(static, held, self.world)
            if change is not None:
                moved = True
                self._apply(static.number, change)
        for source in self.streams:
            moved |= self._take_in(source, ends)
        return moved

    def _take_later(self) -> bool:
        """What was deleted and replaced while Spark was at work; whether anything was."""
        waiting = [source for source in self.streams if source.later]
        for source in waiting:
            for changes, generation in source.later:
                self._apply(source.number, changes)
                source.generation = generation
            source.later = []
        if waiting:
            self.keeper.begin_anew()
        return bool(waiting)

    def _take_in(self, source: _StreamSource, ends: Mapping[int, int]) -> bool:
        """What came to a table goes through, piece by piece; whether anything came."""
        before, known = self.counters.rows_by_operators, source.generation

        def take(stored: pa.Table) -> None:
            self.counters.rows_by_operators += stored.num_rows
            rows = source.rows(stored)
            for first in range(0, rows.num_rows, PIECE_ROWS):
                self._apply(source.number, come(rows.slice(first, PIECE_ROWS)))

        end = ends[source.table.definition.id]
        end, generation = each_since(source.table, source.sequence, known, take, end)
        if known is None or generation == known:  # else it has changed meanwhile: nothing was given
            source.sequence, source.generation = end, generation
        return self.counters.rows_by_operators > before

    def _apply(self, number: int, changes: Changes) -> None:
        self.counters.operator_runs += 1
        self._give(self.circuit.apply({number: changes}))
        self._spill_if_large()
        self.runs.merge_some(len(changes))

    def _spill_if_large(self) -> None:
        """States go to disk, the largest first, until half of what memory may hold is left."""
        if self.state_bytes <= self._bound:
            return
        states: list[Operator | KeptRows] = [*self.circuit.spilling(), self.kept]
        for state in sorted(states, key=lambda state: -state.nbytes):
            if 2 * self.state_bytes <= self._bound:
                break
            state.spill()
        pa.default_memory_pool().release_unused()

    def _give(self, changes: Changes) -> None:
        """Changes of the result."""
        self.kept.apply(changes)
        self._record.add(changes, len(self.kept))

    def rows_replaced(self, table: SeenTable, gone: pa.Table, added: pa.Table, was: int) -> None:
        """Stored rows of a table have gone and others come in their place; the caller holds the lock.

        `was`: the table's generation before. A circuit that is not as far, or cannot take rows back, begins
        anew when it goes on.
        """
        mine = [source for source in self.streams if source.table is table]
        if not self._follows(mine, was, gone.num_rows + added.num_rows):
            return
        for source in mine:
            parts = [go(source.read_before(gone)), come(source.read_before(added))]
            source.later.append((together(parts, source.schema), table.generation))
        if self.is_asking:
            return  # they go through once the answer is there
        try:
            self._take_later()
        except (DataError, NotSupportedError):
            self._begin_anew()  # what is wrong is found once more when it goes on
        except BaseException:
            self._clear()  # a part of the changes may be in
            raise

    def _follows(self, mine: Sequence[_StreamSource], was: int, row_count: int) -> bool:
        """Whether rows can be taken back of sources that were read at a generation, and it pays."""
        able = self._began and self._takes_back and not self.is_lent and self.stopped is None
        read = sum(source.sequence - source.start.sequence for source in mine)
        return able and row_count < read and all(s.generation_then == was for s in mine)

    # Its result

    def changes_since(self, mark: str | None) -> tuple[str, Changes | None]:
        """What has changed in the result since a mark, and the next mark; the caller holds the lock.

        None: it is not known (so the first time), and will be from this mark on.
        """
        known = self._record.has(mark)
        taken, parts = self._record.take()
        if not known:
            return taken, None
        changes = together(parts, pa.schema(self.spec.root.columns))
        return taken, changes.with_rows(self._shown(changes.rows))

    def result(self) -> pa.Table:
        """The view's rows as they are now, the columns of its select list."""
        return self._shown(self.kept.table())

    @property
    def key(self) -> list[int] | None:
        """The places in the select list of the columns by which a row is found without the others."""
        names = [column.name for column in self.spec.shown]
        key = self.spec.key
        if key is None or not set(key) <= set(names):
            return None
        return [names.index(name) for name in key]

    def find(self, keys: pa.Table) -> pa.Table:
        """The view's rows of some keys as they are now; the caller holds the lock."""
        try:
            rows = self._shown(self.kept.find(keys))
            self._spill_if_large()
        except BaseException:
            self._clear()  # a part of a state may be on disk
            raise
        return rows

    def _shown(self, rows: pa.Table) -> pa.Table:
        return rows.select([column.name for column in self.spec.shown])

    @property
    def row_count(self) -> int:
        """How many rows the view has."""
        return len(self.kept)

    @property
    def state_bytes(self) -> int:
        """How much memory the state takes."""
        return self.circuit.nbytes + self.kept.nbytes

    # Snapshots

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        statics = [[] if s.rows is None else _arrays(s.rows) for s in self.statics]
        return {
            "circuit": self.circuit.state(),
            "kept": self.kept.state(),
            "statics": statics,
            "takes_back": self._takes_back,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        if state["takes_back"] != self._takes_back:
            self._takes_back = state["takes_back"]
            self._clear()
        self.circuit.restore(state["circuit"])
        self.kept.restore(state["kept"])
        for source, arrays in zip(self.statics, state["statics"], strict=True):
            source.rows = pa.Table.from_arrays(arrays, schema=source.schema)
        self._lend_runs()

    def put_away(self) -> None:
        """Writes a snapshot with the places that it belongs to; copied under the lock, written without."""
        with self._writing, contextlib.ExitStack() as stack:
            with self.lock:
                runs = stack.enter_context(self.runs.held(self.lock))
                position = self._position(runs)
                may = self._began and not self.is_lent and self.stopped is None and not self.changed
                if not may or not self.keeper.may_keep or position == self.keeper.kept:
                    return
                stamp, mine = self.keeper.stamp, self.runs
                state = self.keeper.copy_of(self.state())
            mine.sync(runs)
            self.keeper.keep(state, position, stamp, placed=lambda: mine.name(runs))

    def _position(self, runs: list[Record]) -> dict[str, Any]:
        sequences = [source.sequence for source in self.streams]
        known = {"number": self.number, "sequences": sequences, "form": self.spec.form}
        return {**known, "runs": [[_plain(run) for run in record] for record in runs]}

    def take_up(self) -> None:
        """After a restart: from the snapshot, if there is one of the same circuit."""
        with self.lock:
            self._clear()
            position = self.keeper.read(self)
            if (
                position is None
                or not self._fits(position)
                or not self.runs.take_up(position.get("runs", ()))
            ):
                self.runs.clean()
                self._clear()  # what was read does not count
                return
            self.runs.clean()
            self._began, self.keeper.kept = True, position
            for source, sequence in zip(self.streams, position["sequences"], strict=True):
                source.sequence, source.generation = sequence, source.table.generation

    def _fits(self, position: Mapping[str, Any]) -> bool:
        same = position["number"] == self.number and position["form"] == self.spec.form
        return same and len(position["sequences"]) == len(self.streams)

    def lend(self) -> None:
        """Another host goes on with it: its state is put away, and no longer held here."""
        if not self.is_lent:
            self.put_away()
            with self._writing, self.lock:  # nobody who writes a snapshot holds runs any more
                self.is_lent, self._halt = True, None
                self.keeper.void()
                self._clear()
                self.runs = self.runs.anew()

    def leave(self) -> None:
        """Another process goes on with it: readers who wait for Spark here go there."""
        with self.lock:
            self._is_gone = True

    def take_back(self) -> None:
        """It is held here again: from the snapshot, and the rows since."""
        with self.lock:
            if self.is_lent:
                self.is_lent = False
                self.take_up()

    def rows_will_change(self, table: SeenTable) -> None:
        """Before stored rows are deleted or replaced: no snapshot of the old ones any more."""
        with self.lock:
            self.keeper.hold_off(table)
            self.runs.name(())

    def _forget_snapshot(self) -> None:
        """What was made of old rows is not to be used again."""
        self.keeper.forget()
        self.runs.name(())

    def remove(self) -> None:
        """Nothing of it is left on disk."""
        with self.lock:
            while self.is_asking:
                self._answered.wait()  # what follows from the answer may be written
            self._forget_snapshot()
            self.runs.remove()


def _changed(source: _TableSource, held: HeldTables, world: World) -> Changes | None:
    """What has changed in a standard table since the circuit read it; None for nothing."""
    relation = held.relations[source.name]
    if source.version == relation:
        return None
    fields = [relation.schema.field(name) for name in source.columns]
    stored = world.table_rows(replace(relation, schema=pa.schema(fields)))
    rows = stored.select(list(source.columns)).rename_columns(source.schema.names)
    before, source.rows, source.version = source.rows, rows, relation
    source.stored = stored
    return come(rows) if before is None else bag_difference(before, rows)


def _plain(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run of a record as a snapshot gives it back."""
    return {**run, "rows": list(run["rows"]), "sizes": list(run["sizes"])}


def _arrays(rows: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in rows.columns]
