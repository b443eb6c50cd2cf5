"""SQL expressions → closures over Arrow tables, or None.

Owns: which nodes of sqlglot's trees are read, and how. A node counts only with the arguments that
are known here; a tree that Spark's precedences would not give (`a = b < c`) and a call of a name
that a user function has taken are refused. Must never: evaluate what is not on the whitelist, or
differ from Spark in a value or type. An error raised here is one that Spark raises for the row;
only Spark's optimizer may still spare a query from it (`1/x > 2 OR TRUE`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headwater.kernel.inline import arithmetic, compare, functions, literals, logic
from headwater.kernel.inline.coercion import BOOLEAN, INTERVAL, NULL, is_integer, supported
from headwater.kernel.inline.operand import Operand, column, literal, spread
from headwater.sql.types import SIMPLE, TIMESTAMP

Resolve = Callable[[exp.Column], tuple[str, pa.DataType] | None]
NO_FUNCTIONS: frozenset[str] = frozenset()
ZONED = "timestamp '…'"  # among the user's functions: the session's zone is not UTC, only Spark reads it


@dataclass(frozen=True)
class Compiled:
    """An expression that can be evaluated in line: one value per row of the table."""

    type: pa.DataType
    columns: frozenset[str]
    evaluate: Callable[[pa.Table], pa.ChunkedArray | pa.Array]


def compile_expression(
    node: exp.Expr, resolve: Resolve, functions: frozenset[str] = NO_FUNCTIONS
) -> Compiled | None:
    """The expression in line; None if anything in it is not on the whitelist."""
    return _compiled(Compiler(resolve, functions).find(node))


def compile_predicate(
    node: exp.Expr, resolve: Resolve, functions: frozenset[str] = NO_FUNCTIONS
) -> Compiled | None:
    """The condition of a filter in line: as Spark's, a conjunct is not asked where one before failed."""
    compiler = Compiler(resolve, functions)
    found = compiler.predicate(node)
    if found is None or found.type != BOOLEAN or compiler.raising & compiler.fixed(node):
        return None
    return _compiled(found)


def filter_rows(table: pa.Table, predicate: Compiled) -> pa.Table:
    """The rows for which the predicate is true."""
    return table.filter(predicate.evaluate(table))


def _compiled(operand: Operand | None) -> Compiled | None:
    if operand is None or operand.type in (NULL, INTERVAL):
        return None
    evaluate = operand.evaluate
    return Compiled(
        operand.type, operand.columns, lambda table: spread(evaluate(table), table.num_rows)
    )


class Refused(Exception):
    """A part is not on the whitelist."""


class Compiler:
    """Nodes → operands, for one set of columns and user functions."""

    def __init__(self, resolve: Resolve, functions: frozenset[str]) -> None:
        self.resolve = resolve
        self.functions = functions
        self.raising: frozenset[str] = frozenset()  # columns of a filter's conjuncts that can raise
        self._known: dict[int, Operand] = {}  # by the identity of nodes: each is read once

    def find(self, node: exp.Expr) -> Operand | None:
        """The operand of a node, None if it is refused."""
        try:
            return self.operand(node)
        except (Refused, RecursionError):
            return None

    def predicate(self, node: exp.Expr) -> Operand | None:
        """The operand of a filter's condition."""
        node = _bare(node)
        if type(node) is not exp.And:
            found = self.find(node)
            if found is not None and found.raises:
                self.raising |= found.columns
            return found
        if not self._admits(node, RULES[exp.And]):
            return None
        left, right = self.predicate(node.this), self.predicate(node.expression)
        if left is None or right is None:
            return None
        return logic.conjunction(left, right, filtering=True)

    def fixed(self, node: exp.Expr) -> frozenset[str]:
        """Columns that a filter may hold equal to a constant; Spark uses it in the other conjuncts.

        `i = 0 AND 1/i > 2` becomes `i = 0 AND 1/0 > 2`, which raises even if no row has 0.
        """
        equal = list(node.find_all(exp.EQ, exp.NullSafeEQ, exp.In))
        for negated in node.find_all(exp.Not):
            equal.extend(negated.find_all(exp.NEQ, exp.NullSafeNEQ))
        sides = [_bare(side) for pair in equal for side in (pair.this, pair.expression) if side]
        names = [self.resolve(side) for side in sides if isinstance(side, exp.Column)]
        return frozenset(name[0] for name in names if name is not None)

    def operand(self, node: exp.Expr) -> Operand:
        """The operand of a node; Refused if it is not on the whitelist."""
        known = self._known.get(id(node))
        if known is not None:
            return known
        rule = RULES.get(type(node))
        if rule is None or not self._admits(node, rule):
            raise Refused
        found = rule.read(self, node)
        if found is None:
            raise Refused
        self._known[id(node)] = found
        return found

    def _admits(self, node: exp.Expr, rule: Rule) -> bool:
        """Whether the node says nothing that the rule does not know, and calls no user function."""
        taken = bool(self.functions) and not self.functions.isdisjoint(rule.names)
        return not taken and not _stray_arguments(node, rule) and _shaped(node, rule)

    def argument(self, node: exp.Expr, name: str) -> Operand:
        """The operand of a node's argument."""
        child = node.args.get(name)
        if not isinstance(child, exp.Expr):
            raise Refused
        return self.operand(child)

    def arguments(self, node: exp.Expr) -> list[Operand]:
        """The operands of a node's list of expressions."""
        return [self.operand(child) for child in node.expressions]

    def pair(self, node: exp.Expr) -> tuple[Operand, Operand]:
        """The operands of both sides."""
        return self.argument(node, "this"), self.argument(node, "expression")


