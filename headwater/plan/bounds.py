"""Ranges of a table's time column that a query's WHERE leaves, for pruning before Spark runs.

Only the WHERE that stands in the same SELECT as the table counts. A row that it takes has no NULL in a
column that it compares, so pruning by it is right under any kind of join. VALID is the time column. What
is not understood prunes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.expression.bind import Refusal, bind
from headwater.expression.predicate import (
    EVERYTHING,
    And,
    Constant,
    Or,
    Predicate,
    Ranges,
    predicate_of,
    ranges_of,
)
from headwater.expression.terms import Terms

ANYTHING = Constant(True)


def time_ranges(
    table: exp.Table, time: tuple[str, pa.DataType], tick: Callable[[Any], int], terms: Terms
) -> Ranges:
    """What the query says of the time of the rows of one table reference."""
    select = table.find_ancestor(exp.Select)
    where = select.args.get("where") if select is not None else None
    if select is None or where is None or not _direct(table, select):
        return EVERYTHING
    alias, only = table.alias_or_name.casefold(), sum(1 for _ in _sources(select)) == 1
    name = time[0].casefold()

    def resolve(column: exp.Column) -> tuple[str, pa.DataType] | None:
        own = column.table.casefold() == alias if column.table else only
        plain = own and not column.args.get("db") and column.name.casefold() == name
        return time if plain else None

    try:
        asked = _asked(_without_valid(where.this, alias, time[0]), resolve, terms)
    except RecursionError:
        return EVERYTHING
    return ranges_of(asked, time[0], tick)


def _without_valid(condition: exp.Expr, alias: str, time: str) -> exp.Expr:
    """The condition with the table's time for its VALID, and BETWEEN for OVERLAPS PERIOD."""

    def is_valid(node: exp.Expr) -> bool:
        named = isinstance(node, exp.Anonymous) and node.name.casefold() == "valid"
        return named and [part.name.casefold() for part in node.expressions] == [alias]

    def plain(node: exp.Expr) -> exp.Expr:
        if is_valid(node):
            return exp.column(time, table=alias)
        if not isinstance(node, exp.Overlaps) or not is_valid(node.this):
            return node
        low, high = node.expression.expressions
        return exp.Between(this=exp.column(time, table=alias), low=low.copy(), high=high.copy())

    has_valid = any(map(is_valid, condition.find_all(exp.Anonymous)))
    return condition.transform(plain) if has_valid else condition


def _asked(node: exp.Expr, resolve: Any, terms: Terms) -> Predicate:
    """The condition, with parts of AND and OR that are not understood as if they took any row."""
    if isinstance(node, exp.Paren):
        return _asked(node.this, resolve, terms)
    if isinstance(node, exp.And | exp.Or):
        kind = And if isinstance(node, exp.And) else Or
        sides = (node.this, node.expression)
        return kind(tuple(_asked(side, resolve, terms) for side in sides))
    bound = bind(node, resolve, terms)
    found = None if isinstance(bound, Refusal) else predicate_of(bound)
    return ANYTHING if found is None else found


def _direct(table: exp.Table, select: exp.Select) -> bool:
    parent = table.parent
    return isinstance(parent, (exp.From, exp.Join)) and parent.parent is select


def _sources(select: exp.Select) -> Iterator[exp.Expression]:
    source = select.args.get("from_") or select.args.get("from")
    if source is not None:
        yield source.this
    for join in select.args.get("joins") or ():
        yield join.this
    yield from select.args.get("laterals") or ()
