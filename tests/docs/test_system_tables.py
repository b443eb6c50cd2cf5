"""The page of system tables has every table with every column, and its example is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headwater
from headwater.execute import system_tables
from tests.harness.pages import ROOT, Reader, blocks

PAGE = ROOT / "docs" / "reference" / "system-tables.md"


def documented(name: str) -> list[str]:
    """The columns of a table on the page, in order."""
    section = PAGE.read_text().split(f"\n## headwater.{name}\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.M)
    return [column for cell in cells for column in re.findall(r"`(\w+)`", cell)]


def test_every_table_and_column_is_there(db: headwater.Database) -> None:
    """The columns that a table has are those that the page lists, no more and no fewer."""
    headings = set(re.findall(r"^## headwater\.(\w+)$", PAGE.read_text(), re.M))
    assert headings == set(system_tables.NAMES)
    for name in system_tables.NAMES:
        columns = db.sql(f"SELECT * FROM headwater.{name}").schema.names
        assert sorted(documented(name)) == sorted(columns), name


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, PAGE)
    try:
        for block in blocks(PAGE.read_text()):
            assert reader.output(block) == block.shown
    finally:
        reader.close()
