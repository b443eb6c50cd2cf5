"""What a query reads: every table in it at one instant, as relations for Spark or rows at hand.

A streaming table under a window becomes staged rows; without one it becomes its pruned blocks plus
the staged tail, with RANGE applied. Windows and VALID are edited out of the text; the rest is the
user's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from headwater.engine.evaluation import instant_text
from headwater.engine.merges import by_key, with_previous
from headwater.engine.stateful import make_call, scanned
from headwater.errors import BindError, DataError
from headwater.execute import system_tables
from headwater.execute.catalog_tables import CatalogTables, stream_columns
from headwater.execute.context import Context
from headwater.execute.expansion import expanded, expanding
from headwater.execute.function_bodies import Body, bodies_called
from headwater.execute.query_results import last_result
from headwater.execute.registered import registered
from headwater.expression.predicate import Range, Ranges, common
from headwater.kernel.functions import SqlFunction
from headwater.kernel.relation import Relation
from headwater.kernel.stored_files import StoredFiles, from_tick
from headwater.plan.bounds import time_ranges
from headwater.plan.checks import Checker, check_times
from headwater.plan.folds import Leaf
from headwater.plan.pieces import Piece, Stand, column
from headwater.plan.planner import one_time_edits, one_time_stars, valid_piece
from headwater.sql.dialect import relation_of
from headwater.sql.extensions import NamedRelation, Valid, WindowClause
from headwater.sql.extensions import VersionClause as ViewVersion
from headwater.sql.statements.query import Query, make_query
from headwater.sql.text import EditedText
from headwater.sql.types import quoted
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.definition import EPOCH_NUMBER, SEQUENCE, Definition
from headwater.storage.streaming.read import StreamSnapshot, in_order
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.streaming.windows import window_rows

NOTHING = make_query("SELECT 1")  # reads no table


@dataclass
class Reading:
    """A query with its tables held at one instant."""

    context: Context
    query: Query
    text: str  # of the whole statement, for the places of errors
    snapshots: dict[str, StreamSnapshot]
    instant: int | None  # τ of the windows
    edits: list[Stand] = field(default_factory=list)  # for PREV, CURRENT_INSTANT and state
    leaves: dict[int, Leaf] = field(default_factory=dict)  # windowed tables, by where they stand
    staged: list[Relation] = field(default_factory=list)
    views: dict[tuple[str, int | None], pa.Table] = field(default_factory=dict)  # one version each
    zone: str | None = None  # of a view or query that keeps its own
    bodies: list[tuple[Body, Reading]] = field(default_factory=list)  # of functions that it calls

    @property
    def time_zone(self) -> str:
        """How text becomes a timestamp and back."""
        return self.zone or self.context.time_zone

    def rows_in_memory(self, reference: NamedRelation) -> pa.Table | None:
        """The rows of a system table, of a view, or of a query's last result; None for others."""
        context, name = self.context, str(reference.name)
        item = context.find(name)
        is_view = item is not None and item.kind == "view"
        if reference.version is not None and not is_view:
            raise BindError(
                f"{name} is no continuous view, so it has no versions",
                sqlstate="42809",
                place=reference.version.span.shifted(self.query.offset).place(self.text),
            )
        if not is_view:
            return rows_in_memory(context, name, self.query.identifiers)
        assert item is not None
        wanted = 0 if reference.version is None else reference.version.number
        if (item.key, wanted) not in self.views:
            self.views[item.key, wanted] = view_rows(context, item, reference.version)
        return self.views[item.key, wanted]

    def snapshot(self, name: str) -> StreamSnapshot | None:
        """The streaming table of that name, as of now."""
        return self.snapshots.get(name.lower())

    def release(self) -> None:
        """Lets go of what was staged."""
        for relation in self.staged:
            self.context.kernel.staging.release(relation)

    def stage(self, rows: pa.Table) -> Relation:
        """Rows as a relation that goes when the reading ends."""
        relation = self.context.kernel.staging.stage(rows)
        self.staged.append(relation)
        return relation


@contextlib.contextmanager
def reading(context: Context, query: Query, text: str) -> Iterator[Reading]:
    """Holds every streaming table of a query at one instant; plain views are read as their text."""
    with expanding(context, query, text) as (whole, whole_text):
        bodies = bodies_called(context, whole.text)
        with _reading(context, whole, whole_text, bodies) as found:
            yield found


