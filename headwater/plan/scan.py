"""Recognises plain scans, which need no Spark, from a query's tree:

    SELECT columns FROM t [alias] [WHERE predicate] [ORDER BY columns] [LIMIT n]
    SELECT sum(column) AS name FROM t [alias] WHERE column = constant [AND predicate]
    SELECT coalesce(sum(column), n) AS name FROM t [alias] WHERE column = constant [AND predicate]

with a predicate of `expression/predicate.py`; sums are of whole numbers, over rows with one value of some
column, because the sum of a whole table is better made by Spark. The list is closed: anything else is
left to Spark, which is the judge of what an expression means.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from headwater.expression.bind import Refusal, bind
from headwater.expression.nodes import BoundConstant
from headwater.expression.predicate import (
    Comparison,
    Predicate,
    conjuncts,
    predicate_of,
    slots_of,
    with_values,
)
from headwater.expression.terms import Terms
from headwater.sql.dialect import given, relation_of
from headwater.sql.literals import Literal
from headwater.sql.types import result_schema, result_type


@dataclass(frozen=True)
class OrderBy:
    """One sort column."""

    column: str
    descending: bool


@dataclass(frozen=True)
class Total:
    """The sum of the one column takes the place of the rows."""

    of_nothing: int | None  # the sum where no row has a value


@dataclass(frozen=True)
class ScanPlan:
    """A plain scan: which columns under which names, which rows, in which order, how many."""

    columns: tuple[tuple[str, str], ...]  # (column, name in the result)
    schema: pa.Schema  # of the result
    predicate: Predicate | None = None
    order: tuple[OrderBy, ...] = ()
    limit: int | None = None
    total: Total | None = None

    @cached_property
    def needed(self) -> frozenset[str]:
        """The columns of the rows that pass which are looked at."""
        return frozenset([column for column, _ in self.columns] + [by.column for by in self.order])

    def takes(self, values: Sequence[Literal], tree: exp.Expr | None) -> bool:
        """Whether the values of `$1`, … are only compared, as they came: others can take their places.

        Each stands at one place of the tree, where it is compared once: it might be taken as it came beside
        one column, and as another type beside a second.
        """
        places = [] if tree is None else list(tree.find_all(exp.Parameter))
        if len(places) != len(values) or not all(map(_is_compared_once, places)):
            return False
        exact = not any(pa.types.is_floating(value.type) for value in values)  # 1e999 is none
        return exact and sorted(slots_of(self.predicate)) == list(range(1, len(values) + 1))

    def with_values(self, values: Sequence[Literal]) -> ScanPlan:
        """The scan with other values of the same types."""
        assert self.predicate is not None
        return replace(self, predicate=with_values(self.predicate, [v.value for v in values]))


def _is_compared_once(place: exp.Expr) -> bool:
    """Not so what stands before BETWEEN or IN."""
    node = place
    while node.parent is not None and not isinstance(node.parent, exp.Between | exp.In):
        node = node.parent
    return node.parent is None or node.arg_key != "this"


def whole(schema: pa.Schema) -> ScanPlan:
    """All rows of a table."""
    return ScanPlan(tuple((name, name) for name in schema.names), result_schema(schema))


class _NotPlain(Exception):
    """Raised inside this module when the query is not a plain scan."""


# Columns and literals, compared and joined; what is computed, even of constants, is Spark's.
_PLAIN = frozenset(
    (exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In)
) | {exp.Between, exp.Is, exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Boolean, exp.Null}
_PLAIN |= {exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam}  # DATE '…', 5L, 1.5BD
_PLAIN |= {exp.Parameter}  # whose value is known when the scan is made
_CLAUSES = frozenset(("expressions", "from_", "where", "order", "limit"))
_OTHER_SOURCES = frozenset(("joins", "laterals", "with_", "with", "pivots", "operations"))


def plain_source(tree: exp.Expr | None) -> exp.Table | None:
    """The one table that a query may be a plain scan of, or None; cheap, before any schema is known."""
    table = _table_of(tree) if tree is not None and given(tree) <= _CLAUSES else None
    if table is None or relation_of(table) is None:
        return None
    alias = table.args.get("alias")
    return table if alias is None or given(alias) == {"this"} else None


def _table_of(tree: exp.Expr | None) -> exp.Table | None:
    """What stands in FROM of a SELECT, if that is a table by its name."""
    source = tree.args.get("from_") if type(tree) is exp.Select else None
    table = None if source is None or given(source) != {"this"} else source.this
    plain = type(table) is exp.Table and given(table) <= {"this", "db", "catalog", "alias"}
    return table if plain else None


def scan_plan(
    tree: exp.Expr | None,
    terms: Terms,
    schema: pa.Schema,
    hidden: frozenset[str] = frozenset(),
    versions: bool = False,
) -> ScanPlan | None:
    """The query as a plain scan of a table with this schema, or None; `versions`: it may name one."""
    table = plain_source(tree)
    if table is None or tree is None:
        return None
    relation = relation_of(table)
    if relation is not None and relation.version is not None and not versions:
        return None
    try:
        return _Reader(table, schema, hidden, terms).plan(tree)
    except _NotPlain:
        return None


def equalities(tree: exp.Expr | None, schema: pa.Schema, terms: Terms) -> dict[str, Comparison]:
    """What WHERE asks columns of the one table in FROM to be equal to, whatever else the query does."""
    table = _table_of(tree)
    where = None if tree is None else tree.args.get("where")
    if tree is None or table is None or where is None or given(tree) & _OTHER_SOURCES:
        return {}
    reader = _Reader(table, schema, frozenset(), terms)
    found: dict[str, Comparison] = {}
    for part in _conjuncts_of(where.this):
        with contextlib.suppress(_NotPlain):
            predicate = reader.predicate(part)
            if isinstance(predicate, Comparison) and predicate.op == "=":
                found[predicate.column] = predicate
    return found


def _conjuncts_of(condition: exp.Expr) -> Iterator[exp.Expr]:
    while type(condition) is exp.Paren:
        condition = condition.this
    if type(condition) is exp.And:
        yield from _conjuncts_of(condition.this)
        yield from _conjuncts_of(condition.expression)
    else:
        yield condition


def _is_point(predicate: Predicate | None) -> bool:
    """Whether all rows that are asked for have one value of a column."""
    return any(isinstance(p, Comparison) and p.op == "=" for p in conjuncts(predicate))


class _Reader:
    """Leaves by _NotPlain at the first thing that no plain scan has."""

    def __init__(
        self, table: exp.Table, schema: pa.Schema, hidden: frozenset[str], terms: Terms
    ) -> None:
        self.qualifier = table.alias_or_name.lower()
        self.schema = schema
        self.hidden = hidden
        self.terms = terms
        self.fields = {f.name.lower(): f for f in schema}

    def plan(self, tree: exp.Expr) -> ScanPlan:
        found = self._total(tree.expressions)
        columns, total = (self._columns(tree), None) if found is None else found
        where = tree.args.get("where")
        predicate = None if where is None else self.predicate(where.this)
        if total is not None:
            rest = tree.args.get("order") or tree.args.get("limit")
            self._need(rest is None and _is_point(predicate))
            [(_, name)] = columns
            return ScanPlan(columns, pa.schema([(name, pa.int64())]), predicate, total=total)
        order = tree.args.get("order")
        by = () if order is None else tuple(self._order(o, columns) for o in order.expressions)
        self._need(order is None or given(order) == {"expressions"})
        limit = tree.args.get("limit")
        most = None if limit is None else self._limit(limit)
        return ScanPlan(columns, self._result(columns), predicate, by, most)

    def _result(self, columns: tuple[tuple[str, str], ...]) -> pa.Schema:
        types = ((name, self.fields[column.lower()].type) for column, name in columns)
        return pa.schema([(name, result_type(type_)) for name, type_ in types])

    def _need(self, condition: bool) -> None:
        if not condition:
            raise _NotPlain

    def _total(self, items: list[exp.Expr]) -> tuple[tuple[tuple[str, str], ...], Total] | None:
        """The select list, if it is one sum of whole numbers under a name."""
        if len(items) != 1 or type(items[0]) is not exp.Alias:
            return None
        value, of_nothing = items[0].this, None
        if type(value) is exp.Coalesce:
            of_nothing = self._default(value)
            value = value.this
            self._need(type(value) is exp.Sum)
        if type(value) is not exp.Sum:
            return None
        taken = self.terms.functions & {"sum", "coalesce", "nvl", "ifnull"}
        self._need(not taken and given(value) == {"this"})
        column, _ = self._column(value.this)
        self._need(pa.types.is_signed_integer(self.fields[column.lower()].type))
        return ((column, items[0].alias),), Total(of_nothing)

    def _default(self, coalesce: exp.Coalesce) -> int:
        self._need(given(coalesce) <= {"this", "expressions", "coalesce"})
        self._need(len(coalesce.expressions) == 1)
        return self._integer(coalesce.expressions[0])

    def _integer(self, node: exp.Expr) -> int:
        found = bind(node, lambda _: None, self.terms)
        if not isinstance(found, BoundConstant) or not isinstance(found.value, int):
            raise _NotPlain
        self._need(pa.types.is_signed_integer(found.type))
        return found.value

    def _columns(self, tree: exp.Expr) -> tuple[tuple[str, str], ...]:
        return tuple(column for item in tree.expressions for column in self._item(item))

    def _item(self, item: exp.Expr) -> list[tuple[str, str]]:
        if type(item) is exp.Star:
            self._need(not given(item))
            return [(f.name, f.name) for f in self.schema if f.name not in self.hidden]
        if type(item) is exp.Alias:
            return [(self._column(item.this)[0], item.alias)]
        return [self._column(item)]

    def _column(self, node: exp.Expr) -> tuple[str, str]:
        """A column's name, and how it was written."""
        field = self._field(node) if type(node) is exp.Column else None
        if field is None:
            raise _NotPlain
        return field.name, node.name

    def _field(self, column: exp.Expr) -> pa.Field | None:
        plain = given(column) <= {"this", "table"} and isinstance(column.this, exp.Identifier)
        table = column.args.get("table")
        own = table is None or table.name.lower() == self.qualifier
        return self.fields.get(column.name.lower()) if plain and own else None

    def predicate(self, condition: exp.Expr) -> Predicate:
        """A condition as the storage asks it."""
        self._need(all(type(node) in _PLAIN for node in condition.walk()))
        bound = bind(condition, self._resolve, self.terms)
        found = None if isinstance(bound, Refusal) else predicate_of(bound)
        if found is None:
            raise _NotPlain
        return found

    def _resolve(self, column: exp.Column) -> tuple[str, pa.DataType] | None:
        field = self._field(column)
        return None if field is None else (field.name, field.type)

    def _order(self, by: exp.Expr, selected: tuple[tuple[str, str], ...]) -> OrderBy:
        column, written = self._column(by.this)
        # A name in ORDER BY means a column of the result first: aliases are Spark's to resolve.
        same_name = [c for c, name in selected if name.lower() == written.lower()]
        self._need(all(c == column for c in same_name))
        type_ = self.fields[column.lower()].type
        self._need(not (pa.types.is_floating(type_) or pa.types.is_nested(type_)))
        descending = bool(by.args.get("desc"))
        first = bool(by.args.get("nulls_first"))
        self._need(first is not descending and given(by) <= {"this", "desc", "nulls_first"})
        return OrderBy(column, descending)

    def _limit(self, limit: exp.Expr) -> int:
        count = limit.args.get("expression")
        if isinstance(count, exp.Parameter) and given(limit) == {"expression"}:
            found = self._integer(count)
        elif not isinstance(count, exp.Literal) or given(limit) != {"expression"}:
            raise _NotPlain
        else:
            self._need(not count.is_string and count.name.isdecimal() and count.name.isascii())
            found = int(count.name)
        self._need(0 <= found < 1 << 31)  # Spark refuses what is no INT
        return found
