"""The folds of one query: asked for their relations at instants, whoever folds the rows.

Owns: the folds, whether they hold the state of the query's place, and which of them are answered by a fold
that several queries have in common (`sharing.py`). A firing settles that once, and nobody else asks. Must
never: decide for another query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.engine.feed import FeedCursor
from headwater.engine.fold_run import Counters, FoldRun
from headwater.engine.joins import PairJoinMerge, PairsMerge
from headwater.engine.pane_merge import PaneWindow
from headwater.engine.progress import Progress
from headwater.engine.reader import PlacedRows
from headwater.engine.sampling import Instant
from headwater.engine.sharing import Member, Sharing
from headwater.kernel.relation import HeldTables


class QueryFolds:
    """A query's folds by number."""

    def __init__(self) -> None:
        self.ready = False  # they hold the state of the readers' place
        self._runs: list[FoldRun] = []
        self._sharing: Sharing | None = None
        self._members: dict[int, Member] = {}  # those that may be shared
        self._shared: frozenset[int] = frozenset()  # those that are, in the firing under way

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[FoldRun]:
        return iter(self._runs)

    def __getitem__(self, number: int) -> FoldRun:
        return self._runs[number]

    def make(self, runs: Sequence[FoldRun]) -> None:
        """Folds that hold nothing take the place of those that are there."""
        self._runs, self.ready, self._shared = list(runs), False, frozenset()

    def clear(self) -> None:
        """Nothing is folded."""
        self.ready = False
        for run in self._runs:
            run.clear()

    # Together with other queries

    def join(self, sharing: Sharing, members: dict[int, Member]) -> None:
        """From now on these folds may be one with others'."""
        self._sharing, self._members = sharing, members

    def leave(self) -> None:
        """Nothing is shared any more; may be called at any time, by any thread."""
        members, self._members = self._members, {}
        if self._sharing is not None:
            self._sharing.remove(members)

    def settle(self, first: int, last: int) -> bool:
        """Before a firing over instants: who folds what; whether others' folds begin to serve."""
        before = self._shared
        self._shared = frozenset(n for n, m in self._members.items() if m.enter(first, last))
        for number in self._shared - before:
            self._runs[number].clear()
        if before - self._shared:
            self.ready = False
        return bool(self._shared and not before)

    def passed(self, until: int) -> None:
        """Instants were answered by re-evaluation."""
        for member in self._members.values():
            member.passed(until)

    @property
    def own(self) -> list[FoldRun]:
        """Those that take the query's own rows."""
        return [run for number, run in enumerate(self._runs) if number not in self._shared]

    def with_whom(self, number: int) -> list[str]:
        """The names of the queries that share a fold now."""
        member = self._members.get(number)
        return [] if member is None or number not in self._shared else member.others

    @property
    def shared_with(self) -> list[str]:
        """The names of the queries that share any fold now."""
        return sorted({name for number in self._shared for name in self.with_whom(number)})

    def running(self, number: int) -> FoldRun:
        """A fold as it runs now, the query's own or a shared one."""
        member = self._members.get(number) if number in self._shared else None
        running = None if member is None else member.shared.running
        return self._runs[number] if running is None else running.fold

    def window_of(self, number: int) -> PaneWindow | None:
        """The window of a fold over panes that are shared now."""
        member = self._members.get(number) if number in self._shared else None
        return None if member is None else member.running

    @property
    def size(self) -> int:
        """How many rows, partials or groups are held; what is shared is told of one query."""
        own = sum(run.merge.size for run in self.own)
        members = list(self._members.items())
        return own + sum(member.size for n, member in members if n in self._shared)

    # Rows and relations

    def give(
        self,
        chunks: Sequence[PlacedRows],
        before: Sequence[FeedCursor | None],
        first: int | None,
        held: HeldTables,
        progress: Progress,
    ) -> None:
        """New rows of each leaf, after places; `first` is the place of the next instant."""
        for fold in self.own:
            numbers = [leaf.number for leaf in fold.spec.plan.leaves]
            fold.joined_until([before[n] for n in numbers])
            with progress.at(f"the stream pipeline of fold {fold.spec.plan.number}"):
                fold.take([chunks[number] for number in numbers], held, first)

    def push_early(self, until: int | None, held: HeldTables, counters: Counters) -> None:
        """What waits is folded although its instant has not come: of shared folds rows up to a tick."""
        for fold in self.own:
            fold.push_early()
        for number in self._shared:
            assert until is not None  # positions are never shared
            self._members[number].push_early(until, held, counters)

    def relations(
        self, wanted: Sequence[tuple[Instant, bool]], held: HeldTables, counters: Counters
    ) -> Callable[[Instant], list[pa.Table]]:
        """What gives all relations at an instant, asked for in order; `wanted`: all, and which are empty."""
        ticks, until = [i.tick for i, empty in wanted if not empty], wanted[-1][0].tick
        shared = {n: self._members[n].results(ticks, until, held, counters) for n in self._shared}

        def at(instant: Instant) -> list[pa.Table]:
            for fold in self.own:
                fold.advance(instant.place, instant.tick)
            tables = [
                shared[n].get(instant.tick) if n in shared else None for n in range(len(self))
            ]
            return [  # over an empty window that of a fold without rows
                run.merge.result() if table is None else table
                for run, table in zip(self._runs, tables, strict=True)
            ]

        return at

    def answered(self, place: int) -> None:
        """The next instant is at a place: what only earlier ones needed may go."""
        for fold in self.own:
            fold.merge.settle(place)

    @property
    def are_elsewhere(self) -> bool:
        """Whether a fold's state is not where `spark_sql_only` says now."""
        return any(fold.is_elsewhere for fold in self.own)

    @property
    def all_by_operators(self) -> bool:
        """Whether no fold goes to Spark."""
        return all(fold.tier != "Spark" for fold in self.own)

    # Snapshots

    @property
    def may_be_kept(self) -> bool:
        """Whether there is state of the query's own that a snapshot can hold."""
        paired = any(isinstance(run.merge, (PairJoinMerge, PairsMerge)) for run in self._runs)
        return self.ready and bool(self._runs) and not self._shared and not paired

    @property
    def is_shared(self) -> bool:
        """Whether a fold is another's too."""
        return bool(self._shared)

    @property
    def kinds(self) -> list[str]:
        """What a snapshot must have in common with the folds that take it up."""
        return [type(run.merge).__name__ for run in self._runs]

    def state(self) -> dict[str, Any]:
        """For a snapshot."""
        return {"folds": [run.merge.state() for run in self._runs]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        for run, inner in zip(self._runs, state["folds"], strict=True):
            run.merge.restore(inner)
