"""Errors as they are drawn."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headwater.cli.complaint import complain, cut_around, drawn, marked
from headwater.errors import BindError, Place


def shown(error: BaseException, width: int | None = None) -> list[str]:
    return [line.plain for line in drawn(error, width)]


def test_the_same_words_as_str() -> None:
    text = "select a\nfrom t where\tx = 1"
    start = text.index("x")
    error = BindError(
        "no column x", detail="t has a", hint="use a", place=Place(text, start, start + 1)
    )
    message, rest = str(error).split("\n", 1)
    assert shown(error) == [f"error: {message}", *rest.replace("\t", " ").split("\n")]


def test_marker_stands_under_the_place_in_wide_text() -> None:
    text = "select '日本', nope"
    line, marker = marked(Place(text, text.index("nope"), len(text)), None)
    assert marker.cell_len == line.cell_len
    assert marker.plain.strip() == "^^^^"


def test_long_lines_are_cut_around_the_place() -> None:
    text = "a" * 500 + " HERE " + "b" * 500
    start = text.index("HERE")
    line, marker = marked(Place(text, start, start + 4), 80)
    assert line.cell_len <= 80
    assert line.plain[marker.plain.index("^") :].startswith("HERE")


def test_place_at_the_end_of_the_text() -> None:
    line, marker = marked(Place("select", 6, 6), 80)
    assert line.plain == "line 1: select"
    assert marker.plain == " " * 14 + "^"


@pytest.mark.parametrize(
    "parts", [("", "x" * 300, ""), ("a" * 300, "x", ""), ("", "x", "b" * 300), ("a" * 9, "x", "b")]
)
def test_cut_parts_fit(parts: tuple[str, str, str]) -> None:
    assert len("".join(cut_around(*parts, 60))) <= 60


def test_unforeseen_errors_ask_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_DEBUG", "1")
    stream = io.StringIO()
    complain(Console(file=stream), KeyError("[bold]x[/bold]"))
    assert stream.getvalue().startswith("internal error: KeyError: '[bold]x[/bold]'\nhint: ")


def test_files_and_terminal_codes() -> None:
    error = BindError("bad \x1b[2J name")
    error.add_note("in schema.sql")
    assert shown(error) == ["error: bad \\x1b[2J name (42000)", "in schema.sql"]
