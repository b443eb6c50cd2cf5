"""One-time queries with an as-of join: Spark SQL has none, so operators answer the whole query.

Owns: the rows of such a query, all tables at the instant that its reading holds, each column read only where
it is needed. Must never: let a text with ASOF JOIN reach Spark, which would take ASOF for a table's alias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.errors import NotSupportedError
from headwater.execute.catalog_tables import CatalogTables, stream_columns
from headwater.execute.reading import Reading, windowed
from headwater.operators.changes import come
from headwater.plan.folds import StreamColumns
from headwater.plan.relational.as_of import CONDITIONS
from headwater.plan.relational.names import KnownColumn, NotKept
from headwater.plan.relational.nodes import ScanNode
from headwater.plan.relational.trees import ordinal
from headwater.sql.dialect import named_table, relation_of
from headwater.sql.extensions import NamedRelation
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query
from headwater.storage.scan import scan_rows
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.read import Wanted, select

NO_START: Mapping[str, int] = MappingProxyType({})


def refuse_as_of(reason: str) -> NotSupportedError:
    """The error for an as-of join where none is computed."""
    if reason == CONDITIONS:
        return NotSupportedError(reason, hint="other conditions go into WHERE, or into a subquery")
    return NotSupportedError(
        f"an as-of join cannot be computed here: {reason}",
        hint="make a view of the as-of join, and read the view",
    )


def scan_name(number: int, reference: NamedRelation) -> str:
    """What a table is called in the tree: a window or version of it is another table."""
    alone = reference.window is None and reference.version is None
    return reference.name.key if alone else f"{reference.name.key} {number + 1}"


@dataclass(frozen=True)
class OperatorsQuery:
    """A query that operators answer."""

    found: Reading
    spec: CircuitSpec
    references: dict[str, NamedRelation]  # by the names of the scans
    first: tuple[int, int | None]  # the rows that LIMIT without an order leaves
    since: Mapping[str, int]  # by scan, the number of the first row that is read

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        names = column_names(self.found.query, self.spec)
        return pa.schema(list(zip(names, self.spec.types, strict=True)))

    def rows(self, taking_back: bool = False) -> pa.Table:
        """The result; `taking_back`: by operators that can take rows back, whose sketches are exact."""
        spec = self.spec.taking_back if taking_back else self.spec.at_once
        circuit, kept = spec.circuit(), spec.kept()
        kept.apply(circuit.begin())
        changes = {number: come(self._scanned(scan)) for number, scan in enumerate(spec.scans)}
        kept.apply(circuit.apply(changes))
        rows = kept.table().select([column.name for column in spec.shown])
        return rows.rename_columns(self.schema.names).slice(*self.first)

    def _scanned(self, scan: ScanNode) -> pa.Table:
        names = [name for name, _ in scan.columns]
        since = self.since.get(scan.table, 0)
        stored = [*scan.stored, SEQUENCE] if since else scan.stored
        rows = self._stored(self.references[scan.table], list(dict.fromkeys(stored)))
        if since:
            rows = rows.filter(pc.greater_equal(rows.column(SEQUENCE), since))
        return rows.select(list(scan.stored)).rename_columns(names)

    def _stored(self, reference: NamedRelation, columns: list[str]) -> pa.Table:
        """The rows of a table as the query reads it."""
        rows = self.found.rows_in_memory(reference)
        if rows is not None:
            return rows
        snapshot = self.found.snapshots.get(reference.name.key)
        if snapshot is None:
            with self.found.context.standard_table(reference.name).reading() as version:
                return scan_rows(version.files, version.schema)
        if reference.window is not None:
            return windowed(self.found, snapshot, reference.window, columns)
        return select(snapshot, Wanted(tuple(columns))).rows


def as_of_query(found: Reading, since: Mapping[str, int] = NO_START) -> OperatorsQuery | None:
    """How operators answer a query with an as-of join; None for one without, an error if they cannot.

    `since`: the number of the first row that a view reads, by `scan_name`.
    """
    return answered(found, since) if found.query.has_as_of else None


def answered(found: Reading, since: Mapping[str, int] = NO_START) -> OperatorsQuery:
    """How operators answer a query; an error if they cannot."""
    query = found.query
    if found.edits or query.valid or query.previous:
        raise refuse_as_of("PREV, VALID or CURRENT_INSTANT stands beside it")
    if query.tree is None:
        raise refuse_as_of("the query is not understood")
    tree, references = _with_scans(query)
    first = _without_limit(tree)
    made = make_circuit(tree, _Held(found, references), found.context.terms(found.time_zone))
    if isinstance(made, NotKept):
        raise refuse_as_of(made.reason)
    return OperatorsQuery(found, made, references, first, since)


def column_names(query: Query, spec: CircuitSpec) -> list[str]:
    """The names of a query's columns; one without a name is called as it is written."""
    tree = query.tree
    assert tree is not None
    items = tree.selects if isinstance(tree, exp.Query) else []
    known = len(items) == len(spec.shown)
    return [
        column.shown or (_written(query, items[place]) if known else f"column{place + 1}")
        for place, column in enumerate(spec.shown)
    ]


def named(query: Query, spec: CircuitSpec) -> tuple[KnownColumn, ...]:
    """The columns of a query, each with a name."""
    names = column_names(query, spec)
    pairs = zip(names, spec.shown, strict=True)
    return tuple(KnownColumn(name, column.name, column.type) for name, column in pairs)


def _written(query: Query, item: exp.Expr) -> str:
    return span_of(item).of(query.text) if has_span(item) else item.sql()


def _with_scans(query: Query) -> tuple[exp.Expr, dict[str, NamedRelation]]:
    """The query's tree with a name of its own for each time that a table stands in it."""
    assert query.tree is not None
    tree, references = query.tree.copy(), {}
    names = {
        reference.name.span.start: (scan_name(number, reference), reference)
        for number, reference in enumerate(query.table_references)
    }
    for table in list(tree.find_all(exp.Table)):
        relation = relation_of(table)
        known = None if relation is None else names.get(relation.name.span.start)
        if known is None:
            continue
        name, reference = known
        scan = named_table(name)
        alias = table.args.get("alias")
        shown = exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
        scan.set("alias", shown if alias is None else alias)
        for argument in ("joins", "pivots", "laterals", "sample"):
            scan.set(argument, table.args.get(argument))
        table.replace(scan)
        references[name] = reference
    return tree, references


def _without_limit(tree: exp.Expr) -> tuple[int, int | None]:
    """Takes LIMIT and OFFSET out of a query without an order; where its rows begin, and how many they are."""
    if tree.args.get("order") is not None:
        return 0, None
    found: list[int] = []
    for name in ("offset", "limit"):
        clause = tree.args.get(name)
        place = None if clause is None else ordinal(clause.expression)
        if clause is not None and place is None:
            return 0, None
        found.append(-1 if place is None else place + 1)
        tree.set(name, None)
    return max(found[0], 0), None if found[1] < 0 else found[1]


@dataclass(frozen=True)
class _Held:
    """The tables of a reading, by the names of the scans."""

    found: Reading
    references: dict[str, NamedRelation]

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table."""
        reference = self.references.get(name)
        snapshot = None if reference is None else self.found.snapshots.get(reference.name.key)
        return None if snapshot is None else stream_columns(snapshot.definition)

    def standard(self, name: str) -> pa.Schema | None:
        """What is at hand, or a standard table."""
        reference = self.references.get(name)
        if reference is None:
            return None
        rows = self.found.rows_in_memory(reference)
        if rows is not None:
            return rows.schema
        return CatalogTables(self.found.context).standard(str(reference.name))
