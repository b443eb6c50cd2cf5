"""Statistics of a data file, as a Delta log holds them: rows, NULLs, smallest and largest values.

Owns their shape: a struct is an object of its fields, everything else is one value. Delta readers
refuse a whole log for a wrong shape, or silently take none of the statistics, so each commit is
checked here before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

Check = Callable[[Any, pa.DataType], bool]


def null_count(column: pa.ChunkedArray[Any]) -> int | dict[str, Any]:
    """How many values are NULL; of a struct, an object with the counts of its fields."""
    if not pa.types.is_struct(column.type):
        return column.null_count
    names = (field.name for field in column.type)
    return {name: null_count(part) for name, part in zip(names, column.flatten(), strict=True)}


def misfit(statistics: Mapping[str, Any], schema: pa.Schema) -> str | None:
    """What in the statistics Delta readers would refuse, `nullCount.p` for example; None if all fits."""
    if not _is_count(statistics.get("numRecords"), pa.int64()):
        return "numRecords"
    checks: dict[str, Check] = {
        "nullCount": _is_count,
        "minValues": _is_bound,
        "maxValues": _is_bound,
    }
    for name, check in checks.items():
        found = _misfit(statistics.get(name, {}), schema, check)
        if found is not None:
            return f"{name}{found}"
    return None


def _misfit(values: Any, fields: Iterable[pa.Field[Any]], check: Check) -> str | None:
    if not isinstance(values, Mapping):
        return ""
    types = {field.name: field.type for field in fields}
    for name, value in values.items():
        type_ = types.get(name)
        if type_ is None:
            return f".{name}"
        if pa.types.is_struct(type_):
            inside = _misfit(value, type_, check)
            if inside is not None:
                return f".{name}{inside}"
        elif not check(value, type_):
            return f".{name}"
    return None


def _is_count(value: Any, type_: pa.DataType) -> bool:  # noqa: ARG001  # the same for all types
    return type(value) is int and 0 <= value < 1 << 63


def _is_bound(value: Any, type_: pa.DataType) -> bool:
    """Whether a value may stand as a bound; bounds of other types are left out, which is allowed."""
    if pa.types.is_integer(type_):
        limit = 1 << (type_.bit_width - 1)
        return type(value) is int and -limit <= value < limit
    texts = (pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
    return isinstance(value, str) and any(is_text(type_) for is_text in texts)
