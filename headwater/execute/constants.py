"""`SELECT 1`, `SELECT 'a' AS x, 2 + 3`: one row of constants, without Spark.

Owns: which of them. Must never: answer what the whitelist does not
compute as Spark does; an error is left to Spark to tell.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from headwater.errors import Error
from headwater.execute.reading import Reading
from headwater.expression.bind import compile_expression
from headwater.expression.terms import Terms
from headwater.plan.shown_names import shown_name

ONE_ROW = pa.table({"": [True]})


def constant_row(found: Reading) -> pa.Table | None:
    """The row, if the query has nothing but constants; else None."""
    tree, query = found.query.tree, found.query
    if type(tree) is not exp.Select or query.table_references or query.previous:
        return None
    if any(value for name, value in tree.args.items() if name != "expressions"):
        return None
    terms = found.context.terms()
    columns = [_column(node, query.text, terms) for node in tree.expressions]
    known = [column for column in columns if column is not None]
    if not known or len(known) < len(columns):
        return None
    return pa.Table.from_arrays([array for _, array in known], names=[name for name, _ in known])


def _column(
    node: exp.Expr, text: str, terms: Terms
) -> tuple[str, pa.Array | pa.ChunkedArray] | None:
    name = shown_name(node, text)
    value = node.this if isinstance(node, exp.Alias) else node
    if name is None or any(value.find_all(exp.Column)):
        return None
    compiled = compile_expression(value, lambda _: None, terms)
    if compiled is None:
        return None
    try:
        return name, compiled.evaluate(ONE_ROW)
    except Error:
        return None
