"""Fields of dates and times, and arithmetic with them.

Owns: YEAR to SECOND and their kin, DATE_TRUNC and TRUNC, days and months added, differences, numbers of
seconds and days since 1970, times plus an interval. The calendar is Gregorian before 1582 too, as Spark's.
Must never: see a TIMESTAMP where the session's time zone is not UTC; only `ZONE_FREE` ones may.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import DataError
from headwater.expression.coercion import BIGINT, DATE, INT, MOMENTS, convert, is_integer
from headwater.expression.functions.arithmetic import checked, overflow
from headwater.expression.nodes import INTERVAL, Bound, BoundCall
from headwater.expression.operand import Kernel, Value, spread_all, vector
from headwater.expression.signature import constant, fixed
from headwater.expression.table import always, called, operation
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ

DAY_US = 86_400_000_000
MOST_DAYS = 4_000_000  # that a constant may add to a date
MOST_MONTHS = 120_000
_DAYS = (DATE, *MOMENTS)

# Functions whose answer on a TIMESTAMP is the same in all time zones.
_COMPARING = ("=", "<>", "<", "<=", ">", ">=", "<=>", "in", "is null", "greatest", "least")
_CHOOSING = (
    "case",
    "coalesce",
    "nullif",
    "widen",
    "array",
    "array_contains",
    "item",
    "field",
    "struct",
)
_COUNTING = ("unix_timestamp", "unix_seconds", "unix_millis", "unix_micros", "timestamp_seconds")
ZONE_FREE = {*_COMPARING, *_CHOOSING, *_COUNTING, "timestamp_millis", "timestamp_micros"}

_DATE_FIELDS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "weekofyear": pc.iso_week,
    "dayofyear": pc.day_of_year,
    "dayofweek": partial(pc.day_of_week, count_from_zero=False, week_start=7),
    "weekday": partial(pc.day_of_week, count_from_zero=True, week_start=1),
}
_TIME_FIELDS: dict[str, Callable[[Any], Any]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
# What EXTRACT calls them.
PARTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
}


def _field_kernel(part: Callable[[Any], Any], call: BoundCall) -> Kernel:
    if call.arguments[0].type == TIMESTAMP:
        return lambda value: pc.cast(part(pc.cast(value, TIMESTAMP_NTZ)), INT)
    return lambda value: pc.cast(part(value), INT)


for _name, _part in _DATE_FIELDS.items():
    fixed(_name, [[type_] for type_ in _DAYS], INT, partial(_field_kernel, _part))
for _name, _part in _TIME_FIELDS.items():
    fixed(_name, [[type_] for type_ in MOMENTS], INT, partial(_field_kernel, _part))


def numbers(value: pa.Array) -> tuple[Any, Any]:
    """Days or microseconds since 1970 as 64-bit integers, and which are NULL."""
    whole = pc.cast(pc.cast(value, INT), BIGINT) if value.type == DATE else pc.cast(value, BIGINT)
    return vector(whole)


def dates(days: Any, nulls: Any) -> pa.Array:
    """Days since 1970 as dates, cut to 32 bits as Java's."""
    return pa.array(days.astype(np.int32), INT, mask=nulls).cast(DATE)


def moments(micros: Any, nulls: Any, type_: pa.DataType) -> pa.Array:
    """Microseconds since 1970 as times."""
    return pa.array(micros.astype(np.int64), BIGINT, mask=nulls).cast(type_)


_MONTHS = {"MONTH": 1, "MM": 1, "MON": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}
_LENGTHS_US = {
    "DAY": DAY_US,
    "DD": DAY_US,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}


def _first_day(days: Any, unit: str) -> Any:
    """The first day of the week, month, quarter or year that a day lies in."""
    if unit == "WEEK":
        return days - (days + 3) % 7  # 1970-01-01 was a Thursday
    count = _MONTHS[unit]
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return (
        (months - months % count).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    )


def _trunc(operand: Bound, unit: str) -> Bound | None:
    """TRUNC(date, unit)."""
    known = unit in _MONTHS or unit == "WEEK"
    return called("trunc", (operand,), DATE, unit) if known and operand.type == DATE else None


def _trunc_kernel(call: BoundCall) -> Kernel:
    (unit,) = call.parameters

    def compute(value: pa.Array) -> pa.Array:
        days, nulls = numbers(value)
        return dates(_first_day(days, str(unit)), nulls)

    return compute


operation("trunc", _trunc, _trunc_kernel)


def _date_trunc(operand: Bound, unit: str) -> Bound | None:
    """DATE_TRUNC(unit, time)."""
    known = unit in _MONTHS or unit == "WEEK" or unit in _LENGTHS_US
    fine = known and operand.type == TIMESTAMP
    return called("date_trunc", (operand,), TIMESTAMP, unit) if fine else None


