"""One-time queries: plain scans by the storage, small ones by operators, everything else on Spark."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.engine.view import ContinuousView
from headwater.errors import Error, SqlSyntaxError
from headwater.execute import system_tables
from headwater.execute.answers import LARGE_TABLE, LARGEST_ANSWER, Answer, Present
from headwater.execute.by_operators import answered, operators_query, refuse_as_of
from headwater.execute.constants import constant_row
from headwater.execute.context import Context, Running
from headwater.execute.expansion import expanded
from headwater.execute.function_bodies import bodies_among, bodies_called, body_of, is_read
from headwater.execute.reading import (
    Reading,
    function_edits,
    names_in_functions,
    reading,
    reading_bodies,
    relation_edits,
    star_edits,
    time_edits,
    windowed,
)
from headwater.expression.predicate import columns_of
from headwater.kernel.functions import SqlFunction
from headwater.kernel.kernel import Work
from headwater.plan.blocks import unknown_table
from headwater.plan.calls import VARYING, called
from headwater.plan.scan import ScanPlan, equalities, plain_source, scan_plan
from headwater.result import Result
from headwater.sql import dialect
from headwater.sql.assemble import Assembly
from headwater.sql.identifiers import identifiers
from headwater.sql.literals import literal
from headwater.sql.statements.query import Query, make_query, share
from headwater.sql.text import EditedText, Name
from headwater.sql.type_parser import parse_type
from headwater.storage.scan import finish, scan_files, scan_table
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.definition import EPOCH_NUMBER, Definition
from headwater.storage.streaming.read import ScanCounts, Selection, StreamSnapshot, Wanted
from headwater.storage.streaming.table import StreamingTable

AS_OF = "headwater_as_of"  # what Spark calls the answer to a query with an as-of join
MOST_VALUES = 16  # of parameters, whose scans are kept with one statement


def run_query(running: Running, query: Query) -> Result:
    """The rows of a query."""
    context = running.context
    scan = ready_scan(context, query)
    plain = None if scan is None else scan.run(context)
    if plain is not None:
        return Result("SELECT", plain.rows)
    view = view_alone(context, query)
    if view is None:
        return Result("SELECT", _rows(running, query))
    found = _found_by_key(context, query, view)
    if found is not None:
        return Result("SELECT", _rows(running, query, {(view.name.casefold(), 0): found}))
    version, settings = view.read(), context.settings.changes
    answer = context.answers.find(query.text) or Answer(_Present(context, query))
    known = answer.of(version, settings)
    if known is None:
        known = _rows(running, query, {(view.name.casefold(), 0): version.rows})
        if known.nbytes <= LARGEST_ANSWER:
            answer.keep(known, version, settings)
            context.answers.keep(query.text, answer)
    return Result("SELECT", known)


def _found_by_key(context: Context, query: Query, view: ContinuousView) -> pa.Table | None:
    """The rows of a view that a query asks for by its key, without the others; None: read them all."""
    if view.key is None:
        return None
    schema = view.evaluation.output.schema
    wanted = equalities(query.tree, schema, context.terms())
    exact = {name for name, one in wanted.items() if not pa.types.is_floating(one.type)}
    if not exact >= set(view.key) or len(query.table_references) > 1:
        return None
    arrays = [pa.array([wanted[name].value], schema.field(name).type) for name in view.key]
    return view.find(pa.Table.from_arrays(arrays, names=list(view.key)))


class _Present:
    """What the answer to a query over one view depends on, as it is now."""

    def __init__(self, context: Context, query: Query) -> None:
        self._context = context
        self._query = query
        self._marks: tuple[int, int] | None = None  # of the catalog that `_view` was found in
        self._view: ContinuousView | None = None

    def __call__(self) -> Present | None:
        """The version of the view and the settings; None if another version may have to be made."""
        context = self._context
        marks = context.catalog.changes, context.function_changes
        if marks != self._marks:
            self._view = view_alone(context, self._query)
            self._marks = marks
        view = self._view
        if view is None or context.engine.find_view(view.name) is not view:
            self._marks = None  # it is being dropped or replaced: look again
            return None
        version = view.unchanged()
        return None if version is None else (version, context.settings.changes)


def columns_of_query(running: Running, query: Query) -> pa.Schema:
    """The columns that a query gives, without running it where Spark has to be asked."""
    context = running.context
    scan = ready_scan(context, query)
    if scan is not None:
        return scan.plan.schema
    with reading(context, query, running.text) as found:
        constants = constant_row(found)
        if constants is not None:
            return constants.schema
        plain = plain_scan(found)
        if plain is not None:
            return plain.rows.schema
        by_operators = operators_query(found)
        if by_operators is not None:
            return by_operators.schema
        with work_for(found) as work:
            types = context.kernel.analyse(work)
    return pa.schema([pa.field(name, _arrow_type(type_)) for name, type_ in types])


def _arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type of Spark's word for one; text for a type that no column can have."""
    try:
        return parse_type(spark_type)
    except Error:
        return pa.string()


