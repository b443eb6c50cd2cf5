"""Plain literals; the expected values were checked against Spark 4.3 (ANSI), in UTC and Berlin."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sql.literals import literal, sql_text, string_value

HALF_PAST = datetime(2020, 1, 1, 10, 11, 12, 500000, UTC)


@pytest.mark.parametrize(
    ("text", "value", "type_name"),
    [
        ("1", 1, "INT"),
        ("-1", -1, "INT"),
        ("- 1", -1, "INT"),
        ("2147483647", 2147483647, "INT"),
        ("2147483648", 2147483648, "BIGINT"),
        ("-2147483648", -2147483648, "INT"),
        ("-2147483649", -2147483649, "BIGINT"),
        ("9223372036854775808", Decimal("9223372036854775808"), "DECIMAL(19,0)"),
        ("-9223372036854775808", -9223372036854775808, "BIGINT"),
        ("1.5", Decimal("1.5"), "DECIMAL(2,1)"),
        ("0.05", Decimal("0.05"), "DECIMAL(2,2)"),
        (".5", Decimal("0.5"), "DECIMAL(1,1)"),
        ("1.", Decimal("1"), "DECIMAL(1,0)"),
        ("100.00", Decimal("100.00"), "DECIMAL(5,2)"),
        ("1e3", 1000.0, "DOUBLE"),
        ("-1.5E-2", -0.015, "DOUBLE"),
        ("1L", 1, "BIGINT"),
        ("-5S", -5, "SMALLINT"),
        ("-128Y", -128, "TINYINT"),
        ("2.5F", 2.5, "FLOAT"),
        ("1D", 1.0, "DOUBLE"),
        ("1.50BD", Decimal("1.50"), "DECIMAL(3,2)"),
        ("'it''s'", "it's", "STRING"),
        ('"a""b"', 'a"b', "STRING"),
        ("'a\"\"b'", 'a""b', "STRING"),
        (r"'a\nb\t\\\'c'", "a\nb\t\\'c", "STRING"),
        (r"r'a\n'", r"a\n", "STRING"),
        ("TRUE", True, "BOOLEAN"),
        ("false", False, "BOOLEAN"),
        ("NULL", None, "VOID"),
        ("DATE '2020-01-31'", date(2020, 1, 31), "DATE"),
        ("TIMESTAMP '2020-01-01'", datetime(2020, 1, 1, tzinfo=UTC), "TIMESTAMP"),
        ("TIMESTAMP '2020-01-01T10:11:12.5'", HALF_PAST, "TIMESTAMP"),
        ("TIMESTAMP '2020-01-01 10:00:00+02:00'", datetime(2020, 1, 1, 8, tzinfo=UTC), "TIMESTAMP"),
        ("TIMESTAMP '2020-01-01 10:00:00Z'", datetime(2020, 1, 1, 10, tzinfo=UTC), "TIMESTAMP"),
        ("TIMESTAMP_NTZ '2020-01-01 10:00:00'", datetime(2020, 1, 1, 10), "TIMESTAMP_NTZ"),
        ("X'1Fab'", b"\x1f\xab", "BINARY"),
        ("x''", b"", "BINARY"),
    ],
)  # fmt: skip
def test_plain(text: str, value: object, type_name: str) -> None:
    found = literal(text)
    assert found is not None
    assert found.value == value
    assert type(found.value) is type(value)
    assert found.type_name == type_name


@pytest.mark.parametrize(
    "text",
    ["a", "1 + 1", "--1", "+1", "-(1)", "f(1)", "128Y", "40000S", "9223372036854775808L",
     "1" * 39, "0." + "1" * 39, "1e400", "1e3BD", "0.1F", "'a' 'b'", r"'\u0041'", r"'\0'", r"'\%'",
     "DATE '2020-1-1'", "DATE '2020-02-30'", "DATE 'now'", "TIMESTAMP '2020'",
     "TIMESTAMP '2020-01-01 25:00:00'", "TIMESTAMP '2020-01-01 10:00:00 Europe/Berlin'",
     "TIMESTAMP_NTZ '2020-01-01 10:00:00Z'", "X'123'", "X'zz'", "INTERVAL '1' DAY", "TIME '10:00'",
     "$$a$$", "", "-NULL", "DATE 'x' 'y'", "CURRENT_DATE", "٣"],
)  # fmt: skip
def test_not_plain(text: str) -> None:
    assert literal(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-01-01 00:00:00", datetime(2019, 12, 31, 23, tzinfo=UTC)),
        ("2020-03-29 02:30:00", datetime(2020, 3, 29, 1, 30, tzinfo=UTC)),  # in the gap
        ("2020-10-25 02:30:00", datetime(2020, 10, 25, 0, 30, tzinfo=UTC)),  # the earlier of two
    ],
)
def test_session_time_zone(text: str, expected: datetime) -> None:
    found = literal(f"TIMESTAMP '{text}'", "Europe/Berlin")
    assert found is not None
    assert found.value == expected
    assert literal(f"TIMESTAMP '{text}'", "No/Where") is None


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [("+02:00", 120), ("-9:30", -570), ("+2", 120), ("UTC+05:45", 345), ("GMT-1", -60),
     ("+18:00", 1080), ("+00:00", 0)],
)  # fmt: skip
def test_a_session_time_zone_may_be_an_offset(zone: str, minutes: int) -> None:
    found = literal("TIMESTAMP '2020-01-01 00:00:00'", zone)
    assert found is not None
    assert found.value == datetime(2020, 1, 1, tzinfo=UTC) - timedelta(minutes=minutes)


@pytest.mark.parametrize("zone", ["+19", "+02:60", "Z+2", "+", "+18:01", "+2:0"])
def test_no_offset(zone: str) -> None:
    assert literal("TIMESTAMP '2020-01-01 00:00:00'", zone) is None


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2**62),
    st.binary(max_size=5),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
)


@given(VALUES)
def test_text_of_a_value_reads_back(value: object) -> None:
    found = literal(sql_text(value))  # type: ignore[arg-type]
    assert found is not None
    assert found.value == value


@given(st.text(max_size=10))
def test_strings_without_backslashes(text: str) -> None:
    body = text.replace("\\", "")
    assert string_value("'" + body.replace("'", "''") + "'") == body
