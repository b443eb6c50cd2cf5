"""Where the time of our folds goes, for Fig. 7: processing new rows, and merging partials."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from headwater.engine.fold_run import FoldRun
from headwater.fold.sliding import SlidingWindow

PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    "processing": ((FoldRun, "take"), (SlidingWindow, "fold")),
    "merging": ((SlidingWindow, "push"), (SlidingWindow, "evict"), (SlidingWindow, "result")),
}


@dataclass
class Spent:
    """Seconds of every call, by part and function."""

    calls: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def per_slide_ms(self, part: str, slides: int) -> float:
        """What a slide costs in a part: medians, so that a first call or a pause does not count."""
        return sum(
            1000 * median(times) * len(times) / slides
            for (of, _), times in self.calls.items()
            if of == part and times
        )


@contextlib.contextmanager
def measured() -> Iterator[Spent]:
    """Times the parts while this is open."""
    spent = Spent()
    with contextlib.ExitStack() as undo:
        for part, places in PARTS.items():
            for owner, name in places:
                original = getattr(owner, name)
                undo.callback(setattr, owner, name, original)
                times = spent.calls.setdefault((part, name), [])
                setattr(owner, name, _timed(original, times))
        yield spent


def _timed(original: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    def run(*arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            times.append(time.perf_counter() - started)

    return run
