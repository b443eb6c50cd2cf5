"""Whether two systems gave the same rows: as bags, decimals to their last digit, floats within 1e-9."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

Rows = list[tuple[Any, ...]]
CLOSE = 1e-9


def difference(mine: Rows, theirs: Rows) -> str | None:
    """None if they are equal, else the first difference."""
    if len(mine) != len(theirs):
        return f"{len(mine)} rows of ours, {len(theirs)} of theirs"
    for one, other in zip(sorted(mine, key=_order), sorted(theirs, key=_order), strict=True):
        if not all(_same(a, b) for a, b in zip(one, other, strict=True)):
            return f"{one} and {other}"
    return None


def _order(row: tuple[Any, ...]) -> tuple[str, ...]:
    """By what is exact: texts, dates and whole numbers."""
    return tuple("" if isinstance(v, (float, Decimal)) else str(v) for v in row)


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None or isinstance(one, str):
        return bool(one == other)
    if not isinstance(one, (int, float, Decimal)):
        return bool(one == other)
    last = max((_last_digit(v) for v in (one, other) if isinstance(v, Decimal)), default=0.0)
    a, b = float(one), float(other)
    rounds = not (isinstance(one, Decimal) and isinstance(other, Decimal))
    return abs(a - b) <= max(CLOSE * max(abs(a), abs(b)), last if rounds else 0.0)


def _last_digit(value: Decimal) -> float:
    exponent = value.as_tuple().exponent
    return 10.0**exponent if isinstance(exponent, int) else 0.0
