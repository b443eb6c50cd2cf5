"""The join of two windowed streams: by operators, as partials or as rows, or from pairs that Spark found.

By operators, rows of a pane become one node per (key, group) where every aggregate is of one side, else
the pairs themselves are made; on Spark, new rows of each side are joined with the other side's window,
read from the tables. Either way a pair counts until the first of its rows leaves its window (*expiry*).
Follows DataCell §3, multi-stream queries (DC4, DC5).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.compile.join import JoinPipeline, SidePlan
from headwater.engine.joined import JoinedGroups, JoinedRows
from headwater.engine.merges import FoldMerge, Ticks
from headwater.expression.compile import Compiled, filter_rows
from headwater.fold.aggregates import Aggregate
from headwater.fold.columns import Column
from headwater.fold.join import LEFT, RIGHT, Aging, JoinSide, StreamJoin
from headwater.fold.pane import Panes, Window
from headwater.fold.row_join import Joined, RowJoin
from headwater.plan.folds import BEGIN, EXPIRY


class StreamJoinMerge(FoldMerge):
    """Two streams joined by operators, pane by pane."""

    def __init__(self, panes: Panes, windows: Sequence[Window]) -> None:
        self._panes, self._windows = panes, windows
        self._waiting: tuple[deque[tuple[int, pa.Table]], ...] = (deque(), deque())

    def add(self, side: int, places: Ticks, rows: pa.Table) -> None:
        """New rows of one side, in order."""
        for pane, part in self._panes.split(places):
            assert isinstance(part, slice)
            if len(self._panes.instants(pane, self._windows[side])):
                piece = rows.slice(part.start, part.stop - part.start)
                self._waiting[side].append((pane, piece))

    def push_early(self) -> None:
        """Join what waits although its instant has not come."""
        for side in (LEFT, RIGHT):
            while self._waiting[side]:
                self._push_first(side)

    def advance(self, place: int, tick: int) -> None:  # noqa: ARG002
        """Join the panes that the instant sees; drop what has expired."""
        self._expire(place)
        for side, window in enumerate(self._windows):
            panes, waiting = self._panes.of_window(window, place), self._waiting[side]
            while waiting and waiting[0][0] < panes.stop:
                if waiting[0][0] >= panes.start:
                    self._push_first(side)
                else:
                    waiting.popleft()
        self._expire(place)  # pairs of chunks that are not the newest any more

    def settle(self, place: int) -> None:
        """Drop what the next instant does not see, so that early rows do not meet it."""
        self._expire(place)

    def _push_first(self, side: int) -> None:
        """Join the first pane that waits; it goes on waiting if that fails."""
        pane, rows = self._waiting[side][0]
        last = self._panes.instants(pane, self._windows[side])[-1]
        self._push(side, last + self._panes.slide, rows)
        self._waiting[side].popleft()

    @abstractmethod
    def _push(self, side: int, expiry: int, rows: pa.Table) -> None:
        """Join rows of one side that are in their window until an instant."""

    @abstractmethod
    def _expire(self, place: int) -> None:
        """Drop what expires at or before an instant."""


@dataclass(frozen=True)
class _OneSided:
    """Groups and arguments that are each of one side: by side, what is computed of its rows."""

    groups: tuple[tuple[Compiled, ...], ...]
    arguments: tuple[tuple[Compiled, ...], ...]
    sides: tuple[JoinSide, ...]


def _one_sided(spec: FoldSpec, pipeline: JoinPipeline) -> _OneSided | None:
    """None if an aggregate, a group or a condition reads both sides, or rows are wanted."""
    if spec.aggregation is None or pipeline.conditions:
        return None
    places = [pipeline.sides_of(one) for one in (*spec.keys, *spec.arguments)]
    if any(len(place) != 1 for place in places):
        return None
    owners = [place.pop() for place in places]
    of_keys, of_arguments = owners[: len(spec.keys)], owners[len(spec.keys) :]
    groups, arguments, sides = [], [], []
    for side in (LEFT, RIGHT):
        own = [n for n, owner in enumerate(of_keys) if owner == side]
        fields = [pa.field(f"_k{n}", spec.keys[n].type) for n in own]
        groups.append(tuple(spec.keys[n] for n in own))
        read = [n for n, owner in enumerate(of_arguments) if owner == side]
        arguments.append(tuple(spec.arguments[n] for n in read))
        aggregates = []
        for aggregate in spec.aggregation.aggregates:
            place = aggregate.argument
            if place in read:
                moved = Aggregate(
                    aggregate.function, read.index(place), aggregate.type, aggregate.name
                )
                aggregates.append(moved)
            elif place is None and side == LEFT:
                aggregates.append(aggregate)
        sides.append(JoinSide(tuple(fields), tuple(aggregates)))
    return _OneSided(tuple(groups), tuple(arguments), tuple(sides))


class PartialJoinMerge(StreamJoinMerge):
    """Two streams joined by operators under aggregates that are each of one side."""

    structure = "join by expiry"

    def __init__(
        self,
        spec: FoldSpec,
        one_sided: _OneSided,
        panes: Panes,
        windows: Sequence[Window],
        aging: Aging | None,
    ) -> None:
        super().__init__(panes, windows)
        assert spec.pairing is not None
        self._plans, self._one_sided, self._names = spec.pairing.sides, one_sided, spec.schema.names
        left, right = one_sided.sides
        self._join = StreamJoin(spec.pairing.key_types, left, right, aging)

    def _push(self, side: int, expiry: int, rows: pa.Table) -> None:
        plan = self._plans[side]
        chunk = plan.prepare(rows)
        if not chunk.num_rows:
            return
        own = (plan.keys, self._one_sided.groups[side], self._one_sided.arguments[side])
        evaluated = [[Column(one.evaluate(chunk)) for one in some] for some in own]
        self._join.push(side, expiry, *evaluated)

    def _expire(self, place: int) -> None:
        self._join.advance(place)

    def result(self) -> pa.Table:
        """The groups of the joined rows."""
        return self._join.result().select(self._names)

    def state(self) -> dict[str, Any]:
        """The join's nodes and cells."""
        self.push_early()
        return {"join": self._join.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._join.restore(state["join"])


class PairJoinMerge(StreamJoinMerge):
    """Two streams joined by operators, pair by pair: conditions and arguments may read both sides."""

    structure = "join of rows by expiry"

    def __init__(
        self, spec: FoldSpec, panes: Panes, windows: Sequence[Window], aging: Aging | None
    ) -> None:
        super().__init__(panes, windows)
        assert spec.pairing is not None
        self._spec = spec
        self._plans: tuple[SidePlan, ...] = spec.pairing.sides
        self._conditions = spec.pairing.conditions
        read = (*self._conditions, *spec.keys, *spec.arguments, *spec.kept)
        self._columns = [plan.columns_in(read) for plan in self._plans]
        self._join = RowJoin(spec.pairing.key_types, aging)
        self._joined = _joined(spec)

    @property
    def size(self) -> int:
        """Rows held of both sides."""
        return self._join.row_count

    def _push(self, side: int, expiry: int, rows: pa.Table) -> None:
        plan = self._plans[side]
        chunk = plan.prepare(rows)
        if not chunk.num_rows:
            return
        keys = [Column(key.evaluate(chunk)) for key in plan.keys]
        for piece in self._join.push(side, expiry, keys, chunk.select(self._columns[side])):
            self._take(piece)

    def _take(self, piece: Joined) -> None:
        rows = piece.rows.append_column(EXPIRY, pa.array(piece.expiries))
        for predicate in self._conditions:
            rows = filter_rows(rows, predicate)
        if not rows.num_rows:
            return
        expiries, spec = rows.column(EXPIRY).to_numpy(), self._spec
        if isinstance(self._joined, JoinedRows):
            kept = [one.evaluate(rows) for one in spec.kept]
            self._joined.add(expiries, pa.Table.from_arrays(kept, schema=spec.schema))
            return
        keys = [Column(one.evaluate(rows)) for one in spec.keys]
        arguments = [Column(one.evaluate(rows)) for one in spec.arguments]
        self._joined.fold(expiries, keys, arguments)

    def _expire(self, place: int) -> None:
        self._join.expire(place)
        self._joined.expire(place)

    def result(self) -> pa.Table:
        """The groups, or the joined rows."""
        return self._joined.result()

    def state(self) -> dict[str, Any]:
        """Not kept: pairs are found again from the windows' rows."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to go back to."""


class PairsMerge(FoldMerge):
    """Pairs that Spark found, each from its first instant to its expiry."""

    structure = "join by expiry, on Spark"

    def __init__(self, spec: FoldSpec, newest: int | None = None) -> None:
        """`newest`: of PAIR NEWEST, for how long a pair counts; None: until a row is gone."""
        self._spec, self._newest = spec, newest
        self._waiting: list[pa.Table] = []
        self._joined = _joined(spec)

    def add_pairs(self, table: pa.Table) -> None:
        """Pairs (or their partials by group) with their first instant and their expiry."""
        if table.num_rows:
            self._waiting.append(table)

    def advance(self, place: int, tick: int) -> None:  # noqa: ARG002
        """Let in what begins by then, drop what has expired."""
        later = []
        for table in self._waiting:
            begins = table.column(BEGIN).to_numpy() <= place
            self._admit(table.filter(pa.array(begins)))
            if not begins.all():
                later.append(table.filter(pa.array(~begins)))
        self._waiting = later
        self._joined.expire(place)

    def _admit(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        expiries = table.column(EXPIRY).to_numpy()
        if self._newest is not None:
            expiries = np.minimum(expiries, table.column(BEGIN).to_numpy() + self._newest)
        if isinstance(self._joined, JoinedRows):
            self._joined.add(expiries, table.select(self._spec.schema.names))
        else:
            self._joined.absorb(expiries, table.drop_columns([BEGIN, EXPIRY]))

    def result(self) -> pa.Table:
        """The groups, or the joined rows."""
        return self._joined.result()

    def state(self) -> dict[str, Any]:
        """Not kept: pairs are found again from the windows' rows."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to go back to."""


def _joined(spec: FoldSpec) -> JoinedRows | JoinedGroups:
    if spec.aggregation is None:
        return JoinedRows(spec.schema)
    return JoinedGroups(spec.aggregation)


def join_merge(
    spec: FoldSpec, panes: Panes, windows: Sequence[Window], by_operators: bool
) -> StreamJoinMerge | PairsMerge:
    """The merge of a join of two streams; on Spark where it is not to be, or cannot be, by operators."""
    newest = spec.plan.leaves[0].newest
    if not by_operators or spec.pairing is None:
        return PairsMerge(spec, panes.slide if newest else None)
    aging = None
    if newest:
        kept = [leaf.cut.keep for leaf in spec.plan.leaves if leaf.cut is not None]
        left, right = ((keep - 1) * panes.slide for keep in kept)
        aging = left, right
    one_sided = _one_sided(spec, spec.pairing)
    if one_sided is None:
        return PairJoinMerge(spec, panes, windows, aging)
    return PartialJoinMerge(spec, one_sided, panes, windows, aging)
