"""Parameters: what psycopg sends becomes SQL that reads back to the same value; types are guessed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import DataError
from headwater.server.wire import types
from headwater.server.wire.inference import cast_types, parameter_types
from headwater.server.wire.parameters import array_elements, parameter_text, sample
from headwater.server.wire.values import array_text
from headwater.sql import scripts
from headwater.sql.literals import literal

psycopg = pytest.importorskip("psycopg", reason="psycopg is the oracle here")
from psycopg.adapt import PyFormat, Transformer  # noqa: E402

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
NAIVE = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**9), 10**9, places=4),
    TEXT,
    st.binary(max_size=9),
    st.dates(),
    NAIVE,
    NAIVE.map(lambda t: t.replace(tzinfo=dt.UTC)),
)


@settings(deadline=None, max_examples=200)
@given(VALUES, st.sampled_from([PyFormat.TEXT, PyFormat.BINARY]))
def test_values_become_literals(value: Any, format_: PyFormat) -> None:
    """The literal of a parameter is plain, so that it needs no Spark, and has the same value."""
    if isinstance(value, bytes):
        format_ = PyFormat.BINARY  # without a connection, its text is of the oldest form
    dumper = Transformer().get_dumper(value, format_)
    data = bytes(dumper.dump(value) or b"")
    text = parameter_text(data, dumper.oid, int(format_ == PyFormat.BINARY))
    found = literal(text.strip())
    assert found is not None, text
    assert found.value == value


def test_null_and_samples_are_sql() -> None:
    """NULL is NULL; every type has a sample for those who ask for columns only."""
    assert parameter_text(None, 23, 1) == "NULL"
    for oid in types.BY_OID:
        assert sample(oid)


@pytest.mark.parametrize(
    ("oid", "data", "format_"),
    [
        (23, b"1; DROP TABLE t", 0),
        (23, b"\0", 1),
        (16, b"perhaps", 0),
        (1114, b"2024-13-01", 0),
        (1700, b"1e", 0),
        (1700, b"\0", 1),
        (17, b"\\xzz", 0),
        (1007, b"{1,{2}}", 0),
        (1186, b"3 fortnights", 0),
        (25, b"\xff", 1),
        (1082, b"\x7f\xff\xff\xff", 1),
    ],
)
def test_what_is_no_value_of_its_type(oid: int, data: bytes, format_: int) -> None:
    """A value that does not fit its type is refused, never pasted into the text."""
    with pytest.raises(DataError):
        parameter_text(data, oid, format_)


def test_intervals_and_arrays() -> None:
    """Intervals in PostgreSQL's style, arrays in text and binary."""
    assert parameter_text(b"\\x6100", 17, 0) == parameter_text(b"a\\000", 17, 0) == "X'6100'"
    assert parameter_text(b"1 day 00:00:01.5", 1186, 0) == "INTERVAL '86401.500000' SECOND"
    assert parameter_text(b"1 year 2 mons", 1186, 0) == "INTERVAL '14' MONTH"
    assert parameter_text(b"{1,NULL,-3}", 1007, 0) == "array(1, NULL,  -3)"
    assert parameter_text(b'{"a\\"b",c}', 1009, 0) == "array('a\"b', 'c')"
    for value in ([1, None, 2], ["x", 'q"']):
        dumper = Transformer().get_dumper(value, PyFormat.BINARY)
        dumper = dumper.upgrade(value, PyFormat.BINARY)
        assert parameter_text(bytes(dumper.dump(value)), dumper.oid, 1).startswith("array(")


@given(st.lists(st.none() | TEXT, max_size=4))
def test_array_texts(elements: list[str | None]) -> None:
    """An array's text is taken apart into the elements that it was made of."""
    assert array_elements(array_text(elements)) == elements


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("x", pa.float64()),
    ]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO t VALUES ($1, $2, $3, $4)", (20, 25, 1184, 701)),
        ("INSERT INTO t (x, id) VALUES ($1, $2), ($3, 1 + $4)", (701, 20, 701, 25)),
        ("SELECT * FROM t WHERE id = $1 AND $2 < t.x", (20, 701)),
        ("SELECT * FROM t WHERE at BETWEEN $1 AND $2", (1184, 1184)),
        ("SELECT * FROM t WHERE id IN ($1, $2) LIMIT $3", (20, 20, 20)),
        ("SELECT $1::int, CAST($2 AS DATE), $3::oid[]", (23, 1082, 1028)),
        ("SELECT $1", (25,)),
        ("SELECT * FROM unknown WHERE a = $2", (25, 25)),
        ("UPDATE t SET name = $1 WHERE id = $2", (25, 20)),
    ],
)
def test_types_are_guessed(text: str, expected: tuple[int, ...]) -> None:
    """The place of a parameter says what it is; what nothing is known of is text."""
    found = parameter_types(
        scripts.read_one(text), (), lambda name: SCHEMA if name == "t" else None
    )
    assert found == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("SELECT $1::timestamptz, $2", (1184,)),
        ("SELECT $2::timestamp with time zone, $1::timestamp", (1114, 1184)),
        ("SELECT $1::TIMESTAMP WITHOUT TIME ZONE, $2::timestamp_ltz", (1114, 1184)),
        ("SELECT $2::timestamptz[], $3::nothing", (0, 1185, 0)),
        ("SELECT '$1::date' WHERE $1 = 2", ()),
        ("SELECT $99999999999::int, $65536::int, $0::int", ()),
    ],
)
def test_casts_in_the_words_of_the_client(written: str, expected: tuple[int, ...]) -> None:
    """Its timestamptz is one, though Spark's word for it is TIMESTAMP."""
    assert cast_types(written, ()) == expected


def test_casts_do_not_contradict_the_client() -> None:
    assert cast_types("SELECT $1::timestamptz, $2::int", (25, 0)) == (25, 23)
    assert parameter_types(scripts.read_one("SELECT $99999999999, $1"), (), lambda _: None) == (25,)


def test_a_column_that_has_the_name_of_a_table() -> None:
    """Types come from the tables that are read, not from what has the name of one."""
    other = pa.schema([("id", pa.string())])
    tables = {"t": SCHEMA, "orders": other}
    for text in ("SELECT orders FROM t WHERE id = $1", "UPDATE t SET orders = 1 WHERE id = $1"):
        assert parameter_types(scripts.read_one(text), (), tables.get) == (20,)


def test_what_the_client_says_comes_first() -> None:
    """A type that the client gives is not guessed over; 0 is."""
    text = "SELECT id FROM t WHERE id = $1 AND x = $2"
    assert parameter_types(scripts.read_one(text), (21, 0), lambda _: SCHEMA) == (21, 701)


def test_decimals_keep_their_scale() -> None:
    """1.50 stays a decimal with two places."""
    found = literal(parameter_text(b"1.50", 1700, 0))
    assert found is not None
    assert found.value == Decimal("1.50")
    assert found.type == pa.decimal128(3, 2)
