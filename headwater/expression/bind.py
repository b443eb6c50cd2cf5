"""sqlglot's trees → bound expressions, or a refusal with its reason.

Owns: which nodes of a tree are read, and how; the only module of this folder that knows sqlglot. A node
counts only with the arguments that are known here; a tree that Spark's precedences would not give
(`a = b < c`) and a call of a name that a user function has taken are refused. Must never: bind what is
not in the table of functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.expression.coercion import BOOLEAN, DATE, STRING, supported
from headwater.expression.compile import Compiled, compiled, compiled_filter
from headwater.expression.functions import logic
from headwater.expression.nodes import INTERVAL, NULL, Bound, BoundColumn, BoundConstant
from headwater.expression.table import call, spanned
from headwater.expression.terms import PLAIN, Terms
from headwater.sql import literals
from headwater.sql.text import Span
from headwater.sql.types import SIMPLE, TIMESTAMP

LONGEST_CHAIN = 1000  # parts of AND or OR
Resolve = Callable[[exp.Column], tuple[str, pa.DataType] | None]


@dataclass(frozen=True)
class Refusal:
    """Why an expression is left to Spark, and at which part of it."""

    reason: str
    span: Span | None = None


def bind(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Bound | Refusal:
    """The bound expression, or why there is none."""
    try:
        return Binder(resolve, terms).bound(node)
    except Refused as refused:
        return refused.refusal
    except RecursionError:
        return Refusal("it is nested too deeply")


def compile_expression(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Compiled | None:
    """The expression in line; None if anything in it is not on the whitelist."""
    return _compiled(compiled, bind(node, resolve, terms))


def compile_predicate(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Compiled | None:
    """The condition of a filter in line: as Spark's, a conjunct is not asked where one before failed."""
    return _compiled(compiled_filter, bind(node, resolve, terms))


def _compiled(make: Callable[[Bound], Compiled | None], found: Bound | Refusal) -> Compiled | None:
    try:
        return None if isinstance(found, Refusal) else make(found)
    except RecursionError:
        return None


class Refused(Exception):
    """A part is not on the whitelist."""

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, span)


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
            raise Refused(f"{node.key} is evaluated by Spark", span_of(node))
        self.check(node, rule)
        found = rule.read(self, node)
        if found is None:
            raise Refused(f"{node.key} of these types is evaluated by Spark", span_of(node))
        found = spanned(found, span_of(node))
        self._known[id(node)] = found
        return found

    def check(self, node: exp.Expr, rule: Rule) -> None:
        """Refuses a node that says what the rule does not know, or calls a user's function."""
        if not self.terms.functions.isdisjoint(rule.names):
            raise Refused(f"{node.key} may be a user's function", span_of(node))
        if _stray_arguments(node, rule):
            raise Refused(f"this form of {node.key} is evaluated by Spark", span_of(node))
        if not _shaped(node, rule):
            raise Refused("Spark may group the operands otherwise", span_of(node))

    def argument(self, node: exp.Expr, name: str) -> Bound:
        """A node's argument."""
        child = node.args.get(name)
        if not isinstance(child, exp.Expr):
            raise Refused(f"{node.key} has no {name}", span_of(node))
        return self.bound(child)

    def arguments(self, node: exp.Expr) -> list[Bound]:
        """A node's list of expressions."""
        return [self.bound(child) for child in node.expressions]

    def call(self, name: str, *arguments: Bound, **parameters: Any) -> Bound | None:
        """A call by the table of functions, where dates mean midnights of the session's zone."""
        if not self.terms.is_utc and any(argument.type == TIMESTAMP for argument in arguments):
            arguments = tuple(map(self._in_zone, arguments))
        return call(name, *arguments, **parameters)

    def _in_zone(self, argument: Bound) -> Bound:
        if argument.type != DATE or not isinstance(argument, BoundConstant):
            return argument
        value = argument.value
        found = value and literals.timestamp(value.isoformat(), self.terms.time_zone)
        if value is not None and found is None:
            raise Refused("a day of this zone is evaluated by Spark", argument.span)
        return BoundConstant(found, TIMESTAMP, span=argument.span)


def span_of(node: exp.Expr) -> Span | None:
    """Where a node stands in the text, if its reader noted that; function names are no whole nodes."""
    known = node.meta.get("span")
    if isinstance(known, Span):
        return known
    parts = node.parts if isinstance(node, exp.Column) else [node]
    if not isinstance(node, (exp.Column, exp.Literal)):
        return None
    if any("start" not in part.meta for part in parts):
        return None
    return Span(parts[0].meta["start"], parts[-1].meta["end"] + 1)


