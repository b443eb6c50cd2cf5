"""Fields of dates and times.

Owns: YEAR to SECOND, WEEKOFYEAR. Must never: read a field of a TIMESTAMP where the session's time zone is
not UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import DATE, INT
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel
from headwater.expression.table import called, operation
from headwater.sql.types import TIMESTAMP_NTZ

_DATE_FIELDS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "weekofyear": pc.iso_week,
}
_TIME_FIELDS: dict[str, Callable[[Any], Any]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}


def _field(name: str, types: tuple[pa.DataType, ...], operand: Bound) -> Bound | None:
    return called(name, (operand,), INT) if operand.type in types else None


def _field_kernel(part: Callable[[Any], Any], _: BoundCall) -> Kernel:
    return lambda value: pc.cast(part(value), INT)


for _name, _part in _DATE_FIELDS.items():
    operation(_name, partial(_field, _name, (DATE, TIMESTAMP_NTZ)), partial(_field_kernel, _part))
for _name, _part in _TIME_FIELDS.items():
    operation(_name, partial(_field, _name, (TIMESTAMP_NTZ,)), partial(_field_kernel, _part))
