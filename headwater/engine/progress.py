"""What a firing is doing and what it has cost so far, for those who ask while it runs (EQ7).

Owns: the times of one query's firings, part by part of its plan, and the report of an epoch that took
longer than its budget. Any thread may ask; only the firing one writes. Must never: read a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Jobs = Callable[[int | None], list[int]]  # of the thread that fires: its Spark jobs


@dataclass(frozen=True)
class Overrun:
    """An evaluation that took longer than its budget."""

    number: int  # of the epoch, counted from 0
    seconds: float
    budget_s: float
    part: str
    part_s: float
    jobs: tuple[int, ...]
    running: bool

    def text(self) -> str:
        """In words."""
        took = "takes" if self.running else "took"
        spark = ""
        if self.jobs:
            numbers = ", ".join(map(str, self.jobs))
            spark = f" (Spark job{'s' if len(self.jobs) > 1 else ''} {numbers})"
        return (
            f"epoch {self.number} {took} {self.seconds:.2f} s, its budget is {self.budget_s:g} s; "
            f"{self.part_s:.2f} s in {self.part}{spark}"
        )


@dataclass
class Progress:
    """The parts of one query's firing under way, and the last overrun."""

    budget_s: float | None
    now: Callable[[], float]
    jobs: Jobs
    last: Overrun | None = None
    overruns: int = 0
    _number: int = 0
    _thread: int | None = None
    _started: float | None = None
    _parts: dict[str, float] = field(default_factory=dict)
    _part: tuple[str, float] | None = None
    _jobs: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @contextmanager
    def firing(self, number: int, thread: int, since: float) -> Iterator[None]:
        """While inside, a firing that answers from this number on is under way."""
        self._number, self._thread = number, thread
        self._parts, self._jobs = {}, {}
        self._started = since
        try:
            yield
        finally:
            found = self.overrun()
            if found is not None:
                self.last = Overrun(**{**vars(found), "running": False})
                self.overruns += 1
            self._started = None

    @contextmanager
    def at(self, part: str) -> Iterator[None]:
        """While inside, the time belongs to a part of the plan."""
        outer, began = self._part, self.now()
        self._part = (part, began)
        try:
            yield
        finally:
            spent = self.now() - began
            self._parts[part] = self._parts.get(part, 0.0) + spent
            if self.budget_s is not None and spent > self.budget_s / 4:
                self._jobs[part] = (*self._jobs.get(part, ()), *self.jobs(self._thread))
            self._part = outer

    def overrun(self) -> Overrun | None:
        """The firing under way, if it is over its budget."""
        started, part, budget = self._started, self._part, self.budget_s
        if started is None or budget is None:
            return None
        now = self.now()
        if now - started <= budget:
            return None
        parts = dict(self._parts)
        jobs = self._jobs
        if part is not None:
            parts[part[0]] = parts.get(part[0], 0.0) + now - part[1]
            jobs = {**jobs, part[0]: (*jobs.get(part[0], ()), *self.jobs(self._thread))}
        worst = max(parts, key=lambda name: parts[name], default="waiting for its turn")
        spent = parts.get(worst, now - started)
        found = tuple(dict.fromkeys(jobs.get(worst, ())))
        return Overrun(self._number, now - started, budget, worst, spent, found, True)

    def report(self) -> str | None:
        """The overrun to tell of: that under way, else the last one."""
        found = self.overrun() or self.last
        return None if found is None else found.text()
