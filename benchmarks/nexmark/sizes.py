"""How much is asked: the sizes of B13, small ones for `--quick`, and any number of events between."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

EVENTS = (
    "HEADWATER_NEXMARK_EVENTS"  # in the environment: a number of events in place of the full sizes
)
ALL = tuple(f"q{number}" for number in range(23))


@dataclass(frozen=True)
class Sizes:
    """One set of sizes; whoever needs longer than `seconds` is stopped after the chunk, and has its rate."""

    events: tuple[int, ...]
    chunks: tuple[int, ...]
    seconds: float  # of one system with one query
    together_seconds: float  # with all of them
    peer_queries: tuple[str, ...]  # of Flink and Pathway
    peer_events: int
    checked: int  # events of the answers of Flink and Pathway


QUICK = Sizes((10_000,), (1_000,), 1.0, 5.0, ("q0", "q3", "q4", "q17"), 20_000, 3_000)
FULL = Sizes((1_000_000, 10_000_000), (1_000, 10_000), 60.0, 600.0, ALL, 1_000_000, 12_000)
MIDDLE_SECONDS = 2.0


def of(quick: bool) -> Sizes:
    """The sizes of a run."""
    if quick:
        return QUICK
    given = os.environ.get(EVENTS)
    if not given:
        return FULL
    share = 20.0 if int(given) < FULL.events[0] else 600.0
    seconds = MIDDLE_SECONDS if int(given) < FULL.events[0] else FULL.seconds
    return replace(
        FULL,
        events=(int(given),),
        peer_events=int(given),
        seconds=seconds,
        together_seconds=share,
    )
