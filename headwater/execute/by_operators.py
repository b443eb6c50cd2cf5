"""One-time queries that operators answer, by the circuit that a view of the same query would have.

Those with an as-of join, whatever they read: Spark SQL has none. Others if they read few rows
(`select_rows`): a Spark job takes a tenth of a second however little there is to do, and Spark may not be up
yet. All tables are read at the instant that the reading holds, each column only where it is needed, and of
streaming tables and files only what the conditions above them leave.

Owns: which queries these are, and their rows. Must never: answer what Spark would answer otherwise. What has
no operator, a function of a user, an estimate, a column whose name Spark alone knows, an expression that
raises, and more rows on the way than a small query has, are left to Spark; but never a text with ASOF JOIN,
which Spark would read as an alias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.errors import DataError, NotSupportedError
from headwater.execute.catalog_tables import CatalogTables, stream_columns
from headwater.execute.reading import Reading, windowed
from headwater.expression.predicate import Predicate, Range, common, ranges_of
from headwater.kernel.relation import HeldTables
from headwater.operators.allowance import Exceeded, allowing
from headwater.operators.changes import come
from headwater.plan.folds import StreamColumns
from headwater.plan.now import asks_for_now, names_a_moment, with_now
from headwater.plan.relational.as_of import CONDITIONS
from headwater.plan.relational.names import KnownColumn, NotKept
from headwater.plan.relational.nodes import ScanNode
from headwater.plan.relational.pushed import pushed_predicates
from headwater.plan.relational.trees import row_count_of
from headwater.plan.scan import ScanPlan
from headwater.plan.shown_names import shown_name
from headwater.sql.dialect import named_table, relation_of
from headwater.sql.extensions import NamedRelation
from headwater.sql.spans import has_span, span_of
from headwater.sql.spark_text import reads_as_spark
from headwater.sql.statements.query import Query
from headwater.storage.scan import scan_files
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.read import StreamSnapshot, Wanted, blocks_within, select

NO_START: Mapping[str, int] = MappingProxyType({})
ESTIMATES = (exp.ApproxDistinct, exp.ApproxQuantile)
MADE = 16  # times the rows that a small query may read: so many may be made on the way


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
class Answering:
    """How operators answer a query, whatever the rows are."""

    spec: CircuitSpec
    names: tuple[str | None, ...]  # of the columns; None: only Spark knows
    references: dict[str, NamedRelation]  # by the names of the scans
    pushed: dict[str, Predicate]  # what storage can leave out, by scan
    first: tuple[int, int | None]  # the rows that LIMIT without an order leaves


@dataclass(frozen=True)
class OperatorsQuery:
    """A query that operators answer."""

    found: Reading
    plan: Answering
    held: _Held
    names: list[str]
    since: Mapping[str, int]  # by scan, the number of the first row that is read

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema(list(zip(self.names, self.plan.spec.types, strict=True)))

    @property
    def lines(self) -> list[str]:
        """The tree, for EXPLAIN."""
        return self.plan.spec.lines

    def rows(self, taking_back: bool = False) -> pa.Table:
        """The result; `taking_back`: by operators that can take rows back, whose sketches are exact."""
        spec = self.plan.spec.taking_back if taking_back else self.plan.spec.at_once
        names = [self.plan.references[scan.table].name.key for scan in spec.scans]
        with self.found.context.held(names) as held:
            changes = {n: come(self._scanned(scan, held)) for n, scan in enumerate(spec.scans)}
        circuit, kept = spec.circuit(), spec.kept()
        kept.apply(circuit.begin())
        kept.apply(circuit.apply(changes))
        rows = kept.table().select([column.name for column in spec.shown])
        return rows.rename_columns(self.names).slice(*self.plan.first)

    def few_rows(self, check: Callable[[], None]) -> pa.Table | None:
        """The result; None where Spark has to be asked after all. `check` raises if it is cancelled."""
        if self.found.query.has_as_of:
            return self.rows()
        most = self.found.context.settings.integer("select_rows")
        try:
            with allowing(most * MADE, check):
                return self.rows()
        except (DataError, Exceeded):
            return None

    @property
    def is_small(self) -> bool:
        """Whether the settings let operators read as much."""
        settings, scans = self.found.context.settings, self.plan.spec.scans
        sizes = [self._size(scan) for scan in scans]
        rows, size = sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
        return (
            rows <= settings.integer("select_rows") and size <= settings.integer("select_mb") << 20
        )

    def _size(self, scan: ScanNode) -> tuple[int, int]:
        """How many rows of a table are read at most, and the bytes of the files that they are in."""
        reference = self.plan.references[scan.table]
        rows = self.held.rows(scan.table, scan.stored)
        if rows is not None:
            return rows.num_rows, 0
        snapshot = self.found.snapshots.get(reference.name.key)
        if snapshot is not None:
            return _size_of_stream(snapshot, self.plan.pushed.get(scan.table))
        stored = self.found.context.standard_table(reference.name).snapshot
        return stored.row_count, stored.size

    def _scanned(self, scan: ScanNode, held: HeldTables) -> pa.Table:
        names = [name for name, _ in scan.columns]
        since = self.since.get(scan.table, 0)
        stored = [*scan.stored, SEQUENCE] if since else scan.stored
        rows = self._stored(scan.table, list(dict.fromkeys(stored)), held)
        if since:
            rows = rows.filter(pc.greater_equal(rows.column(SEQUENCE), since))
        return rows.select(list(scan.stored)).rename_columns(names)

    def _stored(self, scan: str, columns: list[str], held: HeldTables) -> pa.Table:
        """The rows of a table as the query reads it."""
        rows = self.held.rows(scan, columns)
        if rows is not None:
            return rows
        key, pushed = self.plan.references[scan].name.key, self.plan.pushed.get(scan)
        snapshot = self.found.snapshots.get(key)
        if snapshot is not None:
            return select(snapshot, Wanted(tuple(columns), pushed)).rows
        files, stored = held.relations[key].files, held.relations[key].schema
        schema = pa.schema([stored.field(name) for name in columns])
        plan = ScanPlan(tuple((name, name) for name in columns), schema, pushed)
        return scan_files(plan, files, stored)


def _size_of_stream(snapshot: StreamSnapshot, pushed: Predicate | None) -> tuple[int, int]:
    """How many rows of a streaming table are read, by the time that is asked for, and their bytes."""
    definition = snapshot.definition
    said = ranges_of(pushed, definition.time, definition.tick)
    ranges = common((Range(snapshot.oldest_visible),), said)
    blocks = blocks_within(snapshot.blocks, ranges)
    rows = [*(block.row_count for block in blocks), *(p.rows.num_rows for p in snapshot.tail)]
    return sum(rows), sum(block.size for block in blocks)


def operators_query(found: Reading, since: Mapping[str, int] = NO_START) -> OperatorsQuery | None:
    """How operators answer a query; None for one that is Spark's, an error for an as-of join if they cannot.

    `since`: the number of the first row that a view reads, by `scan_name`.
    """
    if found.query.has_as_of:
        return answered(found, since)
    if not _may_be_small(found):
        return None
    held = _Held(found)
    plan = _answering(found, held)
    names = [] if isinstance(plan, NotKept) else [name for name in plan.names if name is not None]
    if isinstance(plan, NotKept) or len(names) < len(plan.names):
        return None
    query = OperatorsQuery(found, plan, held, names, since)
    return query if query.is_small else None


def _may_be_small(found: Reading) -> bool:
    """Whether operators are asked at all, whatever the tables hold."""
    context, query = found.context, found.query
    settings = context.settings
    if not settings.integer("select_rows") or not settings.operators:
        return False
    if found.edits or query.valid or query.previous or context.functions_called(query.text):
        return False
    known = not query.fact(_estimates) and query.fact(reads_as_spark)
    return bool(query.table_references) and known


def _estimates(query: Query) -> bool:
    """Whether an aggregate is one of estimates: those of Spark's sketches are others than ours."""
    return query.tree is not None and query.tree.find(*ESTIMATES) is not None


