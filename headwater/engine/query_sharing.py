"""Which folds of a query are shared with other queries, and how their relations come to it.

Owns: a query's members of shared folds, and which of them serve the firing under way. Must never: decide
for another query; each looks at its own firings whether it takes part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headwater.engine.feed import last_until
from headwater.engine.fold_run import Counters, FoldRun
from headwater.engine.reader import LeafReader
from headwater.engine.sampling import Instant
from headwater.engine.sharing import Member, Sharing
from headwater.kernel.relation import HeldTables


class Shares:
    """The shared folds of one query."""

    def __init__(self) -> None:
        self._sharing: Sharing | None = None
        self._members: dict[int, Member] = {}
        self._serving: frozenset[int] = frozenset()

    def join(self, sharing: Sharing, members: dict[int, Member]) -> None:
        """From now on these folds, by number, may be shared."""
        self._sharing, self._members = sharing, members

    def leave(self) -> None:
        """Nothing is shared any more; may be called at any time, by any thread."""
        members, self._members = self._members, {}
        if self._sharing is not None:
            self._sharing.remove(members)

    def forget(self) -> None:
        """The query's folds were made anew: the next firing settles what is shared."""
        self._serving = frozenset()

    def settle(self, first: int, last: int, folds: Sequence[FoldRun]) -> bool:
        """Before a firing over instants: which folds are shared; whether one must be built again."""
        before, members = self._serving, self._members
        self._serving = frozenset(n for n, m in members.items() if m.enter(first, last))
        for number in self._serving - before:
            folds[number].clear()
        return bool(before - self._serving)

    def passed(self, until: int) -> None:
        """Instants were answered by re-evaluation."""
        for member in self._members.values():
            member.passed(until)

    def __contains__(self, number: int) -> bool:
        return number in self._serving

    def __bool__(self) -> bool:
        return bool(self._serving)

    def results(
        self,
        wanted: Sequence[tuple[Instant, bool]],
        held: HeldTables,
        counters: Counters,
    ) -> Mapping[int, Mapping[int, pa.Table]]:
        """By fold and tick the merged relations of windows that are not empty."""
        if not self._serving:
            return {}
        ticks = [instant.tick for instant, empty in wanted if not empty]
        until = wanted[-1][0].tick
        return {
            number: member.results(ticks, until, held, counters)
            for number, member in self._members.items()
            if number in self._serving
        }

    def with_whom(self, number: int) -> list[str]:
        """The names of the queries that share a fold now."""
        member = self._members.get(number)
        return [] if member is None or number not in self._serving else member.others

    def run(self, number: int) -> FoldRun | None:
        """A shared fold as it runs now."""
        member = self._members.get(number)
        return None if member is None or number not in self._serving else member.shared.run


def merged_at(
    instant: Instant, folds: Sequence[FoldRun], shared: Mapping[int, Mapping[int, pa.Table]]
) -> list[pa.Table]:
    """The folds' relations at an instant; over an empty window that of a fold without rows."""
    found = []
    for number, fold in enumerate(folds):
        table = shared[number].get(instant.tick) if number in shared else None
        found.append(fold.merge.result() if table is None else table)
    return found


def look_back(readers: Sequence[LeafReader], place: int) -> None:
    """Readers learn the newest row before their place, as windows from a place on may hold it."""
    for reader in readers:
        if reader.cursor is None or reader.window_ticks is None:
            continue
        definition = reader.table.definition
        with reader.table.reading() as snapshot:
            low = place - reader.window_ticks
            rows = last_until(snapshot, 1, reader.cursor, low, (definition.time,))
        if rows.num_rows:
            reader.latest = int(definition.ticks(rows.column(definition.time))[-1])
