"""CREATE, DROP and ALTER VIEW, and their start at open: plain views, and continuous ones (CV1, CV3, CV6)."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.compile.fold import FoldSpec
from headwater.engine.fold_run import StaticProbes
from headwater.engine.view import STRATEGIES, ContinuousView, ViewCut, member_name
from headwater.engine.view_circuit import ViewCircuit
from headwater.engine.view_pipeline import PipelinePlace, Start, ViewPipeline
from headwater.engine.view_versions import Versions
from headwater.errors import BindError, Error, SettingError, StorageError
from headwater.execute.context import Context, Running, unknown_view
from headwater.execute.continuous import refuse_twice, release_streams
from headwater.execute.continuous_plan import MadeView
from headwater.execute.dependents import check_unread
from headwater.execute.expansion import Functions, expanding
from headwater.execute.query import check_tables, work_of
from headwater.execute.view_check import over_stored, verify
from headwater.execute.view_static import forget_static, held_static, pin_static
from headwater.execute.zones import stored_zone
from headwater.kernel.relation import HeldTables
from headwater.plan.blocks import unknown_table
from headwater.plan.planner import ViewTimes
from headwater.plan.view_rules import TIME
from headwater.result import Result
from headwater.sql.names import nearest
from headwater.sql.statements.alter import AlterViewRefreshStatic
from headwater.sql.statements.create_view import CreateView
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.query import Query, make_query
from headwater.sql.statements.verify import VerifyView
from headwater.sql.text import Name
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.fresh import ends_of
from headwater.storage.streaming.table import StreamingTable

OPTIONS = ("maintenance", "volatile")
AT_INSERT = "WITH (volatile = 'at insert'): the time at which a row is folded"


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
        without = None if old is None else old.key
        with _expanding(context, statement, "none", without) as (query, text):
            _check(context, query, text)
            continuous = _is_continuous(context, query)
        if continuous:
            with _expanding(context, statement, "all", without) as whole:
                return _create_continuous(running, statement, whole, options, old)
        return _create_plain(running, statement, options, old)


def _expanding(
    context: Context, statement: CreateView, functions: Functions, without: str | None
) -> contextlib.AbstractContextManager[tuple[Query, str]]:
    """The query expanded; a view that reads streams by functions alone is a plain one, as they are."""
    text = statement.text
    return expanding(context, statement.query, text, functions=functions, without=without)


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


def _check(context: Context, query: Query, text: str) -> None:
    """Tables exist, and nothing of continuous queries stands in the text."""
    check_tables(context, query, text)
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
    reads = context.names_read(statement.query)
    found = [context.find(name) for name in sorted(reads)]
    definition = {
        "continuous": False,
        "text": statement.query.text,
        "columns": names,
        "reads": [item.id for item in found if item is not None],
        "tables": sorted(reads),
    }
    before = None if old is None else context.engine.find_view(old.name)
    item = _put(context, statement.name, definition, old)
    if before is not None:
        context.engine.remove(item.name)
        before.end()
    if old is not None:
        _clean_up(context, old)
    return Result("CREATE VIEW")


def _put(
    context: Context, name: Name, definition: dict[str, Any], old: CatalogObject | None
) -> CatalogObject:
    """The view into the catalog, in the place of an old one of its name."""
    if old is None:
        return context.catalog.add("view", name, definition)
    return context.catalog.change(old, definition)


# Continuous views


def _create_continuous(
    running: Running,
    statement: CreateView,
    expanded: tuple[Query, str],
    options: dict[str, Any],
    old: CatalogObject | None,
) -> Result:
    context, (query, text) = running.context, expanded
    if any(_is_view(context, str(r.name)) for r in query.table_references):
        raise BindError(
            "a view over a stream cannot read a continuous view or query beside it",
            sqlstate="42P20",
            hint="make a view of the stream's part, and a third one that joins both",
        )
    times: ViewTimes = "at insert" if options["volatile"] else "refused"
    names = None if statement.columns is None else [str(name) for name in statement.columns]
    made = MadeView(context, query, text, times, names)
    refuse_twice(made.output.schema)
    notice = check_kept(made, options)
    definition = {
        "continuous": True,
        "text": query.text,
        "columns": names,
        **options,
        "reads": sorted({table.definition.id for table in made.tables}),
        "tables": sorted(context.names_read(statement.query) | context.names_read(query)),
        "types": made.analyser.known,
        "time_zone": made.world.time_zone,
    }
    with contextlib.ExitStack() as stack:
        stack.callback(release_streams, context, definition["reads"])  # if it does not come about
        stack.callback(forget_static, context)
        for table in made.tables:
            stack.enter_context(table.holding())
            table.kept = True
        definition["starts"] = _starts(made.tables, statement.from_now)
        definition["static"] = pin_static(context, made)
        _swap_in(context, statement.name, definition, made, old)
    return Result("CREATE VIEW", notice=notice)


def _swap_in(
    context: Context,
    name: Name,
    definition: dict[str, Any],
    made: MadeView,
    old: CatalogObject | None,
) -> None:
    """A new view, ready before the old one of its name goes."""
    known = context.engine.find_view(str(name))
    with context.engine.staying([] if known is None else [known]):
        definition["incarnation"] = uuid.uuid4().hex[:12]
        view = _new_view(context, str(name), definition, made)
        definition["pipelines"] = [pipeline.number for pipeline in view.pipelines]
        try:
            if old is not None:
                view.catch_up()
            item = _put(context, name, definition, old)
        except BaseException:
            view.end()
            raise
        view.number, view.name = item.id, item.name
        before = context.engine.find_view(item.name)
        context.engine.add(view)
        if before is not None:
            before.end()
        if old is not None and old.definition["continuous"]:
            forget_static(context)
            release_streams(context, old.definition["reads"])


def _is_view(context: Context, name: str) -> bool:
    item = context.find(name)
    return item is not None and item.kind in ("view", "continuous query")


def check_kept(made: MadeView, options: dict[str, Any]) -> str | None:
    """How the view will be kept: an error if it cannot be, a notice if only by re-evaluation."""
    deferred = options["maintenance"] == "deferred"
    if made.specs and not deferred:
        return None
    whole = all(leaf.columns.keeps_all for leaf in made.plan.leaves)
    reason = made.plan.reason or "maintenance = 'deferred' evaluates it at each read"
    rule = made.plan.rule
    if whole and (deferred or made.circuit is not None):
        return None
    if whole:
        kept = f"the view is evaluated again when its input has changed: {reason}"
        fold = "; WITH (volatile = 'at insert') folds each row with the time of its insert"
        return kept + fold if rule == TIME else kept
    enough = "a streaming table with RANGE FOREVER keeps what such a view needs"
    raise BindError(
        f"the view cannot be kept: {rule or reason}",
        sqlstate="42P17",
        detail=reason if rule else None,
        hint=AT_INSERT if rule == TIME else enough,
    )


def _starts(tables: Sequence[StreamingTable], from_now: bool) -> list[list[int | None]]:
    """Where a view begins in each table: at the first stored row, or after the last one."""
    ends = ends_of(tables)
    found = []
    for table in tables:
        end, oldest = ends[table.definition.id], None
        now = from_now or table.definition.kind == "stream"
        if not now:
            with table.reading() as snapshot:
                oldest = snapshot.oldest_visible
        found.append([end if now else 0, oldest, end if oldest is not None else 0])
    return found


def _new_view(context: Context, name: str, saved: dict[str, Any], made: MadeView) -> ContinuousView:
    """A view that begins: each of its folds in a pipeline, shared where one fits."""
    static = held_static(context, saved["static"])
    pipelines: list[ViewPipeline] = []
    try:
        for number, spec in enumerate(made.specs):
            place = _place(context, made, spec, saved, static)
            member = member_name(saved["incarnation"], number)
            make = partial(_pipeline, context, made, uuid.uuid4().hex[:12], place)
            pipelines.append(context.pipelines.join(member, spec, place, make))
        return _view(context, name, saved, made, pipelines)
    except BaseException:
        for number, pipeline in enumerate(pipelines):
            context.pipelines.leave(member_name(saved["incarnation"], number), pipeline)
        raise


def _place(
    context: Context,
    made: MadeView,
    spec: FoldSpec,
    saved: Mapping[str, Any],
    static: HeldTables,
) -> PipelinePlace:
    """Where a fold stands. A view that calls functions shares no pipeline: it may start after others."""
    leaf = spec.plan.leaves[0].number
    calls = made.plan.identifiers & context.functions.keys()
    return PipelinePlace(
        made.tables[leaf],
        Start(*saved["starts"][leaf]),
        static,
        STRATEGIES[saved["maintenance"]] >= ViewCut.GROUPS,
        saved["incarnation"] if calls else None,
        made.world.time_zone,
    )


def _pipeline(context: Context, made: MadeView, number: str, place: PipelinePlace) -> ViewPipeline:
    return ViewPipeline(
        number,
        place,
        made.world,
        StaticProbes(made.world),
        context.pipeline_snapshot(number),
        context.pipeline_runs(number),
    )


def _view(
    context: Context,
    name: str,
    saved: Mapping[str, Any],
    made: MadeView,
    pipelines: Sequence[ViewPipeline],
) -> ContinuousView:
    static = held_static(context, saved["static"])
    starts = [Start(*start) for start in saved["starts"]]
    return ContinuousView(
        number=0,
        name=name,
        incarnation=saved["incarnation"],
        plan=made.plan,
        specs=made.specs,
        evaluation=made.evaluation,
        tables=made.tables,
        world=made.world,
        static=static,
        starts=starts,
        versions=Versions(lambda: context.settings.integer("view_versions")),
        over_stored=partial(over_stored, context, made, static, starts),
        registry=context.pipelines,
        pipelines=pipelines,
        circuit=_circuit(context, saved, made, starts),
        maintenance=saved["maintenance"],
    )


def _circuit(
    context: Context, saved: Mapping[str, Any], made: MadeView, starts: Sequence[Start]
) -> ViewCircuit | None:
    """The circuit of a view that no fold holds; as far as its snapshot brings it."""
    if made.circuit is None:
        return None
    number = circuit_number(saved)
    names = [table.definition.name.casefold() for table in made.tables]
    circuit = ViewCircuit(
        number,
        made.circuit,
        dict(zip(names, made.tables, strict=True)),
        dict(zip(names, starts, strict=True)),
        made.world,
        context.pipeline_snapshot(number),
    )
    circuit.take_up()
    return circuit


def circuit_number(saved: Mapping[str, Any]) -> str:
    """What the snapshot of a view's circuit is called."""
    return f"{saved['incarnation']}.circuit"