Read = Callable[[Compiler, exp.Expr], Operand | None]


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


def _bare(node: exp.Expr) -> exp.Expr:
    while type(node) is exp.Paren:
        node = node.this
    return node


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


def _column(compiler: Compiler, node: exp.Expr) -> Operand | None:
    found = compiler.resolve(node) if isinstance(node, exp.Column) else None
    return None if found is None or not supported(found[1]) else column(*found)


def _literal(_: Compiler, node: exp.Expr) -> Operand | None:
    return literals.text(node.this) if node.args.get("is_string") else literals.number(node.this)


def _negative(compiler: Compiler, node: exp.Expr) -> Operand | None:
    inner = node.this
    if type(inner) is exp.Literal and not inner.args.get("is_string"):
        return literals.number(inner.this, negative=True)
    return arithmetic.negate(compiler.operand(inner))


def _arithmetic(symbol: str) -> Read:
    def read(compiler: Compiler, node: exp.Expr) -> Operand | None:
        found = arithmetic.binary(symbol, *compiler.pair(node))
        if found is None or not is_integer(found.type) or found.constant:
            return found
        # Spark puts the constants of a chain together first, which changes what overflows
        return None if _constants(node, compiler) > 1 else found

    return read


def _difference(compiler: Compiler, node: exp.Expr) -> Operand | None:
    left, right = compiler.pair(node)
    zoned = ZONED in compiler.functions and left.type == TIMESTAMP
    found = None if zoned else arithmetic.elapsed(left, right)
    return _arithmetic("-")(compiler, node) if found is None else found


def _interval(_: Compiler, node: exp.Expr) -> Operand | None:
    value, unit = node.this, node.args.get("unit")
    if type(value) is not exp.Literal or type(unit) is not exp.Var:
        return None
    return literals.interval(value.this, unit.name)


def _constants(node: exp.Expr, compiler: Compiler) -> int:
    """How many constants a chain of sums, or of products, has."""
    kinds = (exp.Mul,) if type(node) is exp.Mul else (exp.Add, exp.Sub)
    count = 0
    for side in (_bare(node.this), _bare(node.expression)):
        if compiler.operand(side).constant:
            count += 1
        elif type(side) in kinds:
            count += _constants(side, compiler)
    return count


def _pairwise(build: Callable[[Operand, Operand], Operand | None]) -> Read:
    return lambda compiler, node: build(*compiler.pair(node))


def _single(build: Callable[[Operand], Operand | None]) -> Read:
    return lambda compiler, node: build(compiler.argument(node, "this"))


def _comparison(symbol: str) -> Read:
    return _pairwise(lambda left, right: compare.comparison(symbol, left, right))


