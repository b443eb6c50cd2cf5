"""As-of joins: each left row with the right row of the same key whose time is nearest.

Owns: the rows of both inputs by key and time. With `>=` a left row meets the last right row that is not after
it, with `>` the last before it, with `<=` the first that is not before it, with `<` the first after it; of
right rows with one time, the last that came. A right row that comes or goes touches the left rows between it
and its neighbour. Rows with a NULL in a key or time meet none. Must never: go through all rows of a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.columns import OBJECT, Column, Slots, Vector, kind_of
from headwater.fold.order import ranks_of
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.operator import Operator
from headwater.operators.partners import side_by_side
from headwater.operators.timed_index import NO_ROW, TimedIndex

COMPARISONS = (">=", ">", "<=", "<")


class AsofJoinRows(Operator):
    """Columns of the left input, then those of the right; `outer`: a row that meets none has NULLs."""

    takes_back = True  # a nearer row may come

    def __init__(
        self,
        left: pa.Schema,
        right: pa.Schema,
        left_keys: Sequence[str],
        right_keys: Sequence[str],
        left_time: str,
        right_time: str,
        comparison: str,
        outer: bool,
    ) -> None:
        """`comparison`: of the left time with the right time."""
        assert comparison in COMPARISONS
        self.name = "as-of left join" if outer else "as-of join"
        self._outer, self._strict = outer, comparison in (">", "<")
        backwards = comparison in (">=", ">")
        self._left = _TimedRows(left, left_keys, left_time, backwards)
        self._right = _TimedRows(right, right_keys, right_time, backwards)
        nullable = [field.with_nullable(True) if outer else field for field in right]
        self.schema = pa.schema([*left, *nullable])

    def apply(self, *inputs: Changes) -> Changes:
        left, right = (changes.in_one_piece() for changes in inputs)
        parts = [*self._come_left(left)] if len(left) else []
        if len(right):
            parts += self._come_right(right)
        return together(parts, self.schema)

    def _come_left(self, changes: Changes) -> list[Changes]:
        there = self._left.can_meet(changes.rows)
        alone = changes.filtered(~there)
        changes = changes.filtered(there)
        partners = self._partners(changes.rows, self._right.index, self._right.alive)
        self._left.apply(changes)
        out = [self._joined(changes, partners)]
        return [*out, self._joined(alone, np.full(len(alone), NO_ROW))] if len(alone) else out

    def _come_right(self, changes: Changes) -> list[Changes]:
        """Left rows between a row that came or went and its neighbour may have another partner now."""
        changes = changes.filtered(self._right.can_meet(changes.rows))
        if not len(changes):
            return []
        right, rows = self._right, changes.rows
        right.make_room()
        times, was_alive, index = right.times_of(rows), right.alive.copy(), right.index.frozen()
        right.apply(changes)
        nexts = right.index.next_times(right.find(rows, right.rows.keys), times, right.alive)
        touched = self._left.index.between(
            self._left.find(rows, right.rows.keys),
            times,
            nexts,
            self._strict,
            self._left.alive,
        )
        left = self._left.rows.rows.take(touched)
        return self._moved(left, self._partners(left, index, was_alive))

    def _moved(self, rows: pa.Table, before: Slots) -> list[Changes]:
        """Left rows leave their partners of before for those of now, where these are others."""
        now = self._partners(rows, self._right.index, self._right.alive)
        moved = np.flatnonzero(before != now)
        if not len(moved):
            return []
        left = rows.take(pa.array(moved))
        return [self._joined(go(left), before[moved]), self._joined(come(left), now[moved])]

    def _partners(self, rows: pa.Table, index: TimedIndex, alive: Vector) -> Slots:
        """The right rows that left rows meet, by an index of them; NO_ROW if there is none."""
        slots = self._right.find(rows, self._left.rows.keys)
        return index.nearest(slots, self._left.times_of(rows), self._strict, alive)

    def _joined(self, changes: Changes, partners: Slots) -> Changes:
        found = partners != NO_ROW
        met = changes.filtered(found)
        theirs = self._right.rows.rows.take(partners[found])
        parts = [met.with_rows(side_by_side(met.rows, theirs)).renamed(self.schema)]
        if self._outer and not found.all():
            alone = changes.filtered(~found)
            fields = self._right.rows.schema
            nulls = [pa.nulls(len(alone), field.type) for field in fields]
            empty = pa.Table.from_arrays(nulls, schema=fields)
            parts.append(alone.with_rows(side_by_side(alone.rows, empty)).renamed(self.schema))
        return together(parts, self.schema)

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes

    def state(self) -> dict[str, Any]:
        return {"left": self._left.rows.state(), "right": self._right.rows.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._left.restore(state["left"])
        self._right.restore(state["right"])


class _TimedRows:
    """The rows of one input by key and time; times are turned round where later rows are looked for."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str], time: str, backwards: bool) -> None:
        if kind_of(schema.field(time).type) == OBJECT:
            raise NotSupportedError(f"as-of join by type {schema.field(time).type}")
        self.rows = Arrangement(schema, keys, forgets_keys=True)
        self.index = TimedIndex()
        self._time, self._backwards = time, backwards

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.index.nbytes

    @property
    def alive(self) -> Vector:
        return self.rows.rows.alive

    def can_meet(self, rows: pa.Table) -> Vector:
        """Which rows have a key and a time."""
        there = np.ones(rows.num_rows, np.bool_)
        for name in (*self.rows.keys, self._time):
            if rows.column(name).null_count:
                there &= rows.column(name).is_valid().to_numpy()
        return there

    def times_of(self, rows: pa.Table) -> Slots:
        return ranks_of(Column(rows.column(self._time)), not self._backwards, True)[-1]

    def find(self, rows: pa.Table, keys: Sequence[str]) -> Slots:
        """The slots here of rows of either input, by its keys."""
        return self.rows.find([rows.column(key) for key in keys], rows.num_rows)

    def make_room(self) -> None:
        """Dead rows go if they are the most; numbers change then."""
        generation = self.rows.generation
        self.rows.make_room()
        if self.rows.generation != generation:
            self._index_anew()
        self.index.tidy(self.alive, 0)

    def _index_anew(self) -> None:
        self.index = TimedIndex()
        self._index(np.arange(len(self.rows)), self.rows.rows.table())

    def _index(self, numbers: Slots, rows: pa.Table) -> None:
        self.index.add(self.rows.slot_of(numbers), self.times_of(rows), numbers, self.alive)

    def apply(self, changes: Changes) -> None:
        self.make_room()
        first = self.rows.rows.next
        went = self.rows.apply(changes).went
        self._index(np.arange(first, self.rows.rows.next), changes.coming)
        self.index.tidy(self.alive, len(went))

    def restore(self, state: dict[str, Any]) -> None:
        self.rows.restore(state)
        self._index_anew()