def _made(context: Context, saved: Mapping[str, Any]) -> MadeView:
    """The plan of a view of the catalog."""
    query = make_query(saved["text"])
    times: ViewTimes = "at insert" if saved["volatile"] else "refused"
    zone = stored_zone(saved)
    return MadeView(context, query, query.text, times, saved["columns"], saved["types"], zone)


# At open


def open_views(context: Context) -> None:
    """Goes on with every continuous view; one that cannot start is kept, with its error."""
    views = [i for i in context.catalog.all("view") if i.definition["continuous"]]
    numbers = {number for item in views for number in item.definition["pipelines"]}
    numbers |= {circuit_number(item.definition) for item in views}
    context.forget_pipelines(numbers)
    open_some(context, views)


def wake_views(context: Context) -> None:
    """Tries views again that could not start, after a function was made."""
    open_some(context, [i for i in context.catalog.all("view") if i.key in context.dormant])


def open_some(context: Context, items: Sequence[CatalogObject]) -> None:
    """Views with their pipelines, each with the folds of all views that share it."""
    found: list[tuple[CatalogObject, MadeView]] = []
    for item in items:
        try:
            found.append((item, _made(context, item.definition)))
        except Error as error:
            context.dormant[item.key] = error
    folds: dict[str, dict[str, FoldSpec]] = {}
    for item, made in found:
        numbers = item.definition["pipelines"]
        for place, (number, spec) in enumerate(zip(numbers, made.specs, strict=False)):
            member = member_name(item.definition["incarnation"], place)
            folds.setdefault(number, {})[member] = spec
    for item, made in found:
        for table in made.tables:
            table.kept = True
        try:
            view = _opened(context, item, made, folds)
        except Exception as error:  # whatever is wrong with one, the others open
            context.dormant[item.key] = _cannot_start(item, error)
            continue
        view.number = item.id
        context.engine.add(view)
        context.dormant.pop(item.key, None)


