"""The tutorial does what it says: every block is run in order, every output that it shows is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.pages import NOT_RUN, ROOT, Reader, blocks, plain

PAGE = ROOT / "docs" / "guide" / "tutorial.md"


@pytest.mark.timeout(900)  # it starts a process and may start Spark, on a machine that may be busy
def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied block by block, the kill included, it gives what the page shows."""
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, PAGE)
    compared = 0
    try:
        for block in blocks(PAGE.read_text()):
            assert block.mark != NOT_RUN, "every block of the tutorial is run"
            output = reader.output(block)
            if block.shown is not None:
                assert plain(output) == plain(block.shown), f"tutorial.md, line {block.line}"
                compared += 1
            else:
                assert "error: " not in output, f"tutorial.md, line {block.line}"
    finally:
        reader.close()
    assert compared >= 10


def test_an_output_that_differs_is_noticed() -> None:
    """The blocks that are compared are those that a reader sees: code, then its output."""
    page = "```sql\nSELECT 1;\n```\n\n```text\n 1\n```\n\nwords\n\n```text\nnot its output\n```\n"
    (block,) = blocks(page)
    assert (block.text, block.shown) == ("SELECT 1;", " 1")
