"""A windowed query in parts: each folds the groups whose keys fall to it, in a host of its own.

Owns: one result per instant. Parts answer instants for themselves, so some are ahead: the groups that they
gave wait here until all have passed the instant. Then the upper part (HAVING, ORDER BY, LIMIT, another
grouping) is computed once over all of them, and made durable. What waits is in memory alone: a part goes on
from the last united result, whatever ends, and gives again what was not united. Must never: unite groups
that were made of different stored rows.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.engine.evaluation import Evaluation
from headwater.engine.hosted import InParts
from headwater.engine.query import ContinuousQuery
from headwater.engine.query_parts import Evaluated
from headwater.engine.query_sinks import LogSink
from headwater.engine.sampling import Instant
from headwater.engine.sharing import Sharing
from headwater.errors import StorageError
from headwater.kernel.relation import HeldTables, Relation
from headwater.plan.folds import ContinuousPlan
from headwater.storage.disk import BUSY

MOST_AHEAD = 4096  # instants that a part has given and another has not
AHEAD_S = 1.0  # so long one that is further ahead waits before it tries again

GENERATIONS = "generations"  # in the notes of parts: of the stored rows that were folded


def query_cannot_split(plan: ContinuousPlan, kind: str) -> str | None:
    """Why the groups of a windowed query cannot be shared out; None if they can."""
    fold = plan.folds[0] if len(plan.folds) == 1 else None
    if fold is None or fold.kind != "aggregate" or not fold.keys:
        return "it is not one grouping by keys over its window"
    if kind not in ("interval", "realtime") or fold.leaves[0].window.kind != "interval":
        return "its window or its instants are counted in rows"
    if plan.stream_tables:
        return "its parts would see other versions of the table below its grouping"
    return None


class PartEvaluation(Evaluation):
    """How a part makes what it gives: its groups, as they are."""

    def upper(
        self,
        merged: Sequence[tuple[Instant, Sequence[pa.Table | Relation]]],
        held: HeldTables,  # noqa: ARG002
    ) -> list[pa.Table]:
        """The groups of instants."""
        return [table for _, (table,) in merged if isinstance(table, pa.Table)]


@dataclass(kw_only=True)
class QueryPart(ContinuousQuery):
    """Some groups of a query."""

    _taken: tuple[dict[str, Any], dict[str, Any], int] | None = None  # a snapshot ahead of results

    def share(self, sharing: Sharing) -> None:
        """Others' folds have the groups of all parts."""

    def attach(self) -> None:
        """Takes up its place after the last result of all parts."""
        self._taken = None
        super().attach()

    def _noted(
        self,
        wanted: Sequence[tuple[Instant, bool]],
        rows: Sequence[pa.Table],
        held: HeldTables,
    ) -> list[Evaluated]:
        found = super()._noted(wanted, rows, held)
        for one in found:
            one.note[GENERATIONS] = [reader.feed.generation for reader in self.readers]
        return found

    def put_away(self, *, beside: bool = False) -> None:
        """Writes a snapshot once the results of all parts have come as far: it is of no use before."""
        if self._taken is None:
            stamp = self.keeper.stamp
            self.keeper.looked_at = time.monotonic()
            if self.keeper.may_keep and (taken := self.to_keep()) is not None:
                self._taken = (self.keeper.copy_of(taken[0]), taken[1], stamp)
        last = self.sink.last()
        if self._taken is not None and last is not None and last[0] >= self._taken[1]["after"]:
            (state, position, stamp), self._taken = self._taken, None
            self.keeper.keep(state, position, stamp, beside=beside)

    def put_away_if_due(self, period_s: float) -> None:
        """Writes a snapshot if the last one is that old, or one that was taken can be kept now."""
        if self._taken is not None or self.keeper.is_due(period_s):
            self.put_away(beside=True)

    def _signature(self) -> dict[str, Any]:
        return {**super()._signature(), "share": None if self.mine is None else list(self.mine)}