@contextlib.contextmanager
def reading_bodies(context: Context, bodies: Sequence[Body]) -> Iterator[Reading]:
    """Holds what functions read, of a query that reads nothing else."""
    with _reading(context, NOTHING, NOTHING.text, bodies) as found:
        yield found


@contextlib.contextmanager
def _reading(
    context: Context, query: Query, text: str, bodies: Sequence[Body]
) -> Iterator[Reading]:
    with contextlib.ExitStack() as stack:
        snapshots: dict[str, StreamSnapshot] = {}
        found = Reading(context, query, text, snapshots, None)
        for body in bodies:
            whole = expanded(context, body.query).query
            inner = Reading(context, whole, whole.text, snapshots, None)
            inner.staged, inner.views = found.staged, found.views
            found.bodies.append((body, inner))
        every = [found, *(inner for _, inner in found.bodies)]
        tables: dict[str, StreamingTable] = {}
        for one in every:
            check_clauses(one.query, one.text)
            tables |= _streams(context, one.query, one.text)
        with context.streams.visibility:
            for name, table in tables.items():
                snapshots[name] = stack.enter_context(table.reading())
        instant = _instant(every)
        for one in every:
            one.instant = instant
            _edit_functions(one)
        stack.callback(found.release)
        yield found


def _edit_functions(found: Reading) -> None:
    """What stands for PREV, CURRENT_INSTANT and calls with state."""
    query, context = found.query, found.context
    if query.previous or query.instants or context.has_state_functions:
        found.edits, leaves = one_time_edits(query, CatalogTables(context), found.text)
        found.leaves = {leaf.name.span.start: leaf for leaf in leaves}


def check_clauses(query: Query, text: str) -> None:
    """Refuses what belongs to continuous queries."""
    if query.sample or query.emit:
        clause = query.sample or query.emit
        assert clause is not None
        raise BindError(
            "a select with SAMPLE or EMIT is a continuous query",
            sqlstate="42P20",
            hint="CREATE CONTINUOUS QUERY q AS …, or subscribe to it",
            place=clause.span.shifted(query.offset).place(text),
        )
    if query.update_mode or query.cuts or query.pair_newest:
        raise BindError(
            "a select with CUT, PAIR NEWEST or WITH UPDATES is a continuous query",
            sqlstate="42P20",
            hint="CREATE CONTINUOUS QUERY q AS …, or subscribe to it",
        )
    for window in query.windows:
        if window.kind == "landmark":
            place = window.span.shifted(query.offset).place(text)
            raise BindError(
                "a landmark window belongs to a continuous query",
                sqlstate="42P16",
                hint="leave the window out to read all rows",
                place=place,
            )


def _streams(context: Context, query: Query, text: str) -> dict[str, StreamingTable]:
    """The streaming tables of a query; a stream keeps no rows to read."""
    found: dict[str, StreamingTable] = {}
    for reference in query.table_references:
        table = context.stream(reference.name)
        if table is None:
            if reference.window is not None and context.find(reference.name) is not None:
                raise BindError(
                    f"table {reference.name} has no time, so it takes no window",
                    sqlstate="42P16",
                    hint="windows stand on streaming tables",
                    place=reference.window.span.shifted(query.offset).place(text),
                )
            continue
        if table.definition.kind == "stream":
            raise BindError(
                f"stream {reference.name} keeps no rows to read",
                sqlstate="55000",
                hint="CREATE STREAMING TABLE keeps them; a continuous query or view reads a stream",
                place=reference.name.span.shifted(query.offset).place(text),
            )
        found[reference.name.key] = table
    return found


def _instant(every: Sequence[Reading]) -> int | None:
    """τ: the smallest clock of the windowed tables; their times must be of one kind."""
    windowed = [
        (found, r, found.snapshots[r.name.key])
        for found in every
        for r in found.query.table_references
        if r.window is not None and r.name.key in found.snapshots
    ]
    columns = [stream_columns(snapshot.definition) for _, _, snapshot in windowed]
    check_times(columns)
    for (found, reference, _), one in zip(windowed, columns, strict=True):
        Checker(CatalogTables(found.context), found.query, found.text).check_window(reference, one)
    clocks = [snapshot.clock for _, _, snapshot in windowed]
    return None if not clocks or None in clocks else min(c for c in clocks if c is not None)