def _opened(
    context: Context, item: CatalogObject, made: MadeView, folds: dict[str, dict[str, FoldSpec]]
) -> ContinuousView:
    """A view of the catalog at work; one that an older version split otherwise begins anew."""
    saved = item.definition
    if len(saved["pipelines"]) != len(made.specs):
        definition = {**saved, "static": pin_static(context, made)}
        view = _new_view(context, item.name, definition, made)
        definition["pipelines"] = [pipeline.number for pipeline in view.pipelines]
        context.catalog.change(item, definition)
        return view
    pipelines = [
        _taken_up(context, number, folds[number], saved, made, spec)
        for number, spec in zip(saved["pipelines"], made.specs, strict=True)
    ]
    return _view(context, item.name, saved, made, pipelines)


def _cannot_start(item: CatalogObject, error: Exception) -> Error:
    if isinstance(error, Error):
        return error
    return StorageError(
        f"view {item.name} cannot be started",
        detail=f"{type(error).__name__}: {error}",
        hint="DROP VIEW and create it again",
    )


def _taken_up(
    context: Context,
    number: str,
    folds: dict[str, FoldSpec],
    saved: Mapping[str, Any],
    made: MadeView,
    spec: FoldSpec,
) -> ViewPipeline:
    known = context.pipelines.find(number)
    if known is not None:
        for member, own in folds.items():
            if member not in known.members:
                known.join(member, own)
        return known
    place = _place(context, made, spec, saved, held_static(context, saved["static"]))
    pipeline = _pipeline(context, made, number, place)
    pipeline.take_up(folds)
    context.pipelines.add(pipeline)
    return pipeline


