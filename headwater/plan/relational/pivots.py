"""PIVOT → a grouping by the columns that it does not name; each cell is an aggregate over a part of the rows.

A cell that no row falls into is NULL, also one of a count.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.names import KnownColumn
from headwater.plan.relational.trees import check_arguments
from headwater.sql.dialect import named_table

KNOWN = (
    "expressions fields columns alias unpivot default_on_null identify_pivot_strings "
    "prefixed_pivot_columns pivot_column_naming"
)
NULL_OF_NOTHING = (exp.Sum, exp.Min, exp.Max, exp.Avg)  # these need not be asked for rows


def pivoted(pivot: exp.Expr, rows: str, columns: Sequence[KnownColumn]) -> exp.Select:
    """The SELECT that a PIVOT over rows of that name is."""
    check_arguments(pivot, KNOWN)
    fields, names = pivot.args["fields"], pivot.args.get("columns") or []
    if pivot.args.get("unpivot") or len(fields) != 1 or not isinstance(fields[0].this, exp.Column):
        raise refuse("a PIVOT of several columns, or UNPIVOT", pivot)
    place, calls = fields[0].this, [_bare(call) for call in pivot.expressions]
    values = [_bare(value) for value in fields[0].expressions]
    if len(names) != len(values) * len(calls):
        raise refuse("a PIVOT whose columns have no names", pivot)
    if not all(isinstance(value, exp.Literal) for value in values):
        raise refuse("a PIVOT by values that are no constants", pivot)
    types = [c.type for c in columns if c.shown.casefold() == place.name.casefold()]
    if not all(_is_of(value, type_) for value in values for type_ in types):
        raise refuse("a PIVOT by values that are not of the column's type", pivot)
    named = {c.name.casefold() for part in (place, *calls) for c in part.find_all(exp.Column)}
    keys = [
        exp.column(exp.to_identifier(c.shown, quoted=True))
        for c in columns
        if not c.hidden and c.shown.casefold() not in named
    ]
    cells = [_cell(call, place, value) for value in values for call in calls]
    items = [exp.Alias(this=c, alias=n.copy()) for c, n in zip(cells, names, strict=True)]
    made = exp.Select(expressions=[*keys, *items], from_=exp.From(this=named_table(rows)))
    if keys:
        made.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return made


def _is_of(value: exp.Expr, type_: pa.DataType) -> bool:
    """Whether a constant stays as it is when Spark casts it to the column's type."""
    if value.is_string:
        return pa.types.is_string(type_) or pa.types.is_date(type_)
    if value.name.isdecimal():
        return pa.types.is_integer(type_) or pa.types.is_float64(type_)
    return pa.types.is_float64(type_)


def _bare(node: exp.Expr) -> exp.Expr:
    found: exp.Expr = node.this if isinstance(node, exp.Alias | exp.PivotAlias) else node
    return found


def _cell(call: exp.Expr, place: exp.Expr, value: exp.Expr) -> exp.Expr:
    over = _only(call, place, value)
    if isinstance(call, NULL_OF_NOTHING):
        return over
    there = exp.GT(
        this=_only(exp.Count(this=exp.Star(), big_int=True), place, value),
        expression=exp.Literal.number(0),
    )
    return exp.Case(ifs=[exp.If(this=there, true=over)])


def _only(call: exp.Expr, place: exp.Expr, value: exp.Expr) -> exp.Expr:
    """An aggregate over the rows whose column has a value."""
    same = exp.EQ(this=place.copy(), expression=value.copy())
    return exp.Filter(this=call.copy(), expression=exp.Where(this=same))