def time_edits(found: Reading, edited: EditedText) -> None:
    """Puts plain SQL in the place of VALID … OVERLAPS PERIOD, PREV and CURRENT_INSTANT."""
    for stand in found.edits:
        instant = _instant_text(found) if stand.text.reads_instant else None
        edited.replace(stand.span.start, stand.span.end, stand.text.fill(instant))
    for valid in found.query.valid:
        piece = valid_piece(found.query, _time_of(found, valid), valid)
        edited.replace(valid.span.start, valid.span.end, str(piece))


def _instant_text(found: Reading) -> str:
    """τ as SQL: that of the windows, else the smallest clock of the streaming tables."""
    clocks = [s.clock for s in found.snapshots.values() if s.clock is not None]
    instant = found.instant if found.instant is not None else min(clocks, default=None)
    if instant is None:
        raise BindError(
            "CURRENT_INSTANT() has no value yet",
            sqlstate="55000",
            hint="it is the clock of the query's streaming tables; none of them has rows",
        )
    definition = next(iter(found.snapshots.values())).definition
    return instant_text(definition.time_type, instant)


def _time_of(found: Reading, valid: Valid) -> Piece:
    for reference in found.query.table_references:
        alias = reference.alias or reference.name
        snapshot = found.snapshots.get(reference.name.key)
        if alias.key == valid.alias.key and snapshot is not None:
            return column(snapshot.definition.time, str(alias))
    raise BindError(
        f"VALID({valid.alias}): {valid.alias} is no streaming table of this query",
        sqlstate="42P01",
        place=valid.span.shifted(found.query.offset).place(found.text),
    )


def star_edits(found: Reading, edited: EditedText) -> None:
    """Keeps hidden columns that the query names out of `*`."""
    hidden = {name for snapshot in found.snapshots.values() for name in snapshot.definition.hidden}
    if not hidden & found.query.identifiers and not any(x.added for x in found.leaves.values()):
        return
    leaves = list(found.leaves.values())
    for stand in one_time_stars(found.query, CatalogTables(found.context), leaves):
        edited.replace(stand.span.start, stand.span.end, str(stand.text))


def relation_edits(
    found: Reading, edited: EditedText, function: str | None = None
) -> dict[str, Relation]:
    """Gives every streaming and system table of the text a name that Spark holds; its relations.

    `function`: the one whose body the text is; its names are its own.
    """
    relations: dict[str, Relation] = {}
    trees = tree_tables(found.query)
    for number, reference in enumerate(found.query.table_references):
        relation = relation_read(found, reference, trees.get(reference.name.span.start))
        if relation is None:
            continue
        view = stream_view_name(number, reference, function)
        relations[view] = relation
        alias = "" if reference.alias else f" AS {quoted(reference.name.rpartition('.')[2])}"
        span = reference.name.span
        edited.replace(span.start, span.end, quoted(view) + alias)
        for clause in (reference.window, reference.version):
            if clause is not None:
                edited.remove(clause.span)
    return relations


def stream_view_name(number: int, reference: NamedRelation, function: str | None = None) -> str:
    """The name under which Spark holds the rows of a reference."""
    own = "" if function is None else f"{function}_"
    return f"headwater_{own}{number}_{reference.name.key.rpartition('.')[2]}"


def function_edits(found: Reading) -> tuple[dict[str, SqlFunction], dict[str, Relation]]:
    """The functions as Spark calls them, and the relations that they read."""
    functions: dict[str, SqlFunction] = {}
    relations: dict[str, Relation] = {}
    for body, inner in found.bodies:
        edited = EditedText(inner.query.text)
        time_edits(inner, edited)
        star_edits(inner, edited)
        relations |= relation_edits(inner, edited, body.function.name)
        functions[body.function.name] = body.called_as(edited.text)
    return functions, relations


def names_in_functions(found: Reading) -> frozenset[str]:
    """The names in the bodies of functions that are read, which may mean standard tables."""
    return frozenset().union(*(inner.query.identifiers for _, inner in found.bodies))


