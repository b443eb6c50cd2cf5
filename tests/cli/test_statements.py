"""Where statements end, and where shell commands stand between them."""

from __future__ import annotations

import pytest

from headwater.cli.scanner import in_quote, parts
from headwater.cli.shell import accepts
from headwater.cli.statements import complete, pieces


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "select 1;",
        "select ';' ; -- done",
        "select 'it''s';",
        r"select 'a\';b';",
        r"select r'a\';",
        'select "a;b" /* ; */;',
        "select `a;b`;",
        "-- only a comment",
        "create procedure p() as begin insert into t values (1); end;",
        "create or replace procedure p() as begin select case when a then b end; end;",
        "begin;",
        ";",
    ],
)
def test_complete(text: str) -> None:
    assert complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "select ';",
        "select 1; select 2",
        r"select 'a\';",
        "select 1 /* ;",
        "select `a;",
        'select "a;',
        "select 1 -- ;",
        "create procedure p() as begin insert into t values (1);",
        "create procedure p() as begin select case when a then b end;",
    ],
)
def test_incomplete(text: str) -> None:
    assert not complete(text)


def test_enter_accepts_commands_and_plain_words() -> None:
    assert accepts("\\d orders")
    assert accepts("quit")
    assert accepts(" Exit ")
    assert not accepts("quit smoking")


def test_pieces_keep_line_numbers() -> None:
    script = "select 1;\n\\timing\nselect '\n\\q\n';\n"
    first, command, last = pieces(script)
    assert (first.text, first.command) == ("select 1;\n", False)
    assert (command.text, command.command) == ("\\timing", True)
    assert last.text == "\n\nselect '\n\\q\n';\n"


def test_pieces_of_nothing() -> None:
    assert list(pieces(" \n\n")) == []


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("select 'a", True),
        ("select 'a'", False),
        (r"select 'a\'", True),
        ("-- a", True),
        ("-- a\n", False),
        ("/* a", True),
        ("/* a */", False),
        ("`a", True),
        ("$x$ a $y$", True),
        ("$$ a $$ ", False),
        ("select ", False),
    ],
)
def test_in_quote(text: str, inside: bool) -> None:
    assert in_quote(text) is inside
    assert "".join(part.text for part in parts(text)) == text
