"""FLUSH over all hosts: every query answers what was there at the call, wherever it lives and moves.

Waits for queries, never for a moment without work: it ends however fast rows come (`machine`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from headwater.engine.hosted import Hosted
from headwater.storage.streaming.seen import SeenTable

MOVE_S = 0.02  # until a query that is on its way may have arrived


class Flushed(Protocol):
    """The host that is asked, and what it knows of others."""

    flush_elsewhere: Callable[[Collection[str], float | None], set[str]]

    def all_hosted(self) -> Sequence[Hosted]:
        """All queries and views."""

    def hosted(self, name: str) -> Hosted | None:
        """The query or view of that name."""

    def flush_here(self, names: Collection[str], until: float | None) -> set[str]:
        """Of these, the queries of this host that have answered what was there at the call."""


def flush(host: Flushed, timeout_s: float | None) -> bool:
    """Whether everything complete at the call has been answered in time."""
    until = None if timeout_s is None else time.monotonic() + timeout_s
    fed = _fed(host.all_hosted())
    for _ in range(len(fed) + 1):  # results go through so many queries at most
        before = [table.state for table in fed]
        if not _flush_once(host, until):
            return False
        if [table.state for table in fed] == before:
            break
    return True


def _fed(queries: Sequence[Hosted]) -> list[SeenTable]:
    """The tables that queries write, for others to read."""
    return [query.writes for query in queries if query.writes is not None]


def _flush_once(host: Flushed, until: float | None) -> bool:
    """Every query answers what is there now; one that moves meanwhile is asked again."""
    owed = {query.name.casefold(): query for query in host.all_hosted()}
    while owed:
        done = host.flush_here(owed, until)
        done |= host.flush_elsewhere(owed.keys() - done, until)
        owed = {n: q for n, q in owed.items() if n not in done and host.hosted(n) is q}
        if owed and until is not None and time.monotonic() >= until:
            return False
        if owed and not done:
            time.sleep(MOVE_S)
    return True
