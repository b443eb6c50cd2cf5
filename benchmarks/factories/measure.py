"""One piece of work with one number of factories, in a process of its own (`python -m` this module).

Spark has room for as many factories as there were when it started, so each number has its own Spark. A rate
counts until every view has taken every row. Processor time is what `headwater.metrics` says of the driver's
own process and of each factory; Java's is not in it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import headwater
from benchmarks import installed
from benchmarks.datacell import q1
from benchmarks.datacell.q1 import Q1
from benchmarks.factories.works import Work, work

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
RUN_TIMEOUT_S = 3600
METRICS = "SELECT name, value FROM headwater.metrics WHERE name LIKE '%cpu_us'"
B1_GROUPS = 1_000
Figures = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What a process is to do."""

    name: str  # of the work, or B1
    factories: int
    events: int
    batch: int
    customers: int
    cars: int
    repetitions: int
    panes: int
    step: int
    slides: int


def alone(task: Task) -> Figures:
    """The figures of a task in a process of its own; Missing if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.factories.measure", json.dumps(asdict(task))]
    return dict(installed.answer_of(command, environment, RUN_TIMEOUT_S))


def done(task: Task) -> Figures:
    """The same here."""
    if task.name == "B1":
        window = Q1(task.panes, task.step, B1_GROUPS)
        series = q1.incremental(window, "rows", task.slides, factories=task.factories)
        answers = [[instant, *answer] for instant, answer in sorted(series.answers.items())]
        return {**series.figures(), "answers": [answers]}
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        headwater.connect(f"{folder}/db", settings={"factories": task.factories}) as db,
    ):
        db.sql("SELECT 1")
        return _fed(db, work(task.name, task.customers, task.cars), task)


def _fed(db: headwater.Database, given: Work, task: Task) -> Figures:
    """Rates of the repetitions after one that does not count, and processor time."""
    given.make(db)
    settled = db._factories.settle(PATIENCE_S)
    rates, used, first = [], dict[str, float](), 0
    for number in range(task.repetitions + 1):
        places = range(first, first + task.events, task.batch)
        batches = [given.batch(place, task.batch) for place in places]
        first += task.events
        before, started = processor_time(db), time.perf_counter()
        for rows in batches:
            db.insert(given.table, rows)
        db.flush()
        elapsed = time.perf_counter() - started
        if number:
            rates.append(task.events / elapsed)
            for host, seconds in processor_time(db).items():
                used[host] = used.get(host, 0.0) + seconds - before.get(host, 0.0)
    answers = [sorted(map(_plain, db.sql(text).rows())) for text in given.answers]
    rates.sort()
    return {
        "per_s": rates[len(rates) // 2],
        "least": rates[0],
        "most": rates[-1],
        "cpu_s": {host: seconds / task.repetitions for host, seconds in used.items()},
        "settled": settled,
        "answers": answers,
    }


def processor_time(db: headwater.Database) -> dict[str, float]:
    """Seconds that each host has used so far: `here`, `factory.1`, …"""
    found = {name.removesuffix(".cpu_us"): value / 1e6 for name, value in db.sql(METRICS).rows()}
    return {"here": time.process_time(), **found}  # without factories nobody tells the driver's


def _plain(row: tuple[Any, ...]) -> list[float]:
    """Numbers that JSON has; NULL is less than all."""
    return [-1e300 if value is None else float(value) for value in row]


if __name__ == "__main__":
    print(json.dumps(done(Task(**json.loads(sys.argv[1])))))
