"""CREATE, DROP and ALTER VIEW, and their start at open: plain views, and continuous ones (CV1, CV3, CV6)."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.engine.view import ContinuousView, Start
from headwater.engine.view_versions import Versions
from headwater.engine.world import HeldTables
from headwater.errors import BindError, Error, SettingError
from headwater.execute.catalog_tables import CatalogTables
from headwater.execute.context import Context, Running, unknown_table
from headwater.execute.continuous import refuse_twice, release_streams
from headwater.execute.continuous_plan import MadeView
from headwater.execute.dependents import check_unread
from headwater.execute.query import check_tables, work_of
from headwater.execute.view_check import over_stored, verify
from headwater.execute.view_text import with_views
from headwater.kernel.relation import Relation
from headwater.plan.continuous.planner import ViewTimes
from headwater.plan.continuous.view_rules import broken_rule
from headwater.result import Result
from headwater.sql.names import nearest
from headwater.sql.statements.alter import AlterViewRefreshStatic
from headwater.sql.statements.create_view import CreateView
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.query import Query, make_query
from headwater.sql.statements.verify import VerifyView
from headwater.storage.catalog import CatalogObject
from headwater.storage.folder import sync_file, sync_folder

OPTIONS = ("maintenance", "volatile")
STRATEGIES = ("split", "eager", "deferred", "incremental")


def create_view(running: Running, statement: CreateView) -> Result:
    """CREATE [OR REPLACE] VIEW: continuous if a stream or streaming table is in it."""
    context = running.context
    with context.ddl:
        old = context.find(statement.name)
        if old is not None and statement.if_not_exists:
            return Result("CREATE VIEW")
        if old is None or old.kind != "view" or not statement.or_replace:
            context.catalog.check_free("view", statement.name)
            old = None
        options = _options(statement)
        query = with_views(context, statement.query, None if old is None else old.key)
        _check(context, query, statement)
        if _is_continuous(context, query):
            return _create_continuous(running, statement, query, options, old)
        return _create_plain(running, statement, options, old)


def _options(statement: CreateView) -> dict[str, Any]:
    found: dict[str, Any] = {"maintenance": "split", "volatile": None}
    for name, value in (statement.options or {}).items():
        if name not in OPTIONS:
            near = nearest(name, OPTIONS)
            hint = f"did you mean {near}?" if near else "options: " + ", ".join(OPTIONS)
            raise SettingError(f"there is no option {name} of a view", hint=hint)
        if name == "maintenance" and value not in STRATEGIES:
            raise SettingError("maintenance is 'split', 'eager', 'deferred' or 'incremental'")
        if name == "volatile" and value != "at insert":
            raise SettingError("volatile is 'at insert'")
        found[name] = value
    return found


def _check(context: Context, query: Query, statement: CreateView) -> None:
    """Tables exist, and nothing of continuous queries stands in the text."""
    check_tables(context, query, statement.text if query is statement.query else query.text)
    if query.sample is not None or query.emit is not None or query.cuts:
        raise BindError(
            "a view has no SAMPLE, EMIT or CUT",
            sqlstate="42P20",
            hint="CREATE MATERIALIZED VIEW keeps the results of a continuous query",
        )


def _is_continuous(context: Context, query: Query) -> bool:
    """Whether a stream or streaming table is read whole; through a window it is read at each read."""
    return (
        any(
            context.stream(str(r.name)) is not None and r.window is None
            for r in query.table_references
        )
        and not query.windows
    )


# Plain views


def _create_plain(
    running: Running, statement: CreateView, options: dict[str, Any], old: CatalogObject | None
) -> Result:
    context = running.context
    if statement.from_now or options["maintenance"] != "split" or options["volatile"]:
        raise BindError(
            "FROM NOW and options belong to continuous views",
            sqlstate="42P20",
            hint="no stream or streaming table is read whole here",
        )
    with work_of(context, statement.query, statement.text) as work:
        columns = context.kernel.analyse(work)
    names = None if statement.columns is None else [str(name) for name in statement.columns]
    if names is not None and len(names) != len(columns):
        raise BindError(
            f"the view names {len(names)} columns, its query has {len(columns)}", sqlstate="42601"
        )
    refuse_twice(pa.schema([pa.field(n, pa.null()) for n in names or [c for c, _ in columns]]))
    reads = {r.name.key for r in statement.query.table_references}
    found = [context.find(name) for name in sorted(reads)]
    definition = {
        "continuous": False,
        "text": statement.query.text,
        "columns": names,
        "reads": [item.id for item in found if item is not None],
        "tables": sorted(reads),
    }
    _put(context, statement, definition, old)
    return Result("CREATE VIEW")


def _put(
    context: Context, statement: CreateView, definition: dict[str, Any], old: CatalogObject | None
) -> CatalogObject:
    """The view into the catalog; an old one of its name goes."""
    if old is None:
        return context.catalog.add("view", statement.name, definition)
    item = context.catalog.change(old, definition)
    if old.definition["continuous"] and not definition["continuous"]:
        context.engine.remove(old.name)
        _clean_up(context, old)
    return item


# Continuous views


def _create_continuous(
    running: Running,
    statement: CreateView,
    query: Query,
    options: dict[str, Any],
    old: CatalogObject | None,
) -> Result:
    context = running.context
    if any(_is_view(context, str(r.name)) for r in query.table_references):
        raise BindError(
            "a view over a stream cannot read a continuous view or query beside it",
            sqlstate="42P20",
            hint="make a view of the stream's part, and a third one that joins both",
        )
    times: ViewTimes = "at insert" if options["volatile"] else "refused"
    names = None if statement.columns is None else [str(name) for name in statement.columns]
    text = statement.text if query is statement.query else query.text
    made = MadeView(context, query, text, times, names)
    refuse_twice(made.output.schema)
    notice = _check_kept(context, query, made, options)
    definition = {
        "continuous": True,
        "text": query.text,
        "columns": names,
        **options,
        "reads": sorted({table.definition.id for table in made.tables}),
        "tables": sorted(made.plan.identifiers),
        "starts": [_start_of(table, statement.from_now) for table in made.tables],
        "types": made.analyser.known,
        "incarnation": uuid.uuid4().hex[:12],
    }
    _pin_static(context, definition["incarnation"], made)
    for table in made.tables:
        table.kept = True
    item = old or replace(_nobody(statement), definition=definition)
    view = _view(context, replace(item, definition=definition), made)
    if old is not None:
        view.catch_up()  # it takes the place of the old one when it is ready
    item = _put(context, statement, definition, old)
    view.number, view.name = item.id, item.name
    view.snapshot = context.snapshot_of(item)
    view.forget_snapshot()
    context.engine.add(view)
    if old is not None and old.definition["continuous"]:
        shutil.rmtree(_static_folder(context, old.definition["incarnation"]), ignore_errors=True)
        release_streams(context, old.definition["reads"])
    return Result("CREATE VIEW", notice=notice)


def _nobody(statement: CreateView) -> CatalogObject:
    return CatalogObject(0, "view", str(statement.name), {}, "")


def _is_view(context: Context, name: str) -> bool:
    item = context.find(name)
    return item is not None and item.kind in ("view", "continuous query")


def _check_kept(
    context: Context, query: Query, made: MadeView, options: dict[str, Any]
) -> str | None:
    """How the view will be kept: an error if it cannot be, a notice if only by re-evaluation."""
    deferred = options["maintenance"] == "deferred"
    if made.specs and not deferred:
        return None
    whole = all(
        t.definition.kind != "stream" and t.definition.range_ticks is None for t in made.tables
    )
    reason = made.plan.reason or "maintenance = 'deferred' evaluates it at each read"
    rule = broken_rule(query, CatalogTables(context), reason)
    if whole:
        return f"the view is evaluated again when its input has changed: {reason}"
    raise BindError(
        f"the view cannot be kept: {reason}",
        sqlstate="42P17",
        detail=rule,
        hint="a streaming table with RANGE FOREVER keeps what such a view needs",
    )


def _start_of(table: Any, from_now: bool) -> list[int | None]:
    """Where a view begins: at the first stored row, or after the last one."""
    state = table.state
    if from_now or table.definition.kind == "stream":
        return [state.next_sequence, None]
    with table.reading() as snapshot:
        return [0, snapshot.oldest_visible]


def _static_folder(context: Context, incarnation: str) -> Path:
    return context.folder.path / "views" / incarnation


def _pin_static(context: Context, incarnation: str, made: MadeView) -> None:
    """Tables below the folds are read once: their rows as of now, in the view's own files."""
    if not made.plan.stream_tables:
        return
    folder = _static_folder(context, incarnation)
    folder.mkdir(parents=True)
    with context.held(made.plan.stream_tables) as held:
        for name, relation in held.relations.items():
            if name in made.plan.stream_tables:
                path = folder / f"{name}.parquet"
                pq.write_table(context.table_rows(relation), path)
                sync_file(path)
    sync_folder(folder)
    sync_folder(folder.parent)


