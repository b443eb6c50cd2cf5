"""Joins by keys and a residual condition: inner, left, right, full; semi and anti joins stand in `semi_join`.

Owns: the rule. Δ(L ⋈ R) = ΔL ⋈ R ∪ (L + ΔL) ⋈ ΔR, the signs of the changes being those of the pairs. A row of
an outer side stands with NULLs while it has no partner: of each such row the number of its partners, with the
residual condition applied, is its mark, and what comes out turns when that leaves 0 or reaches it. Keys are
equal as Spark compares them: NULL equals nothing unless the key is null-safe, NaN equals NaN, −0.0 equals 0.
Must never: make all pairs of a hot key before the residual condition has seen them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.operators.changes import Changes, come, go, together
from headwater.operators.filter import Predicate
from headwater.operators.operator import Operator
from headwater.operators.partners import PartnerCounts, Partners, side_by_side
from headwater.operators.semi_join import ANTI, SEMI, SemiJoinRows
from headwater.operators.spilled_keys import SpilledKeys

INNER, LEFT, RIGHT, FULL = "inner", "left", "right", "full"
OUTER = {INNER: (False, False), LEFT: (True, False), RIGHT: (False, True), FULL: (True, True)}


def join_rows(
    kind: str,
    left: pa.Schema,
    right: pa.Schema,
    left_keys: Sequence[str],
    right_keys: Sequence[str],
    residual: Predicate | None,
    null_safe: Sequence[bool],
    takes_back: tuple[bool, bool],
) -> Operator:
    """A join of any kind; the names of all columns differ, the types of keys that meet are equal."""
    given = (left, right, left_keys, right_keys, residual, null_safe, takes_back)
    return SemiJoinRows(kind, *given) if kind in (SEMI, ANTI) else JoinRows(kind, *given)


class JoinRows(Operator):
    """Columns of the left input, then those of the right; without keys every row meets every other."""

    def __init__(
        self,
        kind: str,
        left: pa.Schema,
        right: pa.Schema,
        left_keys: Sequence[str],
        right_keys: Sequence[str],
        residual: Predicate | None,
        null_safe: Sequence[bool],
        takes_back: tuple[bool, bool],
    ) -> None:
        self.name = f"{kind} join"
        self._outer = OUTER[kind]
        self._sides = (
            Partners(left, left_keys, null_safe, marked=self._outer[0]),
            Partners(right, right_keys, null_safe, marked=self._outer[1]),
        )
        self._residual = residual
        self.schema = pa.schema([*_fields(left, self._outer[1]), *_fields(right, self._outer[0])])
        self.takes_back = any(takes_back) or any(self._outer)

    def apply(self, *inputs: Changes) -> Changes:
        left, right = inputs
        return together([*self._meet(0, left), *self._meet(1, right)], self.schema)

    def _meet(self, side: int, changes: Changes) -> list[Changes]:
        """Changes of one input meet the rows of the other as they are now."""
        if not len(changes):
            return []
        own, other = self._sides[side], self._sides[1 - side]
        changes = changes.in_one_piece()
        signs = changes.signs.astype(np.int64)
        found = np.zeros(len(changes), np.int64)
        out, counts = [], PartnerCounts()
        for pairs in other.of(changes.rows, own.keys, side == 0, self._residual):
            out.append(Changes(pairs.rows, changes.signs[pairs.places]).renamed(self.schema))
            if self._outer[side]:
                found += np.bincount(pairs.places, minlength=len(changes))
            if self._outer[1 - side]:
                counts.note(pairs.numbers, signs[pairs.places])
        if self._outer[side] and not found.all():
            out.append(self._alone(side, changes.filtered(found == 0)))
        own.keep(changes, found if self._outer[side] else None)
        met, left_alone = counts.turned(other.rows)
        if len(met):
            out.append(self._alone(1 - side, go(other.rows.rows.take(met))))
        if len(left_alone):
            out.append(self._alone(1 - side, come(other.rows.rows.take(left_alone))))
        return out

    def _alone(self, side: int, changes: Changes) -> Changes:
        """Rows of one input that stand with NULLs."""
        other = self._sides[1 - side].schema
        nulls = [pa.nulls(len(changes), field.type) for field in other]
        empty = pa.Table.from_arrays(nulls, schema=other)
        rows = changes.rows
        both = side_by_side(rows, empty) if side == 0 else side_by_side(empty, rows)
        return changes.with_rows(both).renamed(self.schema)

    @property
    def nbytes(self) -> int:
        return sum(side.rows.nbytes for side in self._sides)

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        return [keys for side in self._sides if (keys := side.rows.spilled) is not None]

    def spill(self) -> None:
        for side in self._sides:
            if side.keys:
                side.rows.spill()

    def state(self) -> dict[str, Any]:
        return {"sides": [side.rows.state() for side in self._sides]}

    def restore(self, state: dict[str, Any]) -> None:
        for side, kept in zip(self._sides, state["sides"], strict=True):
            side.rows.restore(kept)


def _fields(schema: pa.Schema, may_be_null: bool) -> list[pa.Field]:
    return [field.with_nullable(True) if may_be_null else field for field in schema]
