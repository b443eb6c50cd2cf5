"""What is computed by operators of the two streams of a join: filters, keys, and conditions over pairs.

Compiled from the same pieces that Spark gets, or not at all. A condition over one side is a filter
of its rows, an equality of both sides of one type is a key, any other condition is asked of the pairs
with equal keys. Columns are named `0.x`, `1.y` by the place of their source. Must never: hold rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.compile.block import (
    NoOperator,
    condition,
    equal_sides,
    resolve_column,
    source_schemas,
)
from headwater.expression.compile import Compiled, filter_rows
from headwater.expression.terms import Terms
from headwater.fold.columns import kind_of
from headwater.plan.folds import FoldPlan
from headwater.plan.pieces import Piece


@dataclass(frozen=True)
class SidePlan:
    """What is computed of one side's rows."""

    source: int
    columns: tuple[str, ...]
    filters: tuple[Compiled, ...]
    keys: tuple[Compiled, ...]

    def prepare(self, rows: pa.Table) -> pa.Table:
        """The rows that can match."""
        names = [name for name in self.columns if name in rows.column_names]
        chunk = rows.select(names).rename_columns([f"{self.source}.{n}" for n in names])
        for predicate in self.filters:
            chunk = filter_rows(chunk, predicate)
        return chunk

    def columns_in(self, expressions: Iterable[Compiled]) -> list[str]:
        """The columns of this side that expressions read; at least one, so that rows can be counted."""
        named = {name for one in expressions for name in one.columns}
        own = [f"{self.source}.{name}" for name in self.columns]
        return [name for name in own if name in named] or own[:1]


class JoinPipeline:
    """The conditions of an inner join of two streams; NoOperator if there is no equality among them."""

    def __init__(self, plan: FoldPlan, functions: Terms) -> None:
        if plan.statics:
            raise NoOperator("a table is joined with two streams")
        self._schemas = source_schemas(plan)
        self._sources, self._functions = plan.leaf_sources, functions
        filters: tuple[list[Compiled], list[Compiled]] = ([], [])
        keys: list[tuple[Compiled, Compiled]] = []
        rest: list[Compiled] = []
        for piece in (*plan.where, *plan.join_on):
            found = condition(piece, self.resolve, functions)
            sides, key = self.sides_of(found), self._key(piece)
            if len(sides) == 1:
                filters[sides.pop()].append(found)
            elif key is not None:
                keys.append(key)
            else:
                rest.append(found)
        if not keys:
            raise NoOperator("a join of streams without an equality")
        self.key_types = [left.type for left, _ in keys]
        for type_ in self.key_types:
            kind_of(type_)
        self.conditions = tuple(rest)
        self.sides = tuple(
            SidePlan(
                plan.leaf_sources[side],
                plan.leaves[side].needed,
                tuple(filters[side]),
                tuple(pair[side] for pair in keys),
            )
            for side in (0, 1)
        )

    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType] | None:
        """A column of either side."""
        return resolve_column(self._schemas, column)

    def sides_of(self, found: Compiled) -> set[int]:
        """Which sides an expression reads."""
        return {self._sources.index(int(n.partition(".")[0])) for n in found.columns}

    def _key(self, piece: Piece) -> tuple[Compiled, Compiled] | None:
        """`left = right` with one side of the join on either side, of one type."""
        left, right = equal_sides(piece, self.resolve, self._functions) or (None, None)
        if left is None or right is None or left.type != right.type:
            return None
        places = [self.sides_of(left), self.sides_of(right)]
        if places == [{0}, {1}]:
            return left, right
        return (right, left) if places == [{1}, {0}] else None
