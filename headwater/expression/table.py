"""The table of functions: name → (type rule, implementation); and calls made by it.

Owns: what a row of the table is, and constant folding. A type rule takes bound arguments and gives the
call with its arguments converted and its type, or None where Spark's types are not ours to give. An
implementation makes a kernel over Arrow values for a call, or, where it chooses rows, an operand.
Must never: know a function; `functions` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.errors import DataError
from headwater.expression.nodes import NULL, Bound, BoundCall, BoundConstant, Parameter
from headwater.expression.operand import ONE_ROW, Kernel, Operand, apply, column, literal

TypeRule = Callable[..., Bound | None]
Build = Callable[[BoundCall, Sequence[Operand]], Operand]
MakeKernel = Callable[[BoundCall], Kernel]


@dataclass(frozen=True)
class Operation:
    """One function: which calls of it there are, and how Arrow computes them."""

    type_rule: TypeRule
    build: Build


OPERATIONS: dict[str, Operation] = {}


def never(_: BoundCall) -> bool:
    """No call raises."""
    return False


def always(_: BoundCall) -> bool:
    """Every call may raise for some row."""
    return True


def operation(
    name: str,
    type_rule: TypeRule,
    kernel: MakeKernel,
    raises: Callable[[BoundCall], bool] = never,
) -> None:
    """Enters a function whose arguments are all evaluated, for all rows."""

    def build(call: BoundCall, operands: Sequence[Operand]) -> Operand:
        return apply(call.type, operands, kernel(call), raises(call))

    choosing(name, type_rule, build)


def choosing(name: str, type_rule: TypeRule, build: Build) -> None:
    """Enters a function that says for which rows its arguments are evaluated."""
    assert name not in OPERATIONS, f"two functions are called {name}"
    OPERATIONS[name] = Operation(type_rule, build)


def called(
    name: str, arguments: Sequence[Bound], type_: pa.DataType, *parameters: Parameter
) -> BoundCall:
    """A call of converted arguments, as type rules give it."""
    return BoundCall(name, tuple(arguments), type_, parameters)


def call(name: str, *arguments: Bound, **parameters: Any) -> Bound | None:
    """The call of a function as its type rule says, folded where all arguments are constant.

    None for a constant that raises: whether Spark meets it depends on its optimizer.
    """
    made = OPERATIONS[name].type_rule(*arguments, **parameters)
    return made if made is None else folded(made)


def folded(made: Bound) -> Bound | None:
    """The expression, or the constant that it is."""
    if not isinstance(made, BoundCall):
        return made
    if not all(map(_is_constant, made.arguments)):
        return made
    if pa.types.is_nested(made.type) or any(a.type == NULL for a in made.arguments):
        return made
    try:
        scalar = operand_of(made).evaluate(ONE_ROW)
        value = (scalar if isinstance(scalar, pa.Scalar) else scalar[0]).as_py()
    except (DataError, ValueError, OverflowError):  # the latter: a time that Python cannot hold
        return None
    return BoundConstant(value, made.type)


def _is_constant(argument: Bound) -> bool:
    """Whether it has one value for all rows; an array of constants stays a call."""
    if isinstance(argument, BoundCall):
        return pa.types.is_nested(argument.type) and all(map(_is_constant, argument.arguments))
    return isinstance(argument, BoundConstant)


def operand_of(expression: Bound, known: dict[int, Operand] | None = None) -> Operand:
    """The closure of an expression; equal parts that are one object are made once."""
    known = {} if known is None else known
    found = known.get(id(expression))
    if found is None:
        found = known[id(expression)] = _operand(expression, known)
    return found


def _operand(expression: Bound, known: dict[int, Operand]) -> Operand:
    if isinstance(expression, BoundCall):
        operands = [operand_of(argument, known) for argument in expression.arguments]
        return OPERATIONS[expression.function].build(expression, operands)
    if isinstance(expression, BoundConstant):
        return literal(expression.value, expression.type)
    return column(expression.name, expression.type)
