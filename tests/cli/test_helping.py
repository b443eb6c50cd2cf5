"""`\\help`: statements and errors, compared with the grammar and the reference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.cli import helping
from headwater.cli.helping import shipped
from headwater.cli.statement_help import TOPICS, Topic
from headwater.errors import BindError
from headwater.sql import parser

ROOT = Path(parser.__file__).parents[2]


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_the_example_of_a_statement_can_be_read(topic: Topic) -> None:
    """Every example is SQL of ours, and every page is there."""
    pieces = list(parser.split(topic.example))
    assert pieces
    for piece in pieces:
        parser.parse(piece.text)
    assert (ROOT / topic.page).is_file()
    assert topic.example.split()[0].rstrip(";") in topic.form


def test_every_statement_of_the_grammar_has_help() -> None:
    """`\\help` with the words that a statement starts with finds something."""
    first = set(parser.BY_FIRST_WORD) - {"ABORT", "DESC", "END", "FROM", "START", "TABLE", "VALUES"}
    creates = {f"CREATE {' '.join(words)}" for words in parser.CREATES} - {"CREATE FOREIGN TABLE"}
    for words in first - {"WITH"} | creates | {"ALTER TABLE", "ALTER QUERY", "ALTER VIEW"}:
        assert helping.matching(words), words


def test_a_statement() -> None:
    """Form, example and page; lower case and a semicolon do not matter."""
    lines = helping.help_lines("create view;")
    assert lines[0].startswith("CREATE VIEW: ")
    assert any(line.startswith("  CREATE [OR REPLACE] VIEW") for line in lines)
    assert lines[-1] == "more: docs/guide/views.md"
    assert helping.help_lines("rollback")[0].startswith("BEGIN: ")
    assert helping.help_lines("insert into")[0].startswith("INSERT: ")


def test_several_statements_and_all() -> None:
    """Words that several start with list those; no word lists all."""
    assert len(helping.help_lines("alter")) == 3
    listed = "\n".join(helping.help_lines(""))
    assert all(topic.name in listed for topic in TOPICS)


def test_an_unknown_statement() -> None:
    """The nearest is named."""
    with pytest.raises(BindError) as caught:
        helping.help_lines("creat veiw")
    assert caught.value.hint == "did you mean CREATE VIEW?"


def test_every_error_of_the_reference() -> None:
    """All rows of the table are read, without marks of Markdown."""
    path = shipped(helping.ERRORS)
    assert path is not None
    codes = re.findall(r"^\| \[?`(\w{5})`", path.read_text(), re.M)
    assert list(helping.errors()) == codes
    for code in codes:
        lines = helping.help_lines(code)
        assert lines[0].startswith(f"{code}: ")
        assert "`" not in "".join(line for line in lines if not line.startswith("  "))
        assert helping.pointer(code) == f"\\help {code}"


def test_an_error_that_is_not_in_the_reference() -> None:
    """Spark's codes are said to be Spark's; they get no pointer."""
    assert helping.pointer("42KD9") is None
    assert "a name, a type or a rule of SQL" in helping.help_lines("42KD9")[0]


def test_the_page_of_an_error() -> None:
    """Where an error has a page of its own, the shell shows it, its examples set in."""
    text = "# x\n\nThe `t` is [gone](x.md).\n\n## Example\n```sql\nSHOW `a`;\n```\n\nAll codes: [e](e).\n"
    assert list(helping.page_lines(text)) == [
        "The t is gone.",
        "",
        "Example",
        "  SHOW `a`;",
    ]
    lines = helping.help_lines("42p01")
    assert lines[:2] == ["42P01: a table does not exist", ""]
    assert "  SELECT * FROM oders;" in lines
    assert lines[-1] == "more: docs/reference/errors/42P01.md"


def test_an_error_without_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has a word for each."""
    real = helping.shipped
    monkeypatch.setattr(
        helping, "shipped", lambda name: real(name) if "/errors/" not in name else None
    )
    assert helping.help_lines("42P01") == [
        "42P01: a table does not exist",
        "what to do: the hint names the nearest",
        "",
        "more: docs/reference/errors.md",
    ]
