"""The benchmark of factories at tiny sizes: work in this process, voids, targets, tables and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.factories import measure, run, tell
from benchmarks.factories.measure import Task
from benchmarks.factories.sizes import Sizes
from benchmarks.factories.targets import targets
from benchmarks.installed import Missing


def task(name: str) -> Task:
    return Task(name, 0, 400, 100, 50, 20, 1, 2, 50, 3)


@pytest.mark.parametrize(("name", "answers"), [("2 queries", 2), ("statistics", 1), ("B1", 1)])
def test_work_is_done(
    name: str, answers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task gives figures and answers as JSON has them."""
    monkeypatch.chdir(tmp_path)
    found = measure.done(task(name))
    assert len(found["answers"]) == answers
    if name == "2 queries":
        assert found["cpu_s"]["here"] > 0
        rows = found["answers"][0]
        assert 0 < sum(row[1] for row in rows) < 2 * 400  # the filter keeps some
        assert found["answers"][0] != found["answers"][1]


def test_numbers_of_factories_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other answers are void, a process that failed is missing, and targets are ratios to none."""
    times = {0: 100.0, 1: 150.0, 2: 180.0, 4: 0.0}

    def alone(asked: Task) -> dict[str, Any]:
        if asked.factories == 4:
            raise Missing("it failed")
        rate = dict.fromkeys(("per_s", "least", "most"), times[asked.factories])
        answers = [[[1.0, 2.0], [3.0, 4.0 + (asked.factories == 1)]]]
        cpu = {"here": 1.0, "factory.1": 2.0}
        return {**rate, "cpu_s": cpu, "settled": True, "answers": answers}

    monkeypatch.setattr(measure, "alone", alone)
    given = Sizes((0, 1, 2, 4), 400, 100, 50, 20, (8,), 1, 2, 50, 3)
    works = {"8 queries": run.with_each("8 queries", given)}
    assert works["8 queries"]["1"]["void"] == "answers differ"
    assert works["8 queries"]["2"]["void"] is None
    rows = [target.row() for target in targets(works)]
    assert rows == [("B15 8 queries: two factories, times none", "1.80", "≥ 1.6", "met")]
    tell.everything({"works": works, "targets": rows})
    printed = capsys.readouterr().out
    assert "missing: it failed" in printed
    assert "void: answers differ" in printed
