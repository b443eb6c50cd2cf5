"""sqlglot's trees → bound expressions, or a refusal with its reason; and at once → closures.

The way in for whoever has a tree. Only this module and `function_rules` know sqlglot.
Owns: the walk over a tree's nodes, how operators, literals, casts and conditionals are read (one line per
kind of node in `RULES`; `function_rules` has the functions), and the checks that no rule may forget. A node
counts only with the arguments that its rule knows; a tree that Spark's precedences would not give
(`a = b < c`) and a call of a name that a user function has taken are refused; a TIMESTAMP goes to functions
of the session's time zone only where that is UTC. Must never: decide on types, or bind what is not in the
table of functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.expression.coercion import BOOLEAN, DATE, INT, STRING, is_integer, supported
from headwater.expression.compile import Compiled, compiled, compiled_filter
from headwater.expression.functions import logic
from headwater.expression.functions.times import ZONE_FREE
from headwater.expression.nodes import INTERVAL, NULL, Bound, BoundColumn, BoundConstant
from headwater.expression.table import call
from headwater.expression.terms import PLAIN, Terms
from headwater.sql import literals
from headwater.sql.dialect import given
from headwater.sql.spans import SPAN
from headwater.sql.text import Span
from headwater.sql.types import SIMPLE, TIMESTAMP

LONGEST_CHAIN = 1000  # parts of AND or OR
COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>"))
_WORDS = {SIMPLE[name]: name for name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")}
Resolve = Callable[[exp.Column], tuple[str, pa.DataType] | None]


@dataclass(frozen=True)
class Refusal:
    """Why an expression is left to Spark, and at which part of it."""

    reason: str
    span: Span | None = None


class NotBound(Exception):
    """A part is not on the whitelist; the binder knows where it stands."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span: Span | None = None


def called(node: exp.Expr) -> str:
    """What people call a function, or a part of the language."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def bind(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Bound | Refusal:
    """The bound expression, or why there is none."""
    try:
        return Binder(resolve, terms).bound(node)
    except NotBound as refused:
        return Refusal(refused.reason, refused.span)
    except RecursionError:
        return Refusal("it is nested too deeply")


def bind_as(
    node: exp.Expr,
    type_: pa.DataType,
    resolve: Resolve,
    terms: Terms,
    allowed: Callable[[pa.DataType, pa.DataType], bool],
) -> Bound | Refusal:
    """The same, cast to a type where it has another that may become it; NULL is of any type."""
    try:
        binder = Binder(resolve, terms)
        found = binder.bound(node)
        if found.type == type_:
            return found
        if isinstance(found, BoundConstant) and found.type == NULL:
            return BoundConstant(None, type_)
        cast = binder.cast(found, type_) if allowed(found.type, type_) else None
        return Refusal("the value is cast by Spark") if cast is None else cast
    except NotBound as refused:
        return Refusal(refused.reason, refused.span)
    except RecursionError:
        return Refusal("it is nested too deeply")


def compile_expression(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Compiled | None:
    """The expression as operators compute it; None if anything in it is not on the whitelist."""
    return _compiled(compiled, bind(node, resolve, terms))


def compile_predicate(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Compiled | None:
    """The condition of a filter by operators: as Spark's, a conjunct is not asked where one before failed."""
    return _compiled(compiled_filter, bind(node, resolve, terms))


def _compiled(make: Callable[[Bound], Compiled | None], found: Bound | Refusal) -> Compiled | None:
    try:
        return None if isinstance(found, Refusal) else make(found)
    except RecursionError:
        return None


