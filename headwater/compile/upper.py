"""The upper part of a query by operators: blocks over its folds, tables and each other.

Compiled once, computed at each instant or read. Whatever the whitelist does not have is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from headwater.compile.block import BlockFinish, constant_column, probe_name
from headwater.compile.fold import (
    FOLDABLE,
    FoldSpec,
    GroupsSpec,
    RowsSpec,
    has_edges,
    make_finish,
    make_spec,
    refuse_types,
)
from headwater.errors import Error
from headwater.expression.terms import Terms
from headwater.fold.columns import Column
from headwater.fold.probe import Probe
from headwater.fold.state import GroupState
from headwater.kernel.relation import HeldTables, Relation
from headwater.plan.blocks import Tables
from headwater.plan.folds import ContinuousPlan, FoldPlan
from headwater.plan.upper import (
    VALUE,
    FoldGroups,
    FoldRows,
    Members,
    Part,
    UpperPlan,
    upper_plan,
)
from headwater.sql.statements.query import Query


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
    known: dict[int, pa.Table] = field(default_factory=dict)  # rows of parts that were asked for


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
        in_order = isinstance(spec, GroupsSpec) and has_edges(spec)
        if spec.pipeline is None or spec.finish is None or in_order:
            raise _NoOperator
        self._first, self._relations, self._scalars, self._spec = first, relations, scalars, spec
        self._pipeline, self._finish = spec.pipeline, spec.finish

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the result's columns."""
        return self._finish.types

    @property
    def names(self) -> list[str | None]:
        """The names of the result's columns."""
        return self._finish.names

    @property
    def has_one_row(self) -> bool:
        """Whether it is a value."""
        return self._spec.plan.has_one_row

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
        spec, instant = self._spec, moment.instant
        chunk = self._pipeline.prepare(self._leaf(moment), self._probes(moment), instant)
        if isinstance(spec, RowsSpec):
            arrays = [one.evaluate(chunk) for one in spec.kept]
            return self._finish.result(pa.Table.from_arrays(arrays, schema=spec.schema), instant)
        groups = GroupState(spec.aggregation)
        if chunk.num_rows:
            keys_of = [Column(one.evaluate(chunk)) for one in spec.keys]
            arguments = [Column(one.evaluate(chunk)) for one in spec.arguments]
            groups.fold(keys_of, arguments, None, chunk.num_rows)
        return self._finish.result(groups.result(), instant)

    def _leaf(self, moment: _Moment) -> pa.Table:
        """The rows of the first relation, with the values beside them."""
        own = self._relations.get(self._first)
        if own is not None:
            leaf = own.rows(moment)
        else:
            relation = moment.held.relations[self._first]
            leaf = moment.probes.rows(self._first, relation, self._pipeline.columns)
        for name, scalar in self._scalars.items():
            column = scalar.rows(moment).column(0)
            value = column[0] if len(column) else pa.scalar(None, column.type)
            leaf = leaf.append_column(name, constant_column(value, leaf.num_rows))
        return leaf

    def _probes(self, moment: _Moment) -> dict[str, Probe]:
        ready: dict[str, Probe] = {}
        for table, keys in self._pipeline.probes:
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
    """The upper part by operators, or None where only Spark can compute it."""
    if not specs or plan.single or any(fold.finish is None for fold in plan.split):
        return None
    upper = upper_plan(query, plan)
    if upper is None:
        return None
    try:
        return _Maker(specs, tables, functions).block(upper)
    except (Error, _NoOperator):
        return None


class _NoOperator(Exception):
    """Raised while blocks are compiled: only Spark can compute one."""


@dataclass(frozen=True)
class _Maker:
    """Compiles blocks, inner ones first."""

    specs: Sequence[FoldSpec]
    tables: Tables
    functions: Terms
    known: dict[int, _Relation] = field(default_factory=dict)  # by the identity of their plans

    def block(self, upper: UpperPlan) -> UpperBlock:
        """One block and those that it reads."""
        relations = {name: self._relation(part) for name, part in upper.relations.items()}
        scalars = {name: self._scalar(part) for name, part in upper.scalars.items()}
        schemas = {name: relation.schema for name, relation in relations.items()}
        beside = [pa.field(name, one.schema.field(0).type) for name, one in scalars.items()]
        fold = upper.fold(schemas, beside, self.tables, FOLDABLE)
        if fold is None:
            raise _NoOperator
        spec = make_spec(fold, self.functions, refuse_types)
        return UpperBlock(upper.first, relations, scalars, spec)

    def _relation(self, part: Part) -> _Relation:
        """Rows under a name of FROM, their columns named."""
        if isinstance(part, FoldGroups):
            return self._groups(part)
        if isinstance(part, Members):
            return self._rows(part.of).named([VALUE])
        found = self._rows(part)
        names = found.schema.names
        if len({name.casefold() for name in names}) < len(names):
            raise _NoOperator  # two columns without a name, or a name that stands twice
        return found.named(names)

    def _scalar(self, part: FoldRows | UpperPlan) -> _Relation:
        """One row of one column."""
        if isinstance(part, FoldRows):
            return self._rows(part)
        block = self.block(part)
        if not block.has_one_row:
            raise _NoOperator
        return _Relation(_schema(block.names, block.types), block.rows)

    def _rows(self, part: FoldRows | UpperPlan) -> _Relation:
        """The rows of a block or a fold, columns numbered from 0; made once, computed once at a moment."""
        key = id(part)
        if key not in self.known:
            found = self._made(part)

            def rows(moment: _Moment) -> pa.Table:
                if key not in moment.known:
                    moment.known[key] = found.rows(moment)
                return moment.known[key]

            self.known[key] = _Relation(found.schema, rows)
        return self.known[key]

    def _made(self, part: FoldRows | UpperPlan) -> _Relation:
        if isinstance(part, UpperPlan):
            block = self.block(part)
            return _Relation(_schema(block.names, block.types), block.rows)
        number, finish = part.fold.number, self._finish(part.fold)
        return _Relation(
            _schema(finish.names, finish.types),
            lambda moment: finish.result(moment.merged[number], moment.instant),
        )

    def _finish(self, fold: FoldPlan) -> BlockFinish:
        """How a block finishes its fold, which may be that of others too."""
        spec = self.specs[fold.number]
        own = fold.finish == spec.plan.finish
        found = spec.finish if own else make_finish(fold, spec.schema, self.functions)
        if found is None:
            raise _NoOperator
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
