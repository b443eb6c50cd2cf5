"""`SELECT 1`, `SELECT 'a' AS x, 2 + 3`: one row of constants, without Spark.

Owns: which of them, and what Spark calls their columns. Must never: answer what the whitelist does not
compute as Spark does; an error is left to Spark to tell.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from headwater.errors import Error
from headwater.execute.reading import Reading
from headwater.expression.bind import compile_expression
from headwater.expression.terms import Terms

ONE_ROW = pa.table({"": [True]})
SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


def constant_row(found: Reading) -> pa.Table | None:
    """The row, if the query has nothing but constants; else None."""
    tree, query = found.query.tree, found.query
    if type(tree) is not exp.Select or query.table_references or query.previous:
        return None
    if any(value for name, value in tree.args.items() if name != "expressions"):
        return None
    terms = found.context.terms()
    columns = [_column(node, terms) for node in tree.expressions]
    known = [column for column in columns if column is not None]
    if not known or len(known) < len(columns):
        return None
    return pa.Table.from_arrays([array for _, array in known], names=[name for name, _ in known])


def _column(node: exp.Expr, terms: Terms) -> tuple[str, pa.Array | pa.ChunkedArray] | None:
    name = node.alias if isinstance(node, exp.Alias) else _spark_name(node)
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


def _spark_name(node: exp.Expr) -> str | None:
    """What Spark calls a column of a constant without a name; None where that is not plain."""
    if isinstance(node, exp.Literal):
        text = str(node.this)
        whole = text.isdecimal() and text == text.lstrip("0")
        return text if node.is_string or whole else None
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if isinstance(node, exp.Paren):
        return _spark_name(node.this)
    sign = SIGNS.get(type(node))
    if sign is None:
        return None
    left, right = _spark_name(node.this), _spark_name(node.expression)
    return None if left is None or right is None else f"({left} {sign} {right})"
