"""A view in parts: each has the rows whose keys fall to it, in a host of its own, so that one view uses
several cores.

Owns: one instant for all parts. Each part folds for itself, so two may have come differently far: a reader
halts them all, takes the furthest place, has each fold to exactly there and give its rows, and lets it go on.
Inserts do not wait for that; a reader that does not come back halts a part for `HALT_S` at most. Keys of
parts are disjoint, so their rows are the view's, one after the other; what a circuit has above its keys (an
order, the first rows of all) is done once with the rows of all parts.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import pyarrow as pa

from headwater.compile.split_circuit import SplitCircuit
from headwater.engine import view
from headwater.engine.change_record import FollowedChanges
from headwater.engine.elsewhere import Elsewhere, HostGone
from headwater.engine.halting import Ends
from headwater.engine.hosted import InParts, part_name
from headwater.engine.sampling import Instant
from headwater.engine.view import ContinuousView
from headwater.engine.view_circuit import CircuitStopped, ViewCircuit
from headwater.engine.view_pipeline import Start, ViewPipeline
from headwater.engine.view_versions import Version
from headwater.fold.share import shares_of
from headwater.plan.folds import ContinuousPlan
from headwater.storage.streaming.table import StreamingTable

Answer = TypeVar("Answer")
Asked = Callable[[], Answer]  # a question that is under way: waits for what is answered

# By table the sequence number, and the generation of the stored rows.
Places = tuple[tuple[int, int | None], ...]

_readers = itertools.count(1)


class PartRows(NamedTuple):
    """What a part gave, and what it was made of."""

    rows: pa.Table | None  # None: it cannot keep them, the view is evaluated over stored rows
    places: Places
    versions: dict[str, int]  # of the standard tables


class _PartGone(Exception):
    """The host of a part has ended, or the part has left it."""

    def __init__(self, host: Elsewhere) -> None:
        self.host = host


def cannot_split(plan: ContinuousPlan) -> str | None:
    """Why the groups of a view cannot be shared out; None if they can."""
    fold = plan.folds[0] if len(plan.folds) == 1 else None
    if fold is None or fold.kind != "aggregate" or not fold.keys:
        return "it is not one grouping by keys"
    finish = fold.finish
    if not plan.single or finish is None:
        return "more stands above its grouping than HAVING and columns"
    if finish.limit is not None or (finish.distinct and fold.key_places is None):
        return "LIMIT and DISTINCT compare the groups of all parts"
    return None


@dataclass(kw_only=True)
class ViewPart(ContinuousView):
    """Some groups of a view."""

    def called(self, number: int, name: str) -> None:
        """It belongs to a view of that number and name."""
        assert self.mine is not None
        super().called(number, part_name(name, self.mine))

    @property
    def _kept_in(self) -> ViewPipeline | ViewCircuit:
        """What has its rows."""
        return self.pipelines[0] if self.circuit is None else self.circuit

    def pull(self, since: float | None = None) -> bool:
        """Whether rows wait that should be folded now; while it is halted, that is looked at later."""
        until = self._kept_in.halted_until
        self.wall_due = None
        if until is None:
            return super().pull(since)
        self.wall_due = (time.time_ns() + int(1e9 * (until - time.monotonic()))) // 1000
        return False

    @property
    def is_halted(self) -> bool:
        """Whether a reader has it wait, and rows came since."""
        state = self._kept_in
        return state.halted_until is not None and state.is_behind

    def due_until(self) -> float:
        """The number of the row after the last one that came; of several tables, how many they have."""
        return sum(table.state.next_sequence for table in self._kept_in.read_tables)

    @property
    def answered_until(self) -> float:
        """Where it stands; a firing while it is halted takes in nothing."""
        if self.circuit is not None and self.circuit.stopped is not None:
            return self.due_until()  # nothing waits: each read is evaluated
        return sum(sequence for sequence, _ in self._kept_in.places)

    @property
    def _few(self) -> int:
        assert self.mine is not None
        return view.FEW_ROWS // self.mine.parts

    # One instant

    def halt(self, reader: int) -> Asked[Ends | None]:
        """It folds what is there and no further, for a reader: how far; None if it has just moved."""
        host = self.elsewhere
        if host is None:
            return lambda: self.halt_here(reader)
        return _from(host, lambda: host.halt_part(self, reader))

    def halt_here(self, reader: int) -> Ends | None:
        """The same in this host."""
        with self.world.held(self.plan.identifiers) as held:
            return self._kept_in.halt(reader, held)

    def read_at(self, reader: int, ends: Ends, instant: int) -> Asked[PartRows | None]:
        """It folds to exactly there, gives its rows and goes on; None if it is not halted for the reader."""
        host = self.elsewhere
        if host is None:
            return lambda: self.read_at_here(reader, ends, instant)
        return _from(host, lambda: host.read_part(self, reader, ends, instant))

    def read_at_here(self, reader: int, ends: Ends, instant: int) -> PartRows | None:
        """The same in this host."""
        if self.circuit is not None:
            return self._rows_kept(self.circuit, reader, ends)
        pipeline = self.pipelines[0]
        with (
            self.world.held(self.plan.identifiers) as held,
            contextlib.ExitStack() as reading,
        ):
            with pipeline.lock:
                if not pipeline.go_to(reader, ends, held):
                    return None
                self._is_well()
                places = tuple(pipeline.places)
                make = reading.enter_context(pipeline.reading(self.specs[0]))
            self.go_on_here(reader)
            rows = self.evaluation.upper([(Instant(instant, instant), [make()])], held)[0]
            return PartRows(rows, places, dict(held.versions))

    def _rows_kept(self, circuit: ViewCircuit, reader: int, ends: Ends) -> PartRows | None:
        """By its circuit; no rows if that has stopped, or operators are not to be used."""
        rows, places = None, Places()
        with self.world.held(self.plan.identifiers) as held:
            with circuit.lock, contextlib.suppress(CircuitStopped):
                if self.kept is not None:
                    if not (circuit.go_to(reader, ends, held) and circuit.ask_all(held)):
                        return None
                    self._is_well()
                    rows, places = circuit.kept.table(), tuple(circuit.places)
            self.go_on_here(reader)
            return PartRows(rows, places, dict(held.versions))

    def go_on(self, reader: int) -> None:
        """A reader that halted it does not come back."""
        host = self.elsewhere
        if host is None:
            self.go_on_here(reader)
        else:
            host.part_goes_on(self, reader)

    def go_on_here(self, reader: int) -> None:
        """The same in this host."""
        if self._kept_in.go_on(reader):
            self.on_free()


@dataclass(kw_only=True)
class SplitView(InParts, ContinuousView):
    """One view to its users, several parts to its hosts."""

    parts: Sequence[ViewPart]
    split: SplitCircuit | None = None  # of a view that circuits keep

    def called(self, number: int, name: str) -> None:
        """So are its parts."""
        super().called(number, name)
        for part in self.parts:
            part.called(number, name)

    def end(self) -> None:
        """The view is gone, and its parts."""
        for part in self.parts:
            part.end()

    @property
    def waiting(self) -> int:
        """Rows that came and that not every part has folded."""
        return max(part.waiting for part in self.parts)

    @property
    def _read_tables(self) -> list[StreamingTable]:
        return self.parts[0]._read_tables

    @property
    def _begun(self) -> list[tuple[StreamingTable, Start]]:
        return self.parts[0]._begun

    @property
    def circuits(self) -> list[ViewCircuit]:
        """Those of its parts."""
        return [circuit for part in self.parts for circuit in part.circuits]

    # Reading

    def read(self) -> Version:
        """The view over every row acknowledged before the call, all parts as of one instant."""
        while True:
            known = self.unchanged()
            try:
                if known is None:
                    known = self._read_in_turn()
            except _PartGone as gone:
                gone.host.wait_gone()
            if known is not None:
                return known

    def _read_in_turn(self) -> Version | None:
        """One reader halts the pipelines at a time; views that have some in common share the turns."""
        with contextlib.ExitStack() as stack:
            for state in sorted((part._kept_in for part in self.parts), key=lambda p: p.number):
                stack.enter_context(state.turn)
            return self.unchanged() or self._united()

    def _united(self) -> Version | None:
        """The rows of all parts where the furthest stands; None if one was not there: try again."""
        reader, now, halted = next(_readers), time.time_ns() // 1000, list(self.parts)
        try:
            ends = _answers([part.halt(reader) for part in self.parts])
            reached = [end for end in ends if end is not None]
            if len(reached) < len(ends):
                return None
            asked = [part.read_at(reader, max(reached), now) for part in self.parts]
            found = [one for one in _answers(asked) if one is not None]
            if len(found) < len(asked):
                return None
            halted.clear()
        finally:
            for part in halted:
                part.go_on(reader)
        first = found[0]
        if any(one.rows is None for one in found):
            return self._read_over_stored()
        if any(one[1:] != first[1:] for one in found):
            return None  # stored rows, or a table, were changed meanwhile
        key, known = self.key_of(first.places, first.versions), self.versions.last
        if known is not None and known.key == key:
            return known
        rows = self._rows_of([one.rows for one in found if one.rows is not None])
        return self.versions.add(rows, key, now)

    def _rows_of(self, parts: Sequence[pa.Table]) -> pa.Table:
        """The view's rows of the rows of its parts."""
        if self.split is None:
            return pa.concat_tables(parts)
        return self.evaluation.output.result(self.split.united(parts), 0)

    def _read_over_stored(self) -> Version:
        with self.world.held(self.plan.identifiers) as held:
            return self._read_stored(held)

    def follow(self, mark: str | None) -> FollowedChanges:  # noqa: ARG002
        """All rows: parts do not keep what they gave."""
        return FollowedChanges(None, None, self.read().rows)

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        """The columns by which a row is found without the others, where they say which part has it."""
        if self.split is None:
            return super().key
        if self.split.tree.above is not None:
            return None  # a row of a part may not be among the first of all
        circuit = self.parts[0].circuit
        assert circuit is not None
        names = [column.name for column in self.split.whole.shown]
        places = circuit.key
        if places is None or self.split.hashed_in([names[place] for place in places]) is None:
            return None
        return self._circuit_key(circuit)

    def find(self, keys: pa.Table) -> pa.Table | None:
        """The rows of one key, by the part that has it; None if the view is to be read whole."""
        known = self.versions.last
        if known is not None and known.rows.num_rows <= view.FEW_ROWS:
            return None
        part = self.parts[int(shares_of(self._hashed(keys), 1, len(self.parts))[0])]
        with part._kept_in.turn:  # it would fold beyond where a reader has halted it
            return part.find(keys)

    def _hashed(self, keys: pa.Table) -> list[pa.Array]:
        """The values of a key by whose hash its rows were shared out."""
        columns = [column.combine_chunks() for column in keys.columns]
        if self.split is not None:
            shown = [column.name for column in self.split.whole.shown]
            circuit = self.parts[0].circuit
            assert circuit is not None
            places = self.split.hashed_in([shown[place] for place in circuit.key or ()])
            return [columns[place] for place in places or ()]
        aggregation = self.specs[0].aggregation
        assert aggregation is not None
        types = aggregation.key_types
        return [column.cast(type_) for column, type_ in zip(columns, types, strict=True)]


def _from(host: Elsewhere, ask: Callable[[], Asked[Answer]]) -> Asked[Answer]:
    """A question to a part in another host, which is there by now."""
    host.wait_there()
    try:
        asked = ask()
    except HostGone as error:
        raise _PartGone(host) from error

    def answered() -> Answer:
        try:
            return asked()
        except HostGone as error:
            raise _PartGone(host) from error

    return answered


def _answers(asked: Sequence[Asked[Answer]]) -> list[Answer]:
    """All answers; an error is raised when no question is under way any more."""
    found: list[Answer] = []
    errors: list[BaseException] = []
    for one in asked:
        try:
            found.append(one())
        except BaseException as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return found
