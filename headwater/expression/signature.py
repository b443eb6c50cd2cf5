"""Ways to enter functions whose types are fixed, and kernels that go row by row.

Owns: which arguments a list of types takes (narrower integers are widened, nothing else is converted),
and NULL in, NULL out. Must never: take a NULL without a type; what Spark makes of it is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa

from headwater.errors import DataError
from headwater.expression.coercion import INTEGERS, convert, is_integer
from headwater.expression.nodes import Bound, BoundCall, BoundConstant
from headwater.expression.operand import Kernel, Value
from headwater.expression.table import MakeKernel, called, never, operation

Types = Sequence[pa.DataType]


def taken(arguments: Sequence[Bound], types: Types) -> list[Bound] | None:
    """The arguments in these types; None if they are others."""
    if len(arguments) != len(types):
        return None
    found = [_as(argument, type_) for argument, type_ in zip(arguments, types, strict=True)]
    known = [argument for argument in found if argument is not None]
    return known if len(known) == len(found) else None


def _as(argument: Bound, type_: pa.DataType) -> Bound | None:
    if argument.type == type_:
        return argument
    both = is_integer(argument.type) and is_integer(type_)
    wider = both and INTEGERS.index(argument.type) < INTEGERS.index(type_)
    return convert(argument, type_) if wider else None


def fixed(
    name: str,
    signatures: Sequence[Types],
    result: pa.DataType,
    kernel: MakeKernel,
    raises: Callable[[BoundCall], bool] = never,
) -> None:
    """Enters a function that takes one of some lists of types and gives one type."""

    def type_rule(*arguments: Bound) -> Bound | None:
        for types in signatures:
            found = taken(arguments, types)
            if found is not None:
                return called(name, found, result)
        return None

    operation(name, type_rule, kernel, raises)


def constant(argument: Bound) -> Any:
    """The value of a constant; None for what is none, and for NULL."""
    return argument.value if isinstance(argument, BoundConstant) else None


def list_of(type_: pa.DataType) -> pa.DataType:
    """The type of Spark's arrays."""
    return pa.list_(pa.field("element", type_))


def tried(kernel: Kernel, type_: pa.DataType) -> Kernel:
    """The kernel, NULL where it would raise."""

    def compute(*values: Value) -> pa.Array:
        try:
            return kernel(*values)
        except DataError:
            count = next(len(value) for value in values if not isinstance(value, pa.Scalar))
            if count == 1:
                return pa.nulls(1, type_)
            half = count // 2
            halves = [(0, half), (half, count - half)]
            return pa.concat_arrays([compute(*_cut(values, *part)) for part in halves])

    return compute


def _cut(values: Sequence[Value], start: int, count: int) -> list[Value]:
    return [v if isinstance(v, pa.Scalar) else v.slice(start, count) for v in values]


def by_row(function: Callable[..., Any]) -> MakeKernel:
    """A kernel that calls a Python function for each row without a NULL."""

    def make(call: BoundCall) -> Kernel:
        type_ = call.type

        def compute(*values: Value) -> pa.Array:
            rows = zip(*map(_listed, values), strict=False)
            return pa.array([None if _has_null(row) else function(*row) for row in rows], type_)

        return compute

    return make


def _listed(value: Value) -> Any:
    return repeat(value.as_py()) if isinstance(value, pa.Scalar) else value.to_pylist()


def _has_null(row: Sequence[Any]) -> bool:
    return any(value is None for value in row)