def _static(context: Context, incarnation: str) -> HeldTables:
    folder = _static_folder(context, incarnation)
    relations = {
        path.stem: Relation(pq.read_schema(path), (str(path),))
        for path in sorted(folder.glob("*.parquet"))
    }
    return HeldTables(relations, {})


def _view(context: Context, item: CatalogObject, made: MadeView) -> ContinuousView:
    """The view of a catalog object, attached to its tables."""
    saved = item.definition
    static = _static(context, saved["incarnation"])
    starts = [Start(*start) for start in saved["starts"]]
    view = ContinuousView(
        number=item.id,
        name=item.name,
        statement=saved["incarnation"],
        plan=made.plan,
        specs=made.specs,
        evaluation=made.evaluation,
        tables=made.tables,
        world=context,
        static=static,
        starts=starts,
        versions=Versions(lambda: context.settings.integer("view_versions")),
        over_stored=lambda: over_stored(context, made, static, starts),
        maintenance=saved["maintenance"],
        snapshot=context.snapshot_of(item) if item.id else None,
    )
    view.attach()
    return view


def open_views(context: Context) -> None:
    """Goes on with every continuous view; one that cannot start is kept, with its error."""
    for item in context.catalog.all("view"):
        if not item.definition["continuous"]:
            continue
        try:
            _open(context, item)
        except Error as error:
            context.dormant[item.key] = error