@dataclass(kw_only=True)
class SplitQuery(InParts, ContinuousQuery):
    """One query to its users, several parts to its hosts; what they give becomes its results."""

    parts: Sequence[QueryPart] = ()
    part_count: int
    _given: list[dict[int, Evaluated]] = field(init=False)  # by part and tick
    _passed: list[int | None] = field(init=False)  # the last tick that each has given
    _behind: set[int] = field(init=False, default_factory=set)  # parts that are to begin anew

    def __post_init__(self) -> None:
        super().__post_init__()
        self._changed = threading.Condition()
        self._given = [{} for _ in range(self.part_count)]
        self._passed = [None] * self.part_count

    def begins(self, place: int) -> None:
        """A part takes up its place after the last result: what it gave since, it will give again."""
        with self._changed:
            self._forget(place)
            self._behind.discard(place)
            self.sink.recover()

    @property
    def reached(self) -> int | None:
        """The furthest tick that a part has gone beyond."""
        last = self.sink.last()
        ticks = [part.reached for part in self.parts] + [None if last is None else last[0]]
        return max((tick for tick in ticks if tick is not None), default=None)

    def _forget(self, place: int) -> None:
        self._given[place], self._passed[place] = {}, None

    def give(self, place: int, results: Sequence[Evaluated]) -> None:
        """The groups of a part at instants; what all parts have passed is durable when this returns."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._given[place]) < MOST_AHEAD, AHEAD_S):
                raise StorageError("a part of the query is far ahead of another", sqlstate=BUSY)
            if place in self._behind:
                return  # this is of the old rows still: it will see that, and give all of it again
            try:
                self._given[place] |= {one.instant.tick: one for one in results}
                self._passed[place] = results[-1].instant.tick
                self._unite()
            except BaseException:
                self._forget(place)  # it is the one that tries again
                raise

    def _unite(self) -> None:
        """Results of the instants that all parts have passed."""
        passed = [tick for tick in self._passed if tick is not None]
        if len(passed) < self.part_count:
            return
        groups = self._ready(min(passed))
        if not groups:
            return
        with self.world.held(self.plan.identifiers) as held:
            rows = self.evaluation.upper(groups, held)
            self._append([instant for instant, _ in groups], rows, held)
        done = groups[-1][0].tick
        for place, given in enumerate(self._given):
            self._given[place] = {tick: one for tick, one in given.items() if tick > done}
        self._changed.notify_all()

    def _ready(self, until: int) -> list[tuple[Instant, list[pa.Table]]]:
        """Instants with the groups of all parts. A part that has passed one without a word has none then:

        of a long gap each tells only the first and the last instant that it sees. Instants that became
        durable though it was not known are among the results already.
        """
        found, last = list[tuple[Instant, list[pa.Table]]](), self.sink.last()
        ticks = [sorted(given) for given in self._given]
        for tick in sorted({tick for own in ticks for tick in own if tick <= until}):
            if last is not None and tick <= last[0]:
                continue
            passing = [
                mine[own[bisect_left(own, tick)]]
                for mine, own in zip(self._given, ticks, strict=True)
            ]
            if self._forget_older([one.note[GENERATIONS] for one in passing]):
                break
            given = [one for one in passing if one.instant.tick == tick]
            found.append((given[0].instant, [pa.concat_tables([one.rows for one in given])]))
        return found

    def _forget_older(self, generations: Sequence[list[int]]) -> bool:
        """Whether stored rows were changed meanwhile; parts that have not seen it yet are to begin anew."""
        newest = max(generations)
        older = [place for place, seen in enumerate(generations) if seen != newest]
        for place in older:
            self._forget(place)
            self._behind.add(place)
        return bool(older)

    def _append(
        self, instants: Sequence[Instant], rows: Sequence[pa.Table], held: HeldTables
    ) -> None:
        last = self.sink.last()
        count = 0 if last is None else last[1].get("count", 0)
        results = []
        for number, (instant, table) in enumerate(zip(instants, rows, strict=True), count):
            note: dict[str, Any] = {"count": number + 1}
            if held.versions:
                note["versions"] = dict(held.versions)
            epoch = number if self.sampling.cut else None
            results.append(Evaluated(instant, table, note, epoch))
        self.sink.append(results)
        self.results += len(results)


class PartSink(LogSink):
    """Where the groups of a part go: to the query, whose results decide how far the part is."""

    def __init__(self, whole: SplitQuery, place: int) -> None:
        super().__init__(whole.sink.log)
        self.table = whole.sink.table
        self._whole, self._place = whole, place

    def last(self) -> tuple[int, dict[str, Any]] | None:
        """The tick and the note of the newest result of all parts."""
        return self._whole.sink.last()

    def recover(self) -> None:
        """The part begins anew after that result."""
        self._whole.begins(self._place)

    def append(self, results: Sequence[Evaluated]) -> None:
        """They are the query's once all parts have passed their instants."""
        self._whole.give(self._place, results)
