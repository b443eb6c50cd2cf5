"""Functions of text, by code points.

Owns: LENGTH, CONCAT, SUBSTRING and LIKE. Must never: change the case of text where Unicode versions
differ.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import BOOLEAN, INT, STRING
from headwater.expression.nodes import Bound, BoundCall, BoundConstant
from headwater.expression.operand import Kernel, Value
from headwater.expression.table import called, operation


def _length(operand: Bound) -> Bound | None:
    """How many code points a text has."""
    return called("length", (operand,), INT) if operand.type == STRING else None


operation("length", _length, lambda _: pc.utf8_length)


def _concat(*operands: Bound) -> Bound | None:
    """`a || b` and CONCAT: NULL if any part is."""
    if not operands or any(operand.type != STRING for operand in operands):
        return None
    return operands[0] if len(operands) == 1 else called("concat", operands, STRING)


def _concat_kernel(_: BoundCall) -> Kernel:
    nothing = pa.scalar("")
    return lambda *parts: pc.binary_join_element_wise(*parts, nothing)


operation("concat", _concat, _concat_kernel)


def _substring(operand: Bound, *places: Bound) -> Bound | None:
    """SUBSTRING from a constant place on, counted from 1 (0 means 1)."""
    if operand.type != STRING:
        return None
    for place in places:
        if place.type != INT or not isinstance(place, BoundConstant):
            return None
        if place.value is None or place.value < 0:
            return None
    return called("substring", (operand, *places), STRING)


def _substring_kernel(call: BoundCall) -> Kernel:
    start, *counts = [
        place.value for place in call.arguments[1:] if isinstance(place, BoundConstant)
    ]
    first = max(start - 1, 0)
    end = min(first + counts[0], 2**31 - 1) if counts else None
    return lambda value, *_: pc.utf8_slice_codeunits(value, start=first, stop=end)


operation("substring", _substring, _substring_kernel)


def _like(operand: Bound, pattern: Bound) -> Bound | None:
    """LIKE with a constant pattern that has no escapes."""
    if operand.type != STRING or pattern.type != STRING or not isinstance(pattern, BoundConstant):
        return None
    if pattern.value is None or "\\" in pattern.value:
        return None
    return called("like", (operand,), BOOLEAN, pattern.value)


def _like_kernel(call: BoundCall) -> Kernel:
    """The cheapest kernel for a pattern."""
    (pattern,) = call.parameters
    return _matcher(str(pattern))


def _matcher(pattern: str) -> Callable[[Value], Value]:
    inner = pattern.strip("%")
    if "_" in pattern or "%" in inner:
        return lambda value: pc.match_like(value, pattern)
    before, after = pattern.startswith("%"), pattern.endswith("%")
    if not before and not after:
        return lambda value: pc.equal(value, pattern)
    if before and after:
        return lambda value: pc.match_substring(value, inner)
    if after:
        return lambda value: pc.starts_with(value, inner)
    return lambda value: pc.ends_with(value, inner)


operation("like", _like, _like_kernel)
