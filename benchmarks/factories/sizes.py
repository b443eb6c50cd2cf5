"""How much each piece of work takes in, and with how many factories."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

EVENTS = "HEADWATER_FACTORIES_EVENTS"  # in the environment: events of each piece of work


@dataclass(frozen=True)
class Sizes:
    """One set of sizes."""

    factories: tuple[int, ...]
    events: int
    batch: int
    customers: int  # AIM's
    cars: int  # of the statistics
    queries: tuple[int, ...]  # independent ones over one table
    repetitions: int
    panes: int  # of the window whose slides are timed
    step: int
    slides: int


QUICK = Sizes((0, 2), 60_000, 10_000, 10_000, 5_000, (8,), 1, 16, 2_000, 16)
FULL = Sizes((0, 1, 2, 4), 2_000_000, 20_000, 1_000_000, 100_000, (8, 64), 5, 512, 20_000, 1_536)


def of(quick: bool) -> Sizes:
    """The sizes of a run."""
    given = os.environ.get(EVENTS)
    if quick or not given:
        return QUICK if quick else FULL
    smaller = replace(FULL, factories=(0, 1, 2), events=int(given), customers=100_000)
    return replace(smaller, repetitions=1, panes=64, slides=192)
