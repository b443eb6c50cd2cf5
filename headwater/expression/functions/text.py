"""Functions of text, by code points.

Owns: LENGTH, CONCAT, SUBSTRING and its kin, places of text in text, padding, trimming. Must never:
change the case of text (`casing`) or match patterns (`patterns`).
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import DataError
from headwater.expression.coercion import BOOLEAN, INT, STRING
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel, Value, spread_all
from headwater.expression.signature import by_row, constant, fixed, taken
from headwater.expression.table import always, called, operation

LONGEST_REPEAT = 10_000  # times that a text is repeated, or characters that it is padded to
MOST = 2**31 - 1

fixed("length", [[STRING]], INT, lambda _: pc.utf8_length)
fixed("octet_length", [[STRING]], INT, lambda _: pc.binary_length)
fixed(
    "bit_length", [[STRING]], INT, lambda _: lambda value: pc.multiply(pc.binary_length(value), 8)
)
fixed("reverse", [[STRING]], STRING, lambda _: pc.utf8_reverse)
fixed("ascii", [[STRING]], INT, by_row(lambda text: ord(text[0]) if text else 0))


def _concat(*operands: Bound) -> Bound | None:
    """`a || b` and CONCAT: NULL if any part is."""
    if not operands or any(operand.type != STRING for operand in operands):
        return None
    return operands[0] if len(operands) == 1 else called("concat", operands, STRING)


def _concat_kernel(_: BoundCall) -> Kernel:
    nothing = pa.scalar("")
    return lambda *parts: pc.binary_join_element_wise(*parts, nothing)


operation("concat", _concat, _concat_kernel)


def _concat_ws(*operands: Bound) -> Bound | None:
    """CONCAT_WS: parts that are NULL are left out; NULL only where the separator is."""
    if len(operands) < 2 or any(operand.type != STRING for operand in operands):
        return None
    return called("concat_ws", operands, STRING)


def _concat_ws_kernel(_: BoundCall) -> Kernel:
    def compute(*values: Value) -> pa.Array:
        rows = zip(*(value.to_pylist() for value in spread_all(values)), strict=True)
        return pa.array([_joined(*row) for row in rows], STRING)

    return compute


def _joined(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join(part for part in parts if part is not None)


operation("concat_ws", _concat_ws, _concat_ws_kernel)


def _substring(operand: Bound, *places: Bound) -> Bound | None:
    """SUBSTRING(text, place[, count]): places count from 1, or from the end; 0 means 1."""
    found = taken([operand, *places], [STRING, INT, INT][: 1 + len(places)])
    return called("substring", found, STRING) if found is not None and places else None


def _substring_kernel(call: BoundCall) -> Kernel:
    start, count = (*map(constant, call.arguments[1:]), MOST)[:2]
    if start is None or count is None or start < 0 or count < 0:
        return by_row(sliced)(call)
    first = max(start - 1, 0)
    end = min(first + count, MOST) if len(call.arguments) > 2 else None
    return lambda value, *_: pc.utf8_slice_codeunits(value, start=first, stop=end)


def sliced(text: str, place: int, count: int = MOST) -> str:
    """What Spark's SUBSTRING cuts out."""
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    end = min(start + count, MOST)
    return text[max(start, 0) : end] if end > max(start, 0) else ""


operation("substring", _substring, _substring_kernel)
fixed("left", [[STRING, INT]], STRING, by_row(lambda text, count: text[: max(count, 0)]))
fixed(
    "right", [[STRING, INT]], STRING, by_row(lambda text, count: text[-count:] if count > 0 else "")
)


def _matching(name: str) -> None:
    """STARTSWITH, ENDSWITH, CONTAINS, with a kernel where the text looked for is constant."""
    plain = {"startswith": str.startswith, "endswith": str.endswith, "contains": str.__contains__}
    quick = {"startswith": pc.starts_with, "endswith": pc.ends_with, "contains": pc.match_substring}

    def kernel(call: BoundCall) -> Kernel:
        part = constant(call.arguments[1])
        if part is None:
            return by_row(plain[name])(call)
        return lambda value, _: quick[name](value, part)

    fixed(name, [[STRING, STRING]], BOOLEAN, kernel)


