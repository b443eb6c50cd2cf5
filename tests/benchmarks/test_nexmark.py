"""The benchmark of NEXMark's views at tiny sizes: events, equal answers, voids, targets, tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.nexmark import data, measure, outside, run, systems
from benchmarks.nexmark.sizes import ALL, Sizes
from benchmarks.nexmark.targets import targets
from tests.harness.workloads.queries import read_queries

TINY = Sizes((1_500,), (500,), 60.0, 60.0, ("q0", "q4"), 1_000, 500)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Databases and reports go into a folder of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_events_are_functions_of_their_number() -> None:
    """However they are cut into chunks they are the same, 92 of 100 bids."""
    whole = data.chunk(0, 1_000)
    parts = [*data.chunks(0, 600, 70), *data.chunks(600, 400, 400)]
    for name in data.STREAMS:
        assert pa.concat_tables([part[name] for part in parts]).equals(whole[name])
    assert {name: rows.num_rows for name, rows in whole.items()} == {
        "person": 20,
        "auction": 60,
        "bid": 920,
    }


def test_flink_has_every_query() -> None:
    """Its texts stand beside ours; Pathway's are some of them."""
    assert [one.name for one in read_queries("flink", outside.HERE)] == list(ALL)
    assert set(outside.PATHWAY_QUERIES) < set(ALL)


def test_a_run_keeps_figures_of_equal_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own_folder: Path
) -> None:
    """Views and DuckDB agree; peers that are not there are missing, and the parts that ran are kept."""
    names = ("q2", "q4", "q12")
    monkeypatch.setattr(run, "ALL", names)
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_folder))
    assert run.measured(TINY, True) == 0
    found = json.loads((own_folder / "reports" / "nexmark.json").read_text())
    (point,) = found["alone"].values()
    assert set(point) == set(names)
    assert point["q4"]["Headwater"]["events"] == 1_500
    assert [one["DuckDB re-evaluation"]["void"] for one in point.values()] == [None] * 3
    assert "is installed by a run without" in found["peers"]["Flink SQL"]["missing"]
    assert found["peers"]["Headwater, read at the end"]["q0"]["per_s"] > 0
    assert "Pathway is missing" in capsys.readouterr().out


def test_a_different_answer_is_void() -> None:
    """A peer that has lost a bid is told with the query that shows it."""
    with systems.duck() as one, systems.duck() as other:
        mine = measure.follow(one, ("q0", "q2"), 500, 100, 60.0)
        theirs = measure.follow(other, ("q0", "q2"), 300, 100, 60.0)
        assert measure.difference_to(other, mine, theirs.events, 100) is None
        lost = measure.follow(other, ("q0", "q2"), 400, 100, 60.0)
        assert measure.difference_to(other, mine, lost.events + 50, 50) is not None


def test_targets_count_queries_ahead() -> None:
    """Void and missing queries count for nobody."""
    rate = {"per_s": 100.0}
    peers: dict[str, Any] = {
        "Headwater, read at the end": {"q0": rate, "q1": rate, "q2": rate, "all of Pathway": rate},
        "Flink SQL": {"missing": "not there"},
        "Pathway": {
            "q0": {"per_s": 50.0, "void": None},
            "q1": {"per_s": 200.0, "void": None},
            "q2": {"per_s": 1.0, "void": "differs"},
            "together": {"per_s": 25.0, "queries": ["q0", "q1"]},
        },
    }
    duck = {"ratio": 20.0, "void": None}
    alone = {"9 events, chunks of 1,000": {"q0": {"DuckDB re-evaluation": duck}, "q1": {}}}
    rows = [target.row() for target in targets({"alone": alone, "together": {}, "peers": peers})]
    assert [row[1] for row in rows] == ["–", "–", "1.00", "4.00"]
    assert rows[2][0] == "B13 queries ahead of Pathway, of 2 that both answered"