class Binder:
    """Nodes → bound expressions, for one set of columns and terms."""

    def __init__(self, resolve: Resolve, terms: Terms) -> None:
        self.resolve = resolve
        self.terms = terms
        self._known: dict[int, Bound] = {}  # by the identity of nodes: each is read once

    def bound(self, node: exp.Expr | None) -> Bound:
        """The bound expression of a node; NotBound if it is not on the whitelist."""
        if node is None:
            raise NotBound("a call without an argument is evaluated by Spark")
        known = self._known.get(id(node))
        if known is None:
            try:
                known = self._known[id(node)] = self._bound(node)
            except NotBound as refused:
                refused.span = refused.span or node.meta.get(SPAN)  # the innermost that has a place
                raise
        return known

    def _bound(self, node: exp.Expr) -> Bound:
        rule = RULES.get(type(node))
        if rule is None:
            raise NotBound(f"{called(node)} is evaluated by Spark")
        self.check(node, rule)
        found = rule.read(self, node)
        if found is None:
            raise NotBound(f"{called(node)} of these types is evaluated by Spark")
        return found

    def check(self, node: exp.Expr, rule: Rule) -> None:
        """Refuses a node that says what the rule does not know, or calls a user's function."""
        if not self.terms.functions.isdisjoint(rule.names):
            raise NotBound(f"{node.key} may be a user's function")
        if not given(node) <= rule.arguments:
            raise NotBound(f"this form of {node.key} is evaluated by Spark")
        if not _shaped(node, rule):
            raise NotBound("Spark may group the operands otherwise")

    def argument(self, node: exp.Expr, name: str) -> Bound:
        """A node's argument."""
        child = node.args.get(name)
        if not isinstance(child, exp.Expr):
            raise NotBound(f"{node.key} has no {name}")
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

    def cast(self, operand: Bound, type_: pa.DataType) -> Bound | None:
        """CAST(operand AS type)."""
        if isinstance(operand, BoundConstant):
            found = _constant_cast(operand, type_, self.terms.time_zone)
            if found is not None:
                return found
        return self.call("cast", operand, to=type_)

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
            raise NotBound(f"Spark reads this text as {word}")
        return BoundConstant(found.value, found.type)

    def _in_zone(self, argument: Bound) -> Bound:
        if argument.type != DATE or not isinstance(argument, BoundConstant):
            return argument
        value = argument.value
        found = value and literals.timestamp(value.isoformat(), self.terms.time_zone)
        if value is not None and found is None:
            raise NotBound("a day of this zone is evaluated by Spark")
        return BoundConstant(found, TIMESTAMP)


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


def _column(binder: Binder, node: exp.Expr) -> Bound | None:
    """A column, or a field of one that is a struct."""
    found = binder.resolve(node) if isinstance(node, exp.Column) else None
    if found is not None:
        fine = supported(found[1]) or pa.types.is_nested(found[1])
        return BoundColumn(*found) if fine else None
    parts = list(node.parts) if isinstance(node, exp.Column) else []
    if len(parts) < 2 or not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    outer = exp.Column(**dict(zip(("this", "table", "db"), reversed(parts[:-1]), strict=False)))
    return binder.call("field", binder.bound(outer), field=parts[-1].name)


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


def _parameter(binder: Binder, node: exp.Expr) -> Bound | None:
    """`$n`, whose value is read as the literal that it would be in the text."""
    place, values = str(node.this.name), binder.terms.values
    number = int(place) if place.isdecimal() else 0
    if not 1 <= number <= len(values):
        return None
    found = literals.literal(values[number - 1], binder.terms.time_zone)
    if found is None:
        return None
    whole = found.type in (pa.int32(), pa.int64())
    digits = len(str(abs(found.value))) if whole else None  # type: ignore[arg-type]
    return BoundConstant(found.value, found.type, digits, slot=number)


def _negative(binder: Binder, node: exp.Expr) -> Bound | None:
    inner = node.this
    if type(inner) is exp.Literal and not inner.args.get("is_string"):
        return _number(inner.this, "-")
    return binder.call("negative", binder.bound(inner))


