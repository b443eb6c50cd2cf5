"""The equi-join of two windowed streams under an aggregate.

Owns: the keys that both sides share, the groups of the result, and the walk of a new pane through
the other side. A pair of nodes stands for rows × rows pairs of rows: each side's partial counts as
often as the other side has rows. Rows with a NULL in their key match nothing and are dropped.
Must never: build joined rows. Follows DataCell §3, "multi-stream queries".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation, Partial, take
from headwater.fold.chunk import Grouper
from headwater.fold.codes import IntegerCodes
from headwater.fold.columns import Column, Slots
from headwater.fold.families import Edge, Vectors, quiet
from headwater.fold.join_cells import Cells
from headwater.fold.join_nodes import Nodes
from headwater.fold.lookup import PAIR_BITS, Lookup

LEFT, RIGHT = 0, 1
WORTH_CLEANING = 4096  # fewer keys or groups than this are never worth a clean-up
KEYS_PER_NODE = 4  # so many times the live nodes, and keys are cleaned up

Aging = tuple[int, int]  # by side: how long before its expiry a row leaves the newest chunk


@dataclass(frozen=True)
class JoinSide:
    """What a query needs of one side: its own grouping columns and its own aggregates."""

    groups: tuple[pa.Field, ...]
    aggregates: tuple[Aggregate, ...]


class StreamJoin:
    """left ⋈ right on equal keys, grouped by columns of either side, aggregated."""

    def __init__(
        self,
        key_types: Sequence[pa.DataType],
        left: JoinSide,
        right: JoinSide,
        aging: Aging | None = None,
    ) -> None:
        """`aging`: see `pair_expiries`."""
        self.sides, self._aging = (left, right), aging
        self._grouped = bool(left.groups or right.groups)
        self._keys = Lookup(key_types)
        self._aggregations = [Aggregation((), side.aggregates) for side in self.sides]
        families = [family for a in self._aggregations for family in a.families]
        if any(a.distinct for a in self._aggregations) or any(
            isinstance(family, Edge) for family in families
        ):
            raise NotSupportedError(
                "distinct values, first and last do not cross a join by operators"
            )
        self._side_groups = [Lookup([f.type for f in side.groups]) for side in self.sides]
        self._groups = IntegerCodes()  # (left group, right group) → group of the result
        self._nodes = [Nodes(aggregation) for aggregation in self._aggregations]
        self._cells = Cells(families)
        self._grouper = Grouper()
        fields = [pa.field(a.schema.field(i).name, a.schema.field(i).type)
                  for a in self._aggregations for i in range(len(a.aggregates))]  # fmt: skip
        self.schema = pa.schema([*left.groups, *right.groups, *fields])

    def push(
        self,
        side: int,
        expiry: int,
        keys: Sequence[Column | pa.Array],
        groups: Sequence[Column | pa.Array],
        columns: Sequence[Column],
    ) -> None:
        """Add rows of a pane that is in the window until just before the instant `expiry`.

        A side's panes come in the order of their expiry; one may come in several parts.
        """
        given = [key if isinstance(key, Column) else Column(key) for key in keys]
        grouping = [group if isinstance(group, Column) else Column(group) for group in groups]
        there = without_nulls(given)
        if there is not None:
            given, grouping, columns = (
                [Column(column.array.take(pa.array(there))) for column in some]
                for some in (given, grouping, columns)
            )
        if not len(given[0]):
            return
        partial, side_groups = self._fold(side, given, grouping, columns)
        self._probe(side, expiry, partial, side_groups)
        self._nodes[side].add(partial.slots, side_groups, expiry, partial.vectors, len(self._keys))

    def _fold(
        self, side: int, keys: list[Column], groups: list[Column], columns: Sequence[Column]
    ) -> tuple[Partial, Slots]:
        """One entry per (key, group) of the pane; its slots are keys."""
        slots, aggregation = self._keys.slots(keys), self._aggregations[side]
        if not groups:
            partial = aggregation.fold(slots, len(self._keys), columns, self._grouper)
            return partial, np.zeros(partial.size, np.int64)
        side_groups = self._side_groups[side].slots(groups)
        both, ids = np.unique(slots << PAIR_BITS | side_groups, return_inverse=True)
        partial = aggregation.fold(ids.reshape(-1), len(both), columns, self._grouper)
        return Partial(both >> PAIR_BITS, partial.vectors), both & 0xFFFFFFFF

    def _probe(self, side: int, expiry: int, partial: Partial, side_groups: Slots) -> None:
        other = self._nodes[1 - side]
        rounds = list(other.matches(partial.slots))
        if not rounds:
            return
        asking = np.concatenate([mine for mine, _ in rounds])
        places = np.concatenate([theirs for _, theirs in rounds])
        groups = np.zeros(len(places), np.int64)
        if self._grouped:
            pairs = (side_groups[asking], other.groups(places))
            left, right = pairs if side == LEFT else pairs[::-1]
            groups = self._groups.codes(left << PAIR_BITS | right)
        values = self._paired(side, take(partial.vectors, asking), other.vectors(places))
        expiries = pair_expiries(side, expiry, other.expiries(places), self._aging)
        self._cells.add(expiries, groups, values, len(self._groups) if self._grouped else 1)

    @quiet
    def _paired(
        self, side: int, mine: Sequence[Vectors], theirs: Sequence[Vectors]
    ) -> Sequence[Vectors]:
        """The partials of the joined rows: each side's, as often as the other has rows."""
        halves = [mine, theirs] if side == LEFT else [theirs, mine]
        counts = [halves[RIGHT][0][0], halves[LEFT][0][0]]
        return [
            list(vectors) if family.idempotent else family.scale(vectors, times)
            for aggregation, half, times in zip(self._aggregations, halves, counts, strict=True)
            for family, vectors in zip(aggregation.families, half, strict=True)
        ]

    def advance(self, instant: int) -> None:
        """The window moves to an instant: what expires then or before is gone."""
        self._cells.expire(instant)
        for nodes in self._nodes:
            nodes.expire(instant)
        clean_keys(self._keys, self._nodes)

    def result(self) -> pa.Table:
        """The groups that have joined rows; without grouping always one row."""
        grouped, count = self._grouped, len(self._groups) if self._grouped else 1
        vectors = self._cells.merged(count)
        present = np.flatnonzero(vectors[0][0]) if grouped else np.zeros(1, np.int64)
        if grouped and count > 2 * len(present) + WORTH_CLEANING:
            self._groups.keep(present)
            self._cells.remap(present)
            vectors, present = take(vectors, present), np.arange(len(present))
        wanted, codes = take(vectors, present), self._groups.values[present] if grouped else present
        split = len(self._aggregations[LEFT].families)
        columns = [
            *self._side_groups[LEFT].keys(codes >> PAIR_BITS),
            *self._side_groups[RIGHT].keys(codes & 0xFFFFFFFF),
            *self._aggregations[LEFT].finish(wanted[:split]),
            *self._aggregations[RIGHT].finish(wanted[split:]),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {
            "keys": self._keys.state(),
            "side_groups": [lookup.state() for lookup in self._side_groups],
            "groups": self._groups.values,
            "nodes": [nodes.state() for nodes in self._nodes],
            "cells": self._cells.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._keys.restore(state["keys"])
        self._groups.load(state["groups"])
        for lookup, inner in zip(self._side_groups, state["side_groups"], strict=True):
            lookup.restore(inner)
        for nodes, inner in zip(self._nodes, state["nodes"], strict=True):
            nodes.restore(inner)
        self._cells.restore(state["cells"])


def pair_expiries(side: int, mine: int, theirs: Slots, aging: Aging | None) -> Slots:
    """When pairs of a row of one side and rows of the other expire: with the first of both.

    With `aging` (PAIR NEWEST) a pair only counts while one of its rows is of the newest chunk.
    """
    first = np.minimum(theirs, mine)
    if aging is None:
        return first
    return np.minimum(first, np.maximum(theirs - aging[1 - side], mine - aging[side]))


def clean_keys(keys: Lookup, sides: Sequence[Nodes]) -> None:
    """Forget the keys without live nodes, once they are by far the most."""
    if len(keys) <= KEYS_PER_NODE * sum(map(len, sides)) + WORTH_CLEANING:
        return
    marks = np.zeros(len(keys), np.bool_)
    for nodes in sides:
        nodes.mark_keys(marks)
    live = np.flatnonzero(marks)
    new = np.full(len(keys), -1, np.int64)
    new[live] = np.arange(len(live))
    keys.keep(live)
    for nodes in sides:
        nodes.remap(new)


def without_nulls(columns: Sequence[Column]) -> Slots | None:
    """The rows whose key has no NULL; None if all."""
    valid = [column.valid for column in columns if column.valid is not None]
    return np.flatnonzero(np.logical_and.reduce(valid)) if valid else None
