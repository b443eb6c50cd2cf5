"""A block by operators: the stream pipeline over a chunk, and the finish over merged results.

Compiled from the same pieces that Spark gets, or not at all: one that is not on the whitelist of
`expression` makes the whole pipeline (or finish) Spark's. Columns of the block's sources are named
`0.x`, `1.y` by the place of their source. Must never: keep state between chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headwater.expression.bind import Resolve, compile_expression, compile_predicate
from headwater.expression.compile import Compiled, filter_rows
from headwater.expression.terms import Terms
from headwater.fold.columns import Column
from headwater.fold.lookup import Lookup
from headwater.fold.order import OrderKey, order_rows
from headwater.fold.probe import Probe
from headwater.plan.folds import (
    Finish,
    FoldPlan,
    StaticSource,
)
from headwater.plan.pieces import INSTANT_COLUMN, Piece, column, equal
from headwater.plan.shape import Limit
from headwater.sql.types import TIMESTAMP

PLACE, TICK, SEQUENCE = "headwater_place", "headwater_tick", "headwater_sequence"
CARRIED = (PLACE, TICK, SEQUENCE)  # columns that go through a pipeline beside the block's own
INNER = (",", "inner", "cross")
_ROW = "headwater_row"


class NoOperator(Exception):
    """Raised while compiling: a piece that only Spark can do."""


def tree_of(piece: Piece) -> exp.Expr:
    """The tree of a piece."""
    if piece.node is None:
        raise NoOperator(str(piece))
    return piece.node


def compiled(piece: Piece, resolve: Resolve, functions: Terms) -> Compiled:
    """An expression as operators compute it, or NoOperator."""
    found = compile_expression(tree_of(piece), resolve, functions)
    if found is None:
        raise NoOperator(str(piece))
    return found


def equal_sides(piece: Piece, resolve: Resolve, functions: Terms) -> list[Compiled | None]:
    """The sides of an equality, each as far as operators compute it; none if it is no equality."""
    node = tree_of(piece).unnest()
    sides = (node.this, node.expression) if isinstance(node, exp.EQ) else ()
    return [compile_expression(side, resolve, functions) for side in sides]


def condition(piece: Piece, resolve: Resolve, functions: Terms) -> Compiled:
    """A condition as operators compute it, or NoOperator."""
    found = compile_predicate(tree_of(piece), resolve, functions)
    if found is None:
        raise NoOperator(str(piece))
    return found


def instant_type(time_type: pa.DataType) -> pa.DataType:
    """The type of `_t` and CURRENT_INSTANT()."""
    return pa.int64() if pa.types.is_integer(time_type) else TIMESTAMP


def constant_column(value: pa.Scalar, count: int) -> pa.Array:
    """One value, so many times."""
    return pa.repeat(value, count)


@dataclass(frozen=True)
class _ProbeStep:
    source: int
    table: str
    kind: str
    stream_keys: tuple[Compiled, ...]
    table_keys: tuple[str, ...]
    columns: tuple[str, ...]
    filters: tuple[Compiled, ...]


class StreamPipeline:
    """filter → probe → filter over the rows of one stream."""

    def __init__(self, plan: FoldPlan, functions: Terms) -> None:
        self.plan, self._functions = plan, functions
        self.source = plan.leaf_sources[0]
        self._schemas = source_schemas(plan)
        self._behind = frozenset(n for n, static in plan.statics if static.join in ("semi", "anti"))
        statics, reordered = self._statics()
        members = [(number, static) for number, static in plan.statics if static.asked is not None]
        asked = [static.asked for _, static in members]
        conditions = [piece for piece in plan.where if piece not in asked]
        if reordered:  # ON of an inner join says the same in WHERE
            conditions += [*plan.join_on, *(c for _, s in statics for c in s.condition)]
            statics = [(number, replace(s, condition=())) for number, s in statics]
        self._filters: list[Compiled] = []
        available = {self.source}
        for piece in [c for c in conditions if self._reads(c) <= available]:
            self._filters.append(condition(piece, self.resolve, functions))
            conditions.remove(piece)
        self._steps: list[_ProbeStep] = []
        while statics:
            place = self._next(statics if reordered else statics[:1], available, conditions)
            number, static = statics.pop(place)
            if static.join not in ("semi", "anti"):
                available.add(number)
        for member in members:
            self._next([member], available, conditions)
        for piece in conditions:  # over a table whose rows may be missing: after all joins
            if not self._reads(piece) <= available:
                raise NoOperator(str(piece))
        self._last = [condition(piece, self.resolve, functions) for piece in conditions]
        self.columns = self._stream_columns()

    def _statics(self) -> tuple[list[tuple[int, StaticSource]], bool]:
        """The tables in the order of FROM; whether they may be probed in another.

        Where the stream is not the first, all joins must be inner: then it may go first.
        """
        plan, source = self.plan, self.plan.block.sources[self.source]
        found = [(n, replace(s, join=s.join or ",")) for n, s in plan.statics if s.asked is None]
        if all(number > self.source for number, _ in found):
            return found, False
        asked = bool(source.on)
        inner = source.join in INNER and all(static.join in INNER for _, static in found)
        named = bool(source.using) or any(static.using for _, static in found)
        if not inner or named or (asked and not plan.join_on):
            raise NoOperator("the stream is not the first of FROM")
        return found, True

    def _next(
        self,
        statics: Sequence[tuple[int, StaticSource]],
        available: set[int],
        conditions: list[Piece],
    ) -> int:
        """Adds the step of the first table that can be probed with what is there; which it is."""
        refusal: NoOperator | None = None
        for place, (number, static) in enumerate(statics):
            rest = list(conditions)
            try:
                step = self._step(number, static, available, rest)
            except NoOperator as error:
                refusal = refusal or error
                continue
            self._steps.append(step)
            conditions[:] = rest
            return place
        assert refusal is not None
        raise refusal

    def resolve(self, node: exp.Column) -> tuple[str, pa.DataType] | None:
        """A column of any source of the block."""
        if node.name == INSTANT_COLUMN and not node.table:
            return INSTANT_COLUMN, instant_type(self.plan.leaves[0].columns.time_type)
        return resolve_column(self._schemas, node, self._behind)

    def _reads(self, piece: Piece) -> set[int]:
        found = compiled(piece, self.resolve, self._functions)
        return {int(name.partition(".")[0]) for name in found.columns if name != INSTANT_COLUMN}

    def _step(
        self, number: int, static: StaticSource, available: set[int], conditions: list[Piece]
    ) -> _ProbeStep:
        if static.schema is None or static.join not in (
            ",",
            "inner",
            "cross",
            "left",
            "semi",
            "anti",
        ):
            raise NoOperator(f"a {static.join} join")
        inner = static.join in (",", "inner", "cross")
        pieces = list(static.condition)
        pieces += [
            equal(column(name, self._alias(available, name)), column(name, static.alias))
            for name in static.using
        ]
        if inner:
            ready = [c for c in conditions if self._reads(c) <= available | {number}]
            for piece in ready:
                conditions.remove(piece)
            pieces += ready
        keys: list[tuple[Compiled, str]] = []
        rest: list[Compiled] = []
        for piece in pieces:
            key = self._key(piece, number)
            if key is not None:
                keys.append(key)
            elif inner or number in self._behind:
                rest.append(condition(piece, self.resolve, self._functions))
            else:
                raise NoOperator(str(piece))
        if not keys:
            raise NoOperator("a join without an equality")
        shown = tuple(static.schema.names)
        if number in self._behind:
            asked = {name for one in rest for name in one.columns}
            shown = tuple(name for name in shown if f"{number}.{name}" in asked)
        kind = "inner" if inner else static.join
        return _ProbeStep(
            number,
            str(static.text),
            kind,
            tuple(k for k, _ in keys),
            tuple(c for _, c in keys),
            shown,
            tuple(rest),
        )

    def _alias(self, available: set[int], name: str) -> str:
        for number in sorted(available):
            if name.casefold() in (n.casefold() for n in self._schemas[number][1].names):
                return self._schemas[number][0]
        raise NoOperator(name)

    def _key(self, piece: Piece, number: int) -> tuple[Compiled, str] | None:
        """`stream expression = column of the table`, of one type."""
        sides = equal_sides(piece, self.resolve, self._functions)
        for mine, other in zip(sides, reversed(sides), strict=True):
            if mine is None or other is None or not other.is_column:
                continue
            own = {name.partition(".")[0] for name in other.columns}
            away = {name.partition(".")[0] for name in mine.columns}
            apart = own == {str(number)} and away and str(number) not in away
            if apart and mine.type == other.type:
                return mine, next(iter(other.columns)).partition(".")[2]
        return None

    def _stream_columns(self) -> tuple[str, ...]:
        leaf = self.plan.leaves[0]
        names = [*leaf.needed, *(field.name for field in leaf.added)]
        return tuple(dict.fromkeys(names))

    def prepare(
        self, rows: pa.Table, probes: Mapping[str, Probe], instant: pa.Scalar | None = None
    ) -> pa.Table:
        """The rows that pass, joined with the tables."""
        names = [name for name in self.columns if name in rows.column_names]
        carried = [name for name in CARRIED if name in rows.column_names]
        chunk = rows.select([*names, *carried])
        chunk = chunk.rename_columns([*(f"{self.source}.{name}" for name in names), *carried])
        if instant is not None:
            chunk = chunk.append_column(INSTANT_COLUMN, constant_column(instant, chunk.num_rows))
        for predicate in self._filters:
            chunk = filter_rows(chunk, predicate)
        for step in self._steps:
            probe = probes[probe_name(step.table, step.table_keys)]
            chunk = _probed(chunk, step, probe)
        for predicate in self._last:
            chunk = filter_rows(chunk, predicate)
        return chunk

    @property
    def probes(self) -> list[tuple[str, tuple[str, ...]]]:
        """The tables probed and their keys."""
        return [(step.table, step.table_keys) for step in self._steps]


def _probed(chunk: pa.Table, step: _ProbeStep, probe: Probe) -> pa.Table:
    """The rows of a chunk joined with a table."""
    keys = [key.evaluate(chunk) for key in step.stream_keys]
    if step.kind not in ("semi", "anti") or not step.filters:
        return _filtered(probe.join(chunk, keys, step.columns, step.kind), step)
    numbered = chunk.append_column(_ROW, pa.array(np.arange(chunk.num_rows)))
    pairs = _filtered(probe.join(numbered, keys, step.columns, "inner"), step)
    there = np.zeros(chunk.num_rows, bool)
    there[pairs.column(_ROW).to_numpy()] = True
    return chunk.filter(pa.array(there if step.kind == "semi" else ~there))


def _filtered(chunk: pa.Table, step: _ProbeStep) -> pa.Table:
    """The pairs that a join's other conditions take; its table's columns are named by their source."""
    own = chunk.column_names[: chunk.num_columns - len(step.columns)]
    if step.columns:
        chunk = chunk.rename_columns([*own, *(f"{step.source}.{name}" for name in step.columns)])
    for predicate in step.filters:
        chunk = filter_rows(chunk, predicate)
    return chunk


def probe_name(table: str, keys: Sequence[str]) -> str:
    """What a probe is called among those of a query."""
    return f"{table.lower()}({','.join(keys)})"


def source_schemas(plan: FoldPlan) -> dict[int, tuple[str, pa.Schema]]:
    """The alias and columns of each source of a block."""
    found: dict[int, tuple[str, pa.Schema]] = {}
    for place, leaf in zip(plan.leaf_sources, plan.leaves, strict=True):
        found[place] = (leaf.alias, pa.schema([*leaf.columns.schema, *leaf.added]))
    for place, static in plan.statics:
        if static.schema is None:
            raise NoOperator("a subquery in FROM")
        found[place] = (static.alias, static.schema)
    return found


def resolve_column(
    schemas: Mapping[int, tuple[str, pa.Schema]],
    column: exp.Column,
    behind: frozenset[int] = frozenset(),
) -> tuple[str, pa.DataType] | None:
    """The column that a reference means, as `source.column`; sources `behind` others are seen last."""
    if column.args.get("db"):
        return None  # t.p.x: a field of a column
    front = {place: schema for place, schema in schemas.items() if place not in behind}
    if behind and not column.table and (known := _named(front, column)):
        return known[0] if len(known) == 1 else None
    found = _named(schemas, column)
    return found[0] if len(found) == 1 else None


def _named(
    schemas: Mapping[int, tuple[str, pa.Schema]], column: exp.Column
) -> list[tuple[str, pa.DataType]]:
    found: list[tuple[str, pa.DataType]] = []
    for place, (alias, schema) in schemas.items():
        if column.table and column.table.casefold() != alias.casefold():
            continue
        found += [
            (f"{place}.{field.name}", field.type)
            for field in schema
            if field.name.casefold() == column.name.casefold()
        ]
    return found


class BlockFinish:
    """HAVING, the select list, DISTINCT, ORDER BY and LIMIT over a fold's columns."""

    def __init__(
        self,
        finish: Finish,
        schema: pa.Schema,
        time_type: pa.DataType,
        functions: Terms,
    ) -> None:
        self._schema = schema
        self._time = instant_type(time_type)
        self._distinct = finish.distinct
        self.names = [output.name for output in finish.outputs]
        self._outputs = [compiled(o.piece, self._column, functions) for o in finish.outputs]
        self._condition = (
            None
            if finish.condition is None
            else condition(finish.condition, self._column, functions)
        )
        self._order = [
            OrderKey(self._order_value(piece, finish, functions), item.descending, item.nulls_first)
            for piece, item in finish.order
        ]
        self._limit, self._offset = _limits(finish.limit)

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the result's columns."""
        return [output.type for output in self._outputs]

    def _column(self, column: exp.Column) -> tuple[str, pa.DataType] | None:
        if column.table:
            return None
        if column.name == INSTANT_COLUMN:
            return INSTANT_COLUMN, self._time
        if column.name in self._schema.names:
            return column.name, self._schema.field(column.name).type
        return None

    def _order_value(self, piece: Piece, finish: Finish, functions: Terms) -> Compiled:
        node = tree_of(piece)
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            place = int(node.name) - 1
            if not 0 <= place < len(self._outputs):
                raise NoOperator(str(piece))
            return self._outputs[place]
        if isinstance(node, exp.Column) and not node.table:
            for place, output in enumerate(finish.outputs):
                if output.name is not None and output.name.casefold() == node.name.casefold():
                    return self._outputs[place]
        return compiled(piece, self._column, functions)

    def result(self, rows: pa.Table, instant: pa.Scalar) -> pa.Table:
        """The block's result, columns numbered from 0."""
        rows = rows.append_column(INSTANT_COLUMN, constant_column(instant, rows.num_rows))
        if self._condition is not None:
            rows = filter_rows(rows, self._condition)
        cut = (self._limit is not None or self._offset > 0) and not self._distinct
        if self._order or cut:
            limit, offset = (self._limit, self._offset) if cut else (None, 0)
            rows = order_rows(rows, self._order, limit, offset)
        columns = [output.evaluate(rows) for output in self._outputs]
        names = [str(place) for place in range(len(columns))]
        result = pa.table(columns, names=names) if columns else rows.select([])
        if self._distinct:
            result = _distinct(result)
            end = None if self._limit is None else self._limit
            result = result.slice(self._offset, end)
        return result


def _limits(limit: Limit | None) -> tuple[int | None, int]:
    if limit is None:
        return None, 0
    if not limit.plain:
        raise NoOperator(limit.text)
    return limit.count, limit.offset


def _distinct(rows: pa.Table) -> pa.Table:
    """Each row once, at its first place."""
    lookup = Lookup([field.type for field in rows.schema])
    slots = lookup.slots([Column(column) for column in rows.columns], rows.num_rows)
    newest = np.maximum.accumulate(slots)  # a slot that is larger than those before it is new
    return rows.take(pa.array(np.flatnonzero(np.diff(newest, prepend=-1))))