def _sum(symbol: str) -> Read:
    """`+` and `-`, of numbers, of dates and days, of times and intervals."""
    sign = 1 if symbol == "+" else -1

    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        left = binder.argument(node, "this")
        if left.type == DATE and type(node.expression) is exp.Interval:
            return _moved(binder, left, node.expression, sign)
        right = binder.argument(node, "expression")
        if right.type == INTERVAL and left.type != INTERVAL:
            return binder.call("shift", left, right, sign=sign)
        if left.type == DATE and right.type != DATE:
            return binder.call("add_days", left, right, sign=sign)
        return binder.call(symbol, left, right)

    return read


def _moved(binder: Binder, date: Bound, node: exp.Interval, sign: int) -> Bound | None:
    """A date and an interval of days, months or years."""
    value, unit = node.this, node.args.get("unit")
    binder.check(node, RULES[exp.Interval])
    if type(value) is not exp.Literal or type(unit) is not exp.Var:
        return None
    found = literals.calendar_interval(value.this, unit.name)
    if found is None:
        return None
    word, count = found
    if word == "DAY":
        return binder.call("add_days", date, BoundConstant(count, INT), sign=sign)
    return binder.call("add_months", date, BoundConstant(sign * count, INT))


def _interval(_: Binder, node: exp.Expr) -> Bound | None:
    value, unit = node.this, node.args.get("unit")
    if type(value) is not exp.Literal or type(unit) is not exp.Var:
        return None
    found = literals.interval(value.this, unit.name)
    return None if found is None else BoundConstant(found, INTERVAL)


def pair(name: str) -> Read:
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
            raise NotBound(f"{name} has more than {LONGEST_CHAIN} parts")
        return binder.call(name, *(binder.bound(part) for part in reversed(parts)))

    return read


def single(name: str) -> Read:
    return lambda binder, node: binder.call(name, binder.argument(node, "this"))


def listed(name: str) -> Read:
    """`this`, if the node has one, and the list of expressions."""

    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        first = [binder.argument(node, "this")] if node.args.get("this") else []
        return binder.call(name, *first, *binder.arguments(node))

    return read


def _distinct(binder: Binder, node: exp.Expr) -> Bound | None:
    same = pair("<=>")(binder, node)
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
    type_ = _type(node.args["to"])
    if type_ is None:
        return None
    operand = binder.argument(node, "this")
    if node.args.get("safe"):
        return binder.call("try_cast", operand, to=type_)
    return binder.cast(operand, type_)


def _constant_cast(operand: BoundConstant, type_: pa.DataType, time_zone: str) -> Bound | None:
    """What sqlglot makes of DATE '…', 1.5D, 1.5F and 1.5BD."""
    value = operand.value
    if operand.type == STRING and type_ != STRING:
        return _typed_text(value, type_, time_zone)
    if value is None or (not pa.types.is_decimal(operand.type) and not is_integer(operand.type)):
        return None
    if type_ == pa.float64():
        return BoundConstant(float(value), type_)
    near = literals.exact_float(Decimal(value)) if type_ == pa.float32() else None
    return None if near is None else BoundConstant(near, type_)


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
    parameters = node.expressions
    if given(node) == {"this", "expressions"} and node.this is exp.DType.DECIMAL:
        if len(parameters) != 2:
            return None
        digits, scale = (int(parameter.name) for parameter in parameters)
        return pa.decimal128(digits, scale) if 0 <= scale <= digits <= 38 else None
    name = _CAST_TYPES.get(node.this)
    return SIMPLE[name] if given(node) == {"this"} and name is not None else None


def named(name: str, *arguments: str) -> Read:
    """The node's arguments of these names, as far as it has them, in this order."""

    def read(binder: Binder, node: exp.Expr) -> Bound | None:
        given = [argument for argument in arguments if node.args.get(argument) is not None]
        return binder.call(name, *(binder.argument(node, argument) for argument in given))

    return read


def _like(binder: Binder, node: exp.Expr) -> Bound | None:
    return negated(binder, node, pair("like")(binder, node))


