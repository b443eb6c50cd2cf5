"""The upper part of a query in line: blocks over the finished rows of its folds, over tables and each other.

Compiled once, computed at each instant or read. Whatever the whitelist does not have is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.compile.block import InlineFinish, constant_column, probe_name
from headwater.compile.fold import FOLDABLE, FoldSpec, has_edges, make_finish, make_spec
from headwater.errors import Error, NotSupportedError
from headwater.expression.terms import Terms
from headwater.fold.columns import Column
from headwater.fold.probe import Probe
from headwater.fold.state import GroupState
from headwater.kernel.relation import HeldTables, Relation
from headwater.plan.blocks import StateFunction, Tables
from headwater.plan.folds import ContinuousPlan, FoldPlan, StreamColumns
from headwater.plan.planner import plan_query
from headwater.plan.upper import (
    VALUE,
    FoldGroups,
    FoldRows,
    Members,
    Part,
    UpperText,
    upper_text,
)
from headwater.sql.statements.query import Query, make_query
from headwater.sql.types import TIMESTAMP


@dataclass(frozen=True)
class _UpperTables:
    """The tables of an upper block: rows at hand, and standard tables; the first is read row by row."""

    first: str
    schemas: Mapping[str, pa.Schema]
    scalars: Sequence[pa.Field]
    tables: Tables

    def stream(self, name: str) -> StreamColumns | None:
        """The first relation of FROM, with the values that stand beside each of its rows."""
        schema = self.standard(name) if name.lower() == self.first else None
        if schema is None or not len(schema):
            return None
        schema = pa.schema([*schema, *self.scalars])
        return StreamColumns(name, schema, tuple(schema.names), schema.names[0], TIMESTAMP)

    def standard(self, name: str) -> pa.Schema | None:
        """The columns of any relation."""
        return self.schemas.get(name.lower()) or self.tables.standard(name)

    def kind(self, name: str) -> str | None:
        """What a name means; rows at hand have no kind."""
        return self.tables.kind(name)

    def names(self) -> Sequence[str]:
        """All names that may stand in FROM."""
        return [*self.schemas, *self.tables.names()]

    def state_function(self, name: str) -> StateFunction | None:
        """A function with state has no order of rows here: it is left to be refused elsewhere."""
        return self.tables.state_function(name)

    def is_aggregate(self, name: str) -> bool:
        """Whether a user's function is an aggregate."""
        return self.tables.is_aggregate(name)


class Probes(Protocol):
    """Static tables at the versions held."""

    def one(self, table: str, keys: tuple[str, ...], held: HeldTables) -> Probe:
        """One table by its keys."""

    def rows(self, name: str, relation: Relation, columns: tuple[str, ...]) -> pa.Table:
        """Some columns of a table."""


@dataclass(frozen=True)
class _Moment:
    """What a block is computed over."""

    merged: Sequence[pa.Table]
    instant: pa.Scalar
    held: HeldTables
    probes: Probes


Rows = Callable[[_Moment], pa.Table]


@dataclass(frozen=True)
class _Relation:
    """Rows that a block reads by a name, with their schema."""

    schema: pa.Schema
    rows: Rows

    def named(self, names: Sequence[str]) -> _Relation:
        """The same rows with these names of columns."""
        fields = [f.with_name(name) for f, name in zip(self.schema, names, strict=True)]
        renamed = list(names)
        return _Relation(pa.schema(fields), lambda m: self.rows(m).rename_columns(renamed))


class UpperBlock:
    """One compiled block over folds, tables and other blocks."""

    def __init__(
        self,
        first: str,
        relations: Mapping[str, _Relation],
        scalars: Mapping[str, _Relation],
        spec: FoldSpec,
    ) -> None:
        self._first, self._relations, self._scalars, self._spec = first, relations, scalars, spec

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the result's columns."""
        assert self._spec.finish is not None
        return self._spec.finish.types

    @property
    def names(self) -> list[str | None]:
        """The names of the result's columns."""
        assert self._spec.finish is not None
        return self._spec.finish.names

    @property
    def has_one_row(self) -> bool:
        """Whether it is an aggregate over all rows."""
        return self._spec.aggregation is not None and not self._spec.plan.keys

    def result(
        self,
        merged: Sequence[pa.Table],
        instant: pa.Scalar,
        held: HeldTables,
        probes: Probes,
    ) -> pa.Table:
        """The block over the folds' merged relations, columns in the order of the select list."""
        return self.rows(_Moment(merged, instant, held, probes))

    def rows(self, moment: _Moment) -> pa.Table:
        """The block's rows, columns numbered from 0."""
        spec, pipeline, instant = self._spec, self._spec.pipeline, moment.instant
        assert pipeline is not None
        assert spec.finish is not None
        chunk = pipeline.prepare(self._leaf(moment), self._probes(moment), instant)
        if spec.aggregation is None:
            arrays = [one.evaluate(chunk) for one in spec.kept]
            return spec.finish.result(pa.Table.from_arrays(arrays, schema=spec.schema), instant)
        groups = GroupState(spec.aggregation)
        if chunk.num_rows:
            keys_of = [Column(one.evaluate(chunk)) for one in spec.keys]
            arguments = [Column(one.evaluate(chunk)) for one in spec.arguments]
            groups.fold(keys_of, arguments, None, chunk.num_rows)
        return spec.finish.result(groups.result(), instant)

    def _leaf(self, moment: _Moment) -> pa.Table:
        """The rows of the first relation, with the values beside them."""
        own, pipeline = self._relations.get(self._first), self._spec.pipeline
        assert pipeline is not None
        if own is not None:
            leaf = own.rows(moment)
        else:
            relation = moment.held.relations[self._first]
            leaf = moment.probes.rows(self._first, relation, pipeline.columns)
        for name, scalar in self._scalars.items():
            column = scalar.rows(moment).column(0)
            value = column[0] if len(column) else pa.scalar(None, column.type)
            leaf = leaf.append_column(name, constant_column(value, leaf.num_rows))
        return leaf

    def _probes(self, moment: _Moment) -> dict[str, Probe]:
        assert self._spec.pipeline is not None
        ready: dict[str, Probe] = {}
        for table, keys in self._spec.pipeline.probes:
            own = self._relations.get(table.strip("`").lower())
            if own is None:
                probe = moment.probes.one(table, keys, moment.held)
            else:
                probe = Probe(own.rows(moment), keys)
            ready[probe_name(table, keys)] = probe
        return ready


