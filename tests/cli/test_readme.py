"""The first five minutes: what the README shows is what the shell prints."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import headwater
from headwater.cli.grid import Look
from headwater.cli.session import Preferences, ShellSession

README = Path(headwater.__file__).parents[1] / "README.md"


def test_the_example_prints_what_the_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SQL of the README is run as the shell runs it; its answers stand there to the letter."""
    text = README.read_text(encoding="utf-8")
    sql, answers = re.findall(r"```sql\n(.*?)```.*?\n```\n(.*?)```", text, re.DOTALL)[0]
    monkeypatch.setattr(ShellSession, "look", lambda _: Look(unicode=True))
    out = io.StringIO()
    with headwater.connect(tmp_path / "data") as db:
        ShellSession(db, Preferences(quiet=True), out, io.StringIO()).run(sql)
    assert out.getvalue() == answers


def test_the_readme_is_short() -> None:
    """A reader reaches its end."""
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 125
