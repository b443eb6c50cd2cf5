"""The arguments of a function with state, over the rows of its table."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from headwater.errors import NotSupportedError
from headwater.expression.bind import compile_expression
from headwater.expression.compile import Compiled
from headwater.expression.terms import Terms
from headwater.plan.folds import Leaf, StateCall


def compile_arguments(plan: StateCall, leaf: Leaf, terms: Terms) -> tuple[Compiled, ...]:
    """The arguments of a call; NotSupportedError for one that only Spark could compute."""

    def resolve(column: exp.Column) -> tuple[str, pa.DataType] | None:
        for field in leaf.columns.schema:
            if not column.table and field.name.casefold() == column.name.casefold():
                return field.name, field.type
        return None

    found = []
    for piece in plan.arguments:
        node = piece.node
        compiled = None if node is None else compile_expression(node, resolve, terms)
        if compiled is None:
            raise NotSupportedError(
                f"the argument {piece} of function {plan.name} is not supported",
                hint="functions with state take columns, constants and simple expressions of them",
            )
        found.append(compiled)
    return tuple(found)
