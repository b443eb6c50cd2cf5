"""A stretch of the three hours against a virtual clock: `python -m benchmarks.linearroad.replay '{…}'`.

The reports of a second arrive when the clock shows it, or later if the system is still busy with those
before; the clock then moves on by the time that was measured until all answers could be read, with syncs
and seals inside, and until the one-time questions of that second were answered. So a run is over as soon
as the work is done, and what a system puts off has less time here, not more. A whole run begins with an
empty road and ends at the peak, three hours later. A stretch at the peak begins with a full road and an
empty database, so accounts and reports are those of the stretch. In both, what goes by the wall clock (a
snapshot of each query every `snapshot_s`, a seal every `block_age_s`) is rarer where a second of traffic
takes less than one.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from headwater.examples.linearroad.traffic import Scenario, batches, historical_tolls

import headwater
from benchmarks import installed
from benchmarks.linearroad.application import OUTPUTS, Answered, Application, create
from benchmarks.linearroad.minutes import MINUTE_S, Minutes
from benchmarks.linearroad.profile import Profile
from benchmarks.linearroad.questions import INDEX, Asker

ROOT = Path(__file__).parents[2]
DEADLINE_S = 5.0
HOPELESS_S = 60.0  # behind by so much, a run is ended
# 13.8 million rows: every car of a whole run of one expressway, or of the peak of three. A question finds
# its row by day and index, so that more cars would mean a longer start, not longer answers.
MOST_HISTORY_CARS = 200_000
SETTLE_S = 120.0  # the index of the history must not be built while answers are timed
RUN_TIMEOUT_S = 3600  # a whole run of ten expressways takes a quarter of an hour on two quiet cores
LONGEST_BY_SECOND_S = 600  # of longer runs only the minutes are kept
Figures = dict[str, Any]


@dataclass(frozen=True)
class Ride:
    """Which stretch of which traffic."""

    expressways: int
    start_minute: int = 175
    minutes: int = 5
    seed: int = 1
    questions_per_minute: int = 0  # one-time questions about the past: L++
    indexed: bool = True  # whether these find an index on seg
    growth_minutes: int = 180  # when the rate has reached its peak

    @property
    def scenario(self) -> Scenario:
        """What the generator makes of it."""
        start, length = 60 * self.start_minute, 60 * self.minutes
        growth = 60 * self.growth_minutes
        return Scenario(self.expressways, length, self.seed, start, growth)


@dataclass
class Clock:
    """Virtual time, and the response times that come of it."""

    now: float
    seconds: dict[str, list[tuple[float, int]]] = field(
        default_factory=lambda: {output: [] for output in OUTPUTS}
    )

    def responses(self, second: int, found: Answered) -> dict[str, float]:
        """By output the response time of the answers to reports that were due at a second."""
        begins = max(self.now, float(second))
        return {output: begins + took - second for output, took in found.seconds.items()}

    def answered(self, second: int, found: Answered, busy_s: float = 0.0) -> float:
        """The reports of a second were answered; the work took its time from now on.

        `busy_s`: until questions that were asked meanwhile were answered too. Gives the response time
        of the last answer to a report.
        """
        for output, response in self.responses(second, found).items():
            self.seconds[output].append((response, len(found.rows[output])))
        self.now = max(self.now, float(second))
        slowest_s = self.now + found.whole_s - second
        self.now += max(found.whole_s, busy_s)
        return slowest_s

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


@dataclass
class Drive:
    """One stretch under way."""

    ride: Ride
    application: Application
    asker: Asker
    clock: Clock
    profile: Profile = field(default_factory=Profile)
    minutes: Minutes = field(default_factory=Minutes)
    work: list[float] = field(default_factory=list)
    rows: int = 0
    slowest_s: float = 0.0  # from a second to its last answer

    def take(self, batch: pa.RecordBatch, second: int) -> bool:
        """One second; whether it is worth going on."""
        started = time.perf_counter()
        with ThreadPoolExecutor(1) as client:
            asked = client.submit(self.asker.ask_until, second)
            found = self.application.reported(batch, second)
            asked.result()
        slowest_s = self.clock.answered(second, found, time.perf_counter() - started)
        self.rows += batch.num_rows
        self.work.append(found.whole_s)
        self.profile.ended(second, found.whole_s)
        if len(self.work) % MINUTE_S == 0:
            self.minutes.over(self.rows)
        self.slowest_s = max(self.slowest_s, slowest_s)
        return self.clock.now - second <= HOPELESS_S

    def figures(self) -> Figures:
        """What it took."""
        whole = len(self.work) == self.ride.scenario.duration_s
        short = len(self.work) <= LONGEST_BY_SECOND_S
        return {
            **asdict(self.ride),
            "rows": self.rows,
            "outputs": self.clock.summary(),
            "questions": self.asker.summary(),
            "work_average_s": sum(self.work) / len(self.work),
            "work_worst_s": max(self.work),
            "seconds": len(self.work),
            "work_s": [round(one, 3) for one in self.work] if short else [],
            "minutes_of_run": self.minutes.figures(self.clock.seconds),
            "profile": self.profile.figures(),
            "slowest_s": self.slowest_s,
            "passed": whole and self.slowest_s <= DEADLINE_S,
        }


def replay(ride: Ride) -> Figures:
    """One stretch, second by second; what it took."""
    scenario = ride.scenario
    cars = min(scenario.vehicle_count, MOST_HISTORY_CARS)
    with headwater.connect(":memory:") as db:
        create(db, historical_tolls(cars, ride.expressways, ride.seed))
        if ride.questions_per_minute and ride.indexed:
            db.sql(INDEX)
        _settle(db)
        asker = Asker(db, ride.questions_per_minute, ride.expressways, scenario.start_s)
        drive = Drive(ride, Application(db), asker, Clock(float(scenario.start_s)))
        cpu, started = time.process_time(), time.perf_counter()
        with drive.profile.watching():
            for number, batch in enumerate(batches(scenario)):
                if not drive.take(batch, scenario.start_s + number):
                    break
        used = (time.process_time() - cpu) / len(drive.work)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        wall = time.perf_counter() - started
        return {**drive.figures(), "cpu_share": used, "memory_mb": memory, "wall_s": wall}


def _settle(db: headwater.Database) -> None:
    """Waits until the history is indexed."""
    db.flush()
    until = time.monotonic() + SETTLE_S
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
