"""ORDER BY, LIMIT and OFFSET, in Spark's order.

Owns: the order of values: NaN is the largest number, -0.0 equals 0.0, text goes by its UTF-8 bytes,
false before true; NULLs where the key says. The sort is stable. Must never: sort rows that a LIMIT
cannot reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.expression.compile import Compiled
from headwater.fold.columns import FLOAT, OBJECT, Column, Slots, Vector

PRUNE_FACTOR = 4  # looking for the rows that a LIMIT can reach pays if it keeps a quarter at most


@dataclass(frozen=True)
class OrderKey:
    """One expression of ORDER BY; Spark's default: ASC has NULLs first, DESC last."""

    value: Compiled
    descending: bool
    nulls_first: bool


def order_rows(
    table: pa.Table, keys: Sequence[OrderKey], limit: int | None = None, offset: int = 0
) -> pa.Table:
    """The rows in order, from `offset` on, at most `limit` of them; without keys, as they come."""
    end = table.num_rows if limit is None else min(offset + limit, table.num_rows)
    if not keys or not table.num_rows or offset >= end:
        return table.slice(offset, max(end - offset, 0))
    ranks = [rank for key in keys for rank in _ranks(table, key)]
    return table.take(pa.array(_sorted(ranks, end)[offset:end]))


def _ranks(table: pa.Table, key: OrderKey) -> list[Vector]:
    return ranks_of(Column(key.value.evaluate(table)), key.descending, key.nulls_first)


def ranks_of(column: Column, descending: bool, nulls_first: bool) -> list[Vector]:
    """Integers in the order of a column's rows: first whether it is NULL, if any is, then the value."""
    values = ordered(column)
    if descending:
        values = ~values
    if column.valid is None:
        return [values]
    values = np.where(column.valid, values, 0)
    return [column.valid if nulls_first else ~column.valid, values]


def ordered(column: Column) -> Vector:
    """64-bit integers in the order of the column's values; of text, only within this column."""
    if column.kind == OBJECT:
        return column.ranked[0]
    if column.kind != FLOAT:
        return column.values
    numbers = np.where(np.isnan(column.values), np.nan, column.values + 0.0)  # one NaN, no -0.0
    bits: Vector = numbers.view(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _sorted(ranks: Sequence[Vector], end: int) -> Slots:
    """The first `end` rows in order of the ranks, the first rank being the most important."""
    most = ranks[0]
    if end * PRUNE_FACTOR > len(most):
        return np.lexsort(tuple(reversed(ranks)))
    last = np.partition(most, end - 1)[end - 1]
    rows = np.flatnonzero(most <= last)
    return rows[np.lexsort(tuple(rank[rows] for rank in reversed(ranks)))]
