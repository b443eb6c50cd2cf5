"""DELETE and UPDATE by operators: the condition and the new values, where the whitelist has all they say.

Owns: which rows a statement means and what becomes of them, as closures over a table's rows. Must never: read
rows, or decide what may be stored; what it leaves is Spark's, which also says what is wrong with a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headwater.expression.bind import Refusal, Resolve, bind_as, compile_predicate
from headwater.expression.compile import Compiled, compiled
from headwater.expression.terms import Terms
from headwater.plan.assign import storable
from headwater.sql.dialect import given, parse_tree

_CLAUSES = frozenset(("expressions", "from_", "where"))


@dataclass(frozen=True)
class ChangePlan:
    """The rows that a statement means, and the new values of their columns."""

    where: Compiled | None  # None: all rows
    values: tuple[tuple[str, Compiled], ...]  # by column; none of a DELETE

    @property
    def columns(self) -> frozenset[str]:
        """What the condition looks at."""
        return frozenset() if self.where is None else self.where.columns

    def chosen(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        """For each row, whether it is meant."""
        if self.where is None:
            return pa.repeat(True, rows.num_rows)
        return pc.fill_null(self.where.evaluate(rows), False)

    def changed(self, rows: pa.Table) -> pa.Table:
        """The rows that are meant, with their new values."""
        new = rows
        for name, value in self.values:
            place = rows.schema.get_field_index(name)
            new = new.set_column(place, name, value.evaluate(rows))
        return new


def change_plan(
    text: str, schema: pa.Schema, table: str, targets: Sequence[pa.Field[pa.DataType]], terms: Terms
) -> ChangePlan | None:
    """The plan of `SELECT new values of the targets FROM t AS table [WHERE condition]`, or None."""
    tree = parse_tree(text)
    if type(tree) is not exp.Select or not given(tree) <= _CLAUSES:
        return None
    resolve = _columns(schema, table)
    condition = tree.args.get("where")
    where = None if condition is None else compile_predicate(condition.this, resolve, terms)
    if condition is not None and where is None:
        return None
    values = []
    for node, field in zip(tree.expressions, targets, strict=False):
        value = _value(node, field, resolve, terms)
        if value is None:
            return None
        values.append((field.name, value))
    return ChangePlan(where, tuple(values)) if len(values) == len(targets) else None


def _columns(schema: pa.Schema, table: str) -> Resolve:
    """Columns by their names, alone or after the table's."""
    fields = {field.name.casefold(): field for field in schema}

    def resolve(node: exp.Column) -> tuple[str, pa.DataType] | None:
        field = fields.get(node.name.casefold())
        named = given(node) <= {"this", "table"} and node.table.casefold() in ("", table.casefold())
        return (field.name, field.type) if field is not None and named else None

    return resolve


def _value(
    node: exp.Expr, field: pa.Field[pa.DataType], resolve: Resolve, terms: Terms
) -> Compiled | None:
    """A new value as it is stored; None if it is left to Spark."""
    found = bind_as(node, field.type, resolve, terms, storable)
    closure = None if isinstance(found, Refusal) else compiled(found)
    return closure if closure is not None and closure.type == field.type else None
