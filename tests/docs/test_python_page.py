"""The Python reference has every public name, with its signature, and its examples print what they show."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import headwater
from headwater.engine.subscription import Out, Pusher, Subscription
from headwater.result import Result
from tests.harness.pages import ROOT, Reader, blocks

PAGE = ROOT / "docs" / "reference" / "python.md"
CLASSES = (headwater.Database, Result, headwater.Error, Subscription, Out, Pusher)


def public_names() -> list[str]:
    """`connect`, `Database.sql`, …: what a user can reach without an underscore."""
    names = list(headwater.__all__)
    for cls in CLASSES:
        members = {*vars(cls), *getattr(cls, "__annotations__", ())}
        names += [f"{cls.__name__}.{m}" for m in sorted(members) if not m.startswith("_")]
    error = headwater.Error("text")
    return [*names, *(f"Error.{name}" for name in sorted(vars(error)) if name != "__notes__")]


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_is_documented(name: str) -> None:
    """Each stands on the page, with its class before it, in code or as a heading."""
    if name == "Error.default_sqlstate":
        return  # for those who write new kinds of errors
    assert re.search(rf"(`|### |headwater\.){re.escape(name)}\b", PAGE.read_text())


@pytest.mark.parametrize("name", ["insert", "advance", "subscribe", "create_function", "script"])
def test_signatures_name_every_parameter(name: str) -> None:
    """The line below a method's heading has all of its parameters, in order."""
    section = PAGE.read_text().split(f"### Database.{name}\n", 1)[1]
    shown = re.search(r"`db\.\w+\((.*?)\) ->", section)
    assert shown
    wanted = list(inspect.signature(getattr(headwater.Database, name)).parameters)[1:]
    assert [part.strip().split(":")[0].split("=")[0].strip() for part in _parts(shown[1])] == wanted


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip() != "*"]


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom in one program; what they print is what the page shows."""
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, PAGE)
    try:
        for block in blocks(PAGE.read_text()):
            output = reader.output(block)
            assert not output.startswith("error: "), f"python.md, line {block.line}: {output}"
            if block.shown is not None:
                assert output == block.shown, f"python.md, line {block.line}"
    finally:
        reader.close()
