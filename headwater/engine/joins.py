"""The join of two windowed streams: in line under an aggregate, or from pairs that Spark found.

In line, rows of a pane become one node per (key, group); on Spark, new rows of each side are joined with
the other side's window, read from the tables. Either way a pair counts until the first of its rows
leaves its window (*expiry*). Follows DataCell §3, multi-stream queries (DC4, DC5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headwater.engine.fold_spec import FoldSpec
from headwater.engine.inline_block import (
    NotInLine,
    compiled,
    condition,
    parse_expression,
    resolve_column,
    source_schemas,
)
from headwater.engine.merges import Merge, Ticks
from headwater.errors import NotSupportedError
from headwater.fold.absorb import absorb
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import take
from headwater.fold.columns import Column
from headwater.fold.join import JoinSide, StreamJoin
from headwater.fold.join_cells import Cells
from headwater.fold.lookup import Lookup
from headwater.fold.pane import Panes, Window
from headwater.kernel.inline.expression import Compiled, compile_expression, filter_rows
from headwater.plan.continuous.folds import BEGIN, EXPIRY, FoldPlan


@dataclass(frozen=True)
class SidePlan:
    """What is computed of one side's rows."""

    source: int
    columns: tuple[str, ...]
    filters: tuple[Compiled, ...]
    keys: tuple[Compiled, ...]
    groups: tuple[Compiled, ...]
    arguments: tuple[Compiled, ...]

    def prepare(self, rows: pa.Table) -> pa.Table:
        """The rows that can match."""
        names = [name for name in self.columns if name in rows.column_names]
        chunk = rows.select(names).rename_columns([f"{self.source}.{n}" for n in names])
        for predicate in self.filters:
            chunk = filter_rows(chunk, predicate)
        return chunk


class InlineJoin:
    """The compiled join; NotInLine if it is more than an equi-join under aggregates."""

    def __init__(self, spec: FoldSpec, functions: frozenset[str]) -> None:
        plan = spec.plan
        if plan.statics or spec.aggregation is None:
            raise NotInLine("more than two streams under an aggregate")
        self._schemas = source_schemas(plan)
        self._functions = functions
        self._filters: list[list[Compiled]] = [[], []]
        self._keys: list[tuple[Compiled, Compiled]] = []
        self._sources = plan.leaf_sources
        for text in (*plan.where, *plan.join_on):
            self._condition(text)
        if not self._keys:
            raise NotInLine("a join of streams without an equality")
        group_sides = [self._side(text) for text in plan.keys]
        arguments = [
            None if a.argument is None else self._side(a.argument) for a in plan.aggregates
        ]
        self.sides = (
            self._plan(plan, 0, group_sides, arguments),
            self._plan(plan, 1, group_sides, arguments),
        )
        self.structure = self._join(spec, group_sides, arguments)
        self.names = spec.schema.names

    def _resolve(self, column: exp.Column) -> tuple[str, pa.DataType] | None:
        return resolve_column(self._schemas, column)

    def _sides_of(self, found: Compiled) -> set[int]:
        return {self._sources.index(int(n.partition(".")[0])) for n in found.columns}

    def _condition(self, text: str) -> None:
        found = condition(text, self._resolve, self._functions)
        sides = self._sides_of(found)
        if len(sides) == 1:
            self._filters[sides.pop()].append(found)
            return
        node = parse_expression(text)
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.EQ):
            raise NotInLine(text)
        pair = [
            compile_expression(part, self._resolve, self._functions)
            for part in (node.this, node.expression)
        ]
        places = [None if one is None else self._sides_of(one) for one in pair]
        if places not in ([{0}, {1}], [{1}, {0}]) or pair[0].type != pair[1].type:  # type: ignore[union-attr]
            raise NotInLine(text)
        left, right = pair if places[0] == {0} else pair[::-1]
        self._keys.append((left, right))  # type: ignore[arg-type]

    def _side(self, text: str) -> tuple[int, Compiled]:
        found = compiled(text, self._resolve, self._functions)
        sides = self._sides_of(found)
        if len(sides) != 1:
            raise NotInLine(text)
        return sides.pop(), found

    def _plan(
        self,
        plan: FoldPlan,
        side: int,
        groups: Sequence[tuple[int, Compiled]],
        arguments: Sequence[tuple[int, Compiled] | None],
    ) -> SidePlan:
        return SidePlan(
            self._sources[side],
            plan.leaves[side].needed,
            tuple(self._filters[side]),
            tuple(pair[side] for pair in self._keys),
            tuple(found for place, found in groups if place == side),
            tuple(a[1] for a in arguments if a is not None and a[0] == side),
        )

    def _join(
        self,
        spec: FoldSpec,
        groups: Sequence[tuple[int, Compiled]],
        arguments: Sequence[tuple[int, Compiled] | None],
    ) -> StreamJoin:
        assert spec.aggregation is not None
        sides = []
        for side in (0, 1):
            fields = [
                pa.field(f"_k{n}", found.type) for n, (p, found) in enumerate(groups) if p == side
            ]
            aggregates, place = [], 0
            for aggregate, argument in zip(spec.aggregation.aggregates, arguments, strict=True):
                if argument is None and side == 0:
                    aggregates.append(aggregate)
                elif argument is not None and argument[0] == side:
                    own = Aggregate(aggregate.function, place, aggregate.type, aggregate.name)
                    aggregates.append(own)
                    place += 1
            sides.append(JoinSide(tuple(fields), tuple(aggregates)))
        return StreamJoin([left.type for left, _ in self._keys], sides[0], sides[1])


