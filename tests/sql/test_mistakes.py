"""Syntax errors get the likely cure as their hint, whoever found them."""

from __future__ import annotations

import pytest

from headwater.errors import BindError, Place, SqlSyntaxError
from headwater.sql.mistakes import RETURNING, hinted
from headwater.sql.parser import parse


def hint(text: str, near: str | None) -> str | None:
    """Of an error at a word of a text, as Spark gives it."""
    place = None if near is None else Place(text, text.rindex(near), text.rindex(near) + len(near))
    return hinted(SqlSyntaxError("syntax error", place=place), text).hint


@pytest.mark.parametrize(
    ("text", "near", "wanted"),
    [
        ("SELECT * FORM t", "t", "did you mean FROM?"),
        ("SELECT a FROM t WERE a = 1", "a", "did you mean WHERE?"),
        ("SELECT a FROM t LIMT 1", "1", "did you mean LIMIT?"),
        ("UPDATE t SET a = 1 RETURNING a", "a", RETURNING),
        ("DELETE FROM t WHERE a = 1 RETURNING *", None, RETURNING),
        ("SELECT a returning b FROM t", "b", None),
        ("SELECT 'FORM' t u", "u", None),
        ("SELECT (a FROM t", "FROM", None),
        ("SELECT 'a", "'a", None),
    ],
)
def test_the_likely_cure(text: str, near: str | None, wanted: str | None) -> None:
    assert hint(text, near) == wanted


def test_what_is_known_stays() -> None:
    text = "SELECT * FORM t"
    place = Place(text, 14, 15)
    assert (
        hinted(SqlSyntaxError("syntax error", hint="another", place=place), text).hint == "another"
    )
    assert hinted(BindError("no table", place=place), text).hint is None
    elsewhere = Place("SELECT * FORM t, u", 14, 15)
    assert hinted(SqlSyntaxError("syntax error", place=elsewhere), text).hint is None


def test_what_the_parser_finds_has_it() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse("DELETE FROM t RETURNING a")
    assert caught.value.hint == RETURNING
