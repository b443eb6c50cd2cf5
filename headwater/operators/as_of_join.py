"""As-of joins: each row of the left input with one row of the right, the nearest of its key by time.

Owns: which one. Of the right rows with equal keys and a time at or before the left row's (or before it; at or
after it; after it) it is that with the nearest time, and of several with that time the last in the order of
the columns that the operator is told, or one of them, always the same. It follows from the rows alone, so no
left row has to remember its partner: a change of the right input moves only left rows up to the next time of
its key, and their partners are looked for before it and after it. A row without a time, or with a NULL in a
key that is not null-safe, has no partner and is none. Must never: look at left rows that no change can move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.columns import OBJECT, Column, Slots, Vector, kind_of
from headwater.fold.order import ordered
from headwater.operators.arrangement import row_hashes
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.operator import Operator
from headwater.operators.partners import Partners, side_by_side
from headwater.operators.spilled_keys import SpilledKeys
from headwater.operators.timed_index import TimedIndex

LATEST = np.iinfo(np.int64).max
COMPARISONS = (">=", ">", "<=", "<")  # of the left row's time with the right row's


class AsOfJoinRows(Operator):
    """Columns of the left input, then those of the right; `outer`: NULLs where there is no partner."""

    takes_back = True

    def __init__(
        self,
        outer: bool,
        left: pa.Schema,
        right: pa.Schema,
        left_keys: Sequence[str],
        right_keys: Sequence[str],
        null_safe: Sequence[bool],
        times: tuple[str, str],
        comparison: str,
        ties: Sequence[str],
    ) -> None:
        """`ties`: columns of the right input, the last of whose order is taken of rows with one time."""
        assert comparison in COMPARISONS
        self.name = "left as-of join" if outer else "as-of join"
        for schema, time in zip((left, right), times, strict=True):
            if kind_of(schema.field(time).type) == OBJECT:
                raise NotSupportedError(f"an as-of join by {schema.field(time).type}")
        self._outer, self._or_at = outer, "=" in comparison
        backwards = comparison.startswith("<")  # times run backwards then: the nearest is the last
        self._left = _TimedRows(left, left_keys, null_safe, times[0], backwards, None)
        self._right = _TimedRows(right, right_keys, null_safe, times[1], backwards, ties)
        nullable = [field.with_nullable(field.nullable or outer) for field in right]
        self.schema = pa.schema([*left, *nullable])

    def apply(self, *inputs: Changes) -> Changes:
        """First what the right input's changes move, then the left input's rows with their partners."""
        left, right = (changes.in_one_piece() for changes in inputs)
        return together([*self._moved(right), *self._met(left)], self.schema)

    def _moved(self, changes: Changes) -> list[Changes]:
        """Changes of the right input; − and + for the left rows that have another partner now."""
        own = self._right
        changes = changes.filtered(own.usable(changes.rows))
        if not len(changes):
            return []
        own.ready(changes.rows, own.keys)
        self._left.ready(changes.rows, own.keys)
        numbers = self._reached(changes.rows)
        rows = self._left.take(numbers)
        before = self._partners(rows)
        own.keep(changes)
        after = self._partners(rows)
        moved = before != after
        rows = rows.filter(pa.array(moved))
        return [*self._paired(go(rows), before[moved]), *self._paired(come(rows), after[moved])]

    def _reached(self, rows: pa.Table) -> Slots:
        """The left rows that changes of right rows can move: from a row's time to the next of its key.

        That is the next one before the changes: a row that a change moves beyond it is reached from there.
        """
        slots, times = self._left.find(rows, self._right.keys), self._right.times_of(rows)
        highs, there = self._right.following(rows, times)
        known = slots >= 0
        slots, lows, highs, there = slots[known], times[known], highs[known], there[known]
        highs = np.where(there, highs, LATEST)
        order = np.lexsort((lows, there, highs, slots))  # of those with one end the first is enough
        slots, lows, highs, there = slots[order], lows[order], highs[order], there[order]
        first = np.ones(len(slots), np.bool_)
        same = (slots[1:] == slots[:-1]) & (highs[1:] == highs[:-1]) & (there[1:] == there[:-1])
        first[1:] = ~same
        ends = ~there[first] | (not self._or_at)
        return self._left.between(slots[first], lows[first], highs[first], not self._or_at, ends)

    def _met(self, changes: Changes) -> list[Changes]:
        """Changes of the left input, each row with its partner."""
        own = self._left
        if not len(changes):
            return []
        usable = own.usable(changes.rows)
        alone = changes.filtered(~usable)
        out = self._paired(alone, np.full(len(alone), -1, np.int64))
        changes = changes.filtered(usable)
        if len(changes):
            self._right.ready(changes.rows, own.keys)
            out += self._paired(changes, self._partners(changes.rows))
            own.ready(changes.rows, own.keys)
            own.keep(changes)
        return out

    def _partners(self, rows: pa.Table) -> Slots:
        """The numbers of the partners of left rows, −1 for none."""
        times = self._left.times_of(rows)
        return self._right.latest(rows, self._left.keys, times, self._or_at)

    def _paired(self, changes: Changes, numbers: Slots) -> list[Changes]:
        """Left rows beside right ones; without one, beside NULLs or not at all."""
        there = numbers >= 0
        met = changes.filtered(there)
        rows = side_by_side(met.rows, self._right.take(numbers[there]))
        out = [met.with_rows(rows).renamed(self.schema)]
        if self._outer and not there.all():
            alone = changes.filtered(~there)
            nulls = [pa.nulls(len(alone), field.type) for field in self._right.schema]
            empty = pa.Table.from_arrays(nulls, names=self._right.schema.names)
            out.append(alone.with_rows(side_by_side(alone.rows, empty)).renamed(self.schema))
        return out

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._left.nbytes + self._right.nbytes

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        sides = (self._left.spilled, self._right.spilled)
        return [keys for keys in sides if keys is not None]

    def spill(self) -> None:
        for side in (self._left, self._right):
            side.spill()

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {"left": self._left.state(), "right": self._right.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._left.restore(state["left"])
        self._right.restore(state["right"])


class _TimedRows:
    """The rows of one input by key and time."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        null_safe: Sequence[bool],
        time: str,
        backwards: bool,
        ties: Sequence[str] | None,
    ) -> None:
        """`ties`: None where no order is needed; none of them: any order that is always the same."""
        self.schema, self.keys = schema, tuple(keys)
        self._time, self._backwards, self._tie_names = time, backwards, ties
        self._partners = Partners(schema, keys, null_safe, marked=False)
        self._rows = self._partners.rows
        self._times = self._rows.beside(np.int64)
        count = 0 if ties is None else max(len(ties), 1)
        self._ties = [self._rows.beside(np.int64) for _ in range(count)]
        self._index, self._generation = TimedIndex(), self._rows.generation

    def usable(self, rows: pa.Table) -> Vector:
        """Which rows have a time and keys that may be equal to others."""
        there = rows.column(self._time).is_valid().to_numpy()
        with_keys = self._partners.with_keys(rows)
        return there if with_keys is None else there & with_keys

    def times_of(self, rows: pa.Table) -> Slots:
        """Times as numbers, later ones being greater, or less where times run backwards."""
        times = ordered(Column(rows.column(self._time)))
        return ~times if self._backwards else times

    def ready(self, rows: pa.Table, keys: Sequence[str]) -> None:
        """All rows of the keys of some rows, which are of either input, are in memory then."""
        self._rows.make_room()
        if self._rows.generation != self._generation:
            self._number_anew()
        if self._rows.spilled:
            named = rows.select(list(keys)).rename_columns(list(self.keys))
            self._enter(self._rows.bring(named))

    def keep(self, changes: Changes) -> None:
        """Takes in changes; the rows of their keys are there."""
        done = self._rows.apply(changes)
        came = self._rows.rows.take(done.came)
        self._times.values[done.came] = self.times_of(came)
        for vector, values in zip(self._ties, self._ties_of(came), strict=True):
            vector.values[done.came] = values
        self._enter(done.came)

    def _ties_of(self, rows: pa.Table) -> list[Slots]:
        if self._tie_names is None:
            return []
        named = [ordered(Column(rows.column(name))) for name in self._tie_names]
        return named or [row_hashes(rows)]

    def _enter(self, numbers: Slots) -> None:
        alive, ties = self._rows.rows.alive, [tie.values[numbers] for tie in self._ties]
        slots, times = self._rows.slot_of(numbers), self._times.values[numbers]
        self._index.add(slots, times, numbers, alive, ties)

    def _number_anew(self) -> None:
        self._index, self._generation = TimedIndex(), self._rows.generation
        self._enter(np.flatnonzero(self._rows.rows.alive))

    def find(self, rows: pa.Table, keys: Sequence[str]) -> Slots:
        """The slots of the keys of some rows, −1 for those that never came."""
        return self._rows.find([rows.column(key) for key in keys], rows.num_rows)

    def latest(self, rows: pa.Table, keys: Sequence[str], times: Slots, or_at: bool) -> Slots:
        """The last row before a time (or at it), by the keys of some rows; −1 for none."""
        return self._index.latest(self.find(rows, keys), times, or_at, self._rows.rows.alive)

    def following(self, rows: pa.Table, times: Slots) -> tuple[Slots, Vector]:
        """The first time after another of the same keys, and whether there is one."""
        return self._index.following(self.find(rows, self.keys), times, self._rows.rows.alive)

    def between(
        self, slots: Slots, lows: Slots, highs: Slots, after_low: bool, to_high: Vector
    ) -> Slots:
        """The numbers of the rows of slots from one time to another."""
        return self._index.between(slots, lows, highs, self._rows.rows.alive, after_low, to_high)

    def take(self, numbers: Slots) -> pa.Table:
        """Rows by their numbers."""
        return self._rows.rows.take(numbers)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._index.nbytes

    @property
    def spilled(self) -> SpilledKeys | None:
        return self._rows.spilled

    def spill(self) -> None:
        if self.keys:
            self._rows.spill()
            self._number_anew()

    def state(self) -> dict[str, Any]:
        return self._rows.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._rows.restore(state)
        self._number_anew()
