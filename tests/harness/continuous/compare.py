"""Whether two results are the same, among tiers and with DuckDB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

Row = Sequence[Any]
TOLERANCE = 1e-9


def same_value(a: Any, b: Any) -> bool:
    """NULL and NaN equal themselves; floats within 1e-9; a decimal that DuckDB made a float as well."""
    if a is None or b is None:
        return a is b
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-11)
    if isinstance(a, Decimal) and isinstance(b, float):
        exponent = a.as_tuple().exponent
        assert isinstance(exponent, int)
        return math.isclose(float(a), b, rel_tol=TOLERANCE, abs_tol=10.0**exponent * 0.51)
    if isinstance(a, datetime) and isinstance(b, datetime):
        return _utc(a) == _utc(b)
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    return bool(a == b)


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def same_row(a: Row, b: Row) -> bool:
    """All values."""
    return len(a) == len(b) and all(map(same_value, a, b))


def same_bag(a: Sequence[Row], b: Sequence[Row]) -> bool:
    """As bags."""
    left = list(b)
    if len(a) != len(left):
        return False
    for row in a:
        match = next((i for i, other in enumerate(left) if same_row(row, other)), None)
        if match is None:
            return False
        del left[match]
    return True


def same_list(a: Sequence[Row], b: Sequence[Row]) -> bool:
    """In order."""
    return len(a) == len(b) and all(map(same_row, a, b))


def difference(new: Sequence[Row], old: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """What a result has that the one before had not, and the other way."""
    gone = list(old)
    come = []
    for row in new:
        match = next((i for i, other in enumerate(gone) if same_row(row, other)), None)
        if match is None:
            come.append(row)
        else:
            del gone[match]
    return come, gone