def find_view(running: Running, name: Any) -> tuple[CatalogObject, ContinuousView]:
    """The continuous view of that name."""
    context = running.context
    item = context.find(name)
    if item is None:
        raise unknown_table(name, context.relation_names(), running.text)
    if item.kind != "view" or not item.definition["continuous"]:
        plain = item.kind == "view"
        raise BindError(
            f"{item.name} is no continuous view",
            sqlstate="42809",
            hint="it is a plain view: its query is run at each read" if plain else None,
        )
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
            raise unknown_view(context, statement.name, running.text)
        check_unread(context, item)
        view = context.engine.find_view(item.name)
        context.catalog.remove(item)
        context.engine.remove(item.name)
        context.dormant.pop(item.key, None)
        if view is not None:
            view.end()
        _clean_up(context, item)
    return Result("DROP VIEW")


def _clean_up(context: Context, item: CatalogObject) -> None:
    """What a view kept beside the catalog."""
    if item.definition["continuous"]:
        forget_static(context)
        release_streams(context, item.definition["reads"])


def refresh_static(running: Running, statement: AlterViewRefreshStatic) -> Result:
    """ALTER VIEW v REFRESH STATIC: tables below the folds as of now, for all rows (CV6)."""
    context = running.context
    with context.ddl:
        item, view = find_view(running, statement.name)
        if not view.plan.stream_tables:
            notice = (
                f"view {item.name} has no table below a grouping: those it has are as of each read"
            )
            return Result("ALTER VIEW", notice=notice)
        if not all(table.definition.keeps_all for table in view.tables):
            raise BindError(
                f"view {item.name} cannot be made again: its rows are not all stored",
                sqlstate="55000",
                hint="a streaming table with RANGE FOREVER keeps them",
            )
        made = _made(context, item.definition)
        definition = {**item.definition, "static": pin_static(context, made)}
        _swap_in(context, Name(item.name), definition, made, item)
    return Result("ALTER VIEW")


def verify_view(running: Running, statement: VerifyView) -> Result:
    """VERIFY VIEW v: its rows against its query over the stored rows; the differences, if any."""
    item, view = find_view(running, statement.name)
    found = verify(running.context, view, _made(running.context, item.definition))
    rows = [{"difference": sign, "row": row} for sign, row in found]
    schema = pa.schema([pa.field("difference", pa.string()), pa.field("row", pa.string())])
    state = "equal to its query" if not found else "not equal to its query"
    notice = f"view {item.name} is {state}"
    return Result("VERIFY VIEW", pa.Table.from_pylist(rows, schema), notice=notice)
