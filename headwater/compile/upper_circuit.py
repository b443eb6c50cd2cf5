"""The upper part of a query by operators: a circuit over the merged relations of its folds and over tables.

What no block computes (window functions over groups, unions of groupings, values of subqueries) is a tree of
relational nodes as a view's is; at each instant or read all rows go through a new circuit at once. Whatever
has no operator is left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.compile.block import constant_column
from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.compile.fold import FoldSpec
from headwater.compile.upper import Probes
from headwater.expression.terms import Terms
from headwater.kernel.relation import HeldTables
from headwater.operators.changes import come
from headwater.plan.folds import ContinuousPlan, StreamColumns
from headwater.plan.pieces import INSTANT_COLUMN
from headwater.plan.relational.building import Schemas
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.nodes import ScanNode
from headwater.plan.text import RowsSlot


@dataclass(frozen=True)
class UpperCircuit:
    """A circuit over folds and tables."""

    spec: CircuitSpec
    folds: dict[str, int]  # the folds by the names of their scans

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the result's columns."""
        return self.spec.types

    def result(
        self, merged: Sequence[pa.Table], instant: pa.Scalar, held: HeldTables, probes: Probes
    ) -> pa.Table:
        """The query over the folds' merged relations, columns in the order of the select list."""
        spec = self.spec
        circuit, kept = spec.circuit(), spec.kept()
        kept.apply(circuit.begin())
        rows = (self._rows(scan, merged, instant, held, probes) for scan in spec.scans)
        kept.apply(circuit.apply({number: come(one) for number, one in enumerate(rows)}))
        return kept.table().select([column.name for column in spec.shown])

    def _rows(
        self,
        scan: ScanNode,
        merged: Sequence[pa.Table],
        instant: pa.Scalar,
        held: HeldTables,
        probes: Probes,
    ) -> pa.Table:
        number = self.folds.get(scan.table)
        if number is None:
            stored = probes.rows(scan.table, held.relations[scan.table], scan.stored)
        else:
            stored = merged[number]
            if INSTANT_COLUMN in scan.stored:
                times = constant_column(instant, stored.num_rows)
                stored = stored.append_column(INSTANT_COLUMN, times)
        return stored.select(list(scan.stored)).rename_columns([name for name, _ in scan.columns])


@dataclass(frozen=True)
class _FoldSchemas:
    """The tables of the catalog, and the results of folds beside them."""

    tables: Schemas
    folds: dict[str, StreamColumns]

    def stream(self, name: str) -> StreamColumns | None:
        """The result of a fold."""
        return self.folds.get(name)

    def standard(self, name: str) -> pa.Schema | None:
        """A table of the catalog."""
        return self.tables.standard(name)


def make_upper_circuit(
    plan: ContinuousPlan,
    specs: Sequence[FoldSpec],
    instant: pa.DataType,
    tables: Schemas,
    functions: Terms,
) -> UpperCircuit | None:
    """The upper part by operators, or None where only Spark can compute it; `instant`: the type of it."""
    if not specs or plan.upper_tree is None:
        return None
    names = {RowsSlot("fold", spec.plan.number).name: spec for spec in specs}
    folds = {name: _columns(name, spec, instant) for name, spec in names.items()}
    found = make_circuit(plan.upper_tree, _FoldSchemas(tables, folds), functions)
    if isinstance(found, NotKept):
        return None
    return UpperCircuit(found.at_once, {name: spec.plan.number for name, spec in names.items()})


def _columns(name: str, spec: FoldSpec, instant: pa.DataType) -> StreamColumns:
    """A fold's result as a table, the instant a hidden column of it."""
    schema = spec.schema.append(pa.field(INSTANT_COLUMN, instant))
    return StreamColumns(name, schema, tuple(spec.schema.names), INSTANT_COLUMN, instant)
