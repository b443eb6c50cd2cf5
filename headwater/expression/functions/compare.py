"""Comparisons as Spark's: NaN equals itself and is larger than any number, -0.0 equals 0.0.

Owns: =, <>, <, <=, >, >=, <=>, IN, GREATEST and LEAST. Text is compared by its UTF-8 bytes, false
is less than true. Must never: trust Arrow with NaN; its comparisons with NaN are all false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import BOOLEAN, FLOATS, common_type, convert
from headwater.expression.nodes import NULL, Bound, BoundCall, BoundConstant
from headwater.expression.operand import Kernel, Operand, Value, apply
from headwater.expression.table import called, choosing, operation

MOST_FLOATS = 10  # Spark turns longer lists into a hash set, where -0.0 is not 0.0
Compare = Callable[[Any, Any], Any]

KERNELS: dict[str, Compare] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _some(value: Value) -> bool:
    """Whether any value of a boolean column, or a boolean constant, is true."""
    return bool((value if isinstance(value, pa.Scalar) else pc.any(value)).as_py())


def _float_kernel(symbol: str) -> Compare:
    """The comparison with NaN put right, at no cost but a look when there is none."""
    plain = KERNELS[symbol]

    def compare(left: Value, right: Value) -> Value:
        answer = plain(left, right)
        left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
        if not (_some(left_nan) or _some(right_nan)):
            return answer
        return _FIXES[symbol](answer, left_nan, right_nan)

    return compare


# What is true of NaN beside what Arrow says; pc.or_ and pc.and_ stay unknown where a side is NULL.
_FIXES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "=": lambda answer, a, b: pc.or_(answer, pc.and_(a, b)),
    "<>": lambda answer, a, b: pc.and_(answer, pc.invert(pc.and_(a, b))),
    "<": lambda answer, a, b: pc.or_(answer, pc.and_(pc.invert(a), b)),
    "<=": lambda answer, _, b: pc.or_(answer, b),
    ">": lambda answer, a, b: pc.or_(answer, pc.and_(a, pc.invert(b))),
    ">=": lambda answer, a, _: pc.or_(answer, a),
}
_FLOAT_KERNELS = {symbol: _float_kernel(symbol) for symbol in KERNELS}


def kernel(symbol: str, type_: pa.DataType) -> Compare:
    """The comparison of two columns of a type."""
    return (_FLOAT_KERNELS if type_ in FLOATS else KERNELS)[symbol]


def _comparison(symbol: str, left: Bound, right: Bound) -> Bound | None:
    """`left symbol right`; None if it takes an implicit conversion that is not ours."""
    type_ = common_type([left, right])
    if type_ is None:
        return None
    return called(symbol, (convert(left, type_), convert(right, type_)), BOOLEAN)


def _comparison_kernel(call: BoundCall) -> Kernel:
    type_ = call.arguments[0].type
    if call.function == "<=>":
        return _null_safe(kernel("=", type_))
    return kernel(call.function, type_)


def _null_safe(equal: Compare) -> Compare:
    def compare(left: Value, right: Value) -> Value:
        same = pc.fill_null(equal(left, right), False)
        return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))

    return compare


for _symbol in (*KERNELS, "<=>"):
    operation(_symbol, partial(_comparison, _symbol), _comparison_kernel)


def _membership(operand: Bound, *choices: Bound) -> Bound | None:
    """`operand IN (constants)`: unknown if it is NULL, or if only a NULL of the list may match."""
    type_ = common_type([operand, *choices])
    if type_ is None or operand.type == NULL:
        return None
    if not all(isinstance(choice, BoundConstant) for choice in choices):
        return None
    if type_ in FLOATS and len(choices) > MOST_FLOATS:
        return None
    return called("in", [convert(part, type_) for part in (operand, *choices)], BOOLEAN)


def _build_membership(call: BoundCall, operands: Sequence[Operand]) -> Operand:
    type_ = call.arguments[0].type
    values = [c.value for c in call.arguments[1:] if isinstance(c, BoundConstant)]
    known = [value for value in values if value is not None]
    if type_ in FLOATS:
        found = _any_equal([pa.scalar(value, type_) for value in known])
    else:
        found = _found_in(pa.array(known, type_))
    open_ = len(known) < len(values)
    return apply(BOOLEAN, operands[:1], lambda value: _decide(found(value), value, open_))


def _any_equal(choices: Sequence[pa.Scalar]) -> Callable[[Value], Value]:
    equal = _FLOAT_KERNELS["="]

    def found(value: Value) -> Value:
        answer = pc.and_(pc.is_null(value), False)
        for choice in choices:
            answer = pc.or_kleene(answer, equal(value, choice))
        return answer

    return found


def _found_in(choices: pa.Array) -> Callable[[Value], Value]:
    return lambda value: pc.is_in(value, value_set=choices)


def _decide(found: Value, value: Value, open_: bool) -> Value:
    unknown = pa.scalar(None, BOOLEAN)
    if open_:
        return pc.if_else(pc.fill_null(found, False), True, unknown)
    return found if value.null_count == 0 else pc.if_else(pc.is_null(value), unknown, found)


choosing("in", _membership, _build_membership)


def _extreme(name: str, *operands: Bound) -> Bound | None:
    """GREATEST or LEAST: NULLs are skipped, the first of equal values stays."""
    type_ = common_type(operands)
    if type_ is None or len(operands) < 2:
        return None
    return called(name, [convert(operand, type_) for operand in operands], type_)


def _extreme_kernel(symbol: str, call: BoundCall) -> Kernel:
    beats = kernel(symbol, call.type)

    def choose(*values: Value) -> Value:
        best = values[0]
        for value in values[1:]:
            better = pc.or_kleene(pc.fill_null(beats(value, best), False), pc.is_null(best))
            best = pc.if_else(pc.and_(better, pc.is_valid(value)), value, best)
        return best

    return choose


operation("greatest", partial(_extreme, "greatest"), partial(_extreme_kernel, ">"))
operation("least", partial(_extreme, "least"), partial(_extreme_kernel, "<"))
