"""Every error code has a page with an example, causes and cure, and the example gives that code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.pages import NOT_RUN, ROOT, Reader, blocks

INDEX = ROOT / "docs" / "reference" / "errors.md"
PAGES = sorted((ROOT / "docs" / "reference" / "errors").glob("*.md"))
RUN = [page for page in PAGES if blocks(page.read_text())]
# Codes that Spark gives, and reach users often enough to have a page, though few lines of ours name them.
SPARKS_OWN = {"22012", "22018", "53100"}
# psql shows no code of an error at login, and the shell none of an unforeseen one.
SHOWN_WITHOUT_CODE = {"28P01", "53300", "XX000"}


def used() -> set[str]:
    """The codes that the package raises."""
    found = set()
    for path in (ROOT / "headwater").rglob("*.py"):
        for line in path.read_text().splitlines():
            if "sqlstate" in line.lower() and "state ==" not in line:
                found |= set(re.findall(r'"([0-9A-Z]{5})"', line))
    return found


def test_every_code_has_a_page() -> None:
    """What the code raises, what the index lists and what has a page are the same codes."""
    listed = re.findall(r"^\| \[`([0-9A-Z]{5})`\]\(errors/\1\.md\) \|", INDEX.read_text(), re.M)
    assert listed == sorted(set(listed))
    assert {page.stem for page in PAGES} == set(listed)
    assert used() - set(listed) == set(), "raised, but without a page"
    assert set(listed) - used() - SPARKS_OWN == set(), "a page of a code that is nowhere raised"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_helps(page: Path) -> None:
    """A page has its code and meaning as a title, an example with that code, causes and a cure."""
    text = page.read_text()
    assert re.match(rf"# {page.stem}: \S.+\n\n\S", text)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Example",
        "## Causes",
        "## Cure",
    ]
    example, causes, cure = re.split(r"^## \w+$", text, flags=re.M)[1:]
    assert page.stem in example or page.stem in SHOWN_WITHOUT_CODE
    assert re.search(r"^\* \S", causes, re.M)
    assert re.search(r"^\* \S", cure, re.M)


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_an_example_gives_its_error(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run in an empty database, the example prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, page)
    try:
        for block in blocks(page.read_text()):
            assert block.mark != NOT_RUN
            assert block.shown is not None
            assert page.stem in block.shown
            assert reader.output(block) == block.shown
    finally:
        reader.close()


def test_most_examples_are_run() -> None:
    """Only errors that need a broken machine, another machine or much time are shown without being run."""
    assert len(RUN) >= 43
