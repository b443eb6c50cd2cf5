"""Types in DDL."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import BindError, NotSupportedError, SqlSyntaxError
from headwater.sql import types
from headwater.sql.type_parser import parse_type


@pytest.mark.parametrize("name", [*types.SIMPLE, *types.ALIASES])
def test_simple_types(name: str) -> None:
    assert parse_type(name) == types.simple(name)
    assert parse_type(name.lower()) == types.simple(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DECIMAL", pa.decimal128(10, 0)),
        ("NUMERIC(5)", pa.decimal128(5, 0)),
        ("dec(38, 10)", pa.decimal128(38, 10)),
        ("DOUBLE PRECISION", pa.float64()),
        ("TIMESTAMP WITHOUT TIME ZONE", types.TIMESTAMP_NTZ),
        ("TIMESTAMP WITH TIME ZONE", types.TIMESTAMP),
        ("ARRAY<INT>", pa.list_(pa.field("element", pa.int32()))),
        (
            "MAP<STRING, ARRAY<INT>>",
            pa.map_(pa.string(), pa.list_(pa.field("element", pa.int32()))),
        ),
        (
            "STRUCT<a: INT NOT NULL, `b c` STRING COMMENT 'x', d: STRUCT<e: DATE>>",
            pa.struct(
                [
                    pa.field("a", pa.int32(), nullable=False),
                    pa.field("b c", pa.string()),
                    pa.field("d", pa.struct([pa.field("e", pa.date32())])),
                ]
            ),
        ),
    ],
)
def test_parameters_and_nesting(text: str, expected: pa.DataType) -> None:
    found = parse_type(text)
    assert found == expected
    assert types.canonical(found) == found
    assert parse_type(types.name_of(found)) == found


@pytest.mark.parametrize(
    "text", ["VARCHAR(10)", "CHAR(3)", "CHAR", "TIME", "INTERVAL", "VARIANT", "UUID", "STRING(3)"]
)
def test_types_that_tables_cannot_store(text: str) -> None:
    with pytest.raises(NotSupportedError) as caught:
        parse_type(text)
    assert caught.value.sqlstate == "0A000"
    assert caught.value.hint


def test_unknown_type() -> None:
    with pytest.raises(BindError) as caught:
        parse_type("INTEGR")
    assert caught.value.sqlstate == "42704"
    assert caught.value.hint == "did you mean INTEGER?"


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [("DECIMAL(39)", "22023"), ("DECIMAL(3, 5)", "22023"), ("STRUCT<a: INT, A: INT>", "42701")],
)
def test_rules(text: str, sqlstate: str) -> None:
    with pytest.raises(BindError) as caught:
        parse_type(text)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    "text", ["", "ARRAY", "ARRAY<INT", "MAP<INT>", "STRUCT<>", "INT INT", "1", "DECIMAL(1,"]
)
def test_syntax_errors(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_type(text)


def test_nesting_has_a_bound() -> None:
    with pytest.raises(NotSupportedError):
        parse_type("ARRAY<" * 500 + "INT" + ">" * 500)


TYPES = st.recursive(
    st.sampled_from([*types.SIMPLE.values(), pa.decimal128(7, 3)]),
    lambda inner: st.one_of(
        inner.map(lambda t: pa.list_(pa.field("element", t))),
        st.tuples(st.sampled_from([pa.string(), pa.int32()]), inner).map(lambda p: pa.map_(*p)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda ts: pa.struct([pa.field(f"f {i}", t, nullable=i > 0) for i, t in enumerate(ts)])
        ),
    ),
    max_leaves=6,
)


@given(TYPES)
def test_text_of_a_type_reads_back(type_: pa.DataType) -> None:
    assert parse_type(types.name_of(type_)) == type_
