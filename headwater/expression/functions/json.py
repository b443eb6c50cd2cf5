"""Parts of JSON texts, as Jackson reads them and writes them again.

Owns: which texts Spark takes for JSON (strings in single quotes and control characters too; what stands
behind the value says nothing), paths of names and places, and how numbers and strings are written. Must
never: raise for what is no JSON, which gives NULL; a text that is nested too deeply is left to Spark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from headwater.errors import DataError
from headwater.expression.coercion import INT, STRING
from headwater.expression.functions.reading import double_text
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel
from headwater.expression.signature import by_row, constant, fixed, list_of
from headwater.expression.table import called, operation

MOST_DIGITS, DEEPEST, LONGEST_NAME = 1000, 1000, 50_000  # Jackson refuses what is beyond
_PATH = re.compile(r"\$(?:\.[^.\[\s*]+|\['[^'?*\s]+(?: [^'?*\s]+)*'\]|\[\d{1,9}\])+", re.ASCII)
_STEP = re.compile(r"\.([^.\[]+)|\['([^']+)'\]|\[(\d+)\]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|["\']', re.DOTALL)
_INSIDE = re.compile(r'\\.|"', re.DOTALL)
_ESCAPED = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_HALVES = re.compile(r"[\ud800-\udfff]")  # of pairs that are not there: no text
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
Path = tuple[str | int, ...]


class _Number(str):
    """A number as it is written."""

    __slots__ = ()

    def __new__(cls, text: str) -> _Number:
        if len(text) > MOST_DIGITS and sum(map(str.isdigit, text)) > MOST_DIGITS:
            raise ValueError("a number of too many digits")
        return super().__new__(cls, text)


def _no_constant(_: str) -> Any:
    raise ValueError("NaN and Infinity are no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple,  # names may come twice
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_no_constant,
    strict=False,
)
NO_JSON = object()


def read(text: str) -> Any:
    """The first value of a text: objects are tuples of pairs; NO_JSON where Jackson finds none."""
    try:
        value = _first(text)
    except ValueError:
        if "'" not in text:
            return NO_JSON
        try:
            value = _first(_STRING.sub(_in_double_quotes, text))
        except ValueError:
            return NO_JSON
    large = len(text) > LONGEST_NAME or text.count("[") + text.count("{") > DEEPEST
    return NO_JSON if large and not _is_small(value, DEEPEST) else value


def _first(text: str) -> Any:
    return _DECODER.raw_decode(text, len(text) - len(text.lstrip(" \t\r\n")))[0]


def _in_double_quotes(found: re.Match[str]) -> str:
    """A string in the one kind of quotes that Python knows; a quote that nothing ends is no JSON."""
    string = found.group()
    if len(string) == 1:
        return "\x00"
    inner = {"\\'": "'", '"': '\\"'}
    text = _INSIDE.sub(lambda part: inner.get(part.group(), part.group()), string[1:-1])
    return f'"{text}"'


def _is_small(value: Any, levels: int) -> bool:
    """Whether nothing is nested deeper, and no name is longer, than Jackson takes."""
    if isinstance(value, tuple):
        names = all(len(name) <= LONGEST_NAME for name, _ in value)
        return levels > 0 and names and all(_is_small(inner, levels - 1) for _, inner in value)
    return not isinstance(value, list) or (
        levels > 0 and all(_is_small(inner, levels - 1) for inner in value)
    )


def written(value: Any) -> str:
    """A value as JSON without blanks."""
    if isinstance(value, tuple):
        return f"{{{','.join(f'{_quoted(name)}:{written(inner)}' for name, inner in value)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(written, value))}]"
    if isinstance(value, _Number):
        return _number(value)
    if isinstance(value, str):
        return _quoted(value)
    return "null" if value is None else str(value).lower()


def _number(text: str) -> str:
    if text.lstrip("-").isdigit():
        return str(int(text))
    value = float(text)
    return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    """One of the letters that Jackson does not write as they are: those of two halves among them."""
    character = found.group()
    halves = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return _SHORT.get(character) or "".join(
        f"\\u{halves[n : n + 4]}" for n in range(0, len(halves), 4)
    )


def path_of(text: Any) -> Path | None:
    """The names and places of a path; None for what is none, and for wildcards."""
    if not isinstance(text, str) or not _PATH.fullmatch(text):
        return None
    return tuple(
        int(place) if place else name or quoted for name, quoted, place in _STEP.findall(text)
    )


def found_at(value: Any, path: Path) -> str | None:
    """The text of the part at a path; of several with one name the first that is not null and has it."""
    if not path:
        if type(value) is str:
            return None if _HALVES.search(value) else value
        return written(value)
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        fits = isinstance(value, list) and step < len(value)
        return found_at(value[step], rest) if fits else None
    if not isinstance(value, tuple):
        return None
    parts = (found_at(inner, rest) for name, inner in value if name == step and inner is not None)
    return next((part for part in parts if part is not None), None)


def _get(text: Bound, path: Bound) -> Bound | None:
    steps = path_of(constant(path))
    if text.type != STRING or steps is None:
        return None
    return called("get_json_object", (text,), STRING, *steps)


def _get_kernel(call: BoundCall) -> Kernel:
    path: Path = call.parameters  # type: ignore[assignment]

    def part(text: str) -> str | None:
        value = read(text)
        return None if value is NO_JSON else found_at(value, path)

    return by_row(_not_too_deep(part))(call)


def _not_too_deep(function: Callable[[str], Any]) -> Callable[[str], Any]:
    def careful(text: str) -> Any:
        try:
            return function(text)
        except RecursionError:
            raise DataError("the JSON is nested too deeply", sqlstate="54000") from None

    return careful


operation("get_json_object", _get, _get_kernel)


def _length(text: str) -> int | None:
    value = read(text)
    return len(value) if isinstance(value, list) else None


def _names(text: str) -> list[str] | None:
    value = read(text)
    return [name for name, _ in value] if isinstance(value, tuple) else None


fixed("json_array_length", [[STRING]], INT, by_row(_not_too_deep(_length)))
fixed("json_object_keys", [[STRING]], list_of(STRING), by_row(_not_too_deep(_names)))