for _name in ("startswith", "endswith", "contains"):
    _matching(_name)


def _place(part: str, text: str, first: int = 1) -> int:
    """Where a part stands in a text, counted from 1; 0 if nowhere."""
    if first < 1:
        return 0
    return text.find(part, first - 1) + 1 if part else 1


fixed("locate", [[STRING, STRING], [STRING, STRING, INT]], INT, by_row(_place))


def _replaced(text: str, part: str, new: str) -> str:
    return text.replace(part, new) if part else text


fixed("replace", [[STRING, STRING, STRING]], STRING, by_row(_replaced))


def _trim(side: str, operand: Bound, *characters: Bound) -> Bound | None:
    """TRIM, LTRIM, RTRIM of spaces, or of constant characters."""
    if operand.type != STRING or len(characters) > 1:
        return None
    which = constant(characters[0]) if characters else " "
    if not isinstance(which, str) or not which:
        return None
    return called(side, (operand,), STRING, which)


def _trim_kernel(call: BoundCall) -> Kernel:
    kernels = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}
    trim, (which,) = kernels[call.function], call.parameters
    return lambda value: trim(value, characters=which)


for _name in ("trim", "ltrim", "rtrim"):
    operation(_name, partial(_trim, _name), _trim_kernel)


def _few(name: str, *arguments: Bound) -> Bound | None:
    """LPAD, RPAD, REPEAT with a constant count that is not too large to be made here."""
    types = [STRING, INT, STRING][: len(arguments)]
    found = taken(arguments, types)
    count = None if found is None or len(found) < 2 else constant(found[1])
    if found is None or not isinstance(count, int) or count > LONGEST_REPEAT:
        return None
    return called(name, found, STRING)


def _pad(text: str, length: int, filling: str, left: bool) -> str:
    missing = length - len(text)
    if missing <= 0 or not filling:
        return text[: max(length, 0)]
    extra = (filling * (missing // len(filling) + 1))[:missing]
    return extra + text if left else text + extra


operation("lpad", partial(_few, "lpad"), by_row(partial(_pad, left=True)))
operation("rpad", partial(_few, "rpad"), by_row(partial(_pad, left=False)))
operation("repeat", partial(_few, "repeat"), by_row(lambda text, count: text * max(count, 0)))


def _part(text: str, separator: str, number: int) -> str:
    """SPLIT_PART: the part of that number, from the end if it is negative; empty if there is none."""
    if number == 0:
        raise DataError(
            "the number of a part is zero", sqlstate="22003", hint="the first part has number 1"
        )
    parts = text.split(separator) if separator else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


fixed("split_part", [[STRING, STRING, INT]], STRING, by_row(_part), always)


def _substring_index(text: str, separator: str, count: int) -> str:
    """What stands before the count-th separator, from the end if it is negative."""
    if not separator or count == 0:
        return ""
    parts = text.split(separator)
    if abs(count) >= len(parts):
        return text
    return separator.join(parts[:count] if count > 0 else parts[count:])


fixed("substring_index", [[STRING, STRING, INT]], STRING, by_row(_substring_index))


def _translated(text: str, before: str, after: str) -> str:
    table: dict[int, str | None] = {}
    for number, character in enumerate(before):
        table.setdefault(ord(character), after[number] if number < len(after) else None)
    return text.translate(table)


def _translate(*arguments: Bound) -> Bound | None:
    found = taken(arguments, [STRING] * 3)
    fine = found is not None and all(constant(part) is not None for part in found[1:])
    return called("translate", arguments, STRING) if fine else None


operation("translate", _translate, by_row(_translated))
