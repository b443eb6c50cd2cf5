"""Top-n: the first rows of each partition, or of all, in an order.

Owns: which rows are given and under which number. Rows that are equal in the order stand as they came, so
answers depend on nothing else. Where rows only come, a row beyond the limit is forgotten; else all rows are
kept. Must never: look at a partition that is not touched, or give a row anew whose number has not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Slots, Vector, columns_of
from headwater.fold.order import ranks_of
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes, come, go, nothing, together
from headwater.operators.grouped_rows import OrderColumn, Partitions
from headwater.operators.operator import Operator

Ties = Literal["row_number", "rank", "dense_rank"]


class TopRows(Operator):
    """Rows whose number in their partition is above `offset` and at most `offset + limit`."""

    name = "top"
    takes_back = True

    def __init__(
        self,
        schema: pa.Schema,
        partition: Sequence[str],
        order: Sequence[tuple[str, bool, bool]],
        limit: int | None,
        offset: int = 0,
        ties: Ties = "row_number",
        number: str | None = None,
        takes_back: bool = True,
    ) -> None:
        self.input_schema, self.partition = schema, tuple(partition)
        self.order = tuple(OrderColumn(*key) for key in order)
        self.limit, self.offset, self.ties, self.number = limit, offset, ties, number
        numbered = [] if number is None else [pa.field(number, pa.int32())]
        self.schema = pa.schema([*schema, *numbered])
        self._taken_back = takes_back
        self._rows = Arrangement(schema, self.partition)
        self._given = self._rows.beside(np.int64)  # the number under which a row was given, 0: not

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._rows.nbytes

    def apply(self, *inputs: Changes) -> Changes:
        """− for rows that left the top or got another number, + for those that are in it now."""
        (changes,) = inputs
        assert changes.only_come or self._taken_back, "rows were said never to be taken back"
        if not len(changes):
            return nothing(self.schema)
        self._rows.forget()
        done = self._rows.apply(changes)
        numbers = self._rows.of_slots(done.touched)
        new = self._numbered(numbers)
        given = self._given.values
        old = given[numbers]
        moved = np.flatnonzero(old != new if self.number else (old > 0) != (new > 0))
        left = numbers[moved[old[moved] > 0]]
        gone = np.concatenate([left, done.went[given[done.went] > 0]])
        arrived = moved[new[moved] > 0]
        minus = go(self._given_rows(gone, given[gone]))
        plus = come(self._given_rows(numbers[arrived], new[arrived]))
        given[numbers] = new
        self._prune(numbers, new)
        return together([minus, plus], self.schema)

    def _numbered(self, numbers: Slots) -> Slots:
        """The number of each row, 0 if it is not among the first; −1 if it never will be."""
        rows = self._rows.rows.take(numbers, [key.name for key in self.order])
        ranks: list[Vector] = []
        for key, column in zip(self.order, columns_of(rows, rows.column_names), strict=True):
            ranks += ranks_of(column, key.descending, key.nulls_first)
        partitions = Partitions(self._rows.slot_of(numbers), ranks)
        place: Slots = getattr(partitions, self.ties)
        found = np.where(place > self.offset, place, 0)
        if self.limit is not None:
            found = np.where(place > self.offset + self.limit, -1, found)
        numbered = np.empty(len(numbers), np.int64)
        numbered[partitions.order] = found
        return numbered

    def _given_rows(self, numbers: Slots, places: Slots) -> pa.Table:
        rows = self._rows.rows.take(numbers)
        if self.number is None:
            return rows
        return rows.append_column(self.schema.field(self.number), pa.array(places, pa.int32()))

    def _prune(self, numbers: Slots, new: Slots) -> None:
        """Where rows only come, those beyond the limit never come back."""
        if not self._taken_back:
            self._rows.rows.kill(numbers[new < 0])

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return self._rows.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._rows.restore(state)