def view_rows(context: Context, item: CatalogObject, version: ViewVersion | None) -> pa.Table:
    """The rows of a continuous view: as of now, or a version that was made before."""
    view = context.engine.find_view(item.name)
    if view is None:
        raise context.dormant[item.key]
    if version is None:
        return view.read().rows
    kept = view.versions.last if version.number is None else view.versions.find(version.number)
    if kept is not None:
        return kept.rows
    if version.number is None:
        return view.read().rows  # none was made yet
    raise DataError(
        f"view {item.name} has no version {version.number}",
        sqlstate="22023",
        hint="headwater.views lists the versions that are kept",
    )


def tree_tables(query: Query) -> dict[int, exp.Table]:
    """The nodes of the query's tables, by where their names stand."""
    tables = query.tree.find_all(exp.Table) if query.tree is not None else ()
    named = [(relation_of(table), table) for table in tables]
    return {relation.span.start: table for relation, table in named if relation is not None}


def relation_read(
    found: Reading, reference: NamedRelation, node: exp.Table | None
) -> Relation | None:
    """What Spark reads for a name; None for a standard table."""
    rows = found.rows_in_memory(reference)
    if rows is not None:
        return found.stage(rows)
    snapshot = found.snapshots.get(reference.name.key)
    if snapshot is None:
        return None
    columns = visible_columns(snapshot.definition, found.query)
    if reference.window is not None:
        leaf = found.leaves.get(reference.name.span.start)
        if leaf is not None and leaf.added:
            return found.stage(_with_added(found, snapshot, leaf, columns))
        return found.stage(windowed(found, snapshot, reference.window, columns))
    return _stored(found, snapshot, columns, ranges_read(found, snapshot, node))


def rows_in_memory(context: Context, name: str, named: frozenset[str]) -> pa.Table | None:
    """The rows of a system table, or the last result of a continuous query; None for other names.

    `named`: what the query says, for columns that only show when they are named.
    """
    rows = system_tables.find(context, name)
    return rows if rows is not None else last_result(context, name, EPOCH_NUMBER in named)


def visible_columns(definition: Definition, query: Query) -> list[str]:
    """The user's columns, and the hidden ones that the query names."""
    named = [n for n in definition.stored_schema.names if n in definition.hidden]
    return [*definition.visible, *[n for n in named if n in query.identifiers]]


def ranges_read(found: Reading, snapshot: StreamSnapshot, node: exp.Table | None) -> Ranges:
    """The time that the query asks for, within RANGE."""
    definition = snapshot.definition
    visible = (Range(snapshot.oldest_visible),)
    if node is None:
        return visible
    time = (definition.time, definition.time_type)
    terms = found.context.terms(found.time_zone)
    return common(visible, time_ranges(node, time, definition.tick, terms))


def windowed(
    found: Reading, snapshot: StreamSnapshot, window: WindowClause, columns: list[str]
) -> pa.Table:
    """The rows of a window at the query's instant, in descending order, these columns only."""
    return window_rows(snapshot, window, found.instant, columns).select(columns)


def _with_added(
    found: Reading, snapshot: StreamSnapshot, leaf: Leaf, columns: list[str]
) -> pa.Table:
    """The rows of a window with the columns of PREV and of calls with state, the newest first.

    A one-time query scans its window once: state of any life span is fresh for it.
    """
    keys = [n for n in snapshot.definition.stored_schema.names if n.casefold() in leaf.key_names]
    needed = [*columns, *keys, *(column for column, _ in leaf.previous)]
    rows = window_rows(snapshot, leaf.window, found.instant, list(dict.fromkeys(needed)))
    oldest_first = rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64()))
    made = with_previous(by_key(oldest_first, keys), keys, leaf.previous)
    definition, context = snapshot.definition, found.context
    terms = context.terms()
    calls = [make_call(call, leaf, registered(context, call), terms) for call in leaf.calls]
    ticks = definition.ticks(made.column(definition.time))
    made = scanned(made, calls, ticks, made.column(SEQUENCE).to_numpy(), definition.time)
    shown = [*columns, *(field.name for field in leaf.added)]
    newest = in_order(made, definition, descending=True)
    return newest.select(list(dict.fromkeys(shown)))


def _stored(
    found: Reading, snapshot: StreamSnapshot, columns: list[str], ranges: Ranges
) -> Relation:
    """Pruned blocks and the staged tail, with RANGE applied when Spark reads them."""
    oldest = snapshot.oldest_visible
    where = None if oldest is None else from_tick(snapshot.definition, oldest)
    files = StoredFiles(snapshot, found.stage)
    return files.relation(columns, ranges, where)