def _rows(
    running: Running, query: Query, views: Mapping[tuple[str, int | None], pa.Table] | None = None
) -> pa.Table:
    """The rows of a query; those of `views` are at hand already."""
    context = running.context
    with reading(context, query, running.text) as found:
        found.views.update(views or {})
        constants = constant_row(found)
        if constants is not None:
            return constants
        plain = plain_scan(found, shared=True)
        if plain is not None:
            return plain.rows
        by_operators = operators_query(found)
        few = None if by_operators is None else by_operators.few_rows(running.cancellation.check)
        if few is not None:
            return few
        with work_for(found) as work:
            return context.kernel.run(work, running.cancellation)


def view_alone(context: Context, query: Query) -> ContinuousView | None:
    """The continuous view that a query reads and nothing else, if its answer depends on that alone."""
    names = {reference.name.key for reference in query.table_references}
    if len(names) != 1 or query.versions or query.tree is None:
        return None
    item = context.find(names.pop())
    view = None if item is None else context.engine.find_view(item.name)
    if view is None or not query.is_plain or _varies(context, query):
        return None
    return view


def _called(query: Query) -> frozenset[str]:
    return called(query.text)


def _varies(context: Context, query: Query) -> bool:
    """Whether a query may give another answer over the same rows."""
    calls = query.fact(_called)
    users = any(call.lower() in context.functions for call in calls)
    return users or bool(calls & VARYING)


@dataclass(frozen=True)
class PlainScan:
    """The rows of a plain scan, its plan, and what it touched of a streaming table."""

    plan: ScanPlan
    rows: pa.Table
    source: str
    counts: ScanCounts | None = None


class StreamScan:
    """A plain scan of a streaming table, made ready for as long as the table has this definition."""

    def __init__(self, name: str, definition: Definition, plan: ScanPlan) -> None:
        self.name, self.plan = name, plan
        self.table: weakref.ref[StreamingTable] | None = None  # of a scan that is kept
        by_time = len(plan.order) == 1 and plan.order[0].column == definition.time
        columns = tuple(n for n in definition.stored_schema.names if n in plan.needed)
        descending = by_time and plan.order[0].descending
        pushed = plan.limit if by_time or not plan.order else None
        self._selection = Selection(
            definition, Wanted(columns, plan.predicate, None, None, descending, pushed)
        )
        self._rest = replace(plan, order=()) if by_time else plan  # storage gives rows in time

    def with_plan(self, plan: ScanPlan) -> StreamScan:
        """The same of another plan."""
        made = StreamScan(self.name, self._selection.definition, plan)
        made.table = self.table
        return made

    def run(self, context: Context) -> PlainScan | None:
        """The rows as of now; None if the table has changed or is gone."""
        table = None if self.table is None else self.table()
        if table is None:
            return None
        with contextlib.ExitStack() as stack:
            with context.streams.visibility:
                snapshot = stack.enter_context(table.reading())
            if snapshot.definition is not self._selection.definition:
                return None
            return self.of(context, snapshot)

    def of(self, context: Context, snapshot: StreamSnapshot, *, shared: bool = True) -> PlainScan:
        """The rows of a snapshot; `shared`: perhaps those that another reader holds, uncounted."""
        if not shared or snapshot.next_sequence < LARGE_TABLE:
            selected = self._selection.of(snapshot)
            rows = finish(self._rest, selected.rows)
            return PlainScan(self.plan, rows, self.name, selected.counts)
        key = (
            str(snapshot.folder),
            context.catalog.changes,
            snapshot.version,
            snapshot.generation,
            snapshot.next_sequence,
            snapshot.oldest_visible,
            self.plan,
        )
        rows = context.shared.of(key, lambda: finish(self._rest, self._selection.of(snapshot).rows))
        return PlainScan(self.plan, rows, self.name)


class FileScan:
    """A plain scan of a standard table, made ready for as long as the table has these columns."""

    def __init__(
        self, name: str, table: weakref.ref[StandardTable], plan: ScanPlan, schema: pa.Schema
    ) -> None:
        self.name, self.plan = name, plan
        self._table, self._schema = table, schema

    def with_plan(self, plan: ScanPlan) -> FileScan:
        """The same of another plan."""
        return FileScan(self.name, self._table, plan, self._schema)

    def run(self, context: Context) -> PlainScan | None:
        """The rows as of now; None if the table has changed or is gone."""
        table = self._table()
        if table is None:
            return None
        with table.reading() as version:
            if version.schema is not self._schema:
                return None
            if version.row_count < LARGE_TABLE:
                rows = scan_files(self.plan, version.files, version.schema)
            else:
                key = (str(table.folder), version.version, self.plan)
                rows = context.shared.of(
                    key, lambda: scan_files(self.plan, version.files, version.schema)
                )
            return PlainScan(self.plan, rows, self.name)


