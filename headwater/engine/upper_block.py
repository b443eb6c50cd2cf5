"""The upper part of a query in line: one block over the finished rows of its folds, and over tables.

Compiled once, computed at each instant or read. Whatever the whitelist does not have is left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.engine.fold_run import StaticProbes, has_edges
from headwater.engine.fold_spec import FOLDABLE, FoldSpec, make_spec
from headwater.engine.inline_block import probe_name
from headwater.engine.world import HeldTables
from headwater.errors import Error, NotSupportedError
from headwater.fold.columns import Column
from headwater.fold.state import GroupState
from headwater.kernel.inline.probe import Probe
from headwater.plan.continuous.blocks import StateFunction, Tables
from headwater.plan.continuous.folds import ContinuousPlan, StreamColumns
from headwater.plan.continuous.planner import plan_query
from headwater.plan.continuous.upper import UpperText, upper_text
from headwater.sql.statements.query import Query, make_query
from headwater.sql.types import TIMESTAMP


@dataclass(frozen=True)
class _UpperTables:
    """The tables of an upper block: folds' rows, and standard tables; the first is read row by row."""

    text: UpperText
    schemas: dict[str, pa.Schema]
    tables: Tables

    def stream(self, name: str) -> StreamColumns | None:
        """The first relation of FROM."""
        schema = self.standard(name) if name.lower() == self.text.first else None
        if schema is None or not len(schema):
            return None
        return StreamColumns(name, schema, tuple(schema.names), schema.names[0], TIMESTAMP)

    def standard(self, name: str) -> pa.Schema | None:
        """The columns of any relation."""
        return self.schemas.get(name.lower()) or self.tables.standard(name)

    def state_function(self, name: str) -> StateFunction | None:
        """A function with state has no order of rows here: it is left to be refused elsewhere."""
        return self.tables.state_function(name)


class UpperBlock:
    """One compiled block over folds."""

    def __init__(self, text: UpperText, specs: Sequence[FoldSpec], spec: FoldSpec) -> None:
        self._text, self._specs, self._spec = text, specs, spec

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the result's columns."""
        assert self._spec.finish is not None
        return self._spec.finish.types

    def result(
        self,
        merged: Sequence[pa.Table],
        instant: pa.Scalar,
        held: HeldTables,
        probes: StaticProbes,
    ) -> pa.Table:
        """The block over the folds' merged relations, columns in the order of the select list."""
        spec, pipeline = self._spec, self._spec.pipeline
        assert pipeline is not None
        assert spec.finish is not None
        rows = {name: self._finished(n, merged[n], instant) for name, n in self._text.folds.items()}
        first = self._text.first
        leaf = rows[first] if first in rows else probes.table(held.relations[first])
        ready: dict[str, Probe] = {}
        for table, keys in pipeline.probes:
            own = rows.get(table.strip("`").lower())
            name = probe_name(table, keys)
            ready[name] = probes.one(table, keys, held) if own is None else Probe(own, keys)
        chunk = pipeline.prepare(leaf, ready, instant)
        if spec.aggregation is None:
            arrays = [one.evaluate(chunk) for one in spec.kept]
            return spec.finish.result(pa.Table.from_arrays(arrays, schema=spec.schema), instant)
        groups = GroupState(spec.aggregation)
        if chunk.num_rows:
            keys_of = [Column(one.evaluate(chunk)) for one in spec.keys]
            arguments = [Column(one.evaluate(chunk)) for one in spec.arguments]
            groups.fold(keys_of, arguments, None, chunk.num_rows)
        return spec.finish.result(groups.result(), instant)

    def _finished(self, number: int, merged: pa.Table, instant: pa.Scalar) -> pa.Table:
        finish = self._specs[number].finish
        assert finish is not None
        return finish.result(merged, instant).rename_columns([str(name) for name in finish.names])


def make_upper(
    query: Query,
    plan: ContinuousPlan,
    specs: Sequence[FoldSpec],
    tables: Tables,
    functions: frozenset[str],
) -> UpperBlock | None:
    """The upper part in line, or None where only Spark can compute it."""
    if not specs or plan.single or any(spec.finish is None for spec in specs):
        return None
    text = upper_text(query, plan)
    if text is None:
        return None
    schemas = {name: _schema(specs[number]) for name, number in text.folds.items()}
    if any(schema is None for schema in schemas.values()):
        return None
    found = _UpperTables(text, {n: s for n, s in schemas.items() if s is not None}, tables)
    try:
        block = make_query(text.text)
        inner = plan_query(block, found, "interval", FOLDABLE, text.text, "rows at hand")
        if inner.whole_fold is None:
            return None
        spec = make_spec(inner.whole_fold, functions, _refuse)
    except Error:
        return None
    in_line = spec.pipeline is not None and spec.finish is not None
    if not in_line or (spec.aggregation is not None and has_edges(spec)):
        return None
    return UpperBlock(text, specs, spec)


def _schema(spec: FoldSpec) -> pa.Schema | None:
    """The columns of a fold's block; None if one has no name, or a name stands twice."""
    assert spec.finish is not None
    names = [name for name in spec.finish.names if name is not None]
    if len({name.casefold() for name in names}) < len(spec.finish.names):
        return None
    return pa.schema([pa.field(n, t) for n, t in zip(names, spec.finish.types, strict=True)])


def _refuse(_text: str) -> list[pa.DataType]:
    raise NotSupportedError("only Spark knows the types")