Read = Callable[[Binder, exp.Expr], Bound | None]


@dataclass(frozen=True)
class Rule:
    """How a kind of node is read: its known arguments, how it binds, and the names it is called by."""

    read: Read
    arguments: frozenset[str]
    level: int
    names: frozenset[str]


# How tightly Spark's grammar binds: a node's operands without brackets bind tighter than it does.
PRIMARY, UNARY, PRODUCT, SUM, COMPARISON, PREDICATE, NOT, AND, OR = range(9)
_LEFT_ASSOCIATIVE = (PRODUCT, SUM, AND, OR)
# sqlglot's own notes on a node; they carry nothing that the text says.
_NOTES = frozenset({"safe", "typed", "coalesce", "ignore_nulls"})


def _stray_arguments(node: exp.Expr, rule: Rule) -> bool:
    """Whether the node carries an argument that is not understood here."""
    given = {name for name, value in node.args.items() if value not in (None, False, [])}
    return not given <= rule.arguments


def _level(node: exp.Expr | None) -> int:
    rule = None if node is None else RULES.get(type(node))
    return PRIMARY if rule is None else rule.level


def _shaped(node: exp.Expr, rule: Rule) -> bool:
    """Whether the node's operands bind tighter than it does, so that Spark reads the same tree."""
    if rule.level == PRIMARY:
        return True
    if rule.level in (COMPARISON, PREDICATE):
        names = ("this", "expression", "low", "high")
        return all(_level(node.args.get(name)) < COMPARISON for name in names)
    equal_allowed = rule.level in (*_LEFT_ASSOCIATIVE, UNARY, NOT)
    left, right = _level(node.args.get("this")), _level(node.args.get("expression"))
    return (left < rule.level or (equal_allowed and left == rule.level)) and right < rule.level


def _column(binder: Binder, node: exp.Expr) -> Bound | None:
    found = binder.resolve(node) if isinstance(node, exp.Column) else None
    return None if found is None or not supported(found[1]) else BoundColumn(*found)


def _literal(_: Binder, node: exp.Expr) -> Bound | None:
    if node.args.get("is_string"):
        return BoundConstant(node.this, STRING)
    return _number(node.this)


def _number(text: str, sign: str = "") -> Bound | None:
    found = literals.number(text, sign)
    if found is None:
        return None
    whole = isinstance(found.value, int) and text.isdecimal()
    return BoundConstant(found.value, found.type, len(str(abs(found.value))) if whole else None)  # type: ignore[arg-type]


def _negative(binder: Binder, node: exp.Expr) -> Bound | None:
    inner = node.this
    if type(inner) is exp.Literal and not inner.args.get("is_string"):
        return _number(inner.this, "-")
    return binder.call("negative", binder.bound(inner))


def _difference(binder: Binder, node: exp.Expr) -> Bound | None:
    left, right = binder.argument(node, "this"), binder.argument(node, "expression")
    if left.type == TIMESTAMP and not binder.terms.is_utc:
        return None
    return binder.call("-", left, right)


def _interval(_: Binder, node: exp.Expr) -> Bound | None:
    value, unit = node.this, node.args.get("unit")
    if type(value) is not exp.Literal or type(unit) is not exp.Var:
        return None
    found = literals.interval(value.this, unit.name)
    return None if found is None else BoundConstant(found, INTERVAL)


def _pair(name: str) -> Read:
    return lambda binder, node: binder.call(
        name, binder.argument(node, "this"), binder.argument(node, "expression")
    )


def _chain(name: str) -> Read:
    """A chain of AND, or of OR, of any length without a stack of the same height."""

    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        kind, rule, parts = type(node), RULES[type(node)], []
        while type(node) is kind:
            binder.check(node, rule)
            parts.append(node.expression)
            node = node.this
        parts.append(node)
        if len(parts) > LONGEST_CHAIN:
            raise Refused(f"{name} has more than {LONGEST_CHAIN} parts")
        return binder.call(name, *(binder.bound(part) for part in reversed(parts)))

    return read


def _single(name: str) -> Read:
    return lambda binder, node: binder.call(name, binder.argument(node, "this"))


def _listed(name: str) -> Read:
    """`this`, if the node has one, and the list of expressions."""

    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        first = [binder.argument(node, "this")] if node.args.get("this") else []
        return binder.call(name, *first, *binder.arguments(node))

    return read


