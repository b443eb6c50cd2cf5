"""Rows as users give them: accepted shapes, conversions, and errors that name the row."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from headwater.errors import Error
from headwater.storage.rows import as_table

SCHEMA = pa.schema([pa.field("a", pa.int32(), nullable=False), ("s", pa.string())])
WANTED = [{"a": 1, "s": "x"}, {"a": 2, "s": None}]


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "x"), (2, None)],
        [[1, "x"], [2, None]],
        [{"a": 1, "s": "x"}, {"A": 2}],
        ((n, s) for n, s in [(1, "x"), (2, None)]),
        pa.table({"s": ["x", None], "a": [1, 2]}),
        pa.RecordBatch.from_pydict({"a": [1, 2], "s": ["x", None]}),
        pa.table({"a": pa.array([1, 2], pa.int8()), "s": pa.array(["x", None], pa.large_string())}),
        pa.table({"a": [1.0, 2.0], "s": pa.array(["x", None]).dictionary_encode()}),
        pd.DataFrame({"a": [1, 2], "s": ["x", None]}),
        pl.DataFrame({"a": [1, 2], "s": ["x", None]}),
        pa.table({"a": [1, 2], "s": ["x", None]}).to_reader(),
    ],
    ids=["tuples", "lists", "dicts", "generator", "table", "batch", "other widths", "dictionary",
         "pandas", "polars", "reader"],
)  # fmt: skip
def test_every_shape(rows: Any) -> None:
    found = as_table(rows, SCHEMA)
    assert found.to_pylist() == WANTED
    assert found.schema.types == SCHEMA.types


def test_no_rows() -> None:
    assert as_table([], SCHEMA).num_rows == 0


@pytest.mark.parametrize(
    ("rows", "sqlstate", "message"),
    [
        ([(1,)], "42601", "row 0 has 1 values, the table has 2 columns"),
        ([(1, "x"), (2, "y", 3)], "42601", "row 1 has 3 values"),
        ([(1, "x"), (None, "y")], "23502", "NULL in column a"),
        ([{"s": "x"}], "23502", "NULL in column a"),
        ([(1, "x"), (2**31, "y")], "22003", "row 1: 2147483648 does not fit column a INT"),
        ([(1.5, "x")], "22003", "row 0: 1.5 does not fit"),
        ([("1", "x")], "22018", "row 0: '1' does not fit"),
        ([(1, "\ud800")], "22018", "does not fit column s STRING"),
        ([(1, 5)], "22003", "row 0: 5 does not fit column s"),
        ([{"a": 1, "t": 2}], "42703", "there is no column t"),
        ([{"a": 1}, (2, "x")], "22000", "row 1 is a tuple"),
        (["ab"], "22000", "row 0 is a str"),
        ("ab", "22000", "rows cannot be a str"),
        ({"a": 1}, "22000", "rows cannot be a dict"),
        (5, "22000", "rows cannot be a int"),
        (pa.table({"a": [1], "A": [2]}), "42701", "column a is given twice"),
        (pa.table({"a": ["x"]}), "42804", "column a is INT, the rows have STRING"),
        (pa.table({"a": [2**40]}), "22003", "a value does not fit INT"),
        (pa.table({"a": [1.5]}), "22003", "a value does not fit INT"),
        (pa.table({"a": [1], "s": [True]}), "42804", "column s is STRING, the rows have BOOLEAN"),
    ],
)
def test_bad_rows(rows: Any, sqlstate: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        as_table(rows, SCHEMA)
    assert caught.value.sqlstate == sqlstate
    assert message in caught.value.message


def test_hint_for_a_column_that_does_not_exist() -> None:
    schema = pa.schema([("price", pa.float64())])
    with pytest.raises(Error) as caught:
        as_table([{"pice": 1.0}], schema)
    assert caught.value.hint == "did you mean price?"


def test_every_type_that_a_table_can_hold() -> None:
    berlin = timezone(timedelta(hours=1))
    schema = pa.schema(
        [
            ("b", pa.bool_()),
            ("i8", pa.int8()),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("n", pa.decimal128(10, 2)),
            ("x", pa.binary()),
            ("day", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("l", pa.list_(pa.field("element", pa.int32()))),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("s", pa.struct([("k", pa.string()), ("v", pa.list_(pa.float64()))])),
        ]
    )
    row = (
        np.bool_(True),
        np.int8(5),
        1.5,
        float("inf"),
        Decimal("1.25"),
        b"\0",
        date(2024, 2, 29),
        datetime(2024, 1, 1, 1, tzinfo=berlin),
        datetime(2024, 1, 1, 1, 0, 0, 7),
        [1, None],
        {"k": 1},
        {"k": "x", "v": [1.0]},
    )
    (found,) = as_table([row], schema).to_pylist()
    assert found["ts"] == datetime(2024, 1, 1, tzinfo=UTC)
    assert found["local"] == row[8]
    assert (found["b"], found["i8"], found["n"]) == (True, 5, Decimal("1.25"))
    assert (found["l"], found["m"], found["s"]) == ([1, None], [("k", 1)], row[11])


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (1.5, pa.int64()),
        (np.float32(1.5), pa.int32()),
        (Decimal("1.5"), pa.int32()),
        (float("nan"), pa.int32()),
        (True, pa.int32()),
        (True, pa.float64()),
        (1e300, pa.float32()),
        (5, pa.timestamp("us", "UTC")),
        (5.5, pa.timestamp("us")),
        (5, pa.date32()),
        (datetime(2024, 1, 1, 12), pa.date32()),
        (1, pa.bool_()),
        (b"x", pa.string()),
        ("x", pa.binary()),
        (1.25, pa.decimal128(5, 2)),
        (Decimal("1.255"), pa.decimal128(5, 2)),
        (Decimal("1000"), pa.decimal128(5, 2)),
        ([1, 1.5], pa.list_(pa.int32())),
        (b"x", pa.list_(pa.int8())),
        ({"k": 1.5}, pa.map_(pa.string(), pa.int32())),
        ({"x": 1, "other": 2}, pa.struct([("x", pa.int32())])),
        ({"x": 1.5}, pa.struct([("x", pa.int32())])),
    ],
)
def test_a_python_value_is_stored_as_it_is_or_not_at_all(value: Any, type_: pa.DataType) -> None:
    with pytest.raises(Error, match=r"row 1: .* does not fit column c"):
        as_table([(None,), (value,)], pa.schema([("c", type_)]))


def test_whole_numbers_of_any_kind_go_into_integer_columns() -> None:
    values = [1, 2.0, np.int64(3), np.float32(4), Decimal(5), None]
    found = as_table([(v,) for v in values], pa.schema([("c", pa.int32())]))
    assert found.column("c").to_pylist() == [1, 2, 3, 4, 5, None]


def test_timestamps_of_other_units_and_zones_keep_the_instant() -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    instant = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    for unit, zone in (("ms", "Europe/Berlin"), ("ns", "UTC"), ("s", "UTC")):
        given = pa.table({"ts": pa.array([instant], pa.timestamp(unit, zone))})
        assert as_table(given, schema).to_pylist() == [{"ts": instant}]


def test_nanoseconds_that_would_be_lost_are_refused() -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    given = pa.table({"ts": pa.array([1], pa.timestamp("ns", "UTC"))})
    with pytest.raises(Error, match="does not fit TIMESTAMP"):
        as_table(given, schema)
