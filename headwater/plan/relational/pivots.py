"""PIVOT → a grouping by the columns that it does not name; each cell is an aggregate over a part of the rows.

A cell that no row falls into is NULL, also one of a count. UNPIVOT → a union: for each column that it names
the rows in which that is not NULL, with the column's name and its value.
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


def pivoted(pivot: exp.Expr, rows: str, columns: Sequence[KnownColumn]) -> exp.Query:
    """The query that a PIVOT or UNPIVOT over rows of that name is."""
    if pivot.args.get("unpivot"):
        return _unpivoted(pivot, rows, columns)
    check_arguments(pivot, KNOWN)
    fields, names = pivot.args["fields"], pivot.args.get("columns") or []
    if len(fields) != 1 or not isinstance(fields[0].this, exp.Column):
        raise refuse("a PIVOT of several columns", pivot)
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


def _unpivoted(pivot: exp.Expr, rows: str, columns: Sequence[KnownColumn]) -> exp.Query:
    check_arguments(pivot, "expressions fields alias unpivot include_nulls")
    fields, values = pivot.args["fields"], pivot.expressions
    alone = len(fields) == 1 and isinstance(fields[0].this, exp.Identifier)
    if not alone or len(values) != 1 or not isinstance(values[0], exp.Identifier):
        raise refuse("an UNPIVOT of several columns at once", pivot)
    seen = {c.shown.casefold(): c for c in columns if not c.hidden}
    named: list[tuple[KnownColumn, str]] = []
    for one in fields[0].expressions:
        given = _bare(one)
        plain = isinstance(given, exp.Column) and not given.table
        column = seen.get(given.name.casefold()) if plain else None
        if column is None:
            raise refuse("an UNPIVOT of what is no column", pivot)
        named.append((column, given.name if given is one else one.args["alias"].name))
    if len({column.type for column, _ in named}) != 1:
        raise refuse("an UNPIVOT of columns of several types", pivot)
    taken = {column.name for column, _ in named}
    keys = [_column(c) for c in seen.values() if c.name not in taken]
    parts = []
    for column, name in named:
        items = [
            *(key.copy() for key in keys),
            exp.Alias(this=exp.Literal.string(name), alias=fields[0].this.copy()),
            exp.Alias(this=_column(column), alias=values[0].copy()),
        ]
        part = exp.Select(expressions=items, from_=exp.From(this=named_table(rows)))
        if not pivot.args.get("include_nulls"):
            there = exp.Not(this=exp.Is(this=_column(column), expression=exp.Null()))
            part.set("where", exp.Where(this=there))
        parts.append(part)
    made: exp.Query = parts[0]
    for part in parts[1:]:
        made = exp.Union(this=made, expression=part, distinct=False)
    return made


def _column(column: KnownColumn) -> exp.Column:
    return exp.column(exp.to_identifier(column.shown, quoted=True))


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
