"""Recognises plain scans, which need no Spark:

    SELECT columns FROM t [alias] [WHERE predicate] [ORDER BY columns] [LIMIT n]
    SELECT sum(column) AS name FROM t [alias] WHERE column = constant [AND predicate]
    SELECT coalesce(sum(column), n) AS name FROM t [alias] WHERE column = constant [AND predicate]

with a predicate of `plan/predicate.py`; sums are of whole numbers, over rows with one value of some
column, because the sum of a whole table is better made by Spark. The grammar is closed: anything else is
left to Spark, which is the judge of what an expression means.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.errors import SqlSyntaxError
from headwater.plan.predicate import (
    MIRRORED,
    And,
    Comparison,
    Constant,
    IsNull,
    Not,
    Or,
    Predicate,
    comparable,
    conjuncts,
)
from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind
from headwater.sql.literals import Literal, take_literal

SYMBOLS = {"=": "=", "==": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
LARGEST_LIST = 1000
TOTALS = ("SUM", "COALESCE")  # functions that a plain scan may begin with


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
    predicate: Predicate | None
    order: tuple[OrderBy, ...]
    limit: int | None
    total: Total | None = None


class _NotPlain(Exception):
    """Raised inside this module when the query is not a plain scan."""


def plain_source(text: str) -> str | None:
    """The one table that a query may be a plain scan of, or None; cheap, before any schema is known."""
    cursor = Cursor(text)
    if not cursor.accept("SELECT") or cursor.at_any(("DISTINCT", "ALL")):
        return None
    totals = cursor.at_any(TOTALS)
    while not cursor.at_end and not cursor.at("FROM"):
        token = cursor.take()
        if token.text in ("[", "{") or token.upper in ("SELECT", "CASE"):
            return None
        if token.text == "(" and not totals:
            return None
    if not cursor.accept("FROM") or not cursor.peek().is_name:
        return None
    try:
        return str(cursor.path())
    except SqlSyntaxError:  # `FROM VALUES …`
        return None


def scan_plan(
    text: str, schema: pa.Schema, hidden: frozenset[str] = frozenset(), time_zone: str = "UTC"
) -> ScanPlan | None:
    """The query as a plain scan of a table with this schema, or None."""
    try:
        return _Reader(text, schema, hidden, time_zone).query()
    except (_NotPlain, SqlSyntaxError):  # `FROM a JOIN b`: JOIN is no alias
        return None


def _is_point(predicate: Predicate | None) -> bool:
    """Whether all rows that are asked for have one value of a column."""
    return any(isinstance(p, Comparison) and p.op == "=" for p in conjuncts(predicate))


class _Reader:
    """Reads the closed grammar; leaves by _NotPlain at the first thing that is not in it."""

    def __init__(
        self, text: str, schema: pa.Schema, hidden: frozenset[str], time_zone: str
    ) -> None:
        self.cursor = Cursor(text)
        self.schema = schema
        self.hidden = hidden
        self.time_zone = time_zone
        self.fields = {f.name.lower(): f for f in schema}
        self.qualifiers: set[str] = set()

    def query(self) -> ScanPlan:
        self._need(self.cursor.accept("SELECT"))
        start = self.cursor.index
        self._skip_to_from()
        self._source()
        after_source = self.cursor.index
        self.cursor.index = start
        found = self._total()
        columns, total = (self._columns(), None) if found is None else found
        self.cursor.index = after_source
        predicate = self._disjunction() if self.cursor.accept("WHERE") else None
        if total is not None:
            self._need(self.cursor.at_end and _is_point(predicate))
            return ScanPlan(columns, predicate, (), None, total)
        order = self._order(columns) if self.cursor.accept("ORDER", "BY") else ()
        limit = self._limit() if self.cursor.accept("LIMIT") else None
        self._need(self.cursor.at_end)
        return ScanPlan(columns, predicate, order, limit)

    def _need(self, condition: bool) -> None:
        if not condition:
            raise _NotPlain

    def _skip_to_from(self) -> None:
        while not self.cursor.at("FROM"):
            self._need(not self.cursor.at_end)
            self.cursor.take()
        self.cursor.take()

    def _source(self) -> None:
        self._need(self.cursor.peek().is_name)
        name = self.cursor.path()
        stops = ("WHERE", "ORDER", "LIMIT")
        if self.cursor.accept("AS"):
            self._need(self.cursor.peek().is_name)
            self.qualifiers.add(self.cursor.name().key)
        elif self.cursor.peek().is_name and not self.cursor.at_any(stops):
            self.qualifiers.add(self.cursor.name().key)
        else:
            self.qualifiers.add(name.key.rpartition(".")[2])
        self._need(self.cursor.at_end or self.cursor.at_any(stops))

    def _total(self) -> tuple[tuple[tuple[str, str], ...], Total] | None:
        """The select list, if it is one sum of whole numbers under a name."""
        start = self.cursor.index
        defaults = self.cursor.accept("COALESCE", "(")
        if not self.cursor.accept("SUM", "("):
            self._need(not defaults)
            self.cursor.index = start
            return None
        column, _ = self._column()
        self._need(pa.types.is_signed_integer(self.fields[column.lower()].type))
        self._need(self.cursor.accept(")"))
        of_nothing: int | None = None
        if defaults:
            self._need(self.cursor.accept(","))
            literal = self._literal()
            self._need(isinstance(literal.value, int) and pa.types.is_signed_integer(literal.type))
            self._need(self.cursor.accept(")"))
            assert isinstance(literal.value, int)
            of_nothing = literal.value
        self._need(self.cursor.accept("AS") and self.cursor.peek().is_name)
        name = str(self.cursor.name())
        self._need(self.cursor.at("FROM"))
        return ((column, name),), Total(of_nothing)

    def _columns(self) -> tuple[tuple[str, str], ...]:
        columns: list[tuple[str, str]] = []
        while True:
            columns += self._item()
            if not self.cursor.accept(","):
                break
        self._need(self.cursor.at("FROM"))
        return tuple(columns)

    def _item(self) -> list[tuple[str, str]]:
        if self.cursor.accept("*"):
            return [(f.name, f.name) for f in self.schema if f.name not in self.hidden]
        column, written = self._column()
        if self.cursor.accept("AS") or (self.cursor.peek().is_name and not self.cursor.at("FROM")):
            self._need(self.cursor.peek().is_name)
            return [(column, str(self.cursor.name()))]
        return [(column, written)]

    def _column(self) -> tuple[str, str]:
        """A column's name, and how it was written."""
        self._need(self.cursor.peek().is_name)
        name = self.cursor.name()
        if self.cursor.at("."):
            self._need(name.key in self.qualifiers)
            self.cursor.take()
            self._need(self.cursor.peek().is_name)
            name = self.cursor.name()
        self._need(name.key in self.fields and not self.cursor.at_any((".", "(", "[", ":")))
        return self.fields[name.key].name, str(name)

    def _disjunction(self) -> Predicate:
        parts = [self._conjunction()]
        while self.cursor.accept("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self) -> Predicate:
        parts = [self._negation()]
        while self.cursor.accept("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self) -> Predicate:
        if self.cursor.accept("NOT"):
            return Not(self._negation())
        if self.cursor.accept("("):
            inner = self._disjunction()
            self._need(self.cursor.accept(")"))
            return inner
        return self._simple()

    def _simple(self) -> Predicate:
        literal = take_literal(self.cursor, self.time_zone)
        if literal is not None:
            op = self._operator()
            column, _ = self._column()
            return self._comparison(column, MIRRORED[op], literal)
        column, _ = self._column()
        if self.cursor.accept("IS"):
            negated = self.cursor.accept("NOT")
            self._need(self.cursor.accept("NULL"))
            return Not(IsNull(column)) if negated else IsNull(column)
        negated = self.cursor.accept("NOT")
        if self.cursor.accept("BETWEEN"):
            found: Predicate = self._between(column)
        elif self.cursor.accept("IN"):
            found = self._in_list(column)
        else:
            self._need(not negated)
            return self._comparison(column, self._operator(), self._literal())
        return Not(found) if negated else found

    def _operator(self) -> str:
        token = self.cursor.peek()
        self._need(token.kind is Kind.SYMBOL and token.text in SYMBOLS)
        return SYMBOLS[self.cursor.take().text]

    def _literal(self) -> Literal:
        literal = take_literal(self.cursor, self.time_zone)
        if literal is None:
            raise _NotPlain
        return literal

    def _between(self, column: str) -> Predicate:
        low = self._comparison(column, ">=", self._literal())
        self._need(self.cursor.accept("AND"))
        return And((low, self._comparison(column, "<=", self._literal())))

    def _in_list(self, column: str) -> Predicate:
        self._need(self.cursor.accept("("))
        parts = [self._comparison(column, "=", self._literal())]
        while self.cursor.accept(","):
            parts.append(self._comparison(column, "=", self._literal()))
        self._need(self.cursor.accept(")") and len(parts) <= LARGEST_LIST)
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def _comparison(self, column: str, op: str, literal: Literal) -> Predicate:
        # Arithmetic after the constant (`a > 1 + 2`) ends the plain grammar.
        token = self.cursor.peek()
        goes_on = token.kind is Kind.SYMBOL and token.text not in (")", ",", ";")
        self._need(not goes_on)
        if literal.value is None:
            return Constant(None)
        type_ = self.fields[column.lower()].type
        value = comparable(literal.value, literal.type, type_)
        if value is None:
            raise _NotPlain
        return Comparison(column, op, value, type_)

    def _order(self, selected: tuple[tuple[str, str], ...]) -> tuple[OrderBy, ...]:
        order: list[OrderBy] = []
        while True:
            column, written = self._column()
            # A name in ORDER BY means a column of the result first: aliases are Spark's to resolve.
            same_name = [c for c, name in selected if name.lower() == written.lower()]
            self._need(all(c == column for c in same_name))
            type_ = self.fields[column.lower()].type
            self._need(not (pa.types.is_floating(type_) or pa.types.is_nested(type_)))
            descending = self.cursor.accept("DESC")
            if not descending:
                self.cursor.accept("ASC")
            self._need(not self.cursor.at("NULLS"))
            order.append(OrderBy(column, descending))
            if not self.cursor.accept(","):
                return tuple(order)

    def _limit(self) -> int:
        token = self.cursor.peek()
        self._need(token.kind is Kind.NUMBER and token.text.isdigit())
        return int(self.cursor.take().text)