def make_upper(
    query: Query,
    plan: ContinuousPlan,
    specs: Sequence[FoldSpec],
    tables: Tables,
    functions: Terms,
) -> UpperBlock | None:
    """The upper part in line, or None where only Spark can compute it."""
    if not specs or plan.single or any(fold.finish is None for fold in plan.split):
        return None
    text = upper_text(query, plan)
    if text is None:
        return None
    try:
        return _Maker(specs, tables, functions).block(text)
    except (Error, _NotInLine):
        return None


class _NotInLine(Exception):
    """Raised while blocks are compiled: only Spark can compute one."""


@dataclass(frozen=True)
class _Maker:
    """Compiles blocks, inner ones first."""

    specs: Sequence[FoldSpec]
    tables: Tables
    functions: Terms

    def block(self, text: UpperText) -> UpperBlock:
        """One block and those that it reads."""
        relations = {name: self._relation(part) for name, part in text.relations.items()}
        scalars = {name: self._scalar(part) for name, part in text.scalars.items()}
        schemas = {name: relation.schema for name, relation in relations.items()}
        beside = [pa.field(name, one.schema.field(0).type) for name, one in scalars.items()]
        found = _UpperTables(text.first, schemas, beside, self.tables)
        block = make_query(str(text.text))
        inner = plan_query(block, found, "interval", FOLDABLE, block.text, "rows at hand")
        if inner.whole_fold is None:
            raise _NotInLine
        spec = make_spec(inner.whole_fold, self.functions, _refuse)
        in_line = spec.pipeline is not None and spec.finish is not None
        if not in_line or (spec.aggregation is not None and has_edges(spec)):
            raise _NotInLine
        return UpperBlock(text.first, relations, scalars, spec)

    def _relation(self, part: Part) -> _Relation:
        """Rows under a name of FROM, their columns named."""
        if isinstance(part, FoldGroups):
            return self._groups(part)
        if isinstance(part, Members):
            return self._rows(part.of).named([VALUE])
        found = self._rows(part)
        names = found.schema.names
        if len({name.casefold() for name in names}) < len(names):
            raise _NotInLine  # two columns without a name, or a name that stands twice
        return found.named(names)

    def _scalar(self, part: FoldRows | UpperText) -> _Relation:
        """One row of one column."""
        if isinstance(part, FoldRows):
            return self._rows(part)
        block = self.block(part)
        if not block.has_one_row:
            raise _NotInLine
        return _Relation(_schema(block.names, block.types), block.rows)

    def _rows(self, part: FoldRows | UpperText) -> _Relation:
        """The rows of a block or a fold, columns numbered from 0."""
        if isinstance(part, UpperText):
            block = self.block(part)
            return _Relation(_schema(block.names, block.types), block.rows)
        number, finish = part.fold.number, self._finish(part.fold)
        return _Relation(
            _schema(finish.names, finish.types),
            lambda moment: finish.result(moment.merged[number], moment.instant),
        )

    def _finish(self, fold: FoldPlan) -> InlineFinish:
        """How a block finishes its fold, which may be that of others too."""
        spec = self.specs[fold.number]
        own = fold.finish == spec.plan.finish
        found = spec.finish if own else make_finish(fold, spec.schema, self.functions)
        if found is None:
            raise _NotInLine
        return found

    def _groups(self, part: FoldGroups) -> _Relation:
        """The keys of a fold's groups and the value of each."""
        number, finish = part.fold.number, self._finish(part.fold)
        spec = self.specs[number]
        keys = [name for name in spec.schema.names if name.startswith("_k")]
        fields = [*(spec.schema.field(name) for name in keys), pa.field(VALUE, finish.types[0])]

        def rows(moment: _Moment) -> pa.Table:
            merged = moment.merged[number]
            value = finish.result(merged, moment.instant).column(0)
            return merged.select(keys).append_column(VALUE, value)

        return _Relation(pa.schema(fields), rows)


def _schema(names: Sequence[str | None], types: Sequence[pa.DataType]) -> pa.Schema:
    """Columns of a block; one without a name has an empty one."""
    return pa.schema([pa.field(n or "", t) for n, t in zip(names, types, strict=True)])


def _refuse(_text: object) -> list[pa.DataType]:
    raise NotSupportedError("only Spark knows the types")
