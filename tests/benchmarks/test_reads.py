"""The benchmark of reads after a row at tiny sizes: equal answers in all three ways, instants, targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.reads import measure, run
from benchmarks.reads.sizes import Sizes
from benchmarks.reads.views import VIEWS, in_duckdb

TINY = Sizes(rows=3_000, groups=500, results=(20, 200), repetitions=2, slow_repetitions=1)


def test_a_run_keeps_figures_of_equal_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept, by Spark again and by DuckDB again are the same; each part has its figures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "VIEWS", {name: VIEWS[name] for name in ("filter", "session")})
    assert run.measured(TINY, True) == 0
    found = json.loads((tmp_path / "reports" / "reads.json").read_text())
    assert set(found["views"]) == {"filter", "session"}
    for systems in found["views"].values():
        assert systems["Headwater"]["reads"] == 2
        assert systems["Headwater"]["tier"] == "operators"
    assert found["point"]["Headwater"]["rows"] == 1
    assert [one["rows_told"] for one in found["instants"].values()] == [2, 2]  # one away, one there
    assert len(found["targets"]) == 6
    again = run.measured(TINY, True, ["point"])
    assert again == 0
    assert json.loads((tmp_path / "reports" / "reads.json").read_text())["views"] == found["views"]


def test_every_view_has_a_text_for_duckdb() -> None:
    """DuckDB's own words stand only where Spark's are none of its own."""
    assert {name for name in VIEWS if in_duckdb(name) != VIEWS[name]} == {"tumble", "session"}
