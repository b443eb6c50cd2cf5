"""Bound expressions → closures over Arrow tables.

Owns: `Compiled`, and what a filter's conjuncts owe to each other. Needs no syntax tree: a worker process
compiles what it was sent. Must never: differ from Spark in a value or type. An error raised here is one
that Spark raises for the row; only Spark's optimizer may still spare a query from it
(`1/x > 2 OR TRUE`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from headwater.expression import functions
from headwater.expression.coercion import BOOLEAN, without_widening
from headwater.expression.nodes import INTERVAL, NULL, Bound, BoundCall, BoundColumn, walk
from headwater.expression.operand import spread
from headwater.expression.table import called, operand_of

assert functions.OPERATIONS  # entered by being imported


@dataclass(frozen=True)
class Compiled:
    """An expression that can be evaluated by operators: one value per row of the table."""

    type: pa.DataType
    columns: frozenset[str]
    evaluate: Callable[[pa.Table], pa.ChunkedArray | pa.Array]
    is_column: bool  # a column as it stands


def compiled(expression: Bound) -> Compiled | None:
    """The expression as a closure; None if its value has a type that is only met within one."""
    if expression.type in (NULL, INTERVAL) or pa.types.is_nested(expression.type):
        return None
    return _compiled(expression)


def compiled_struct(expression: Bound) -> Compiled | None:
    """A struct that is made of other values, as a closure."""
    made = isinstance(expression, BoundCall) and expression.function == "struct"
    return _compiled(expression) if made else None


def compiled_filter(condition: Bound) -> Compiled | None:
    """The condition of a filter as a closure: a conjunct is not asked where one before failed.

    None if Spark's optimizer would use one conjunct in another that can raise.
    """
    if condition.type != BOOLEAN:
        return None
    parts = conjuncts(condition)
    raising = [operand for operand in map(operand_of, parts) if operand.raises]
    columns = frozenset[str]().union(*(operand.columns for operand in raising))
    if columns & fixed(condition):
        return None
    whole = parts[0] if len(parts) == 1 else called("and then", parts, BOOLEAN)
    return _compiled(whole)


def conjuncts(condition: Bound) -> list[Bound]:
    """The parts of a condition that must all hold."""
    if isinstance(condition, BoundCall) and condition.function in ("and", "and then"):
        return [part for side in condition.arguments for part in conjuncts(side)]
    return [condition]


_EQUAL = frozenset(("=", "<=>", "in"))


def fixed(condition: Bound) -> frozenset[str]:
    """Columns that a filter may hold equal to a constant; Spark uses it in the other conjuncts.

    `i = 0 AND 1/i > 2` becomes `i = 0 AND 1/0 > 2`, which raises even if no row has 0.
    """
    calls = [part for part in walk(condition) if isinstance(part, BoundCall)]
    equal = [part for part in calls if part.function in _EQUAL]
    for negated in [part for part in calls if part.function == "not"]:
        inner = [part for part in walk(negated) if isinstance(part, BoundCall)]
        equal += [part for part in inner if part.function == "<>"]
    sides = [without_widening(side) for part in equal for side in part.arguments]
    return frozenset(side.name for side in sides if isinstance(side, BoundColumn))


def filter_rows(table: pa.Table, predicate: Compiled) -> pa.Table:
    """The rows for which the predicate is true."""
    return table.filter(predicate.evaluate(table))


def _compiled(expression: Bound) -> Compiled:
    operand = operand_of(expression)

    def evaluate(table: pa.Table) -> pa.ChunkedArray | pa.Array:
        return spread(operand.evaluate(table), table.num_rows)

    is_column = isinstance(expression, BoundColumn)
    return Compiled(operand.type, operand.columns, evaluate, is_column)
