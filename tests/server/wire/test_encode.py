"""Rows on the wire: psycopg reads back what Arrow held, in text and in binary."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.server.wire import encode, types
from headwater.server.wire.values import interval_text, numeric_binary, numeric_from_binary
from headwater.values import json_of, python_values
from tests.harness.nested import NESTED
from tests.server.frontend import replies_of

psycopg = pytest.importorskip("psycopg", reason="psycopg is the oracle here")
from psycopg.adapt import Transformer  # noqa: E402
from psycopg.pq import Format  # noqa: E402

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAIVE = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "float64": (pa.float64(), st.floats(allow_nan=False)),
    "decimal": (pa.decimal128(20, 5), st.decimals(-(10**9), 10**9, places=5)),
    "small decimal": (pa.decimal128(38, 20), st.decimals(-9, 9, places=20)),
    "text": (pa.string(), TEXT),
    "bytes": (pa.binary(), st.binary(max_size=8)),
    "date": (pa.date32(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "timestamp": (pa.timestamp("us"), NAIVE),
    "timestamptz": (pa.timestamp("us", "UTC"), NAIVE.map(lambda t: t.replace(tzinfo=dt.UTC))),
    "time": (pa.time64("us"), st.times()),
    "duration": (
        pa.duration("us"),
        st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999)),
    ),
    "numbers": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "texts": (pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    "dates": (pa.list_(pa.date32()), st.lists(st.dates(), max_size=2)),
}


def loaded(rows: pa.Table, format_: int) -> list[tuple[Any, ...]]:
    """The rows as psycopg reads them from the wire."""
    fields = encode.fields_of(rows.schema, (format_,))
    reader = Transformer()
    found = []
    for kind, body in replies_of(encode.data_rows(rows, (format_,))):
        assert kind == "D"
        assert int.from_bytes(body[:2]) == len(fields)
        place, values = 2, []
        for field in fields:
            length = int.from_bytes(body[place : place + 4], signed=True)
            place += 4
            cell = None if length < 0 else body[place : place + length]
            place += max(length, 0)
            loader = reader.get_loader(field.oid, Format(format_))
            values.append(None if cell is None else loader.load(cell))
        assert place == len(body)
        found.append(tuple(values))
    return found


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_values_come_back(data: st.DataObject) -> None:
    """Columns of any type with NULLs, sliced, read back to the values that Arrow holds."""
    names = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    count = data.draw(st.integers(1, 5))
    columns = [
        pa.array(data.draw(st.lists(st.none() | made, min_size=count, max_size=count)), type_)
        for type_, made in (COLUMNS[name] for name in names)
    ]
    labels = [str(number) for number in range(len(names))]
    rows = pa.table(columns, names=labels).slice(data.draw(st.integers(0, count - 1)))
    for format_ in (0, 1):
        found = pa.Table.from_pylist(
            [dict(zip(labels, row, strict=True)) for row in loaded(rows, format_)], rows.schema
        )
        assert found.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("format_", [0, 1])
def test_numbers_that_are_none(format_: int) -> None:
    """Infinity and NaN have PostgreSQL's spelling."""
    rows = pa.table({"a": [float("inf"), float("-inf"), float("nan"), None, 1.0]})
    found = [row[0] for row in loaded(rows, format_)]
    assert found[:2] == [float("inf"), float("-inf")]
    assert found[2] != found[2]
    assert found[3:] == [None, 1.0]


def test_texts_are_postgresqls() -> None:
    """The spellings that people see in psql."""
    cases: list[tuple[pa.Array, list[str | None]]] = [
        (pa.array([True, None]), ["t", None]),
        (pa.array([b"a\0", b""]), ["\\x6100", "\\x"]),
        (pa.array([0, 1_500_000], pa.timestamp("us", "UTC")),
         ["1970-01-01 00:00:00+00", "1970-01-01 00:00:01.5+00"]),
        (pa.array([0], pa.timestamp("us")), ["1970-01-01 00:00:00"]),
        (pa.array([["a b", None, "NULL", 'q"\\']]), ['{"a b",NULL,"NULL","q\\"\\\\"}']),
        (pa.array([{"x": 1, "y": [None]}]), ['{"x": 1, "y": [null]}']),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), ['{"k": 1}']),
        (pa.array([None], pa.null()), [None]),
    ]  # fmt: skip
    for column, texts in cases:
        assert encode.as_text(column).to_pylist() == texts
    assert interval_text(dt.timedelta(days=-1, hours=-2)) == "-1 day -02:00:00"


def test_rows_without_columns_and_no_rows() -> None:
    """A table of no columns has rows of no cells; no rows are no bytes."""
    assert encode.data_rows(pa.table({"a": pa.array([], pa.int32())})) == b""
    rows = pa.table({"a": [1, 2]}).select([])
    assert [body for _, body in replies_of(encode.data_rows(rows))] == [b"\0\0"] * rows.num_rows


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_numerics_in_binary(value: Decimal) -> None:
    """Our own binary form of a decimal is read back to the same number and scale."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    found = numeric_from_binary(numeric_binary(value))
    assert found == value
    assert -int(found.as_tuple().exponent) == max(-exponent, 0)


def test_types_are_described() -> None:
    """OIDs, sizes and modifiers as PostgreSQL has them."""
    schema = pa.schema(
        [("a", pa.decimal128(10, 2)), ("b", pa.list_(pa.string())), ("c", pa.int8())]
    )
    fields = encode.fields_of(schema, (1,))
    assert [(f.oid, f.size, f.format) for f in fields] == [(1700, -1, 1), (1009, -1, 1), (21, 2, 1)]
    assert types.shown(1700, fields[0].modifier) == "numeric(10,2)"


def test_times_of_far_years_keep_their_digits() -> None:
    """As PostgreSQL writes them; Arrow keeps a year in 16 bits, and wrote 2026 for 67562."""
    far = 65_592 * 31_556_952_000_000
    moments = pa.array([far, far + 500_000, None, -62_135_596_800_000_001, 0])
    assert encode.as_text(moments.cast(pa.timestamp("us", "UTC"))).to_pylist() == [
        "67562-01-01 01:26:24+00",
        "67562-01-01 01:26:24.5+00",
        None,
        "0001-12-31 23:59:59.999999+00 BC",
        "1970-01-01 00:00:00+00",
    ]
    assert encode.as_text(moments.slice(0, 1).cast(pa.timestamp("us"))).to_pylist() == [
        "67562-01-01 01:26:24"
    ]
    days = pa.array([40_000_000, -800_000, 0], pa.int32()).cast(pa.date32())
    assert encode.as_text(days).to_pylist() == ["111486-04-13", "0222-09-04 BC", "1970-01-01"]


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("format_", [encode.TEXT, encode.BINARY])
def test_nested_values_are_json_without_a_loss(name: str, format_: int) -> None:
    """The same that HTTP sends; an array of plain values has a type of its own."""
    type_, given_ = NESTED[name]
    column = pa.array([*given_, None], type_)
    cells = encode.as_cells(column, format_).to_pylist()
    read = [None if cell is None else json.loads(cell, parse_constant=refused) for cell in cells]
    assert read == [json_of(type_)(value) for value in python_values(column)]


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
