"""Intervals, exact in microseconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import DataError, Error, SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.duration import Duration, duration_of, parse_duration


def microseconds(text: str) -> int:
    cursor = Cursor(text)
    found = parse_duration(cursor)
    cursor.finish()
    return found.microseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INTERVAL '3' SECOND", 3_000_000),
        ("INTERVAL 3 SECONDS", 3_000_000),
        ("interval 3 seconds", 3_000_000),
        ("INTERVAL '0.2' SECOND", 200_000),
        ("INTERVAL 0.2 SECOND", 200_000),
        ("INTERVAL '3 seconds'", 3_000_000),
        ("INTERVAL '1 day 2 hours'", 93_600_000_000),
        ("INTERVAL 1 DAY 2 HOURS", 93_600_000_000),
        ("INTERVAL '1 02:03:04' DAY TO SECOND", 93_784_000_000),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", 93_784_500_000),
        ("INTERVAL '1 02' DAY TO HOUR", 93_600_000_000),
        ("INTERVAL '02:03' HOUR TO MINUTE", 7_380_000_000),
        ("INTERVAL '02:03' MINUTE TO SECOND", 123_000_000),
        ("INTERVAL '5' MILLISECOND", 5_000),
        ("INTERVAL 7 MICROSECONDS", 7),
        ("INTERVAL '2' WEEK", 1_209_600_000_000),
        ("INTERVAL '60' SECS", 60_000_000),
        ("INTERVAL '0.000001' SECOND", 1),
        ("INTERVAL '1.5' HOUR", 5_400_000_000),
    ],
)
def test_lengths(text: str, expected: int) -> None:
    assert microseconds(text) == expected


@pytest.mark.parametrize("unit", ["MONTH", "MONTHS", "YEAR", "QUARTER"])
def test_months_are_not_a_fixed_length(unit: str) -> None:
    for text in (f"INTERVAL '3' {unit}", f"INTERVAL 3 {unit}", f"INTERVAL '3 {unit}'"):
        with pytest.raises(DataError, match="fixed length") as caught:
            microseconds(text)
        assert caught.value.sqlstate == "22008"
        assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '0.0000001' SECOND", "INTERVAL '0' SECOND",
     "INTERVAL '-1' SECOND", "INTERVAL -1 SECOND", "INTERVAL 99999999999 DAY"],
)  # fmt: skip
def test_lengths_that_are_refused(text: str) -> None:
    with pytest.raises(DataError):
        microseconds(text)


@pytest.mark.parametrize(
    "text",
    ["INTERVAL", "INTERVAL '3'", "INTERVAL 3", "INTERVAL 'x' SECOND", "INTERVAL 3 SECOUNDS",
     "INTERVAL '' SECOND", "INTERVAL 'a b'", "INTERVAL '1:2' DAY TO SECOND", "INTERVAL 1e3 SECOND",
     "INTERVAL '1' SECOND TO DAY"],
)  # fmt: skip
def test_not_an_interval(text: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        microseconds(text)
    assert caught.value.place is not None


def test_unknown_unit_has_a_suggestion() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        microseconds("INTERVAL 3 SECOUNDS")
    assert caught.value.hint == "did you mean SECOND?"


def test_text_in_options() -> None:
    assert duration_of("60 SECS") == Duration(60_000_000)
    assert duration_of("INTERVAL '5' MINUTE") == Duration(300_000_000)
    assert duration_of("0 s", zero=True) == Duration(0)
    with pytest.raises(SqlSyntaxError):
        duration_of("sixty")


@given(st.integers(1, 10**17))
def test_text_of_a_duration_reads_back(length: int) -> None:
    assert microseconds(str(Duration(length))) == length


@given(st.text(max_size=20))
def test_any_text_gives_a_duration_or_an_error(text: str) -> None:
    try:
        duration_of(text)
    except Error:
        pass
