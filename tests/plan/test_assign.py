"""Literals go into columns without Spark exactly as Spark would cast them; what may be stored where."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.errors import DataError
from headwater.execute.insert import stored
from headwater.plan.assign import assignable
from headwater.sql.literals import literal
from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of
from tests.harness.rows import same_value

LITERALS = [
    "NULL", "TRUE", "false", "0", "-1", "127", "-128", "128", "32768", "2147483647", "-2147483648",
    "2147483648", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "7Y", "-8S",
    "9L", "1.5", "-0.0", "0.1", "123456.789", "-99999999.99", "1e3", "-1.5e-3", "2.5D", "-0.0D",
    "4.9E-324D", "1.5F", "0.25F", "3BD", "-12.50BD", "''", "'x'", "'it''s'", "'水 🌊'", "'12'",
    "'2024-02-29'", "'2024-02-29 12:34:56.789'", "'2024-02-29T12:34:56Z'", "r'a\\b'", "'a\\nb'",
    "DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'", "TIMESTAMP '2024-07-01 12:00:00'",
    "TIMESTAMP '2024-11-03 01:30:00'", "TIMESTAMP '2024-03-10 02:30:00'", "TIMESTAMP '2024-07-01'",
    "TIMESTAMP '2024-07-01 12:00:00.123456+02:00'", "TIMESTAMP '1883-11-18 12:00:00'",
    "TIMESTAMP_NTZ '2024-03-10 02:30:00'", "TIMESTAMP_LTZ '2024-07-01 12:00:00'", "X'00fF'", "X''",
]  # fmt: skip
COLUMNS = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)",
    "DECIMAL(38,0)", "DECIMAL(20,5)", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
]  # fmt: skip
ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]


def test_most_literals_are_plain() -> None:
    assert [text for text in LITERALS if literal(text) is None] == []


@pytest.mark.parametrize("zone", ZONES)
def test_literals_without_spark_are_what_spark_casts(db: headwater.Database, zone: str) -> None:
    db.sql(f"SET time_zone = '{zone}'")
    found = {text: literal(text, zone) for text in LITERALS}
    types = db.sql("SELECT " + ", ".join(f"typeof({text})" for text in LITERALS)).rows()[0]
    for (text, value), spark_type in zip(found.items(), types, strict=True):
        assert value is not None
        assert value.type_name == name_of(parse_type(spark_type)) if text != "NULL" else True, text
    pairs: list[tuple[str, str, Any]] = []
    for column in COLUMNS:
        field = pa.field("c", parse_type(column))
        for text, spark_type in zip(LITERALS, types, strict=True):
            try:
                plain, value = stored(found[text], field, zone)  # type: ignore[arg-type]
            except DataError:  # out of range
                pairs.append((f"try_cast({text} AS {column})", column, None))
                continue
            if plain:
                assert assignable(spark_type, field.type), (text, column)
                kept = pa.array([value], field.type)[0].as_py()
                pairs.append((f"CAST({text} AS {column})", column, kept))
    assert len(pairs) > 150
    cast = db.sql("SELECT " + ", ".join(f"{sql} AS c{i}" for i, (sql, _, _) in enumerate(pairs)))
    for value, (sql, _, wanted) in zip(cast.rows()[0], pairs, strict=True):
        assert same_value(value, wanted), f"{sql}: Spark {value!r}, here {wanted!r}"
        if isinstance(value, float):
            assert math.copysign(1, value) == math.copysign(1, wanted), sql


@pytest.mark.parametrize(
    ("given", "wanted", "allowed"),
    [
        ("int", "BIGINT", True),
        ("bigint", "TINYINT", True),
        ("double", "DECIMAL(5,2)", True),
        ("string", "INT", False),
        ("boolean", "INT", False),
        ("int", "BOOLEAN", False),
        ("int", "STRING", True),
        ("binary", "STRING", False),
        ("array<int>", "STRING", False),
        ("string", "DATE", True),
        ("string", "TIMESTAMP", True),
        ("int", "TIMESTAMP", False),
        ("date", "TIMESTAMP", True),
        ("timestamp", "TIMESTAMP_NTZ", True),
        ("timestamp", "INT", False),
        ("array<int>", "ARRAY<BIGINT>", True),
        ("array<string>", "ARRAY<INT>", False),
        ("array<void>", "ARRAY<INT>", True),
        ("void", "STRUCT<x: INT>", True),
        ("map<void, void>", "MAP<STRING, INT>", True),
        ("map<string, int>", "MAP<STRING, DOUBLE>", True),
        ("map<string, int>", "ARRAY<INT>", False),
        ("struct<`a`: int>", "STRUCT<b: BIGINT>", True),
        ("struct<`a`: int, `b`: int>", "STRUCT<b: BIGINT>", False),
        ("struct<`a`: void>", "STRUCT<a: STRING>", True),
        ("interval day", "STRING", False),
        ("variant", "STRING", False),
    ],
)
def test_what_may_be_stored(given: str, wanted: str, allowed: bool) -> None:
    assert assignable(given, parse_type(wanted)) is allowed
