"""Values for `?`, `$1` and `$name`: as SQL texts that are read back to the same value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import BindError, Error
from headwater.sql.literals import literal
from headwater.sql.parameters import Parameters, bind_values, unbound, value_text
from headwater.sql.text import Span

MOMENT = dt.datetime(2026, 3, 1, 10, 0, tzinfo=dt.timezone(dt.timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "values", "bound"),
    [
        ("SELECT ? + ?", [1, -2], "SELECT 1 +  -2"),
        ("SELECT $2, $1, $2", ["a", None], "SELECT NULL, 'a', NULL"),
        ("SELECT $low, $high, $low", {"low": 1, "high": 2.5}, "SELECT 1, 2.5D, 1"),
        ("SELECT '?', `$1`, ? -- ?", [True], "SELECT '?', `$1`, TRUE -- ?"),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT ?", [[1, 2]], "SELECT array(1, 2)"),
        ("SELECT ?", [("a", None)], "SELECT array('a', NULL)"),
        ("SELECT $$ ? $$", {}, "SELECT $$ ? $$"),
        ("SELECT ?", [np.timedelta64(1_500_000_000, "ns")], "SELECT INTERVAL '1.500000' SECOND"),
        (
            "SELECT ?",
            [np.array(["2026-03-01T01:00"], "datetime64[ns]")],
            "SELECT array(TIMESTAMP '2026-03-01 01:00:00')",
        ),
    ],
)
def test_texts_with_values(text: str, values: Parameters, bound: str) -> None:
    assert bind_values(text, values).text == bound


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("SELECT ?, ?", [1], "the statement has 2 parameters, 1 came"),
        ("SELECT $1", [1, 2], "the statement has 1 parameters, 2 came"),
        ("SELECT $a", [], r"there is no value for \$a"),
        ("SELECT $a", {"b": 1}, r"the statement has no \$b"),
        ("SELECT ?", {"a": 1}, r"the statement has no \$a"),
        ("SELECT ?", "x", "parameters are a list, or a mapping from names"),
        ("SELECT ?", [object()], "a parameter cannot be a object"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, values: Parameters, message: str) -> None:
    with pytest.raises(BindError, match=message):
        bind_values(text, values)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (dt.date(2026, 3, 1), dt.date(2026, 3, 1)),
        (MOMENT, MOMENT),
        (dt.datetime(2026, 3, 1, 9, 30), dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC)),
        (Decimal("-12.50"), Decimal("-12.50")),
        (b"\x00\xff", b"\x00\xff"),
        (UUID(int=5), str(UUID(int=5))),
        (np.int64(7), 7),
        (np.float64(0.25), 0.25),
        (np.bool_(True), True),
        (
            np.datetime64("2026-03-01T09:30:00.5", "ns"),
            dt.datetime(2026, 3, 1, 9, 30, 0, 500000, tzinfo=dt.UTC),
        ),
        (np.datetime64("2026-03-01"), dt.date(2026, 3, 1)),
        (np.datetime64("NaT", "ns"), None),
    ],
)
def test_values_of_other_libraries_and_times(value: object, read: object) -> None:
    found = literal(value_text(value).strip())
    assert found is not None
    assert found.value == read


@given(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
)
def test_a_value_is_read_back_as_it_was(value: object) -> None:
    found = literal(value_text(value).strip())
    assert found is not None
    assert (found.value, type(found.value)) == (value, type(value))


def test_an_error_stands_in_the_text_without_values() -> None:
    edited = bind_values("SELECT ?, nothing", ["a long text"])
    start = edited.text.index("nothing")
    error = Error("no such column", place=Span(start, start + 7).place(edited.text))
    place = unbound(error, edited).place
    assert place is not None
    assert place.text[place.start : place.end] == "nothing"
    assert place.text == "SELECT ?, nothing"