def _date_trunc_kernel(call: BoundCall) -> Kernel:
    unit = str(call.parameters[0])

    def compute(value: pa.Array) -> pa.Array:
        micros, nulls = numbers(value)
        if unit in _LENGTHS_US:
            found = micros - micros % _LENGTHS_US[unit]
        else:
            found = _first_day(micros // DAY_US, unit) * DAY_US
        return moments(found, nulls, call.type)

    return compute


operation("date_trunc", _date_trunc, _date_trunc_kernel)


def _add_days(operand: Bound, days: Bound, sign: int = 1) -> Bound | None:
    """DATE_ADD, DATE_SUB, `date + number` and `date - number`."""
    if operand.type != DATE or not is_integer(days.type) or days.type == BIGINT:
        return None
    given = constant(days)
    if days.type == INT and (given is None or abs(given) > MOST_DAYS):
        return None
    return called("add_days", (operand, convert(days, INT)), DATE, sign)


def _add_days_kernel(call: BoundCall) -> Kernel:
    (sign,) = call.parameters
    assert isinstance(sign, int)

    def compute(*values: Value) -> pa.Array:
        date, days = spread_all(values)
        (first, first_nulls), (added, added_nulls) = numbers(date), numbers(days)
        return dates(first + sign * added, _either(first_nulls, added_nulls))

    return compute


def _either(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left | right


operation("add_days", _add_days, _add_days_kernel)


def _days_between(*values: Value) -> pa.Array:
    later, earlier = (pc.cast(value, INT) for value in values)
    return pc.subtract(later, earlier)


fixed("datediff", [[DATE, DATE]], INT, lambda _: _days_between)


def _time_between(earlier: Bound, later: Bound, unit: str) -> Bound | None:
    """TIMESTAMPDIFF by a unit of a fixed length: whole units, cut towards zero."""
    known = unit in _UNITS_US and earlier.type == later.type and earlier.type in MOMENTS
    return called("timestampdiff", (earlier, later), BIGINT, unit) if known else None


def _time_between_kernel(call: BoundCall) -> Kernel:
    length = _UNITS_US[str(call.parameters[0])]

    def compute(*values: Value) -> pa.Array:
        earlier, later = (pc.cast(value, BIGINT) for value in spread_all(values))
        return pc.divide(pc.subtract(later, earlier), pa.scalar(length, BIGINT))

    return compute


_UNITS_US = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000}
_UNITS_US |= {"HOUR": 3_600_000_000, "DAY": DAY_US, "WEEK": 7 * DAY_US}
operation("timestampdiff", _time_between, _time_between_kernel)


def _add_months(operand: Bound, months: Bound) -> Bound | None:
    if operand.type != DATE or not is_integer(months.type) or months.type == BIGINT:
        return None
    given = constant(months)
    if months.type == INT and (given is None or abs(given) > MOST_MONTHS):
        return None
    return called("add_months", (operand, convert(months, INT)), DATE)


def _months_later(*values: Value) -> pa.Array:
    date, added = spread_all(values)
    (days, days_null), (count, count_null) = numbers(date), numbers(added)
    stamps = days.astype("datetime64[D]")
    months = stamps.astype("datetime64[M]")
    day = days - months.astype("datetime64[D]").astype(np.int64)
    later = months.astype(np.int64) + count
    first, last = _month_days(later)
    return dates(np.minimum(first + day, last), _either(days_null, count_null))


def _month_days(months: Any) -> tuple[Any, Any]:
    """The first and the last day of months since 1970."""
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    after = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first, after - 1


operation("add_months", _add_months, lambda _: _months_later)


def _last_day(value: pa.Array) -> pa.Array:
    days, nulls = numbers(value)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return dates(_month_days(months)[1], nulls)


fixed("last_day", [[DATE]], DATE, lambda _: _last_day)


def _make_date(*values: Value) -> pa.Array:
    """MAKE_DATE: raises for a day that there is not, unless a part is NULL."""
    parts = [numbers(part) for part in spread_all(values)]
    (years, _), (months, _), (days, _) = parts
    nulls = _either(_either(parts[0][1], parts[1][1]), parts[2][1])
    some = np.ones(len(years), np.bool_) if nulls is None else ~nulls
    fine = (months >= 1) & (months <= 12) & (days >= 1) & (np.abs(years) <= 5_000_000)
    since = np.where(fine, (years - 1970) * 12 + months - 1, 0)
    first, last = _month_days(since)
    found = first + days - 1
    if (some & ~(fine & (found <= last))).any():
        raise DataError(
            "there is no such day", sqlstate="22023", hint="make_date(year, month, day)"
        )
    return dates(np.where(some, found, 0), nulls)


fixed("make_date", [[INT, INT, INT]], DATE, lambda _: _make_date, always)


def _since(unit: int, _: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        micros, nulls = numbers(value)
        return pa.array(micros // unit, BIGINT, mask=nulls)

    return compute


def _until(unit: int, _: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        return pc.cast(pc.multiply_checked(value, unit), TIMESTAMP)

    return checked(compute, "the time", TIMESTAMP)


for _name, _unit in {"seconds": 1_000_000, "millis": 1_000, "micros": 1}.items():
    fixed(f"unix_{_name}", [[TIMESTAMP]], BIGINT, partial(_since, _unit))
    fixed(f"timestamp_{_name}", [[BIGINT]], TIMESTAMP, partial(_until, _unit), always)


def _whole_seconds(value: pa.Array) -> pa.Array:
    """Towards 1970, where UNIX_SECONDS goes towards the past."""
    micros, nulls = numbers(value)
    seconds = np.where(micros < 0, -(-micros // 1_000_000), micros // 1_000_000)
    return pa.array(seconds, BIGINT, mask=nulls)


fixed("unix_timestamp", [[TIMESTAMP]], BIGINT, lambda _: _whole_seconds)
fixed("unix_date", [[DATE]], INT, lambda _: lambda value: pc.cast(value, INT))
fixed("date_from_unix_date", [[INT]], DATE, lambda _: lambda value: pc.cast(value, DATE))


def _shift(operand: Bound, interval: Bound, sign: int = 1) -> Bound | None:
    """A time plus or minus an interval of days to seconds."""
    if operand.type not in MOMENTS or interval.type != INTERVAL or constant(interval) is None:
        return None
    return called("shift", (operand, interval), operand.type, sign)


def _shift_kernel(call: BoundCall) -> Kernel:
    change = pc.add_checked if call.parameters == (1,) else pc.subtract_checked

    def compute(value: Value, interval: Value) -> Value:
        try:
            return change(value, interval)
        except pa.ArrowInvalid as error:
            raise overflow("the time", call.type) from error

    return compute


operation("shift", _shift, _shift_kernel, always)