def _distinct(compiler: Compiler, node: exp.Expr) -> Operand | None:
    same = compare.comparison("<=>", *compiler.pair(node))
    return None if same is None else logic.negation(same)


def _is(compiler: Compiler, node: exp.Expr) -> Operand | None:
    asked = node.expression
    if type(asked) is exp.Null:
        return logic.is_null(compiler.argument(node, "this"))
    if type(asked) is exp.Boolean:
        return logic.is_truth(compiler.argument(node, "this"), bool(asked.this))
    return None


def _in(compiler: Compiler, node: exp.Expr) -> Operand | None:
    choices = compiler.arguments(node)
    return compare.membership(compiler.argument(node, "this"), choices) if choices else None


def _between(compiler: Compiler, node: exp.Expr) -> Operand | None:
    names = ("this", "low", "high")
    return logic.between(*(compiler.argument(node, name) for name in names))


def _case(compiler: Compiler, node: exp.Expr) -> Operand | None:
    asked = compiler.argument(node, "this") if node.args.get("this") else None
    branches: list[logic.Branch] = []
    for branch in node.args["ifs"]:
        condition: Operand | None = compiler.argument(branch, "this")
        if asked is not None and condition is not None:
            condition = compare.comparison("=", asked, condition)
        if condition is None:
            return None
        branches.append((condition, compiler.argument(branch, "true")))
    default = compiler.argument(node, "default") if node.args.get("default") else None
    return logic.choice(branches, default)


def _if(compiler: Compiler, node: exp.Expr) -> Operand | None:
    condition, chosen, other = (compiler.argument(node, n) for n in ("this", "true", "false"))
    return logic.choice([(condition, chosen)], other)


def _coalesce(compiler: Compiler, node: exp.Expr) -> Operand | None:
    return logic.coalesce([compiler.argument(node, "this"), *compiler.arguments(node)])


def _extreme(symbol: str) -> Read:
    def read(compiler: Compiler, node: exp.Expr) -> Operand | None:
        operands = [compiler.argument(node, "this"), *compiler.arguments(node)]
        return compare.extreme(operands, symbol)

    return read


def _cast(compiler: Compiler, node: exp.Expr) -> Operand | None:
    if node.args.get("safe"):
        return None  # TRY_CAST
    type_ = _type(node.args["to"])
    if type_ is None:
        return None
    operand = compiler.argument(node, "this")
    if ZONED in compiler.functions and TIMESTAMP in (type_, operand.type):
        return None
    return functions.cast(operand, type_)


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


def _rounded(towards: Callable[[np.ndarray], np.ndarray], name: str) -> Read:
    return _single(lambda operand: functions.rounded(operand, towards, name))


def _substring(compiler: Compiler, node: exp.Expr) -> Operand | None:
    count = compiler.argument(node, "length") if node.args.get("length") else None
    return functions.substring(
        compiler.argument(node, "this"), compiler.argument(node, "start"), count
    )


def _like(compiler: Compiler, node: exp.Expr) -> Operand | None:
    return functions.like(*compiler.pair(node), negated=bool(node.args.get("negate")))


def _field(name: str) -> Read:
    def read(compiler: Compiler, node: exp.Expr) -> Operand | None:
        inner = node.this
        if type(inner) is exp.TsOrDsToDate and set(inner.args) == {"this"}:
            inner = inner.this  # sqlglot's note that the argument may be text
        return functions.field(compiler.operand(inner), name)

    return read


def _rule(read: Read, arguments: str, level: int = PRIMARY, names: str = "") -> Rule:
    return Rule(read, frozenset(arguments.split()) | _NOTES, level, frozenset(names.split()))


_TYPE_NAMES = (
    "boolean tinyint smallint int bigint float double string date timestamp timestamp_ntz "
    "timestamp_ltz decimal binary to_timestamp date_to_date_str time_to_time_str"
)
_TWO = "this expression"

