"""Bound expressions as plain data: columns, constants and calls, each with its Arrow type.

Owns: what an expression means, apart from how it was written. Two expressions that mean the same
are equal and have one hash; where they stood in a text is not known. Must never: hold a closure, a syntax
tree or a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

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
