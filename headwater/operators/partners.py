"""One input of a join: its rows by key, and which of them are partners of rows of the other input.

Owns: the arrangement of the rows that can have partners; a row with a NULL in a key that is not null-safe has
none and is left out. RowPairs are made in pieces, so that a hot key does not take memory for all of its pairs
before a residual condition has seen them. Must never: know what kind of join it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.fold.columns import Slots
from headwater.operators.allowance import spend
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes
from headwater.operators.filter import Predicate, holds

PIECE = 1 << 16  # pairs made at once


@dataclass(frozen=True)
class RowPairs:
    """Some rows of a batch, each with a row of the other input."""

    places: Slots  # in the batch
    numbers: Slots  # in the other input's arrangement
    rows: pa.Table  # the columns of the left input, then those of the right


class Partners:
    """The rows of one input, which rows of the other ask for."""

    def __init__(
        self, schema: pa.Schema, keys: Sequence[str], null_safe: Sequence[bool], marked: bool
    ) -> None:
        self.schema, self.keys = schema, tuple(keys)
        self.rows = Arrangement(schema, keys, marked=marked, forgets_keys=True, spills=bool(keys))
        self._strict = [key for key, safe in zip(keys, null_safe, strict=True) if not safe]

    def keep(self, changes: Changes, marks: Slots | None = None) -> None:
        """Takes in changes of this input; marks go with its rows."""
        there = self.with_keys(changes.rows)
        if there is not None:
            changes = changes.filtered(there)
            marks = marks if marks is None else marks[there]
        if len(changes):
            self.rows.apply(changes, marks)

    def with_keys(self, rows: pa.Table) -> npt.NDArray[np.bool_] | None:
        """Which rows of this input can have partners; None if all of them."""
        there = None
        for name in self._strict:
            column = rows.column(name)
            if column.null_count:
                valid = column.is_valid().to_numpy()
                there = valid if there is None else there & valid
        return there

    def of(
        self, rows: pa.Table, keys: Sequence[str], is_left: bool, residual: Predicate | None
    ) -> Iterator[RowPairs]:
        """The partners here of rows of the other input, by its keys; `is_left`: it is the left one."""
        if self.rows.is_empty or not rows.num_rows:
            return
        slots = self.rows.find([rows.column(key) for key in keys], rows.num_rows)
        for places, numbers in self.rows.matches_in_pieces(slots, PIECE):
            spend(len(places))
            order = self.rows.rows.order_of(numbers)
            places, numbers = places[order], numbers[order]
            asking, asked = rows.take(pa.array(places)), self.rows.rows.take(numbers)
            left, right = (asking, asked) if is_left else (asked, asking)
            pairs = RowPairs(places, numbers, side_by_side(left, right))
            yield pairs if residual is None else _filtered(pairs, residual)


def side_by_side(left: pa.Table, right: pa.Table) -> pa.Table:
    """Rows of two inputs as rows of both."""
    names = [*left.column_names, *right.column_names]
    return pa.Table.from_arrays([*left.columns, *right.columns], names=names)


def _filtered(pairs: RowPairs, residual: Predicate) -> RowPairs:
    kept = holds(residual, pairs.rows)
    if kept.all():
        return pairs
    rows = pairs.rows.filter(pa.array(kept))
    return RowPairs(pairs.places[kept], pairs.numbers[kept], rows)


def turns(before: Slots, after: Slots) -> Slots:
    """By row: +1 if it has its first partner now, −1 if it has lost the last, else 0."""
    return (after > 0).astype(np.int64) - (before > 0)


class PartnerCounts:
    """How the numbers of partners of the rows of an arrangement change, pair by pair."""

    def __init__(self) -> None:
        self._numbers: list[Slots] = []
        self._signs: list[Slots] = []

    def note(self, numbers: Slots, signs: Slots) -> None:
        """Rows got a partner or lost one."""
        self._numbers.append(numbers)
        self._signs.append(signs)

    def turned(self, rows: Arrangement) -> tuple[Slots, Slots]:
        """Counts anew in the marks; the rows that have their first partner now, and that lost their last."""
        if not self._numbers:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        numbers, which = np.unique(np.concatenate(self._numbers), return_inverse=True)
        weights = np.bincount(which, weights=np.concatenate(self._signs), minlength=len(numbers))
        before = rows.marks[numbers]
        after = before + weights.astype(np.int64)
        rows.marks[numbers] = after
        rows.touch(numbers)
        turn = turns(before, after)
        return numbers[turn > 0], numbers[turn < 0]
