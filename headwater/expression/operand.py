"""A part of an expression as a closure over Arrow, and how parts are put together.

Owns: values that are a scalar while nothing in them depends on a row, and evaluation on some rows
only. Must never: raise for a row that Spark would not evaluate; a part that can raise says so
(`raises`), and whoever chooses rows evaluates it with `evaluate_where`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Value: TypeAlias = "pa.Array | pa.Scalar"
Evaluate = Callable[[pa.Table], Any]
Kernel = Callable[..., Any]
Vector = npt.NDArray[Any]
ONE_ROW = pa.table({"": [True]})


@dataclass(frozen=True)
class Operand:
    """A part of an expression; the type `null` is Spark's NULL without a type."""

    type: pa.DataType
    columns: frozenset[str]
    evaluate: Evaluate
    raises: bool = False


def literal(value: Any, type_: pa.DataType) -> Operand:
    """A constant."""
    scalar = pa.scalar(value, type_)
    return Operand(type_, frozenset(), lambda _: scalar)


def column(name: str, type_: pa.DataType) -> Operand:
    """A column of the table, in one piece and in the flavour of its type."""

    def evaluate(table: pa.Table) -> Value:
        data = table.column(name)
        array = data.chunk(0) if data.num_chunks == 1 else data.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # no chunks at all
            array = pa.array([], array.type)
        return array if array.type == type_ else array.cast(type_)

    return Operand(type_, frozenset([name]), evaluate)


def columns_of(operands: Sequence[Operand]) -> frozenset[str]:
    """The columns that some operands read."""
    return frozenset[str]().union(*(operand.columns for operand in operands))


def apply(
    type_: pa.DataType, operands: Sequence[Operand], function: Kernel, raises: bool = False
) -> Operand:
    """The operand that calls a function with the values of others."""
    columns = columns_of(operands)
    can_raise = raises or any(operand.raises for operand in operands)
    if not columns:
        return Operand(type_, columns, _once(operands, function), can_raise)
    if len(operands) == 1:
        one = operands[0].evaluate
        return Operand(type_, columns, lambda table: function(one(table)), can_raise)
    if len(operands) == 2:
        left, right = operands[0].evaluate, operands[1].evaluate
        return Operand(type_, columns, lambda table: function(left(table), right(table)), can_raise)
    parts = [operand.evaluate for operand in operands]
    return Operand(
        type_, columns, lambda table: function(*(part(table) for part in parts)), can_raise
    )


def _once(operands: Sequence[Operand], function: Kernel) -> Evaluate:
    """Kernels meet a column at least: one of a single row, whose value stands for all."""

    def evaluate(_: pa.Table) -> Value:
        values = (spread(operand.evaluate(ONE_ROW), 1) for operand in operands)
        return function(*values)[0]

    return evaluate


def spread(value: Value, row_count: int) -> pa.Array:
    """The value as a column of so many rows."""
    return pa.repeat(value, row_count) if isinstance(value, pa.Scalar) else value


def spread_all(values: Sequence[Value]) -> list[pa.Array]:
    """Values of which one at least is a column, all as columns."""
    row_count = next(len(value) for value in values if not isinstance(value, pa.Scalar))
    return [spread(value, row_count) for value in values]


def evaluate_where(operand: Operand, table: pa.Table, rows: Callable[[], Value]) -> Value:
    """The operand's values; where `rows` is not true they are arbitrary, and nothing is raised."""
    if not operand.raises:
        value: Value = operand.evaluate(table)
        return value
    mask = spread(rows(), table.num_rows)
    chosen = table.select(sorted(operand.columns)).filter(mask)
    if chosen.num_rows == table.num_rows:
        return spread(operand.evaluate(table), table.num_rows)
    if not chosen.num_rows:
        return pa.nulls(table.num_rows, operand.type)
    values = spread(operand.evaluate(chosen), chosen.num_rows)
    return pc.replace_with_mask(pa.nulls(table.num_rows, operand.type), mask, values)


def vector(value: pa.Array) -> tuple[Vector, npt.NDArray[np.bool_] | None]:
    """A number column as a NumPy vector, and which rows are NULL (there, the vector has 1)."""
    if value.null_count == 0:
        return value.to_numpy(zero_copy_only=False), None
    filled = value.fill_null(pa.scalar(1, value.type))
    return filled.to_numpy(zero_copy_only=False), value.is_null().to_numpy(zero_copy_only=False)
