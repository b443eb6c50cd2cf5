"""Tokens by the rules of Spark's lexer."""

from __future__ import annotations

import pytest

from headwater.errors import SqlSyntaxError
from headwater.sql.lexer import Kind, tokenize


def texts(text: str) -> list[str]:
    return [token.text for token in tokenize(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b", ["a", ".", "b"]),
        ("1.5 .5 1. 1e3 1E-3 2.5e+1", ["1.5", ".5", "1.", "1e3", "1E-3", "2.5e+1"]),
        ("1L 2s 3Y 4D 5f 6BD", ["1L", "2s", "3Y", "4D", "5f", "6BD"]),
        ("1abc a1", ["1abc", "a1"]),
        ("'it''s' \"a\"\"b\"", ["'it''s'", '"a""b"']),
        (r"'a\'b' r'a\' x", [r"'a\'b'", r"r'a\'", "x"]),
        ("`a``b`", ["`a``b`"]),
        ("a -- c\nb", ["a", "b"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("a /*+ h(1, t) */ b", ["a", "b"]),
        ("a /*+ h('*/') */ b -- '", ["a", "b"]),
        ('a /*+ h(`*/`, "*/") /* */ */ b', ["a", "b"]),
        ("a /*+ h(1) -- */\n */ b", ["a", "b"]),
        ("a<=>b||c::d->e", ["a", "<=>", "b", "||", "c", "::", "d", "->", "e"]),
        ("ARRAY<ARRAY<INT>>", ["ARRAY", "<", "ARRAY", "<", "INT", ">", ">"]),
        ("$$a;b$$ $1 ?", ["$$a;b$$", "$1", "?"]),
        ("größe", ["größe"]),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_offsets_are_exact() -> None:
    text = "SELECT  `x y`, 'it''s' -- c\n FROM t"
    for token in tokenize(text):
        assert text[token.start : token.end] == token.text
    assert tokenize(text)[-1].kind is Kind.END


def test_names() -> None:
    token = tokenize("`a``b`")[0]
    assert token.name == "a`b"
    assert token.upper == "`a``b`"


@pytest.mark.parametrize(
    ("text", "what", "start"),
    [
        ("SELECT 'a", "string", 7),
        ('x "a', "string", 2),
        ("`a", "backtick", 0),
        ("/* /* */", "comment", 0),
        ("a /*+ h('*/'", "comment", 2),
        ("a /*+ h('", "string", 8),
    ],
)
def test_unclosed(text: str, what: str, start: int) -> None:
    with pytest.raises(SqlSyntaxError, match=f"unclosed {what}") as caught:
        tokenize(text)
    assert caught.value.place is not None
    assert caught.value.place.start == start