def _open(context: Context, item: CatalogObject) -> None:
    saved = item.definition
    query = make_query(saved["text"])
    times: ViewTimes = "at insert" if saved["volatile"] else "refused"
    made = MadeView(context, query, query.text, times, saved["columns"], saved["types"])
    for table in made.tables:
        table.kept = True
    context.engine.add(_view(context, item, made))
    context.dormant.pop(item.key, None)


def wake_views(context: Context) -> None:
    """Tries views again that could not start, after a function was made."""
    for item in context.catalog.all("view"):
        if item.key in context.dormant:
            try:
                _open(context, item)
            except Error as error:
                context.dormant[item.key] = error


def find_view(running: Running, name: Any) -> tuple[CatalogObject, ContinuousView]:
    """The continuous view of that name."""
    context = running.context
    item = context.find(name)
    if item is None:
        raise unknown_table(name, context.relation_names(), running.text)
    if item.kind != "view" or not item.definition["continuous"]:
        raise BindError(f"{item.name} is no continuous view", sqlstate="42809")
    view = context.engine.find_view(item.name)
    if view is None:
        raise context.dormant[item.key]
    return item, view


def drop_view(running: Running, statement: Drop) -> Result:
    """DROP VIEW."""
    context = running.context
    with context.ddl:
        item = context.find(statement.name)
        if item is None and statement.if_exists:
            return Result("DROP VIEW")
        if item is None or item.kind != "view":
            raise BindError(f"there is no view {statement.name}", sqlstate="42P01")
        check_unread(context, item)
        context.engine.remove(item.name)
        context.catalog.remove(item)
        context.dormant.pop(item.key, None)
        _clean_up(context, item)
    return Result("DROP VIEW")


def _clean_up(context: Context, item: CatalogObject) -> None:
    """What a view kept beside the catalog."""
    if not item.definition["continuous"]:
        return
    context.snapshot_of(item).remove()
    shutil.rmtree(_static_folder(context, item.definition["incarnation"]), ignore_errors=True)
    release_streams(context, item.definition["reads"])


def refresh_static(running: Running, statement: AlterViewRefreshStatic) -> Result:
    """ALTER VIEW v REFRESH STATIC: tables below the folds as of now, for all rows (CV6)."""
    context = running.context
    with context.ddl:
        item, view = find_view(running, statement.name)
        if any(t.definition.kind == "stream" or t.definition.range_ticks for t in view.tables):
            raise BindError(
                f"view {item.name} cannot be made again: its rows are not all stored",
                sqlstate="55000",
                hint="a streaming table with RANGE FOREVER keeps them",
            )
        saved = {**item.definition, "incarnation": uuid.uuid4().hex[:12]}
        query = make_query(saved["text"])
        times: ViewTimes = "at insert" if saved["volatile"] else "refused"
        made = MadeView(context, query, query.text, times, saved["columns"], saved["types"])
        _pin_static(context, saved["incarnation"], made)
        fresh = _view(context, replace(item, definition=saved, id=0), made)
        fresh.catch_up()
        context.catalog.change(item, saved)
        fresh.number, fresh.snapshot = item.id, context.snapshot_of(item)
        fresh.forget_snapshot()
        context.engine.add(fresh)
        shutil.rmtree(_static_folder(context, item.definition["incarnation"]), ignore_errors=True)
    return Result("ALTER VIEW")


def verify_view(running: Running, statement: VerifyView) -> Result:
    """VERIFY VIEW v: its rows against its query over the stored rows; the differences, if any."""
    item, view = find_view(running, statement.name)
    saved = item.definition
    query = make_query(saved["text"])
    times: ViewTimes = "at insert" if saved["volatile"] else "refused"
    made = MadeView(running.context, query, query.text, times, saved["columns"], saved["types"])
    found = verify(running.context, view, made)
    rows = [{"difference": sign, "row": row} for sign, row in found]
    schema = pa.schema([pa.field("difference", pa.string()), pa.field("row", pa.string())])
    state = "equal to its query" if not found else "not equal to its query"
    notice = f"view {item.name} is {state}"
    return Result("VERIFY VIEW", pa.Table.from_pylist(rows, schema), notice=notice)