RULES: dict[type[exp.Expr], Rule] = {
    exp.Paren: _rule(lambda compiler, node: compiler.operand(node.this), "this"),
    exp.Column: _rule(_column, "this table db catalog"),
    exp.Literal: _rule(_literal, "this is_string"),
    exp.Interval: _rule(_interval, "this unit"),
    exp.Boolean: _rule(lambda _, node: literal(bool(node.this), BOOLEAN), "this"),
    exp.Null: _rule(lambda _, __: literal(None, NULL), ""),
    exp.Neg: _rule(_negative, "this", UNARY),
    exp.Mul: _rule(_arithmetic("*"), _TWO, PRODUCT),
    exp.Div: _rule(_pairwise(arithmetic.divide), _TWO, PRODUCT),
    exp.Mod: _rule(_pairwise(arithmetic.remainder), _TWO, PRODUCT, "mod"),
    exp.IntDiv: _rule(_pairwise(arithmetic.divide_whole), _TWO, PRODUCT, "div"),
    exp.Add: _rule(_arithmetic("+"), _TWO, SUM),
    exp.Sub: _rule(_difference, _TWO, SUM),
    exp.DPipe: _rule(
        _pairwise(lambda left, right: functions.concatenation([left, right])), _TWO, SUM
    ),
    exp.EQ: _rule(_comparison("="), _TWO, COMPARISON),
    exp.NEQ: _rule(_comparison("<>"), _TWO, COMPARISON),
    exp.LT: _rule(_comparison("<"), _TWO, COMPARISON),
    exp.LTE: _rule(_comparison("<="), _TWO, COMPARISON),
    exp.GT: _rule(_comparison(">"), _TWO, COMPARISON),
    exp.GTE: _rule(_comparison(">="), _TWO, COMPARISON),
    exp.NullSafeEQ: _rule(_comparison("<=>"), _TWO, COMPARISON),
    exp.NullSafeNEQ: _rule(_distinct, _TWO, COMPARISON),
    exp.Is: _rule(_is, _TWO, PREDICATE),
    exp.In: _rule(_in, "this expressions", PREDICATE),
    exp.Between: _rule(_between, "this low high", PREDICATE),
    exp.Like: _rule(_like, "this expression negate", PREDICATE, "like"),
    exp.Not: _rule(_single(logic.negation), "this", NOT),
    exp.And: _rule(_pairwise(logic.conjunction), _TWO, AND, "and"),
    exp.Or: _rule(_pairwise(logic.disjunction), _TWO, OR, "or"),
    exp.Case: _rule(_case, "this ifs default"),
    exp.If: _rule(_if, "this true false", names="if iif"),
    exp.Coalesce: _rule(_coalesce, "this expressions", names="coalesce nvl ifnull"),
    exp.Nullif: _rule(_pairwise(logic.null_if), _TWO, names="nullif"),
    exp.Greatest: _rule(_extreme(">"), "this expressions", names="greatest"),
    exp.Least: _rule(_extreme("<"), "this expressions", names="least"),
    exp.Cast: _rule(_cast, "this to _type", names=_TYPE_NAMES),
    exp.TryCast: _rule(_cast, "this to _type", names=_TYPE_NAMES),
    exp.Abs: _rule(_single(arithmetic.absolute), "this", names="abs"),
    exp.Floor: _rule(_rounded(np.floor, "floor"), "this", names="floor"),
    exp.Ceil: _rule(_rounded(np.ceil, "ceil"), "this", names="ceil ceiling"),
    exp.Length: _rule(
        _single(functions.length), "this", names="length len char_length character_length"
    ),
    exp.Concat: _rule(
        lambda compiler, node: functions.concatenation(compiler.arguments(node)),
        "expressions",
        names="concat",
    ),
    exp.Substring: _rule(
        _substring, "this start length", names="substring substr ts_or_ds_to_date_str"
    ),
    exp.Year: _rule(_field("year"), "this", names="year"),
    exp.Month: _rule(_field("month"), "this", names="month"),
    exp.Day: _rule(_field("day"), "this", names="day"),
    exp.DayOfMonth: _rule(_field("day"), "this", names="dayofmonth day_of_month"),
    exp.WeekOfYear: _rule(_field("week"), "this", names="weekofyear week_of_year"),
    exp.Hour: _rule(_field("hour"), "this", names="hour"),
    exp.Minute: _rule(_field("minute"), "this", names="minute"),
    exp.Second: _rule(_field("second"), "this", names="second"),
}
