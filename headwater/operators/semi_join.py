"""Semi and anti joins: the rows of the left input that have a partner on the right, or that have none.

Owns: of the right input how many rows each key has, if there is no residual condition; else its rows, and of
each left row the number of its partners, as its mark. Where right rows only come, a left row that has a
partner will always have one: then only left rows without one are kept. Must never: give out a right column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Slots, Vector
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.equal_rows import EqualRows
from headwater.operators.filter import Predicate
from headwater.operators.operator import Operator
from headwater.operators.partners import PartnerCounts, Partners, turns
from headwater.operators.spilled_keys import SpilledKeys

SEMI, ANTI = "semi", "anti"


class SemiJoinRows(Operator):
    """Columns of the left input; each of its rows at most once, however many partners it has."""

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
        self.name, self.schema = f"{kind} join", left
        self._anti, self._residual = kind == ANTI, residual
        self.takes_back = any(takes_back) or self._anti
        self._right_stays = not takes_back[1]
        counted = residual is not None and not self._right_stays
        self._left = Partners(left, left_keys, null_safe, marked=counted)
        self._right = Partners(right, right_keys, null_safe, marked=False)
        keys = pa.schema([right.field(name) for name in right_keys])
        self._keys = EqualRows(keys, 1, shows=False)  # of the right, if keys are enough

    def apply(self, *inputs: Changes) -> Changes:
        left, right = (changes.in_one_piece() for changes in inputs)
        parts = [self._come_left(left)] if len(left) else []
        if len(right):
            first, last = self._by_pairs(right) if self._residual else self._by_keys(right)
            parts += self._turn(first, last)
        return together(parts, self.schema)

    def _come_left(self, changes: Changes) -> Changes:
        counts = self._partner_counts(changes.rows)
        has = counts > 0
        if self._right_stays:
            self._left.keep(changes.filtered(~has))
        else:
            self._left.keep(changes, counts if self._residual else None)
        return changes.filtered(~has if self._anti else has)

    def _partner_counts(self, rows: pa.Table) -> Slots:
        """How many partners rows of the left have; without a residual condition, at least 1 if any."""
        if self._residual is None:
            slots = self._keys.find(_columns(rows, self._left.keys), rows.num_rows)
            return self._keys.counts(0, slots)
        counts = np.zeros(rows.num_rows, np.int64)
        for pairs in self._right.of(rows, self._left.keys, True, self._residual):
            counts += np.bincount(pairs.places, minlength=len(counts))
        return counts

    def _by_keys(self, changes: Changes) -> tuple[Slots, Slots]:
        """The left rows whose key has its first right row now, and whose key has lost its last."""
        self._keys.make_room()
        there = self._right.with_keys(changes.rows)
        if there is not None:
            changes = changes.filtered(there)
        keys = _columns(changes.rows, self._right.keys)
        touched = self._keys.change(0, keys, changes.signs)
        turn = turns(touched.before, touched.after)
        first, last = touched.places[turn > 0], touched.places[turn < 0]
        return self._of_keys(keys, first), self._of_keys(keys, last)

    def _of_keys(self, keys: Sequence[pa.ChunkedArray], places: Slots) -> Slots:
        """The left rows that have the keys that stand at some places."""
        left, taken = self._left.rows, pa.array(places)
        return left.of_slots(left.find([key.take(taken) for key in keys], len(places)))

    def _by_pairs(self, changes: Changes) -> tuple[Slots, Slots]:
        """The left rows that have their first partner now, and that have lost the last."""
        signs, counts = changes.signs.astype(np.int64), PartnerCounts()
        met: list[Vector] = []
        for pairs in self._left.of(changes.rows, self._right.keys, False, self._residual):
            if self._right_stays:
                met.append(np.unique(pairs.numbers))
            else:
                counts.note(pairs.numbers, signs[pairs.places])
        self._right.keep(changes)
        if self._right_stays:
            return np.unique(np.concatenate([_NO_ROWS, *met])), _NO_ROWS
        return counts.turned(self._left.rows)

    def _turn(self, first: Slots, last: Slots) -> list[Changes]:
        rows = self._left.rows
        come_in, go_out = (last, first) if self._anti else (first, last)
        out = [come(rows.rows.take(come_in)), go(rows.rows.take(go_out))]
        if self._right_stays:
            rows.kill(first)
        return out

    @property
    def nbytes(self) -> int:
        return self._left.rows.nbytes + self._right.rows.nbytes + self._keys.nbytes

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        return [keys for keys in self._parts if keys is not None]

    def spill(self) -> None:
        if not self._left.keys:
            return
        self._left.rows.spill()
        self._right.rows.spill()
        self._keys.spill()

    @property
    def _parts(self) -> Sequence[SpilledKeys | None]:
        if not self._left.keys:
            return ()
        return self._left.rows.spilled, self._right.rows.spilled, self._keys.spilled

    def state(self) -> dict[str, Any]:
        return {
            "left": self._left.rows.state(),
            "right": self._right.rows.state(),
            "keys": self._keys.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._left.rows.restore(state["left"])
        self._right.rows.restore(state["right"])
        self._keys.restore(state["keys"])


_NO_ROWS: Slots = np.empty(0, np.int64)


def _columns(rows: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
    return [rows.column(name) for name in names]