def _distinct(binder: Binder, node: exp.Expr) -> Bound | None:
    same = _pair("<=>")(binder, node)
    return None if same is None else binder.call("not", same)


def _is(binder: Binder, node: exp.Expr) -> Bound | None:
    asked = node.expression
    if type(asked) is exp.Null:
        return binder.call("is null", binder.argument(node, "this"))
    if type(asked) is exp.Boolean:
        return logic.is_truth(binder.argument(node, "this"), bool(asked.this))
    return None


def _in(binder: Binder, node: exp.Expr) -> Bound | None:
    choices = binder.arguments(node)
    return binder.call("in", binder.argument(node, "this"), *choices) if choices else None


def _between(binder: Binder, node: exp.Expr) -> Bound | None:
    operand, low, high = (binder.argument(node, name) for name in ("this", "low", "high"))
    above, below = binder.call(">=", operand, low), binder.call("<=", operand, high)
    return None if above is None or below is None else binder.call("and", above, below)


def _case(binder: Binder, node: exp.Expr) -> Bound | None:
    asked = binder.argument(node, "this") if node.args.get("this") else None
    parts: list[Bound] = []
    for branch in node.args["ifs"]:
        condition: Bound | None = binder.argument(branch, "this")
        if asked is not None and condition is not None:
            condition = binder.call("=", asked, condition)
        if condition is None:
            return None
        parts += [condition, binder.argument(branch, "true")]
    nothing = BoundConstant(None, NULL)
    parts.append(binder.argument(node, "default") if node.args.get("default") else nothing)
    return binder.call("case", *parts)


def _if(binder: Binder, node: exp.Expr) -> Bound | None:
    return binder.call("case", *(binder.argument(node, name) for name in ("this", "true", "false")))


def _cast(binder: Binder, node: exp.Expr) -> Bound | None:
    if node.args.get("safe"):
        return None  # TRY_CAST
    type_ = _type(node.args["to"])
    if type_ is None:
        return None
    operand = binder.argument(node, "this")
    if isinstance(operand, BoundConstant) and operand.type == STRING and type_ != STRING:
        return _typed_text(operand.value, type_, binder.terms.time_zone)
    if TIMESTAMP in (type_, operand.type) and not binder.terms.is_utc:
        return None
    return binder.call("cast", operand, to=type_)


def _typed_text(value: str | None, type_: pa.DataType, time_zone: str) -> Bound | None:
    """DATE '…', TIMESTAMP '…', TIMESTAMP_NTZ '…' and 1.5BD, which sqlglot reads as casts of text."""
    if value is None:
        return BoundConstant(None, type_)
    word = _WORDS.get(type_, "X")
    found = literals.number(value + "BD") if pa.types.is_decimal(type_) else None
    if found is not None:
        return BoundConstant(found.value, type_) if found.type == type_ else None
    typed = None if word == "X" else literals.typed(word, value, time_zone)
    return None if typed is None else BoundConstant(typed.value, typed.type)


