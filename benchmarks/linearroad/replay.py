"""A stretch of the three hours against a virtual clock: `python -m benchmarks.linearroad.replay '{…}'`.

The reports of a second arrive when the clock shows it, or later if the system is still busy with those
before; the clock then moves on by the time that was measured until all answers could be read, with syncs,
seals and snapshots inside. So a run is over as soon as the work is done, and no answer looks faster than it
would have been in three real hours: what a system puts off has less time here, not more.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import headwater
from benchmarks import installed
from benchmarks.linearroad.application import OUTPUTS, Answered, Application, create
from headwater.sources.linearroad import Scenario, batches, historical_tolls

ROOT = Path(__file__).parents[2]
DEADLINE_S = 5.0
HOPELESS_S = 60.0  # behind by so much, a run is ended
MOST_HISTORY_CARS = 100_000  # 6.9 million rows
RUN_TIMEOUT_S = 1800
Figures = dict[str, Any]


@dataclass(frozen=True)
class Ride:
    """Which stretch of which traffic."""

    expressways: int
    start_minute: int = 175
    minutes: int = 5
    seed: int = 1

    @property
    def scenario(self) -> Scenario:
        """What the generator makes of it."""
        start, length = 60 * self.start_minute, 60 * self.minutes
        return Scenario(self.expressways, length, self.seed, start)


@dataclass
class Clock:
    """Virtual time, and the response times that come of it."""

    now: float
    seconds: dict[str, list[tuple[float, int]]] = field(
        default_factory=lambda: {output: [] for output in OUTPUTS}
    )

    def answered(self, second: int, found: Answered) -> None:
        """The reports of a second were answered; the work took its time from now on."""
        self.now = max(self.now, float(second))
        for output, took in found.seconds.items():
            self.seconds[output].append((self.now + took - second, len(found.rows[output])))
        self.now += found.whole_s

    def summary(self) -> Figures:
        """By output: answers, average and worst response, and the share beyond the deadline."""
        return {output: _summary(times) for output, times in self.seconds.items()}


def _summary(times: Sequence[tuple[float, int]]) -> Figures:
    some = [(seconds, count) for seconds, count in times if count]
    answers = sum(count for _, count in some)
    if not answers:
        return {"answers": 0, "average_s": None, "worst_s": None, "late": 0.0}
    return {
        "answers": answers,
        "average_s": sum(seconds * count for seconds, count in some) / answers,
        "worst_s": max(seconds for seconds, _ in some),
        "late": sum(count for seconds, count in some if seconds > DEADLINE_S) / answers,
    }


def replay(ride: Ride) -> Figures:
    """One stretch, second by second; what it took."""
    scenario = ride.scenario
    cars = min(scenario.vehicle_count, MOST_HISTORY_CARS)
    with headwater.connect(":memory:") as db:
        create(db, ride.expressways, historical_tolls(cars, ride.expressways, ride.seed))
        _settle(db)
        application = Application(db)
        clock, rows, work, slowest = Clock(float(scenario.start_s)), 0, [], 0.0
        cpu, started = time.process_time(), time.perf_counter()
        for number, batch in enumerate(batches(scenario)):
            second = scenario.start_s + number
            found = application.reported(batch, second)
            clock.answered(second, found)
            rows += batch.num_rows
            work.append(found.whole_s)
            slowest = max(slowest, clock.now - second)
            if clock.now - second > HOPELESS_S:
                break
        return {
            **asdict(ride),
            "rows": rows,
            "seconds": len(work),
            "whole_run": len(work) == scenario.duration_s,
            "outputs": clock.summary(),
            "work_average_s": sum(work) / len(work),
            "work_worst_s": max(work),
            "work_s": [round(one, 3) for one in work],
            "slowest_s": slowest,
            "cpu_per_second": (time.process_time() - cpu) / len(work),
            "wall_s": time.perf_counter() - started,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "passed": slowest <= DEADLINE_S and len(work) == scenario.duration_s,
        }


def _settle(db: headwater.Database) -> None:
    """Waits until the history is indexed."""
    db.flush()
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        if not sum(lag for (lag,) in db.sql("SELECT lag_blocks FROM headwater.indexes").rows()):
            return
        time.sleep(0.1)  # not a wait for progress of a test: the index is built beside


def replay_alone(ride: Ride) -> Figures:
    """The same in a process of its own, so that its memory is its own; Missing if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.linearroad.replay", json.dumps(asdict(ride))]
    found: Figures = installed.answer_of(command, environment, RUN_TIMEOUT_S)
    return found


if __name__ == "__main__":
    print(json.dumps(replay(Ride(**json.loads(sys.argv[1])))))
