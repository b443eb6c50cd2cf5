"""The docs say what the code does: settings, statements, system tables; their examples run.

The tutorial, errors, the Python reference and links have files of their own under `docs/`.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import headwater
from headwater.execute import system_tables
from headwater.settings import TABLE
from headwater.sql import statements
from headwater.sql.statements.base import Statement
from tests.harness.pages import NOT_RUN, blocks
from tests.harness.reference import (
    SETTINGS_PAGE,
    WITHOUT_SPARK_PAGE,
    settings_page,
    without_spark_page,
)

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
TUTORIAL = ROOT / "docs" / "guide" / "tutorial.md"  # run by docs/test_tutorial.py
PYSPARK = ROOT / "docs" / "guide" / "pyspark.md"  # run by docs/test_pyspark_page.py
GUIDES = sorted({*(ROOT / "docs" / "guide").glob("*.md")} - {TUTORIAL, PYSPARK})
PAGES = [ROOT / "README.md", REFERENCE / "sql.md", *GUIDES]


def test_settings() -> None:
    assert SETTINGS_PAGE.read_text() == settings_page(), "run python -m tests.harness.reference"
    assert len(TABLE) == len({s.name for s in TABLE})


def test_what_is_evaluated_without_spark() -> None:
    assert WITHOUT_SPARK_PAGE.read_text() == without_spark_page(), (
        "run python -m tests.harness.reference"
    )


def statement_kinds() -> list[str]:
    """The statements of the grammar as words: CreateStreamingTable → CREATE STREAMING TABLE."""
    other = {"Query": "SELECT", "ShowSetting": "SHOW", "SetSetting": "SET", "ResetSetting": "RESET",
             "ControlQuery": "PAUSE", "ControlSink": "PAUSE", "ControlSource": "PAUSE",
             "ExplainObject": "EXPLAIN", "DeclareCursor": "DECLARE", "CloseCursor": "CLOSE",
             "InsertFromStream": "FROM STREAM", "CreateStreamingTable": "CREATE STREAMING TABLE",
             "AlterTableSetRange": "SET RANGE", "AlterTableSetClock": "SET CLOCK TO",
             "AlterTableSetMaxClockAhead": "SET MAX_CLOCK_AHEAD", "AlterQueryResetLandmark": "RESET LANDMARK",
             "AlterViewRefreshStatic": "REFRESH STATIC", "AlterSetParts": r"SET \(parts",
             "AlterTableAddColumns": "ADD COLUMN",
             "AlterTableDropColumns": "DROP COLUMN", "AlterTableRename": "RENAME TO",
             "AlterTableRenameColumn": "RENAME COLUMN"}  # fmt: skip
    kinds = []
    for name in statements.__all__:
        found = getattr(statements, name)
        if issubclass(found, Statement) and found is not Statement:
            kinds.append(other.get(name, re.sub(r"(?<!^)(?=[A-Z])", " ", name).upper()))
    return kinds


@pytest.mark.parametrize("kind", statement_kinds())
def test_every_statement_is_documented(kind: str) -> None:
    assert re.search(rf"\b{kind}\b", (REFERENCE / "sql.md").read_text())


@pytest.mark.parametrize("name", sorted(system_tables.NAMES))
def test_every_system_table_is_documented(name: str) -> None:
    assert f"`headwater.{name}`" in (REFERENCE / "sql.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with headwater.connect(tmp_path / "data") as db:
        names |= {"db": db, "headwater": headwater}
        for block in blocks(page.read_text()):
            if block.mark == NOT_RUN:
                continue
            try:
                if block.language == "sql":
                    db.sql(block.text)
                else:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(block.text, str(page), "exec"), names)
            except Exception as error:
                error.add_note(f"in {page.name}, line {block.line}")
                raise
        for value in names.values():
            if isinstance(value, headwater.Database) and value is not db:
                value.close()
