"""The docs say what the code does: settings, statements, system tables, errors; their examples run."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater.execute import system_tables
from headwater.settings import TABLE
from headwater.sql import statements
from headwater.sql.statements.base import Statement
from tests.harness.reference import SETTINGS_PAGE, settings_page

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", REFERENCE / "sql.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
NOT_RUN = "<!-- not run -->"
# Codes of Spark's that reach users often enough to be listed, though no line of ours names them.
SPARKS_OWN = {"22012", "53100"}


def test_settings() -> None:
    assert SETTINGS_PAGE.read_text() == settings_page(), "run python -m tests.harness.reference"
    assert len(TABLE) == len({s.name for s in TABLE})


def statement_kinds() -> list[str]:
    """The statements of the grammar as words: CreateStreamingTable → CREATE STREAMING TABLE."""
    other = {"Query": "SELECT", "ShowSetting": "SHOW", "SetSetting": "SET", "ResetSetting": "RESET",
             "ControlQuery": "PAUSE", "ControlSink": "PAUSE", "ControlSource": "PAUSE",
             "ExplainObject": "EXPLAIN",
             "InsertFromStream": "FROM STREAM", "CreateStreamingTable": "CREATE STREAMING TABLE",
             "AlterTableSetRange": "SET RANGE", "AlterQueryResetLandmark": "RESET LANDMARK",
             "AlterViewRefreshStatic": "REFRESH STATIC", "AlterTableAddColumns": "ADD COLUMN",
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


def test_every_sqlstate_is_documented() -> None:
    used = set()
    for path in (ROOT / "headwater").rglob("*.py"):
        for line in path.read_text().splitlines():
            if "sqlstate" in line.lower() and "state ==" not in line:
                used |= set(re.findall(r'"([0-9A-Z]{5})"', line))
    listed = set(re.findall(r"^\| `([0-9A-Z]{5})` \|", (REFERENCE / "errors.md").read_text(), re.M))
    assert used - listed == set(), "used in the code, not in docs/reference/errors.md"
    assert listed - used - SPARKS_OWN - {"22018"} == set(), "listed, but nowhere used"


def blocks(path: Path) -> Iterator[tuple[int, str, str]]:
    """The code blocks of a page: line, language, text; those marked as not run are left out."""
    lines = path.read_text().splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if start is None and re.match(r"```\w+$", line):
            start = number
        elif start is not None and line == "```":
            skipped = start > 0 and lines[start - 1].strip() == NOT_RUN
            language = lines[start][3:]
            if language in ("sql", "python") and not skipped:
                yield start + 1, language, "\n".join(lines[start + 1 : number])
            start = None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with headwater.connect(tmp_path / "data") as db:
        names |= {"db": db, "headwater": headwater}
        for line, language, text in blocks(page):
            try:
                if language == "sql":
                    db.sql(text)
                else:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(text, str(page), "exec"), names)
            except Exception as error:
                error.add_note(f"in {page.name}, line {line}")
                raise
        for value in names.values():
            if isinstance(value, headwater.Database) and value is not db:
                value.close()


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
