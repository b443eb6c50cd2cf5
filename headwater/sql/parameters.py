"""Fills values into a text: for the parameters of a procedure or a function, and for `?`, `$1`, `$name`.

Works on tokens: a bare name that is a procedure's parameter is replaced, a name after or before a dot, or
one that is called, is not. Values go in as SQL text, so a string can never become code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from headwater.errors import BindError, Error
from headwater.sql.lexer import Kind, tokenize
from headwater.sql.literals import decimal_text, float_text, number_text, sql_text
from headwater.sql.masking import masked
from headwater.sql.text import EditedText, Span

Parameters = Sequence[object] | Mapping[str, object]  # of `?` and `$1`, or of `$name`


def substitute(text: str, values: Mapping[str, str], span: Span | None = None) -> EditedText:
    """The text (or a span of it) with parameters replaced by SQL texts; keys in lower case."""
    piece = text if span is None else span.of(text)
    edited = EditedText(piece)
    tokens = tokenize(piece)
    for index, token in enumerate(tokens[:-1]):
        if not token.is_name or token.name.lower() not in values:
            continue
        before = tokens[index - 1].text if index else ""
        if before == "." or before.upper() == "AS" or tokens[index + 1].text in (".", "("):
            continue
        edited.replace(token.start, token.end, values[token.name.lower()])
    return edited


def parameter_count(text: str) -> int:
    """How many values `$1`, `$2`, … or `?` in a text need."""
    places = _places(text)
    numbers = [int(text[1:]) for text in places if text[1:].isdecimal()]
    return max(*numbers, places.count("?"), 0, 0)


def bind(text: str, values: Sequence[str] | Mapping[str, str]) -> EditedText:
    """The text with `$n`, `$name`, or each `?` in turn, replaced by SQL texts."""
    found = values if isinstance(values, Mapping) else _numbered(values)
    edited = EditedText(text)
    asked = 0
    for token in tokenize(text):
        if token.kind is not Kind.PARAMETER:
            continue
        asked += token.text == "?"
        name = str(asked) if token.text == "?" else token.text[1:]
        if name not in found:
            place = token.span.place(text)
            raise BindError(f"there is no value for {token.text}", sqlstate="08P01", place=place)
        edited.replace(token.start, token.end, found[name])
    return edited


def _numbered(values: Sequence[str]) -> dict[str, str]:
    return {str(number): value for number, value in enumerate(values, 1)}


def bind_values(text: str, values: Parameters) -> EditedText:
    """The text with Python values in place of its parameters; each of them has to have one."""
    if isinstance(values, Mapping):
        asked = {text[1:] for text in _places(text)}
        unknown = sorted(str(name) for name in values if name not in asked)
        if unknown:
            raise BindError(f"the statement has no ${unknown[0]}", sqlstate="08P01")
        return bind(text, {name: value_text(value) for name, value in values.items()})
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise BindError(
            "parameters are a list, or a mapping from names",
            sqlstate="08P01",
            hint='db.sql("… WHERE id = ?", [1]), or db.sql("… WHERE id = $id", {"id": 1})',
        )
    wanted = parameter_count(text)
    if wanted != len(values):
        raise BindError(
            f"the statement has {wanted} parameters, {len(values)} came", sqlstate="08P01"
        )
    return bind(text, [value_text(value) for value in values])


def unbound(error: Error, edited: EditedText) -> Error:
    """An error in a text with values, placed in the text without them."""
    place = error.place
    if place is not None and place.text in (edited.text, masked(edited.text)):
        at = edited.original_position
        error.place = Span(at(place.start), at(place.end)).place(masked(edited.original))
    return error


def _places(text: str) -> list[str]:
    return [token.text for token in tokenize(text) if token.kind is Kind.PARAMETER]


def _in_microseconds(value: Any) -> Any:
    """Times of NumPy in the unit that Python's have: of finer ones it makes plain numbers."""
    unit = {"M": "datetime64[us]", "m": "timedelta64[us]"}.get(value.dtype.kind)
    return value if unit is None or value.dtype.str.endswith("[D]") else value.astype(unit)


def value_text(value: object) -> str:
    """A Python value as SQL; a text can never become code."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of NumPy: a value, or an array
        value = (_in_microseconds(value) if type(value).__module__ == "numpy" else value).tolist()
    if isinstance(value, bool) or value is None:
        return sql_text(value)
    if isinstance(value, int):
        return number_text(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Decimal):
        return decimal_text(value) if value.is_finite() else float_text(float(value))
    if isinstance(value, datetime):
        return sql_text(value) if value.tzinfo else f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, str | bytes | date):
        return sql_text(value)
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        sign, rest = ("-" if microseconds < 0 else ""), abs(microseconds)
        return f"INTERVAL '{sign}{rest // 1_000_000}.{rest % 1_000_000:06}' SECOND"
    if isinstance(value, UUID):
        return sql_text(str(value))
    if isinstance(value, list | tuple | set | frozenset):
        return f"array({', '.join(map(value_text, value))})"
    raise BindError(
        f"a parameter cannot be a {type(value).__name__}",
        sqlstate="22023",
        hint="a number, text, bytes, time, None, or a list of them; whole tables go in by db.insert",
    )
