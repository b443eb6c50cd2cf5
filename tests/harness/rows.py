"""Comparing rows as bags: order does not count, NULL and NaN equal themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TOLERANCE = 1e-9
Row = Sequence[Any]


def same_value(a: Any, b: Any) -> bool:
    """Whether two values are the same: NaN equals NaN, floats within 1e-9 relative."""
    if isinstance(a, float) and isinstance(b, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return both_nan or math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=0.0)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same_value(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same_value, a, b))
    return bool(type(a) is type(b) and a == b) or (a is None and b is None)


def same_rows(a: Iterable[Row], b: Iterable[Row]) -> bool:
    """Whether two bags of rows are the same."""
    left, right = sorted(map(tuple, a), key=_key), sorted(map(tuple, b), key=_key)
    if len(left) != len(right):
        return False
    if all(map(same_value, left, right)):
        return True
    # Floats that differ in their last digits may sort differently: match one by one.
    for row in left:
        match = next((i for i, other in enumerate(right) if same_value(row, other)), None)
        if match is None:
            return False
        del right[match]
    return True


def check_same(found: Iterable[Row], wanted: Iterable[Row]) -> None:
    """Asserts that two bags are the same and shows both sides, sorted, if they are not."""
    found, wanted = list(map(tuple, found)), list(map(tuple, wanted))
    if not same_rows(found, wanted):
        assert sorted(found, key=_key) == sorted(wanted, key=_key), "the bags differ"
        raise AssertionError(f"the bags differ: {found} and {wanted}")


def _key(row: Row) -> str:
    return repr([f"{value:.6g}" if isinstance(value, float) else value for value in row])