def make_inline_join(spec: FoldSpec, functions: frozenset[str]) -> InlineJoin | None:
    """The join in line, or None where only Spark can do it."""
    try:
        return InlineJoin(spec, functions)
    except (NotInLine, NotSupportedError):
        return None


class InlineJoinMerge(Merge):
    """Two streams joined in line."""

    structure = "join by expiry, in line"

    def __init__(self, join: InlineJoin, panes: Panes, windows: Sequence[Window]) -> None:
        self._join, self._panes, self._windows = join, panes, windows
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
        for side in (0, 1):
            while self._waiting[side]:
                self._push(side, *self._waiting[side].popleft())

    def _push(self, side: int, pane: int, rows: pa.Table) -> None:
        plan = self._join.sides[side]
        chunk = plan.prepare(rows)
        if not chunk.num_rows:
            return
        evaluated = [
            [Column(one.evaluate(chunk)) for one in some]
            for some in (plan.keys, plan.groups, plan.arguments)
        ]
        last = self._panes.instants(pane, self._windows[side])[-1]
        self._join.structure.push(side, last + self._panes.slide, *evaluated)

    def advance(self, place: int, tick: int) -> None:  # noqa: ARG002
        """Join the panes that the instant sees; drop what has expired."""
        self._join.structure.advance(place)
        for side, window in enumerate(self._windows):
            panes = self._panes.of_window(window, place)
            while self._waiting[side] and self._waiting[side][0][0] < panes.stop:
                pane, rows = self._waiting[side].popleft()
                if pane >= panes.start:
                    self._push(side, pane, rows)

    def result(self) -> pa.Table:
        """The groups of the joined rows."""
        return self._join.structure.result().select(self._join.names)

    def state(self) -> dict[str, Any]:
        """The join's nodes and cells."""
        self.push_early()
        return {"join": self._join.structure.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._join.structure.restore(state["join"])


class PairsMerge(Merge):
    """Pairs that Spark found, each from its first instant to its expiry."""

    structure = "join by expiry, on Spark"

    def __init__(self, spec: FoldSpec) -> None:
        self._spec = spec
        self._instant = 0
        self._waiting: list[pa.Table] = []
        self._rows: deque[tuple[Ticks, pa.Table]] = deque()
        self._lookup = Lookup([] if spec.aggregation is None else spec.aggregation.key_types)
        self._cells = None if spec.aggregation is None else Cells(spec.aggregation.families)

    def add_pairs(self, table: pa.Table) -> None:
        """Pairs (or their partials by group) with their first instant and their expiry."""
        if table.num_rows:
            self._waiting.append(table)

    def advance(self, place: int, tick: int) -> None:  # noqa: ARG002
        """Let in what begins by then, drop what has expired."""
        self._instant = place
        later = []
        for table in self._waiting:
            begins = table.column(BEGIN).to_numpy() <= place
            self._admit(table.filter(pa.array(begins)))
            if not begins.all():
                later.append(table.filter(pa.array(~begins)))
        self._waiting = later
        if self._cells is not None:
            self._cells.expire(place)
        self._rows = deque((e, t) for e, t in self._rows if e.max() > place)

    def _admit(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        expiries = table.column(EXPIRY).to_numpy()
        if self._cells is None:
            self._rows.append((expiries, table.select(self._spec.schema.names)))
            return
        aggregation = self._spec.aggregation
        assert aggregation is not None
        keys = [f"_k{place}" for place in range(len(aggregation.keys))]
        rest = [n for n in table.column_names if n not in (BEGIN, EXPIRY, *keys)]
        for expiry in np.unique(expiries).tolist():
            part = table.filter(pa.array(expiries == expiry)).select([*keys, *rest])
            for start in _runs(part, keys):
                partial = absorb(aggregation, self._lookup, start)
                count = len(self._lookup)
                bins = np.full(partial.size, expiry, np.int64)
                self._cells.add(bins, partial.slots, partial.vectors, count)

    def result(self) -> pa.Table:
        """The groups, or the joined rows."""
        aggregation = self._spec.aggregation
        if aggregation is None or self._cells is None:
            parts = [t.filter(pa.array(e > self._instant)) for e, t in self._rows]
            return pa.concat_tables([self._spec.schema.empty_table(), *parts])
        vectors = self._cells.merged(len(self._lookup))
        present = aggregation.present(vectors)
        columns = aggregation.finish(take(vectors, present))
        keys = self._lookup.keys(present) if aggregation.keys else []
        return aggregation.table(keys, columns)

    def state(self) -> dict[str, Any]:
        """Not kept: pairs are found again from the windows' rows."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to go back to."""


def _runs(table: pa.Table, keys: Sequence[str]) -> list[pa.Table]:
    """The table in parts that have each group once; several begins may share an expiry."""
    if not keys:
        return [table.slice(row, 1) for row in range(table.num_rows)]
    lookup = Lookup([table.schema.field(key).type for key in keys])
    slots = lookup.slots([Column(table.column(key)) for key in keys], table.num_rows)
    order = np.argsort(slots, kind="stable")
    ranks = np.empty(len(slots), np.int64)
    starts = np.flatnonzero(np.r_[True, np.diff(slots[order]) != 0])
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return [table.filter(pa.array(ranks == rank)) for rank in range(int(ranks.max()) + 1)]