def ready_scan(
    context: Context, query: Query, values: tuple[str, ...] = ()
) -> StreamScan | FileScan | None:
    """The query as a plain scan of a table; it is kept with the statement until the catalog changes.

    `values`: of `$1`, `$2`, …, as SQL texts; the scans of a few are kept.
    """
    scans = _kept(context, query, ready_scan)
    if values not in scans:
        form = query.shared
        if form is not None:
            scans[values] = _scan_with_values(context, form.form, form.values)
        elif values:
            scans[values] = _scan_with_values(context, query, values)
        else:
            scans[values] = _made_scan(context, query, ())
            if scans[values] is not None:
                share(query)
    return scans[values]


def _kept(context: Context, query: Query, what: object) -> dict[Any, StreamScan | FileScan | None]:
    """Scans that are kept with a query; none at first, if the catalog has changed, or if they are many."""
    marks = (
        context.identity,
        context.catalog.changes,
        context.function_changes,
        context.settings.changes,
    )
    known: tuple[object, dict[Any, StreamScan | FileScan | None]] | None = query.facts.get(what)
    if known is None or known[0] != marks or len(known[1]) > MOST_VALUES:
        known = query.facts[what] = marks, {}
    return known[1]


def _scan_with_values(
    context: Context, query: Query, values: tuple[str, ...]
) -> StreamScan | FileScan | None:
    """The scan of a query with slots; that of other values of the same types, where it takes these too."""
    found = [literal(value, context.terms().time_zone) for value in values]
    literals = [one for one in found if one is not None]
    scans, types = _kept(context, query, _scan_with_values), tuple(one.type for one in literals)
    scan = scans.get(types) if len(literals) == len(found) else None
    if scan is not None:
        return scan.with_plan(scan.plan.with_values(literals))
    made = _made_scan(context, query, values)
    if made is not None and made.plan.takes(literals, query.tree):
        scans[types] = made
    return made


def scan_with_values(running: Running, query: Query, values: tuple[str, ...]) -> Result | None:
    """The rows of a plain scan with values for `$1`, `$2`, …; None if the query is more than that."""
    scan = ready_scan(running.context, query, values)
    plain = None if scan is None else scan.run(running.context)
    return None if plain is None else Result("SELECT", plain.rows)


def _scanned(query: Query) -> Name | None:
    """The name that stands alone in FROM of what may be a plain scan."""
    alone = len(query.table_references) == 1 and plain_source(query.tree) is not None
    return query.table_references[0].name if alone and query.is_plain else None


def _made_scan(
    context: Context, query: Query, values: tuple[str, ...]
) -> StreamScan | FileScan | None:
    name = query.fact(_scanned)
    if name is None:
        return None
    table, terms = context.stream(name), context.terms()
    terms = replace(terms, values=values) if values else terms
    plan = partial(scan_plan, query.tree, terms)
    if table is None:
        return _file_scan(context, name, plan)
    if table.definition.kind == "stream":
        return None
    made = _stream_scan(name, table.definition, plan)
    if made is not None:
        made.table = weakref.ref(table)
    return made


Plan = Callable[[pa.Schema, frozenset[str]], ScanPlan | None]  # for a table with hidden columns


def _file_scan(context: Context, name: str, plan: Plan) -> FileScan | None:
    item = context.find(name)
    table = None if item is None else context.tables.get(item.id)
    if table is None:
        return None
    schema = table.snapshot.schema
    found = plan(schema, frozenset())
    return None if found is None else FileScan(str(name), weakref.ref(table), found, schema)


def _stream_scan(name: str, definition: Definition, plan: Plan) -> StreamScan | None:
    found = plan(definition.stored_schema, definition.hidden)
    return None if found is None else StreamScan(str(name), definition, found)


