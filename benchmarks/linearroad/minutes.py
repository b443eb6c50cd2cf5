"""A run minute by minute: response times, work, memory and processor (Fig. 5 to 8)."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MINUTE_S = 60
Responses = Sequence[tuple[float, int]]  # by second: the response time, and of how many answers


def by_minute(times: Responses) -> Mapping[str, list[float | None]]:
    """The average and the worst response time of each minute; None where nothing was answered."""
    minutes = [times[first : first + MINUTE_S] for first in range(0, len(times), MINUTE_S)]
    return {
        "average_s": [_average(minute) for minute in minutes],
        "worst_s": [max((s for s, count in m if count), default=None) for m in minutes],
    }


def _average(times: Responses) -> float | None:
    answers = sum(count for _, count in times)
    return sum(seconds * count for seconds, count in times) / answers if answers else None


def memory_mb() -> float:
    """What this process holds now; at most so far where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass
class Minutes:
    """What is looked at when a minute is over."""

    reports: list[int] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    cpu_share: list[float] = field(default_factory=list)  # seconds of processor a second of traffic
    _rows: int = 0
    _cpu_s: float = field(default_factory=time.process_time)

    def over(self, rows: int) -> None:
        """A minute is over, and so many reports came in all."""
        now = time.process_time()
        self.reports.append(rows - self._rows)
        self.memory_mb.append(round(memory_mb(), 1))
        self.cpu_share.append(round((now - self._cpu_s) / MINUTE_S, 4))
        self._rows, self._cpu_s = rows, now

    def figures(self, seconds: Mapping[str, Responses]) -> dict[str, Any]:
        """All of it, with the response times by output."""
        return {
            "reports": self.reports,
            "memory_mb": self.memory_mb,
            "cpu_share": self.cpu_share,
            "outputs": {output: by_minute(times) for output, times in seconds.items()},
        }
