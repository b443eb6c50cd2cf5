"""Expressions on both sides: by operators, and by Spark over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

import headwater
from headwater.errors import DataError
from headwater.expression.bind import Refusal, Resolve, bind, compile_expression
from headwater.expression.compile import Compiled
from headwater.expression.nodes import Bound
from headwater.expression.terms import PLAIN, Terms
from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation
from headwater.sql import dialect

RAISED = "raised"
BATCH = 120  # expressions in one Spark query


def parsed(text: str) -> exp.Expr | None:
    """The tree of an expression."""
    tree = dialect.parse_tree("SELECT " + text)
    if isinstance(tree, Exception) or not isinstance(tree, exp.Select):
        return None
    (node,) = tree.expressions
    assert isinstance(node, exp.Expr)
    return node


def compiled(
    text: str, schema: pa.Schema, functions: Sequence[str] = (), time_zone: str = "UTC"
) -> Compiled | None:
    """The expression by operators over columns of a schema, None if it is refused."""
    node = parsed(text)
    terms = Terms(frozenset(functions), time_zone)
    return None if node is None else compile_expression(node, resolver(schema), terms)


def resolver(schema: pa.Schema) -> Resolve:
    """The columns of a schema, in any case."""

    def resolve(column: exp.Column) -> tuple[str, pa.DataType] | None:
        name = column.name.lower()
        known = name in schema.names and not column.table
        return (name, schema.field(name).type) if known else None

    return resolve


def bound(text: str, schema: pa.Schema, terms: Terms = PLAIN) -> Bound | None:
    """The bound expression, None if it is refused."""
    node = parsed(text)
    found = None if node is None else bind(node, resolver(schema), terms)
    return None if isinstance(found, Refusal) else found


def shown(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Values as text that tells -0.0 from 0.0 and makes NaN equal to itself."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        bits = pa.int32() if pa.types.is_date(values.type) else pa.int64()
        values = values.cast(bits)  # Python has no year 0 and none after 9999
    return [repr(value) for value in values.to_pylist()]


def row_by_row(expression: Compiled, table: pa.Table) -> list[str]:
    """The values of each row on its own, RAISED where it raises."""
    found: list[str] = []
    for number in range(table.num_rows):
        try:
            found.extend(shown(expression.evaluate(table.slice(number, 1))))
        except DataError:
            found.append(RAISED)
    return found


class Oracle:
    """Rows staged once, asked many expressions in few queries."""

    def __init__(self, db: headwater.Database, table: pa.Table) -> None:
        self._kernel: Any = db._context.kernel
        self._relation: Relation = self._kernel.staging.stage(table)

    def query(self, sql: str) -> pa.Table:
        """What Spark answers; the rows are called t."""
        found: pa.Table = self._kernel.run(Work(sql, {"t": self._relation}))
        return found

    def ask(self, texts: Sequence[str], rest: str = "") -> list[pa.ChunkedArray]:
        """The columns of expressions, in order of the rows' column `n`."""
        found: list[pa.ChunkedArray] = []
        for first in range(0, len(texts), BATCH):
            some = texts[first : first + BATCH]
            named = ", ".join(f"{text} AS c{number}" for number, text in enumerate(some))
            answer = self.query(f"SELECT n, {named} FROM t {rest}").sort_by("n")
            found.extend(answer.columns[1:])
        return found

    def close(self) -> None:
        """Give the staged rows back."""
        self._kernel.staging.release(self._relation)
