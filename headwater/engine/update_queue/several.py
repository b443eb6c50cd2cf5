"""Which of several queues to serve next (US10).

Owns: the choice that keeps mean staleness over the keys of all queries lowest. Must never: change
the order within a queue; that is its policy's.

A key that is always updated and served every p ticks is p/2 stale on average. Under a budget of
time, the sum over keys is lowest when each is served at a rate proportional to 1/√cost, and this
is what serving the key with the largest staleness² / cost leads to. At equal costs it is the
stalest key: the paper's argument for IN-PLACE (UpStream §5.2), over all queues. A run has a fixed
cost as well, so several keys are taken at once if that gains more in the time it takes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from headwater.engine.update_queue.vectors import NONE
from headwater.fold.columns import Slots


@dataclass(frozen=True)
class Offer:
    """What one queue could do next."""

    queue: Hashable
    starts: Slots  # since when its next keys have waited, in the order of its policy
    row_cost: float  # ticks
    run_cost: float = 0.0  # ticks of a run without rows
    weight: float = 1.0  # how much staleness of this query counts


def choose(offers: Sequence[Offer], now: int) -> tuple[Hashable, int] | None:
    """The queue to serve and how many of its keys; None if no key waits."""
    best: tuple[float, Hashable, int] | None = None
    for offer in offers:
        gain, count = _best_run(offer, now)
        if count and (best is None or gain > best[0]):
            best = gain, offer.queue, count
    return None if best is None else (best[1], best[2])


def _best_run(offer: Offer, now: int) -> tuple[float, int]:
    """The largest gain per tick of time, and with how many keys it is reached."""
    starts = offer.starts[offer.starts != NONE]
    if not len(starts):
        return 0.0, 0
    stale = np.maximum(now - starts, 0).astype(np.float64)
    counts = np.arange(1, len(stale) + 1)
    cost = np.maximum(offer.run_cost + counts * offer.row_cost, 1e-9)
    gains = offer.weight * np.cumsum(stale * stale) / cost
    best = int(np.argmax(gains))
    return float(gains[best]), best + 1
