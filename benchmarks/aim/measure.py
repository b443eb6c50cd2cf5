"""The experiments as steps that any system takes, in this process or in one of its own.

A step is plain data, and so is what it finds: a system in another virtualenv gets its steps as JSON.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.aim import data
from benchmarks.aim.systems import System, open_system

Figures = dict[str, Any]
PULSE_S = 0.02  # how often a batch comes where calls come at a fixed rate


@dataclass(frozen=True)
class Step:
    """One experiment on an open system; calls go on where the step before ended."""

    do: str  # insert, reads, unchanged or answers
    events: int = 0  # of a segment
    batch: int = 10_000
    segments: int = 1
    warm_up: int = 0  # segments that do not count
    read_every: int = 0  # insert: all views are read after so many calls; 0 never
    per_second: int = 0  # reads: calls that come meanwhile
    seconds: float = 0.0


@dataclass(frozen=True)
class Work:
    """Steps for one system with some views."""

    system: str
    customers: int
    views: tuple[str, ...]
    steps: tuple[Step, ...]


def perform(work: Work) -> list[Figures]:
    """What each step found."""
    with open_system(work.system, data.customers(work.customers), work.views) as system:
        return Experiment(system, work.customers, work.views).run(work.steps)


class Experiment:
    """An open system and how many calls it has taken."""

    def __init__(self, system: System, customers: int, views: Sequence[str]) -> None:
        self._system, self._customers, self.views = system, customers, views
        self._first = 0

    def run(self, steps: Sequence[Step]) -> list[Figures]:
        """Steps one after the other."""
        does = {
            "insert": self._insert,
            "reads": self._reads,
            "unchanged": self._unchanged,
            "answers": self._answers,
        }
        return [does[step.do](step) for step in steps]

    def _batches(self, count: int, size: int) -> list[Any]:
        week = data.current_week()
        made = [
            data.events(self._first + place, min(size, count - place), self._customers, week)
            for place in range(0, count, size)
        ]
        self._first += count
        return [self._system.prepare(batch) for batch in made]

    def _insert(self, step: Step) -> Figures:
        """Calls per second, segment by segment, each until everything is processed."""
        rates = []
        for number in range(step.warm_up + step.segments):
            batches = self._batches(step.events, step.batch)
            started = time.perf_counter()
            since = 0
            for batch in batches:
                self._system.insert(batch)
                since += step.batch
                if step.read_every and since >= step.read_every:
                    since = 0
                    self._read_all()
            self._system.settle()
            if number >= step.warm_up:
                rates.append(step.events / (time.perf_counter() - started))
        return {"per_s": statistics.median(rates), "least": min(rates), "most": max(rates)}

    def _read_all(self) -> None:
        for view in self.views:
            self._system.read(view)

    def _reads(self, step: Step) -> Figures:
        """Views read one after the other, any with equal chance, while calls come at a fixed rate."""
        size = max(int(step.per_second * PULSE_S), 1)
        batches = self._batches(int(step.per_second * step.seconds), size)
        self._read_all()
        if not self._system.two_threads:
            return self._alternate(step, batches)
        ended = threading.Event()
        taken = [0, 0.0]

        def feed() -> None:
            taken[:] = self._feed(batches, ended)

        feeder = threading.Thread(target=feed)
        feeder.start()
        chances = random.Random(0)
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < step.seconds:
            self._system.read(chances.choice(self.views))
            count += 1
        elapsed = time.perf_counter() - started
        ended.set()
        feeder.join()
        return {"queries_per_s": count / elapsed, "events_per_s": taken[0] * size / taken[1]}

    def _feed(self, batches: list[Any], ended: threading.Event) -> tuple[int, float]:
        """Inserts a batch each pulse, as long as it can keep up; how many, and how long it took."""
        started, count = time.perf_counter(), 0
        for batch in batches:
            wait = started + count * PULSE_S - time.perf_counter()
            if ended.wait(max(wait, 0.0)):
                break
            self._system.insert(batch)
            count += 1
        return count, max(time.perf_counter() - started, count * PULSE_S)

    def _alternate(self, step: Step, batches: list[Any]) -> Figures:
        """The same for a system that serves one thread: a batch when it is due, and a read."""
        size = max(int(step.per_second * PULSE_S), 1)
        chances = random.Random(0)
        started, count, done = time.perf_counter(), 0, 0
        while (elapsed := time.perf_counter() - started) < step.seconds:
            if done < len(batches) and elapsed >= done * PULSE_S:
                self._system.insert(batches[done])
                done += 1
            self._system.read(chances.choice(self.views))
            count += 1
        return {"queries_per_s": count / elapsed, "events_per_s": done * size / elapsed}

    def _unchanged(self, step: Step) -> Figures:
        """Some calls, then each view by itself: its first read, and reads per second after it."""
        if step.events:
            for batch in self._batches(step.events, step.batch):
                self._system.insert(batch)
            self._system.settle()
        return {view: self._view_alone(view, step.seconds) for view in self.views}

    def _view_alone(self, view: str, seconds: float) -> Figures:
        started = time.perf_counter()
        self._system.read(view)
        first = time.perf_counter() - started
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            self._system.read(view)
            count += 1
        return {
            "first_ms": first * 1000,
            "queries_per_s": count / (time.perf_counter() - started),
        }

    def _answers(self, step: Step) -> Figures:
        """The rows of every view after some calls."""
        for batch in self._batches(step.events, step.batch):
            self._system.insert(batch)
        self._system.settle()
        return {
            view: [[_plain(value) for value in row] for row in self._system.read(view)]
            for view in self.views
        }


def _plain(value: Any) -> float | int | None:
    return value if value is None or isinstance(value, int) else float(value)