def answered(found: Reading, since: Mapping[str, int] = NO_START) -> OperatorsQuery:
    """How operators answer a query; an error if they cannot."""
    query = found.query
    if found.edits or query.valid or query.previous:
        raise refuse_as_of("PREV, VALID or CURRENT_INSTANT stands beside it")
    held = _Held(found)
    plan = _answering(found, held)
    if isinstance(plan, NotKept):
        raise refuse_as_of(plan.reason)
    return OperatorsQuery(found, plan, held, column_names(query, plan.spec), since)


def _answering(found: Reading, held: _Held) -> Answering | NotKept:
    """The plan; it is kept with the query until the catalog, functions or settings change."""
    context, query = found.context, found.query
    marks = (
        context.identity,
        context.catalog.changes,
        context.function_changes,
        context.settings.changes,
        found.time_zone,
        [snapshot.definition for snapshot in found.snapshots.values()],
    )
    known: tuple[object, Answering | NotKept] | None = query.facts.get(_answering)
    if known is not None and known[0] == marks:
        plan = known[1]
    else:
        plan = _planned(found, held)
        if not query.fact(asks_for_now):
            query.facts[_answering] = marks, plan
    if isinstance(plan, Answering):
        held.references.update(plan.references)
    return plan


def _planned(found: Reading, held: _Held) -> Answering | NotKept:
    query = found.query
    if query.tree is None:
        return NotKept("the query is not understood")
    tree, held.references = _with_scans(query)
    first = _without_limit(tree)
    if query.fact(asks_for_now):
        if names_a_moment(tree, held.columns):
            return NotKept("a column is called as a function of time is")
        with_now(tree, found.time_zone)
    spec = make_circuit(tree, held, found.context.terms(found.time_zone))
    if isinstance(spec, NotKept):
        return spec
    names = _spark_names(query, spec)
    return Answering(spec, names, held.references, pushed_predicates(spec.root), first)


