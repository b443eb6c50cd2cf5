"""The page of results is what the reports say: targets, missing benchmarks, sizes and commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import report, results

BASE = {"commit": "a" * 40, "at": "2026-01-02T03:04:05Z", "cores": 2, "python": "3.11"}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of a page, empty."""
    monkeypatch.setattr(report, "FOLDER", tmp_path / "reports")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(results, "PLOTS", tmp_path / "results")
    (tmp_path / "reports").mkdir()
    return tmp_path


def test_targets_and_plots_stand_under_their_benchmark(page: Path) -> None:
    """A missed target is shown as missed; a plot is copied beside the page."""
    rows = [["B11 batches: times SQLite", "0.50", "≥ 1", "missed"]]
    (page / "reports" / "write.json").write_text(json.dumps({**BASE, "targets": rows}))
    (page / "reports" / "write.png").write_bytes(b"picture")
    text = results.write(["start", "write"]).read_text()
    assert "| [write](#write) | B11 batches: times SQLite | 0.50 | ≥ 1 | missed |" in text
    assert "0 of 1 met." in text
    assert "![write](results/write.png)" in text
    assert (page / "results" / "write.png").read_bytes() == b"picture"
    assert text.index("## start") < text.index("Not run.") < text.index("## write")
    assert "full sizes, one commit (aaaaaaaaaa)" in text


def test_figures_of_several_commits_are_named(page: Path) -> None:
    """Nobody takes two runs for one."""
    for name, commit in (("start", "a"), ("write", "b")):
        found = {**BASE, "commit": commit * 40, "quick": name == "start"}
        (page / "reports" / f"{name}.json").write_text(json.dumps(found))
    text = results.write(["start", "write"]).read_text()
    assert "mixed sizes, 2 commits, named below" in text
    assert "small sizes, commit aaaaaaaaaa." in text
    assert "full size, commit bbbbbbbbbb." in text


def test_tables_as_they_were_printed(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What stood on the screen stands on the page, under the benchmark that printed it."""
    report.keep("queue", {})
    report.table("rates of |W|", ("system", "rows/s"), [("ours", 12), ("DuckDB", 3)])
    report.keep_tables("queue", 120.0)
    report.keep("write", {})
    report.keep_tables("write", 60.0)
    text = results.write(["queue", "write"]).read_text()
    assert "rates of \\|W\\|:\n\n| system | rows/s |\n| --- | --- |\n| ours | 12 |\n" in text
    assert text.count("All figures") == 1
    assert ", 2 minutes." in text
    assert "rates of |W|" in capsys.readouterr().out