_WORDS = {SIMPLE[name]: name for name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")}
_CAST_TYPES = {
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.TINYINT: "TINYINT",
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INT",
    exp.DType.BIGINT: "BIGINT",
    exp.DType.FLOAT: "FLOAT",
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.TEXT: "STRING",
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPLTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
}


def _type(node: exp.Expr) -> pa.DataType | None:
    given = {name for name, value in node.args.items() if value not in (None, False, [])}
    parameters = node.expressions
    if given == {"this", "expressions"} and node.this is exp.DType.DECIMAL:
        if len(parameters) != 2:
            return None
        digits, scale = (int(parameter.name) for parameter in parameters)
        return pa.decimal128(digits, scale) if 0 <= scale <= digits <= 38 else None
    name = _CAST_TYPES.get(node.this)
    return SIMPLE[name] if given == {"this"} and name is not None else None


def _substring(binder: Binder, node: exp.Expr) -> Bound | None:
    names = ["this", "start", *(["length"] if node.args.get("length") else [])]
    return binder.call("substring", *(binder.argument(node, name) for name in names))


def _like(binder: Binder, node: exp.Expr) -> Bound | None:
    found = _pair("like")(binder, node)
    return found if found is None or not node.args.get("negate") else binder.call("not", found)


def _field(name: str) -> Read:
    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        inner = node.this
        if type(inner) is exp.TsOrDsToDate and set(inner.args) == {"this"}:
            inner = inner.this  # sqlglot's note that the argument may be text
        return binder.call(name, binder.bound(inner))

    return read


def _rule(read: Read, arguments: str, level: int = PRIMARY, names: str = "") -> Rule:
    return Rule(read, frozenset(arguments.split()) | _NOTES, level, frozenset(names.split()))


_TYPE_NAMES = (
    "boolean tinyint smallint int bigint float double string date timestamp timestamp_ntz "
    "timestamp_ltz decimal binary to_timestamp date_to_date_str time_to_time_str"
)
_TWO = "this expression"

RULES: dict[type[exp.Expr], Rule] = {
    exp.Paren: _rule(lambda binder, node: binder.bound(node.this), "this"),
    exp.Column: _rule(_column, "this table db catalog"),
    exp.Literal: _rule(_literal, "this is_string"),
    exp.Interval: _rule(_interval, "this unit"),
    exp.Boolean: _rule(lambda _, node: BoundConstant(bool(node.this), BOOLEAN), "this"),
    exp.Null: _rule(lambda _, __: BoundConstant(None, NULL), ""),
    exp.Neg: _rule(_negative, "this", UNARY),
    exp.Mul: _rule(_pair("*"), _TWO, PRODUCT),
    exp.Div: _rule(_pair("/"), _TWO, PRODUCT),
    exp.Mod: _rule(_pair("%"), _TWO, PRODUCT, "mod"),
    exp.IntDiv: _rule(_pair("div"), _TWO, PRODUCT, "div"),
    exp.Add: _rule(_pair("+"), _TWO, SUM),
    exp.Sub: _rule(_difference, _TWO, SUM),
    exp.DPipe: _rule(_pair("concat"), _TWO, SUM),
    exp.EQ: _rule(_pair("="), _TWO, COMPARISON),
    exp.NEQ: _rule(_pair("<>"), _TWO, COMPARISON),
    exp.LT: _rule(_pair("<"), _TWO, COMPARISON),
    exp.LTE: _rule(_pair("<="), _TWO, COMPARISON),
    exp.GT: _rule(_pair(">"), _TWO, COMPARISON),
    exp.GTE: _rule(_pair(">="), _TWO, COMPARISON),
    exp.NullSafeEQ: _rule(_pair("<=>"), _TWO, COMPARISON),
    exp.NullSafeNEQ: _rule(_distinct, _TWO, COMPARISON),
    exp.Is: _rule(_is, _TWO, PREDICATE),
    exp.In: _rule(_in, "this expressions", PREDICATE),
    exp.Between: _rule(_between, "this low high", PREDICATE),
    exp.Like: _rule(_like, "this expression negate", PREDICATE, "like"),
    exp.Not: _rule(_single("not"), "this", NOT),
    exp.And: _rule(_chain("and"), _TWO, AND, "and"),
    exp.Or: _rule(_chain("or"), _TWO, OR, "or"),
    exp.Case: _rule(_case, "this ifs default"),
    exp.If: _rule(_if, "this true false", names="if iif"),
    exp.Coalesce: _rule(_listed("coalesce"), "this expressions", names="coalesce nvl ifnull"),
    exp.Nullif: _rule(_pair("nullif"), _TWO, names="nullif"),
    exp.Greatest: _rule(_listed("greatest"), "this expressions", names="greatest"),
    exp.Least: _rule(_listed("least"), "this expressions", names="least"),
    exp.Cast: _rule(_cast, "this to _type", names=_TYPE_NAMES),
    exp.TryCast: _rule(_cast, "this to _type", names=_TYPE_NAMES),
    exp.Abs: _rule(_single("abs"), "this", names="abs"),
    exp.Floor: _rule(_single("floor"), "this", names="floor"),
    exp.Ceil: _rule(_single("ceil"), "this", names="ceil ceiling"),
    exp.Length: _rule(_single("length"), "this", names="length len char_length character_length"),
    exp.Concat: _rule(_listed("concat"), "expressions", names="concat"),
    exp.Substring: _rule(
        _substring, "this start length", names="substring substr ts_or_ds_to_date_str"
    ),
    exp.Year: _rule(_field("year"), "this", names="year"),
    exp.Month: _rule(_field("month"), "this", names="month"),
    exp.Day: _rule(_field("day"), "this", names="day"),
    exp.DayOfMonth: _rule(_field("day"), "this", names="dayofmonth day_of_month"),
    exp.WeekOfYear: _rule(_field("weekofyear"), "this", names="weekofyear week_of_year"),
    exp.Hour: _rule(_field("hour"), "this", names="hour"),
    exp.Minute: _rule(_field("minute"), "this", names="minute"),
    exp.Second: _rule(_field("second"), "this", names="second"),
}