def _spark_names(query: Query, spec: CircuitSpec) -> tuple[str | None, ...]:
    items = query.tree.selects if isinstance(query.tree, exp.Query) else []
    alone = items if len(items) == len(spec.shown) else [None] * len(spec.shown)
    return tuple(
        column.shown or (None if item is None else shown_name(item, query.text))
        for column, item in zip(spec.shown, alone, strict=True)
    )


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
    clauses = {name: tree.args.get(name) for name in ("offset", "limit")}
    places = {n: row_count_of(one) for n, one in clauses.items() if one is not None}
    numbers = {name: count for name, count in places.items() if count is not None}
    if len(numbers) < len(places):
        return 0, None
    for name in places:
        tree.set(name, None)
    return numbers.get("offset", 0), numbers.get("limit")


@dataclass
class _Held:
    """The tables of a reading, by the names of the scans; what is at hand is read once."""

    found: Reading
    references: dict[str, NamedRelation] = field(default_factory=dict)
    _rows: dict[str, pa.Table | None] = field(default_factory=dict)

    def rows(self, name: str, columns: Sequence[str] = ()) -> pa.Table | None:
        """Rows that are in memory: of a system table, a view, a query's result, or columns of a window."""
        if name not in self._rows:
            self._rows[name] = self._found(self.references[name], list(columns))
        return self._rows[name]

    def _found(self, reference: NamedRelation, columns: list[str]) -> pa.Table | None:
        found = self.found
        snapshot = found.snapshots.get(reference.name.key)
        if snapshot is None:
            return found.rows_in_memory(reference)
        if reference.window is None:
            return None
        return windowed(found, snapshot, reference.window, columns)

    @property
    def columns(self) -> set[str]:
        """The names of all columns of all tables."""
        found: set[str] = set()
        for name in self.references:
            stream = self.stream(name)
            schema = self.standard(name) if stream is None else stream.schema
            found |= set() if schema is None else set(schema.names)
        return found

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table; rows of a window have the window's order, which is not that of the times."""
        reference = self.references.get(name)
        snapshot = None if reference is None else self.found.snapshots.get(reference.name.key)
        if reference is None or snapshot is None:
            return None
        columns = stream_columns(snapshot.definition)
        return columns if reference.window is None else replace(columns, time="")

    def standard(self, name: str) -> pa.Schema | None:
        """What is at hand, or a standard table."""
        reference = self.references.get(name)
        if reference is None:
            return None
        rows = self.rows(name)
        if rows is not None:
            return rows.schema
        return CatalogTables(self.found.context).standard(str(reference.name))
