"""Where the time of a run goes: by continuous query and step, of the slowest second and on average.

Owns: the times of the steps named in `STEPS`, each without those of the steps inside it, from all threads.
Seconds on the clock and seconds of the processor are told apart: the difference was waiting, for the disk
or for a core. A step belongs to the second in which it ends. Must never: change what is measured; a step
costs a few microseconds more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from headwater.engine.evaluation import Evaluation
from headwater.engine.fold_run import FoldRun
from headwater.engine.query import ContinuousQuery
from headwater.engine.results import ResultLog
from headwater.engine.view import ContinuousView
from headwater.storage.disk import Disk
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.wal.queue import Ticket

STEPS: tuple[tuple[type, str, str], ...] = (
    (ContinuousQuery, "pull", "take over rows"),
    (ContinuousQuery, "fire", "fire, the rest of it"),
    (ContinuousQuery, "put_away_if_due", "snapshot"),
    (ContinuousView, "pull", "take over rows"),
    (ContinuousView, "fire", "fire, the rest of it"),
    (ContinuousView, "put_away_if_due", "snapshot"),
    (FoldRun, "take", "fold new rows"),
    (FoldRun, "push_early", "fold new rows"),
    (FoldRun, "advance", "merge the window"),
    (Evaluation, "upper", "upper part"),
    (ResultLog, "append", "store the result"),
    (StreamingTable, "store_result", "store the result"),
    (StreamingTable, "insert", "insert"),
    (StreamingTable, "advance", "punctuation"),
    (StreamingTable, "seal", "seal"),
    (StreamingTable, "compact", "compact"),
    (StreamingTable, "build_indexes", "build indexes"),
    (Ticket, "wait", "wait for the log"),
    (Disk, "fdatasync", "sync"),
)
LOG = "the log"
SHOWN = 12  # steps of the slowest second that are kept
Key = tuple[str, str]  # whose step, and which


@dataclass
class Spent:
    """Time of one step."""

    seconds: float = 0.0
    cpu_s: float = 0.0

    def add(self, seconds: float, cpu_s: float) -> None:
        """Some more."""
        self.seconds += seconds
        self.cpu_s += cpu_s


@dataclass
class _Open:
    """A step under way, with the time of the steps inside it."""

    owner: str
    inner: Spent


class Profile:
    """The steps of one run, second by second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = threading.local()
        self._second: dict[Key, Spent] = {}
        self._total: dict[Key, Spent] = {}
        self._seconds = 0
        self._slowest: tuple[float, int, Mapping[Key, Spent]] = (-1.0, 0, {})

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While inside, the steps are timed."""
        before = [(kind, name, getattr(kind, name)) for kind, name, _ in STEPS]
        for kind, name, step in STEPS:
            setattr(kind, name, self._timed(getattr(kind, name), step))
        try:
            yield
        finally:
            for kind, name, original in before:
                setattr(kind, name, original)

    def _timed(self, original: Callable[..., Any], step: str) -> Callable[..., Any]:
        @wraps(original)
        def timed(this: Any, *given: Any, **named: Any) -> Any:
            with self.at(step, _owner(this)):
                return original(this, *given, **named)

        return timed

    @contextmanager
    def at(self, step: str, owner: str | None) -> Iterator[None]:
        """While inside, the time of this thread belongs to a step; without owner, to that around it."""
        stack: list[_Open] = self._threads.__dict__.setdefault("stack", [])
        outer = stack[-1] if stack else None
        mine = _Open(owner or (outer.owner if outer else LOG), Spent())
        stack.append(mine)
        began, cpu = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            took, used = time.perf_counter() - began, time.thread_time() - cpu
            stack.pop()
            if outer is not None:
                outer.inner.add(took, used)
            with self._lock:
                spent = self._second.setdefault((mine.owner, step), Spent())
                spent.add(took - mine.inner.seconds, used - mine.inner.cpu_s)

    def ended(self, second: int, work_s: float) -> None:
        """A second of traffic is answered, and its work took so long."""
        with self._lock:
            spent, self._second = self._second, {}
        for key, one in spent.items():
            self._total.setdefault(key, Spent()).add(one.seconds, one.cpu_s)
        self._seconds += 1
        if work_s > self._slowest[0]:
            self._slowest = (work_s, second, spent)

    def figures(self) -> dict[str, Any]:
        """The steps of the slowest second and of an average one, the longest first."""
        work_s, second, spent = self._slowest
        return {
            "slowest_second": second,
            "slowest_work_s": work_s,
            "slowest": _rows(spent, 1),
            "average": _rows(self._total, max(self._seconds, 1)),
        }


def _owner(this: Any) -> str | None:
    """The name of a query, view or table; the query behind a materialized view has that one's."""
    if isinstance(this, StreamingTable):
        return this.definition.name.lstrip("_")
    return this.name.lstrip("_") if isinstance(this, (ContinuousQuery, ContinuousView)) else None


def _rows(spent: Mapping[Key, Spent], seconds: int) -> list[dict[str, Any]]:
    """The longest steps of a second."""
    longest = sorted(spent.items(), key=lambda item: -item[1].seconds)[:SHOWN]
    return [
        {"of": of, "step": step, "s": one.seconds / seconds, "cpu_s": one.cpu_s / seconds}
        for (of, step), one in longest
    ]