def plain_scan(found: Reading, *, shared: bool = False) -> PlainScan | None:
    """The rows, if the query is a plain scan of one table; else None.

    `shared`: they may be those that another reader holds; then nothing is counted.
    """
    if found.query.previous or any(leaf.calls for leaf in found.leaves.values()):
        return None
    tree = _plain_tree(found)
    table = plain_source(tree)
    if table is None or not found.query.table_references:  # a function is no table
        return None
    name, context = str(dialect.name_of(table)), found.context
    planned = partial(scan_plan, tree, context.terms())
    system = found.rows_in_memory(found.query.table_references[0])
    if system is not None:
        plan = planned(system.schema, frozenset({EPOCH_NUMBER}), versions=True)
        return None if plan is None else PlainScan(plan, scan_table(plan, system), name)
    snapshot = found.snapshot(name)
    if snapshot is None:
        files = _file_scan(context, name, planned)
        return None if files is None else files.run(context)
    scan = _stream_scan(name, snapshot.definition, planned)
    windows = found.query.windows
    if scan is None or not windows:
        return None if scan is None else scan.of(context, snapshot, shared=shared)
    stored, plan = snapshot.definition.stored_schema.names, scan.plan
    looked = set() if plan.predicate is None else columns_of(plan.predicate)
    columns = [n for n in stored if n in plan.needed | looked]
    rows = windowed(found, snapshot, windows[0], columns)
    return PlainScan(plan, scan_table(plan, rows), name)


def _plain_tree(found: Reading) -> exp.Expr | None:
    """The query without our clauses, VALID and CURRENT_INSTANT put in."""
    query = found.query
    if not found.edits and not query.valid:
        return query.tree
    edited = query.edited()
    time_edits(found, edited)
    tree = dialect.parse_tree(edited.text)
    return None if isinstance(tree, SqlSyntaxError) else tree


@contextlib.contextmanager
def work_for(found: Reading) -> Iterator[Work]:
    """The query as work for Spark: its own text, with tables under names that Spark holds."""
    context, query = found.context, found.query
    check_tables(context, query, found.text)
    if query.has_as_of:
        rows = answered(found).rows()
        yield Work(f"SELECT * FROM {AS_OF}", {AS_OF: found.stage(rows)})
        return
    edited = EditedText(query.text)
    time_edits(found, edited)
    star_edits(found, edited)
    streams = relation_edits(found, edited)
    functions, inside = function_edits(found)
    with context.relations(query.identifiers | names_in_functions(found)) as relations:
        yield Work(
            edited.text,
            {**relations, **streams, **inside},
            original=found.text,
            original_position=lambda p: query.offset + edited.original_position(p),
            bodies=functions,
        )


@contextlib.contextmanager
def work_with_functions(context: Context, text: Assembly) -> Iterator[Work]:
    """A text of ours over standard tables, with what its functions read."""
    whole = expanded(context, make_query(text.text), views="none")
    if whole.query.has_as_of:
        raise refuse_as_of("it stands in a statement that changes rows")
    with reading_bodies(context, bodies_called(context, whole.query.text)) as found:
        functions, inside = function_edits(found)
        named = identifiers(text.original) | names_in_functions(found)
        with context.relations(named) as relations:
            yield Work(
                whole.query.text,
                {**relations, **inside},
                original=text.original,
                original_position=lambda p: text.original_position(whole.original_position(p)),
                bodies=functions,
            )


@contextlib.contextmanager
def work_to_check(context: Context, function: SqlFunction) -> Iterator[tuple[SqlFunction, Work]]:
    """A function that is not known yet, as Spark would call it, and what its body needs."""
    own = body_of(function)
    if own.query.has_as_of:
        raise refuse_as_of("it stands in a function")
    names = context.functions_called(own.query.text) - {function.name}
    bodies = bodies_among(context, names)
    bodies += [own] if is_read(context, own.query) else []
    with reading_bodies(context, bodies) as found:
        functions, inside = function_edits(found)
        named = own.query.identifiers | names_in_functions(found)
        with context.relations(named) as relations:
            read = functions.pop(function.name, function)
            work = Work("SELECT 1", {**relations, **inside}, functions=named, bodies=functions)
            yield read, work


@contextlib.contextmanager
def work_of(context: Context, query: Query, text: str) -> Iterator[Work]:
    """A query inside another statement as work for Spark."""
    with reading(context, query, text) as found, work_for(found) as work:
        yield work


def check_tables(context: Context, query: Query, text: str) -> None:
    """BindError for a table that does not exist, before Spark is asked (or even there)."""
    if query.tree is None:  # any of its names may be that of a table
        for identifier in query.identifiers:
            context.check_sound(context.find(identifier))
        return
    for reference in query.table_references:
        name = reference.name
        if "." in name:
            if name.key.startswith("headwater.") and system_tables.find(context, name.key) is None:
                names = [f"headwater.{n}" for n in system_tables.NAMES]
                raise unknown_table(_shifted(reference.name, query), names, text)
        elif (item := context.find(name)) is None:
            raise unknown_table(_shifted(reference.name, query), context.relation_names(), text)
        else:
            context.check_sound(item)


def _shifted(name: Name, query: Query) -> Name:
    return Name(str(name), name.span.shifted(query.offset))
