"""What no table may hold, at every level of a value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.errors import DataError
from headwater.storage.door import (
    FIRST_DAY,
    FIRST_TIME,
    LAST_DAY,
    LAST_TIME,
    check,
    check_file,
    names_far_year,
)
from headwater.storage.rows import as_batch, as_table
from tests.harness.nested import listed

TIMESTAMP, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
ENDS = {
    pa.date32(): (FIRST_DAY, LAST_DAY),
    TIMESTAMP: (FIRST_TIME, LAST_TIME),
    NTZ: (FIRST_TIME, LAST_TIME),
}
# How a type is wrapped, and how a value of it is.
WRAPPED: dict[str, tuple[Any, Any]] = {
    "plain": (lambda t: t, lambda v: v),
    "field": (lambda t: pa.struct([("a", t)]), lambda v: {"a": v}),
    "element": (listed, lambda v: [None, v]),
    "value": (lambda t: pa.map_(pa.string(), t), lambda v: [("k", v)]),
    "key": (lambda t: pa.map_(t, pa.int32()), lambda v: [(v, 1)]),
    "deep": (
        lambda t: pa.struct([("m", pa.map_(pa.string(), listed(pa.struct([("a", t)]))))]),
        lambda v: {"m": [("k", [None, {"a": v}])]},
    ),
}


def raised(call: Any) -> DataError:
    """The error of a call."""
    with pytest.raises(DataError) as caught:
        call()
    return caught.value


def column_of(wrap: str, type_: pa.DataType, numbers: list[int]) -> pa.Table:
    """A table of one column `v` with these days or microseconds, nested, and NULLs between."""
    wrapped, value = WRAPPED[wrap]
    values = [value(pa.scalar(number, type_)) for number in numbers]
    return pa.table({"v": pa.array([None, *values], wrapped(type_))})


@pytest.mark.parametrize("type_", ENDS, ids=str)
@pytest.mark.parametrize("wrap", WRAPPED)
def test_times_lie_in_the_years_1_to_9999(wrap: str, type_: pa.DataType, tmp_path: Path) -> None:
    low, high = ENDS[type_]
    good = column_of(wrap, type_, [low, 0, high])
    check(good, good.schema)
    check(good.slice(2), good.schema)
    pq.write_table(good, tmp_path / "good.parquet")
    check_file(tmp_path / "good.parquet", good.schema)
    for bad in (low - 1, high + 1):
        rows = column_of(wrap, type_, [low, bad, high])
        error = raised(lambda rows=rows: check(rows, rows.schema))
        assert error.sqlstate == "22008"
        assert error.message == "row 2: a time in column v is outside of the years 1 to 9999"
        check(rows.slice(3), rows.schema)  # it is not in this part
        pq.write_table(rows, tmp_path / "bad.parquet")
        error = raised(lambda: check_file(tmp_path / "bad.parquet", good.schema))
        assert error.sqlstate == "22008"


def test_a_file_without_bounds_is_read(tmp_path: Path) -> None:
    rows = column_of("deep", TIMESTAMP, [0, LAST_TIME + 1])
    pq.write_table(rows, tmp_path / "a.parquet", write_statistics=False)
    assert raised(lambda: check_file(tmp_path / "a.parquet", rows.schema)).sqlstate == "22008"
    good = column_of("deep", TIMESTAMP, [0])
    pq.write_table(good, tmp_path / "b.parquet", write_statistics=False)
    check_file(tmp_path / "b.parquet", good.schema)


SCHEMA = pa.schema(
    [pa.field("k", pa.int32()), pa.field("at", TIMESTAMP), pa.field("d", pa.date32())]
)
FAR = datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))  # in UTC, the year 10000
EARLY = datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))
NEAR = datetime(2026, 11, 17, tzinfo=UTC)


@pytest.mark.parametrize("make", [as_table, as_batch])
@pytest.mark.parametrize("at", [FAR, EARLY])
@pytest.mark.parametrize("shape", ["few tuples", "few dicts", "many", "arrow", "seconds", "pandas"])
def test_every_kind_of_rows_is_looked_at(make: Any, at: datetime, shape: str) -> None:
    tuples: list[Any] = [(1, NEAR, date(2026, 1, 1)), (2, at, date.max), (3, NEAR, date.min)]
    micros = [None, FIRST_TIME - 1 if at is EARLY else LAST_TIME + 1]
    if shape == "few dicts":
        given: Any = [dict(zip(SCHEMA.names, row, strict=True)) for row in tuples]
    elif shape == "many":
        given = tuples + [(n, NEAR, None) for n in range(100)]
    elif shape == "arrow":
        given = pa.table({"at": pa.array(micros, TIMESTAMP)})
    elif shape == "seconds":
        given = pa.table({"at": pa.array([None, micros[1] // 1_000_000], pa.timestamp("s"))})  # type: ignore[operator]
    elif shape == "pandas":
        given = pa.table({"at": pa.array(micros, NTZ)}).to_pandas()
    else:
        given = tuples
    error = raised(lambda: make(given, SCHEMA))
    assert error.sqlstate == "22008"
    assert "column at" in error.message
    assert "row 1:" in error.message
    assert "nothing was written" in (error.hint or "")


def test_a_time_that_microseconds_cannot_hold_is_out_of_range_too() -> None:
    given = pa.table({"at": pa.array([1 << 50], pa.timestamp("s"))})
    assert raised(lambda: as_table(given, SCHEMA)).sqlstate == "22008"


POINT = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.int32())])
REQUIRED: dict[str, tuple[pa.DataType, list[Any], Any, str]] = {
    "field": (POINT, [None, {"x": 1, "y": None}], {"y": 1}, "v.x"),
    "field of an element": (listed(POINT), [[], [None]], [{"x": None}], "v.element.x"),
    "field of a value": (
        pa.map_(pa.string(), POINT),
        [[("a", None)], []],
        [("a", {"x": None})],
        "v.value.x",
    ),
    "field of a field": (
        pa.struct([pa.field("p", listed(POINT), nullable=False)]),
        [None, {"p": []}, {"p": [None]}],
        {"p": [{"y": 1}]},
        "v.p.element.x",
    ),
}


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("make", [as_table, as_batch])
def test_a_field_that_is_not_null_holds_no_null(name: str, make: Any) -> None:
    """A block with one could never be written: the rows would wait in memory for ever."""
    type_, good, bad, where = REQUIRED[name]
    schema = pa.schema([pa.field("v", type_)])
    assert make([{"v": value} for value in good], schema).num_rows == len(good)
    error = raised(lambda: make([{"v": value} for value in [*good, bad]], schema))
    assert error.sqlstate == "23502"
    assert error.message == f"NULL in column {where}, which is NOT NULL"


@pytest.mark.parametrize(
    ("text", "far"),
    [
        ("+12026-11-17 08:00:00", True),
        ("12026-11-17T08:00:00Z", True),
        ("error parsing '99999-01-01' as scalar", True),
        ("2026-11-17", False),
        ("52026", False),
        ("id-12026-11-17x", False),
    ],
)
def test_texts_that_name_far_years(text: str, far: bool) -> None:
    assert names_far_year(text) == far
