"""Bound expressions as plain data: columns, constants and calls, each with its Arrow type.

Owns: what an expression means, apart from how it was written. Two expressions that mean the same
are equal and have one hash; where they stood in a text is not known. `to_plain` and `from_plain`
carry them to another process. Must never: hold a closure, a syntax tree or a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of

NULL = pa.null()  # the type of Spark's NULL without a type
INTERVAL = pa.duration("us")  # of days to seconds; only within an expression, never its result
Parameter = str | int | bool | None


@dataclass(frozen=True)
class BoundColumn:
    """A column of the table that the expression is evaluated over."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class BoundConstant:
    """A value that is the same for all rows, as Python holds it.

    `digits`: of an integer literal, which Spark makes a decimal of so many beside a decimal. `slot`: n of the
    `$n` whose value it is, as it came; what is made of that has none.
    """

    value: Any
    type: pa.DataType
    digits: int | None = None
    slot: int | None = field(default=None, repr=False)

    @property
    def _exact(self) -> tuple[Any, pa.DataType]:
        # -0.0 is another constant than 0.0, and NaN the same as itself.
        value = self.value.hex() if isinstance(self.value, float) else self.value
        return value, self.type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundConstant) and self._exact == other._exact

    def __hash__(self) -> int:
        return hash(self._exact)


@dataclass(frozen=True)
class BoundCall:
    """A function of the table of functions, applied to arguments that have its types already."""

    function: str
    arguments: tuple[Bound, ...]
    type: pa.DataType
    parameters: tuple[Parameter, ...] = ()


Bound = BoundColumn | BoundConstant | BoundCall


def walk(expression: Bound) -> Iterator[Bound]:
    """The expression and all its parts."""
    yield expression
    if isinstance(expression, BoundCall):
        for argument in expression.arguments:
            yield from walk(argument)


def columns_of(expression: Bound) -> frozenset[str]:
    """The columns that an expression reads."""
    return frozenset(part.name for part in walk(expression) if isinstance(part, BoundColumn))


def to_plain(expression: Bound) -> dict[str, Any]:
    """The expression as dicts, lists, text and numbers, such as JSON holds."""
    type_ = _type_name(expression.type)
    if isinstance(expression, BoundColumn):
        return {"column": expression.name, "type": type_}
    if isinstance(expression, BoundConstant):
        value = _plain_value(expression.value)
        return {"constant": value, "type": type_, "digits": expression.digits}
    return {
        "call": expression.function,
        "arguments": [to_plain(argument) for argument in expression.arguments],
        "type": type_,
        "parameters": list(expression.parameters),
    }


def from_plain(plain: Mapping[str, Any]) -> Bound:
    """The expression that `to_plain` was given."""
    type_ = _type_of(plain["type"])
    if "column" in plain:
        return BoundColumn(plain["column"], type_)
    if "constant" in plain:
        return BoundConstant(_value(plain["constant"], type_), type_, plain["digits"])
    arguments = tuple(from_plain(argument) for argument in plain["arguments"])
    return BoundCall(plain["call"], arguments, type_, tuple(plain["parameters"]))


_SPECIAL = {"VOID": NULL, "INTERVAL": INTERVAL}


def _type_name(type_: pa.DataType) -> str:
    return "INTERVAL" if type_ == INTERVAL else name_of(type_)


def _type_of(name: str) -> pa.DataType:
    return _SPECIAL[name] if name in _SPECIAL else parse_type(name)


def _plain_value(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return value.isoformat() if isinstance(value, date) else value


def _value(plain: Any, type_: pa.DataType) -> Any:
    if plain is None:
        return None
    if pa.types.is_floating(type_):
        return float.fromhex(plain)
    if pa.types.is_decimal(type_):
        return Decimal(plain)
    if pa.types.is_duration(type_):
        return timedelta(microseconds=plain)
    if pa.types.is_date(type_):
        return date.fromisoformat(plain)
    return datetime.fromisoformat(plain) if pa.types.is_timestamp(type_) else plain
