"""Linear Road: the answers of the application in SQL are those of the oracle, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from benchmarks.linearroad.application import OUTPUTS, Application, create
from headwater.sources.linearroad import Scenario, batches, historical_tolls, reports
from tests.harness.linearroad.oracle import BALANCE, Answers, answers
from tests.harness.linearroad.validator import compare

SMALL = {"expressways": 1, "segments": 6, "start_s": 10_500, "duration_s": 300}
GROWING = {"expressways": 2, "segments": 4, "start_s": 0, "growth_s": 400, "duration_s": 260}
DENSE_ACCIDENTS: dict[str, Any] = {"accidents_per_hour": 200, "accident_s": 180}


@dataclass
class Run:
    """One run of the application, a number of seconds at a time."""

    scenario: Scenario
    step: int
    found: Answers = field(default_factory=Answers)

    @property
    def history(self) -> pa.Table:
        """What the cars paid before."""
        scenario = self.scenario
        return historical_tolls(scenario.vehicle_count, scenario.expressways, scenario.seed)

    def batches(self) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The reports, each batch with its last second."""
        end = self.scenario.end_s
        assert end is not None
        ends = range(self.scenario.start_s + self.step, end + self.step, self.step)
        for batch, last in zip(batches(self.scenario, self.step), ends, strict=True):
            yield batch, min(last, end) - 1

    def answer(self, application: Application, given: Iterable[tuple[pa.RecordBatch, int]]) -> None:
        """Keeps all answers to some reports."""
        for batch, second in given:
            rows = application.reported(batch, second).rows
            for output in OUTPUTS:
                getattr(self.found, output).extend(as_rows(rows[output]))

    def expected(self) -> Answers:
        """What the oracle says."""
        return answers(as_rows(reports(self.scenario)), as_rows(self.history))


def as_rows(table: Any) -> list[tuple[Any, ...]]:
    """The rows of a table, or of a list of rows."""
    if isinstance(table, list):
        return table
    return list(zip(*table.to_pydict().values(), strict=True))


def owed(run: Run) -> dict[int, int]:
    """By car what it owes in the end, where it owes anything, by the oracle."""
    given = as_rows(reports(run.scenario))
    last = max(row[1] for row in given)
    cars = sorted({row[2] for row in given})
    asked = [(BALANCE, last, vid, *(-1,) * 6, number, -1) for number, vid in enumerate(cars)]
    found = answers([row for row in given if row[0] == 0] + asked).balances
    return {vid: balance for vid, _, _, balance in found if balance}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("size", [SMALL, GROWING], ids=["small", "growing"])
def test_answers_are_those_of_the_oracle(seed: int, size: dict[str, int]) -> None:
    """All four outputs, and the balance of every car, over five minutes with jams and accidents."""
    run = Run(Scenario(seed=seed, **size, **DENSE_ACCIDENTS), step={1: 13, 2: 30, 3: 60}[seed])
    with headwater.connect(":memory:") as db:
        create(db, run.scenario.expressways, run.history)
        application = Application(db)
        run.answer(application, run.batches())
        accounts = dict(db.sql("SELECT vid, balance FROM accounts").rows())
        debts = owed(run)
        assert accounts == debts
        someone = next(iter(debts))
        assert application.balance(someone) == debts[someone]
    expected = run.expected()
    verdict = compare(expected, run.found)
    assert not verdict.difference_count, str(verdict)
    assert any(toll for _, _, _, toll in expected.tolls)
    assert expected.alerts
    assert expected.balances
    assert expected.expenditures


def test_a_run_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Second by second over the turn of a minute, with the database closed and opened on the way."""
    scenario = Scenario(expressways=1, segments=3, start_s=10_500, duration_s=130, seed=5)
    run = Run(scenario, step=1)
    given = list(run.batches())
    with headwater.connect(tmp_path) as db:
        create(db, 1, run.history)
        application = Application(db)
        run.answer(application, given[:95])
    with headwater.connect(tmp_path) as db:
        run.answer(Application(db, application.tokens), given[95:])
    verdict = compare(run.expected(), run.found)
    assert not verdict.difference_count, str(verdict)


def test_every_query_is_folded_in_line() -> None:
    """No query of the application needs a Spark run for a second of traffic."""
    with headwater.connect(":memory:") as db:
        create(db, 1)
        found = db.sql("SELECT name, mode, tier FROM headwater.queries").rows()
    assert len(found) == 9
    assert {(mode, tier) for _, mode, tier in found} == {("fold", "in line")}


@pytest.mark.large
@pytest.mark.parametrize("seed", [11, 12, 13])
@pytest.mark.parametrize("expressways", [1, 3])
def test_answers_of_longer_runs(seed: int, expressways: int) -> None:
    """Ten minutes of the densest traffic of whole expressways."""
    scenario = Scenario(expressways, duration_s=600, seed=seed, start_s=10_200, accidents_per_hour=30)
    run = Run(scenario, step=1 if seed == 11 else 20)
    with headwater.connect(":memory:") as db:
        create(db, expressways, run.history)
        run.answer(Application(db), run.batches())
    verdict = compare(run.expected(), run.found)
    assert not verdict.difference_count, str(verdict)