def negated(binder: Binder, node: exp.Expr, found: Bound | None) -> Bound | None:
    """What was found for a pattern, or its contrary if the node has NOT."""
    return found if found is None or not node.args.get("negate") else binder.call("not", found)


def rule(read: Read, arguments: str, level: int = PRIMARY, names: str = "") -> Rule:
    return Rule(read, frozenset(arguments.split()) | NOTES, level, frozenset(names.split()))


_TYPE_NAMES = (
    "boolean tinyint smallint int bigint float double string date timestamp timestamp_ntz "
    "timestamp_ltz decimal binary to_timestamp date_to_date_str time_to_time_str"
)
TWO = "this expression"

RULES: dict[type[exp.Expr], Rule] = {
    exp.Paren: rule(lambda binder, node: binder.bound(node.this), "this"),
    exp.Column: rule(_column, "this table db catalog"),
    exp.Literal: rule(_literal, "this is_string"),
    exp.Parameter: rule(_parameter, "this"),
    exp.Interval: rule(_interval, "this unit"),
    exp.Boolean: rule(lambda _, node: BoundConstant(bool(node.this), BOOLEAN), "this"),
    exp.Null: rule(lambda _, __: BoundConstant(None, NULL), ""),
    exp.Neg: rule(_negative, "this", UNARY),
    exp.Mul: rule(pair("*"), TWO, PRODUCT),
    exp.Div: rule(pair("/"), TWO, PRODUCT),
    exp.Mod: rule(pair("%"), TWO, PRODUCT, "mod"),
    exp.IntDiv: rule(pair("div"), TWO, PRODUCT, "div"),
    exp.Add: rule(_sum("+"), TWO, SUM),
    exp.Sub: rule(_sum("-"), TWO, SUM),
    exp.BitwiseAnd: rule(pair("&"), TWO, BITS),
    exp.BitwiseOr: rule(pair("|"), TWO, BITS),
    exp.BitwiseXor: rule(pair("^"), TWO, BITS),
    exp.BitwiseNot: rule(single("~"), "this", UNARY),
    exp.DPipe: rule(pair("concat"), TWO, SUM),
    exp.EQ: rule(pair("="), TWO, COMPARISON),
    exp.NEQ: rule(pair("<>"), TWO, COMPARISON),
    exp.LT: rule(pair("<"), TWO, COMPARISON),
    exp.LTE: rule(pair("<="), TWO, COMPARISON),
    exp.GT: rule(pair(">"), TWO, COMPARISON),
    exp.GTE: rule(pair(">="), TWO, COMPARISON),
    exp.NullSafeEQ: rule(pair("<=>"), TWO, COMPARISON),
    exp.NullSafeNEQ: rule(_distinct, TWO, COMPARISON),
    exp.Is: rule(_is, TWO, PREDICATE),
    exp.In: rule(_in, "this expressions", PREDICATE),
    exp.Between: rule(_between, "this low high", PREDICATE),
    exp.Like: rule(_like, "this expression negate", PREDICATE, "like"),
    exp.Not: rule(single("not"), "this", NOT),
    exp.And: rule(_chain("and"), TWO, AND, "and"),
    exp.Or: rule(_chain("or"), TWO, OR, "or"),
    exp.Case: rule(_case, "this ifs default"),
    exp.If: rule(_if, "this true false", names="if iif"),
    exp.Coalesce: rule(listed("coalesce"), "this expressions", names="coalesce nvl ifnull"),
    exp.Nullif: rule(pair("nullif"), TWO, names="nullif"),
    exp.Greatest: rule(listed("greatest"), "this expressions", names="greatest"),
    exp.Least: rule(listed("least"), "this expressions", names="least"),
    exp.Cast: rule(_cast, "this to _type", names=_TYPE_NAMES),
    exp.TryCast: rule(_cast, "this to _type", names=_TYPE_NAMES),
}

from headwater.expression import function_rules  # noqa: E402  # which enters its rules into RULES

assert function_rules.ANONYMOUS
