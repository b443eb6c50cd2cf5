"""Walking the tokens of a statement."""

from __future__ import annotations

import pytest

from headwater.errors import BindError, NotSupportedError, SqlSyntaxError
from headwater.sql.cursor import Cursor, one_of


def test_words_are_matched_in_order_and_in_any_case() -> None:
    cursor = Cursor("if Not exists t")
    assert cursor.at("IF", "NOT")
    assert not cursor.accept("IF", "EXISTS")
    assert cursor.accept("IF", "NOT", "EXISTS")
    assert cursor.name() == "t"
    assert cursor.at_end


def test_quoted_names_and_strings_are_no_keywords() -> None:
    assert not Cursor("`SELECT`").at("SELECT")
    assert not Cursor("'SELECT'").at("SELECT")
    assert Cursor("`SELECT`").name() == "SELECT"


def test_expected_and_found() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        Cursor("INSERT INTOO t").expect("INSERT", "INTO")
    error = caught.value
    assert error.message == 'syntax error at or near "INTOO"'
    assert error.detail == "expected INTO"
    assert error.hint == "did you mean INTO?"
    with pytest.raises(SqlSyntaxError, match="at end of input"):
        Cursor("INSERT").expect("INSERT", "INTO")


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        ("a + f(b, c), d", ",", "a + f(b, c)"),
        ("CASE WHEN a, b THEN c END, d", ",", "CASE WHEN a, b THEN c END"),
        ("x.case, d", ",", "x.case"),
        ("a[b, c] /* , */, d", ",", "a[b, c]"),
        ("end, d", ",", "end"),
        ("', ', d", ",", "', '"),
    ],
)
def test_expressions_end_outside_brackets_and_cases(text: str, stop: str, expected: str) -> None:
    assert Cursor(text).expression("x", stop).of(text) == expected


def test_brackets_must_match() -> None:
    for text in ("(a", "(a]", "([)]"):
        with pytest.raises(SqlSyntaxError, match="unclosed"):
            Cursor(text).skip_brackets()


@pytest.mark.parametrize("text", ["_x", "``", "` `", "`a/b`", "x" * 129, "`a\tb`"])
def test_names_that_cannot_be_new(text: str) -> None:
    with pytest.raises(BindError) as caught:
        Cursor(text).new_name("a name")
    assert caught.value.sqlstate == "42602"


def test_new_names_have_no_dots() -> None:
    with pytest.raises(NotSupportedError):
        Cursor("a.b").new_name("a name")
    assert Cursor("a.`b c`").path() == "a.b c"
    assert Cursor("x" * 128).new_name("a name") == "x" * 128


def test_numbers() -> None:
    assert Cursor("12").integer() == 12
    for text in ("1.5", "1L", "x", "-1", "9" * 19):
        with pytest.raises(SqlSyntaxError):
            Cursor(text).integer()
    with pytest.raises(SqlSyntaxError):
        Cursor("0").positive()


def test_one_of() -> None:
    assert one_of(["A"]) == "A"
    assert one_of(["A", "B", "C"]) == "A, B or C"
