"""What binds a tree: the walk over its nodes, and what every node must satisfy.

Owns: the checks that no rule may forget. A node counts only with the arguments that its rule knows; a tree
that Spark's precedences would not give (`a = b < c`) and a call of a name that a user function has taken
are refused; a TIMESTAMP goes to functions of the session's time zone only where that is UTC. Must never:
know a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.expression.coercion import DATE, STRING
from headwater.expression.functions.times import ZONE_FREE
from headwater.expression.nodes import Bound, BoundConstant
from headwater.expression.table import call, spanned
from headwater.expression.terms import Terms
from headwater.sql import literals
from headwater.sql.dialect import given
from headwater.sql.spans import SPAN
from headwater.sql.text import Span
from headwater.sql.types import SIMPLE, TIMESTAMP

COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>"))
_WORDS = {SIMPLE[name]: name for name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")}
Resolve = Callable[[exp.Column], tuple[str, pa.DataType] | None]


@dataclass(frozen=True)
class Refusal:
    """Why an expression is left to Spark, and at which part of it."""

    reason: str
    span: Span | None = None


class NotBound(Exception):
    """A part is not on the whitelist."""

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, span)


def called(node: exp.Expr) -> str:
    """What people call a function, or a part of the language."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


class Binder:
    """Nodes → bound expressions, for one set of columns and terms."""

    def __init__(self, resolve: Resolve, terms: Terms) -> None:
        self.resolve = resolve
        self.terms = terms
        self._known: dict[int, Bound] = {}  # by the identity of nodes: each is read once

    def bound(self, node: exp.Expr) -> Bound:
        """The bound expression of a node; Refused if it is not on the whitelist."""
        known = self._known.get(id(node))
        if known is not None:
            return known
        rule = RULES.get(type(node))
        if rule is None:
            raise NotBound(f"{called(node)} is evaluated by Spark", span_of(node))
        self.check(node, rule)
        found = rule.read(self, node)
        if found is None:
            raise NotBound(f"{called(node)} of these types is evaluated by Spark", span_of(node))
        found = spanned(found, span_of(node))
        self._known[id(node)] = found
        return found

    def check(self, node: exp.Expr, rule: Rule) -> None:
        """Refuses a node that says what the rule does not know, or calls a user's function."""
        if not self.terms.functions.isdisjoint(rule.names):
            raise NotBound(f"{node.key} may be a user's function", span_of(node))
        if _stray_arguments(node, rule):
            raise NotBound(f"this form of {node.key} is evaluated by Spark", span_of(node))
        if not _shaped(node, rule):
            raise NotBound("Spark may group the operands otherwise", span_of(node))

    def argument(self, node: exp.Expr, name: str) -> Bound:
        """A node's argument."""
        child = node.args.get(name)
        if not isinstance(child, exp.Expr):
            raise NotBound(f"{node.key} has no {name}", span_of(node))
        return self.bound(child)

    def arguments(self, node: exp.Expr) -> list[Bound]:
        """A node's list of expressions."""
        return [self.bound(child) for child in node.expressions]

    def call(self, name: str, *arguments: Bound, **parameters: Any) -> Bound | None:
        """A call by the table of functions, where dates mean midnights of the session's zone."""
        if name in COMPARISONS:
            arguments = self._dated(arguments)
        if self.terms.time_zone == "UTC":  # a moment's day and hour are those of UTC
            return call(name, *arguments, **parameters)
        zoned = any(argument.type == TIMESTAMP for argument in arguments)
        if zoned and name in ZONE_FREE:
            arguments = tuple(map(self._in_zone, arguments))
        found = call(name, *arguments, **parameters)
        gives = found is not None and found.type == TIMESTAMP
        return None if (zoned or gives) and name not in ZONE_FREE else found

    def _dated(self, pair: tuple[Bound, ...]) -> tuple[Bound, ...]:
        """A text beside a date or a time is one, if it is written plainly."""
        words = [_WORDS[argument.type] for argument in pair if argument.type in _WORDS]
        if len(words) != 1:
            return pair
        return tuple(self._read(argument, words[0]) for argument in pair)

    def _read(self, argument: Bound, word: str) -> Bound:
        if argument.type != STRING or not isinstance(argument, BoundConstant):
            return argument
        found = literals.typed(word, argument.value or "", self.terms.time_zone)
        if found is None:
            raise NotBound(f"Spark reads this text as {word}", argument.span)
        return BoundConstant(found.value, found.type, span=argument.span)

    def _in_zone(self, argument: Bound) -> Bound:
        if argument.type != DATE or not isinstance(argument, BoundConstant):
            return argument
        value = argument.value
        found = value and literals.timestamp(value.isoformat(), self.terms.time_zone)
        if value is not None and found is None:
            raise NotBound("a day of this zone is evaluated by Spark", argument.span)
        return BoundConstant(found, TIMESTAMP, span=argument.span)


def span_of(node: exp.Expr) -> Span | None:
    """Where a node stands in the text; None for one that sqlglot made up."""
    known: Span | None = node.meta.get(SPAN)
    return known


Read = Callable[[Binder, exp.Expr], Bound | None]


@dataclass(frozen=True)
class Rule:
    """How a kind of node is read: its known arguments, how it binds, and the names it is called by."""

    read: Read
    arguments: frozenset[str]
    level: int
    names: frozenset[str]


# How tightly Spark's grammar binds: a node's operands without brackets bind tighter than it does.
PRIMARY, UNARY, PRODUCT, SUM, BITS, COMPARISON, PREDICATE, NOT, AND, OR = range(10)
_LEFT_ASSOCIATIVE = (PRODUCT, SUM, AND, OR)
# sqlglot's own notes on a node; they carry nothing that the text says.
NOTES = frozenset({"safe", "typed", "coalesce", "ignore_nulls"})


def _stray_arguments(node: exp.Expr, rule: Rule) -> bool:
    """Whether the node carries an argument that is not understood here."""
    return not given(node) <= rule.arguments


def _level(node: exp.Expr | None) -> int:
    rule = None if node is None else RULES.get(type(node))
    return PRIMARY if rule is None else rule.level


def _shaped(node: exp.Expr, rule: Rule) -> bool:
    """Whether the node's operands bind tighter than it does, so that Spark reads the same tree."""
    if rule.level == PRIMARY or type(node) is exp.Escape:  # whose rule looks itself
        return True
    if rule.level in (COMPARISON, PREDICATE):
        names = ("this", "expression", "low", "high")
        return all(_level(node.args.get(name)) < COMPARISON for name in names)
    equal_allowed = rule.level in (*_LEFT_ASSOCIATIVE, UNARY, NOT)
    left, right = _level(node.args.get("this")), _level(node.args.get("expression"))
    return (left < rule.level or (equal_allowed and left == rule.level)) and right < rule.level


RULES: dict[type[exp.Expr], Rule] = {}  # `rules` fills it
