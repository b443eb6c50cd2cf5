"""The benchmark of AIM's views at tiny sizes: equal answers, voids, steps, targets, pictures."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import postgres
from benchmarks.aim import data, plots, run, tell
from benchmarks.aim.measure import Experiment, Step, Work
from benchmarks.aim.outside import read_work
from benchmarks.aim.postgresql import upsert
from benchmarks.aim.queries import ALL, query
from benchmarks.aim.systems import Rows, same
from benchmarks.aim.targets import targets


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Databases and reports go into a folder of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Counting:
    """A system that counts calls."""

    two_threads = True

    def __init__(self) -> None:
        self.rows = 0
        self.reads: list[str] = []

    def prepare(self, events: pa.Table) -> pa.Table:
        return events

    def insert(self, batch: pa.Table) -> None:
        self.rows += batch.num_rows

    def settle(self) -> None:
        pass

    def read(self, view: str) -> Rows:
        self.reads.append(view)
        return [(self.rows,)]


def test_systems_agree() -> None:
    """The six views give the same rows by operators, in DuckDB and, where it is there, in PostgreSQL."""
    names = ["Headwater", "DuckDB deferred"]
    if postgres.why_missing() is None:
        names.append("PostgreSQL")
    found = run.checked(8_000, install=False, names=names)
    assert found == {name: {"void": None} for name in names}


def test_a_different_answer_is_void() -> None:
    """A peer whose rows differ is named with the views that do."""
    mine: dict[str, Any] = {view: [[1, 2.0]] for view in ALL}
    theirs = {**mine, "q3": [[1, 2.1]], "q5": []}
    assert run._verdict(mine, theirs) == {"void": "q3, q5 differ"}
    assert run._verdict(mine, {"missing": "not there"}) == {"missing": "not there"}
    assert same([(None,), (1,)], [(1.0 + 1e-12,), (None,)])
    assert not same([(1,), (1,)], [(1,), (2,)])


def test_calls_are_the_same_for_the_same_numbers() -> None:
    """Batches depend on where they begin only, and hold this week's and last week's calls."""
    one, other = data.events(500, 100, 50, 20), data.events(500, 100, 50, 20)
    assert one.equals(other)
    assert set(one.column("week").to_pylist()) == {19, 20}
    assert one.column("local_calls").null_count == sum(one.column("long_distance").to_pylist())


def test_steps_go_on_where_the_last_ended() -> None:
    """Inserts count segments, reads are spread over the views, and every call comes once."""
    system = Counting()
    experiment = Experiment(system, 100, ALL)
    steps = (
        Step("insert", events=1000, batch=300, segments=2, warm_up=1, read_every=600),
        Step("reads", per_second=1000, seconds=0.1),
        Step("unchanged", events=10, seconds=0.01),
        Step("answers", events=5, batch=5),
    )
    insert, reads, unchanged, answers = experiment.run(steps)
    assert insert["least"] <= insert["per_s"] <= insert["most"]
    assert system.reads[: 3 * len(ALL)] == list(ALL) * 3  # once a segment
    assert reads["queries_per_s"] > 0
    assert set(unchanged) == set(ALL)
    assert answers["q1"] == [[system.rows]]
    assert 3015 < system.rows <= 3115


def test_work_goes_to_another_process_as_json() -> None:
    """A work comes out of its JSON as it went in."""
    work = Work("ClickHouse", 10, ALL, (Step("insert", events=5), Step("answers")))
    assert read_work(json.dumps(asdict(work))) == work


def test_texts() -> None:
    """The week is filled in, and upserts add up or take the greatest."""
    assert "week = 7" in query("q1", "7")
    assert "cost = greatest(s.cost, excluded.cost), calls = s.calls + excluded.calls" in upsert(
        "q2"
    )


def figures() -> dict[str, Any]:
    """What a run finds, made up."""
    rate = {"per_s": 1000.0, "least": 900.0, "most": 1100.0}
    system: dict[str, Any] = {
        "table_3": {view: {"first_ms": 1.0, "queries_per_s": 100.0} for view in ALL},
        "reads": {"10000": {"queries_per_s": 5.0, "events_per_s": 9000.0}},
        "insert": rate,
        "with_reads": rate,
        "void": None,
    }
    peers = {
        "DuckDB deferred": {**system, "insert": {**rate, "per_s": 100.0}},
        "ClickHouse": {"missing": "not there"},
        "PostgreSQL": {**system, "void": "q1 differ"},
    }
    found: dict[str, Any] = {"systems": {"Headwater": system, **peers}, "customers": 10}
    found["alone"] = {"none": rate, "q1": rate}
    found["targets"] = [target.row() for target in targets(found)]
    return found


def test_targets_leave_out_what_is_missing_or_void(capsys: pytest.CaptureFixture[str]) -> None:
    """Ratios are ours over theirs; a void or missing peer has none; tables and picture are made."""
    found = figures()
    reached = {row[0]: row[1:] for row in found["targets"]}
    assert reached["B5 inserts: times DuckDB deferred"] == ("10.00", "≥ 5", "met")
    assert reached["B5 inserts: times ClickHouse"][2] == "void or missing"
    assert reached["B5 inserts: times PostgreSQL"][2] == "void or missing"
    tell.everything(found)
    assert "missing: not there" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    path = plots.draw(found, Path("aim.png"))
    assert path is not None
    assert path.stat().st_size > 10_000
