"""Continuous queries and materialized views: CREATE, DROP, PAUSE, RESUME, KILL, and their start at open."""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.engine import results
from headwater.engine.feed import FeedCursor
from headwater.engine.hosted import Hosted, LoggedQuery
from headwater.engine.query import ContinuousQuery
from headwater.engine.query_parts import Beginning
from headwater.engine.query_sinks import LogSink, UpdateViewSink, ViewSink
from headwater.engine.results import ResultLog
from headwater.engine.sampling import MOST_INSTANTS
from headwater.engine.update_query import UpdateQuery
from headwater.errors import BindError, Error, SettingError
from headwater.execute.catalog_tables import CatalogTables
from headwater.execute.context import Context, Running
from headwater.execute.continuous_plan import Made
from headwater.execute.dependents import (
    OWN_SELECT,
    check_no_functions,
    check_no_sinks,
    check_unread,
)
from headwater.execute.generators import continuous_text, generated_for
from headwater.execute.kept_queries import emit_of, part_at_work, query_at_work, query_not_split
from headwater.execute.parts import cannot_have_parts, check_part_count, part_count
from headwater.execute.registered import check_registered
from headwater.execute.streaming_tables import add_stream, forget_stream
from headwater.execute.tables import fresh_number
from headwater.execute.update_queries import (
    MadeUpdate,
    UpdatePlace,
    result_log,
    update_query,
)
from headwater.execute.zones import stored_zone
from headwater.fold.share import Share
from headwater.plan.checks import Checker
from headwater.plan.update_checks import is_update_query
from headwater.result import Result
from headwater.settings import MEBIBYTE
from headwater.sql.duration import Duration, duration_ticks
from headwater.sql.names import did_you_mean, nearest
from headwater.sql.statements.alter import AlterQueryResetLandmark
from headwater.sql.statements.control import ControlQuery
from headwater.sql.statements.create_continuous_query import CreateContinuousQuery
from headwater.sql.statements.create_materialized_view import CreateMaterializedView
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.query import make_query
from headwater.sql.text import Name
from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.definition import EPOCH_NUMBER, Definition
from headwater.storage.streaming.table import StreamingTable

QUERY_OPTIONS = ("mode", "priority", "max_wait", "budget", "parts")
MODES = ("auto", "fold", "reevaluate")
VIEW_COMPARTMENTS = 8


def _options(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"mode": "auto", "priority": 0, "max_wait": None, "budget": None}
    found["parts"] = None
    for name, value in (given or {}).items():
        if name not in QUERY_OPTIONS:
            near = nearest(name, QUERY_OPTIONS)
            hint = f"did you mean {near}?" if near else "options: " + ", ".join(QUERY_OPTIONS)
            raise SettingError(f"there is no option {name} of a continuous query", hint=hint)
        if name == "mode" and value not in MODES:
            raise SettingError("mode is 'auto', 'fold' or 'reevaluate'")
        if name == "priority" and (not isinstance(value, int) or not -8 <= value <= 8):
            raise SettingError("priority is a whole number from -8 to 8")
        if name in ("max_wait", "budget"):
            if not isinstance(value, Duration):
                raise SettingError(f"{name} is an interval", hint=f"{name} = INTERVAL '1' SECOND")
            value = value.microseconds / 1e6
        if name == "parts":
            check_part_count(value)
        found[name] = value
    return found


def beginning_of(made: Made | MadeUpdate, from_beginning: bool) -> Beginning:
    """Where a query begins: after the rows that are released now, or before all of them."""
    cursors: list[FeedCursor | None] = []
    for table in made.tables:
        state = table.state
        if table.definition.by_arrival and state.next_sequence:
            table.tick()  # its clock is the wall's
            state = table.state
        clock = state.time.clock
        if from_beginning or clock is None or not state.next_sequence:
            cursors.append(None)
        else:
            cursors.append(FeedCursor(clock, state.next_sequence - 1))
    return Beginning(tuple(cursors), tuple(cursors), from_beginning)


def create_continuous_query(running: Running, statement: CreateContinuousQuery) -> Result:
    """CREATE CONTINUOUS QUERY."""
    context = running.context
    with context.ddl:
        if context.find(statement.name) is not None and statement.if_not_exists:
            return Result("CREATE CONTINUOUS QUERY")
        context.catalog.check_free("continuous query", statement.name)
        made: Made | MadeUpdate
        with (
            _making(context) as objects,
            continuous_text(context, statement) as (query, text),
        ):
            if is_update_query(query):
                made, options = MadeUpdate(context, query, text), _options(statement.options)
                name, begins = str(statement.name), statement.from_beginning
                item = _add_update_query(context, name, made, options, begins)
            else:
                options, name = _options(statement.options), str(statement.name)
                Checker(CatalogTables(context), query, text).check()
                made = Made(context, query, text)
                item = _add_query(context, name, made, options, statement.from_beginning)
        _put_to_work(context, item, made, objects)
    return Result("CREATE CONTINUOUS QUERY")


@contextlib.contextmanager
def _making(context: Context) -> Iterator[list[CatalogObject]]:
    """The objects that a statement makes come into the catalog as one at the end, or nothing is left."""
    made: list[CatalogObject] = []
    try:
        with context.catalog.together() as made:
            yield made
    except BaseException:
        for item in made:
            forget_stream(context, item)
            release_streams(context, item.definition.get("reads", ()))
        raise


def _put_to_work(
    context: Context, item: CatalogObject, made: Made | MadeUpdate, objects: list[CatalogObject]
) -> None:
    """A query that was made, then the sources of its own streams; if it cannot, nothing of it is left."""
    try:
        _start(context, item, made)
        for source in objects:
            if source.kind == "source":
                context.sources.start(source)
    except BaseException:
        _remove(context, item, *(each for each in objects if each.kind == "materialized view"))
        raise


def _add_query(
    context: Context,
    name: str,
    made: Made,
    options: dict[str, Any],
    from_beginning: bool,
    view: int | None = None,
) -> CatalogObject:
    refuse_twice(made.output.schema)
    parts, reason = options.pop("parts"), query_not_split(context, made, options["mode"])
    if reason is not None and parts not in (None, 1):
        raise cannot_have_parts("query", parts, reason)
    definition = {
        "options": options,
        "parts": parts if reason is None else 1,
        "tables": sorted(context.names_read(made.query)),
        "functions": functions_with_state(made),
        "beginning": beginning_of(made, from_beginning).as_json(),
        "types": made.analyser.known,
        "time_zone": made.world.time_zone,
        "view": view,
    }
    return _add_to_catalog(context, name, made, definition)


def _add_to_catalog(
    context: Context, name: str, made: Made | MadeUpdate, definition: dict[str, Any]
) -> CatalogObject:
    """A query with an empty table of results; its tables keep rows for it from now on."""
    folder = context.table_folder(f"results of {name}", fresh_number(context))
    stored = results.definition(0, name, folder.name)
    definition |= {
        "text": made.query.text,
        "reads": sorted({table.definition.id for table in made.tables}),
        "results": stored.as_json(),
        "state": "running",
        "incarnation": uuid.uuid4().hex[:12],
    }
    for table in made.tables:
        table.kept = True
    try:
        return add_stream(context, "continuous query", name, stored, definition)
    except BaseException:
        release_streams(context, definition["reads"])
        raise


def _add_update_query(
    context: Context,
    name: str,
    made: MadeUpdate,
    options: dict[str, Any],
    from_beginning: bool,
    view: int | None = None,
) -> CatalogObject:
    refuse_twice(made.spec.shown)
    parts = options.pop("parts")
    if options["mode"] != "auto" or options["budget"] is not None or parts is not None:
        raise SettingError(
            "mode, budget and parts are for queries that are evaluated at instants",
            hint="an update query takes priority and max_wait",
        )
    definition = {
        "options": options,
        "tables": sorted(context.names_read(made.query)),
        "functions": made.functions,
        "beginning": beginning_of(made, from_beginning).as_json(),
        "types": made.types,
        "time_zone": made.world.time_zone,
        "view": view,
    }
    return _add_to_catalog(context, name, made, definition)


def _update_query(
    context: Context, item: CatalogObject, made: MadeUpdate, sink: LogSink
) -> UpdateQuery:
    """The update query of a catalog object."""
    saved = item.definition
    place = UpdatePlace(
        number=item.id,
        name=item.name,
        sink=sink,
        beginning=Beginning.from_json(saved["beginning"]),
        options=saved["options"],
        state=saved["state"],
        snapshot=None if item.passes else context.snapshot_of(item),
        for_view=saved["view"] is not None,
    )
    return update_query(made, place)


def functions_with_state(made: Made) -> list[list[str]]:
    """What a query's functions with state must be, for the catalog: name, life and type of each."""
    calls = [call for leaf in made.plan.leaves for call in leaf.calls]
    return [list(one) for one in sorted({(c.name, str(c.life), name_of(c.type)) for c in calls})]


def stored_sink(context: Context, item: CatalogObject, made: Made | MadeUpdate) -> LogSink:
    """Where the results of a query of the catalog go."""
    context.check_sound(item)
    table, settings, saved = context.streams.find(item.id), context.settings, item.definition
    if isinstance(made, MadeUpdate):
        log = result_log(context, made, table)
        view = _view_of(context, saved)
        return LogSink(log) if view is None else UpdateViewSink(log, view)
    least = 0 if saved["view"] is None else 2 * MOST_INSTANTS  # until the view has them
    log = ResultLog(
        table,
        made.output.schema,
        keep=lambda: max(settings.integer("results_kept"), least),
        keep_bytes=lambda: settings.integer("results_mb") * MEBIBYTE,
    )
    view = _view_of(context, saved)
    if view is None:
        return LogSink(log)
    return ViewSink(log, view, emit_of(made), ties=made.kind not in ("interval", "realtime"))


def _view_of(context: Context, saved: Mapping[str, Any]) -> StreamingTable | None:
    """The table of a materialized view that a query fills; None if it fills none."""
    if saved["view"] is None:
        return None
    context.check_sound(context.catalog.by_number(saved["view"]))
    view = context.streams.find(saved["view"])
    assert view is not None
    return view


def create_materialized_view(running: Running, statement: CreateMaterializedView) -> Result:
    """CREATE MATERIALIZED VIEW: a streaming table of results, and the query that fills it."""
    context = running.context
    with context.ddl:
        if context.find(statement.name) is not None and statement.if_not_exists:
            return Result("CREATE MATERIALIZED VIEW")
        context.catalog.check_free("materialized view", statement.name)
        options = _options(statement.options)
        made: Made | MadeUpdate
        with (
            _making(context) as objects,
            continuous_text(context, statement) as (query, text),
        ):
            if is_update_query(query):
                made = MadeUpdate(context, query, text)
            else:
                Checker(CatalogTables(context), query, text).check()
                made = Made(context, query, text)
            definition = _view_definition(context, statement, made)
            saved = {"table": definition.as_json()}
            view = add_stream(context, "materialized view", statement.name, definition, saved)
            name, begins = f"_{statement.name}", statement.from_beginning
            if isinstance(made, MadeUpdate):
                item = _add_update_query(context, name, made, options, begins, view.id)
            else:
                item = _add_query(context, name, made, options, begins, view.id)
        _put_to_work(context, item, made, objects)
    return Result("CREATE MATERIALIZED VIEW")


def _view_definition(
    context: Context, statement: CreateMaterializedView, made: Made | MadeUpdate
) -> Definition:
    schema = made.spec.shown if isinstance(made, MadeUpdate) else made.output.schema
    if made.query.emit is not None and made.query.emit.what == "changes":
        schema = schema.append(pa.field("_op", pa.string()))
    refuse_twice(schema)
    if made.query.cuts:
        schema = schema.append(pa.field(EPOCH_NUMBER, pa.int64()))
    for field in schema:
        parse_type(name_of(field.type))
    time_type = schema.field("_t").type
    duration = statement.range
    return Definition(
        id=0,
        name=str(statement.name),
        kind="materialized view",
        schema=schema,
        time_column="_t",
        range_ticks=None if duration is None else _range_ticks(time_type, duration),
        watermark_ticks=0,
        late="keep",
        update_key=_update_key(statement, made),
        compartments=VIEW_COMPARTMENTS,
        max_step_ticks=None,
        folder=context.table_folder(str(statement.name), fresh_number(context)).name,
        step_ticks=_step(made),
        by_key=isinstance(made, MadeUpdate),
    )


def _step(made: Made | MadeUpdate) -> int | None:
    """What all times of the results are multiples of."""
    if isinstance(made, MadeUpdate):
        return None if made.spec.window is None else made.spec.window.slide
    return made.step if made.kind == "interval" else None


def _update_key(
    statement: CreateMaterializedView, made: Made | MadeUpdate
) -> tuple[str, ...] | None:
    """The columns of the result by which rows replace each other, for readers WITH UPDATES (US9)."""
    key = statement.update_key
    if isinstance(made, MadeUpdate):
        own = made.spec.key
        if key is not None and {name.key for name in key} != {name.casefold() for name in own}:
            raise BindError(
                f"the results of an update query have its update key: ({', '.join(own)})",
                sqlstate="42P20",
                hint="leave UPDATE KEY out",
                place=key[0].span.place(statement.text) if key else None,
            )
        return own
    if key is None:
        return None
    if emit_of(made) in ("changes", "deletes"):
        raise BindError(
            "EMIT CHANGES and EMIT DELETES tell what has gone: no row replaces another",
            sqlstate="42P20",
            hint="leave UPDATE KEY out, or keep whole results: EMIT ALL",
        )
    names = {name.casefold(): name for name in made.output.names}
    for name in key:
        if name.key not in names:
            raise BindError(
                f"column {name} is not in the select list",
                sqlstate="42703",
                hint=did_you_mean(name, list(names.values()))
                or "an update key is of columns that the query selects",
                place=name.span.place(statement.text),
            )
    return tuple(names[name.key] for name in key)


def refuse_twice(schema: pa.Schema) -> None:
    """BindError if two columns of a result have one name."""
    keys = [name.casefold() for name in schema.names]
    twice = next((name for name in schema.names if keys.count(name.casefold()) > 1), None)
    if twice is not None:
        raise BindError(
            f"column {twice} occurs twice in the result",
            sqlstate="42701",
            hint="give it an alias: AS …",
        )


def _range_ticks(time_type: pa.DataType, duration: Duration) -> int:
    return duration_ticks(time_type, duration.microseconds)


# At open


def open_queries(context: Context) -> None:
    """Goes on with every query of the catalog; one that cannot start is kept, with its error."""
    context.engine.on_failure = _tell_readers
    for item in context.catalog.all("continuous query"):
        try:
            start(context, item)
        except Error as error:
            context.dormant[item.key] = error
    context.engine.open(_read_by_dormant(context))


def _read_by_dormant(context: Context) -> list[StreamingTable]:
    """The tables that queries read which could not start."""
    found: set[int] = set()
    for item in context.catalog.all("continuous query", "view"):
        if item.key in context.dormant:
            found.update(item.definition["reads"])
    tables = [context.streams.find(number) for number in sorted(found)]
    return [table for table in tables if table is not None]


def _tell_readers(query: Hosted) -> None:
    """Readers of a query that failed get its error."""
    if query.error is not None and isinstance(query, LoggedQuery):
        query.sink.log.fail(query.error)


def query_of(
    context: Context, item: CatalogObject, made: Made | MadeUpdate, sink: LogSink
) -> LoggedQuery:
    """The query of an object, attached to its tables."""
    if isinstance(made, MadeUpdate):
        return _update_query(context, item, made, sink)
    return query_at_work(context, item, made, sink)


def passing_object(made: Made | MadeUpdate) -> CatalogObject:
    """A query that is in no catalog, for as long as its reader; described as those that are."""
    number, name = passing_name()
    definition = {
        "text": made.query.text,
        "options": _options(None),
        "functions": made.functions if isinstance(made, MadeUpdate) else functions_with_state(made),
        "beginning": beginning_of(made, False).as_json(),
        "types": made.types if isinstance(made, MadeUpdate) else made.analyser.known,
        "time_zone": made.world.time_zone,
        "view": None,
        "state": "running",
    }
    return CatalogObject(-number, "continuous query", name, definition, "")


def passing_name() -> tuple[int, str]:
    """A number, and what the engine calls a reader's own query or view; no user's is called so."""
    number = next(_passing_numbers)
    return number, f"{OWN_SELECT}{number})"  # no name has a slash


_passing_numbers = itertools.count(1)

SinkMaker = Callable[[Context, CatalogObject, "Made | MadeUpdate"], LogSink]


def start(context: Context, item: CatalogObject, sink_of: SinkMaker = stored_sink) -> None:
    """A query of the catalog goes to work."""
    _start(context, item, planned(context, item), sink_of)


def start_parts(
    context: Context,
    item: CatalogObject,
    places: Collection[int],
    sink_of: Callable[[int], LogSink],
) -> None:
    """Some parts of a query of the catalog go to work."""
    made, count = planned(context, item), part_count(item.definition)
    assert isinstance(made, Made)
    for place in places:
        part = part_at_work(context, item, made, sink_of(place), Share(place, count))
        context.engine.add(part)


def planned(context: Context, item: CatalogObject) -> Made | MadeUpdate:
    """A query of the catalog, planned again."""
    check_registered(context, item.definition.get("functions", []))
    query, known = make_query(item.definition["text"]), item.definition["types"]
    plan = MadeUpdate if is_update_query(query) else Made
    return plan(context, query, query.text, known, stored_zone(item.definition))


def _start(
    context: Context,
    item: CatalogObject,
    made: Made | MadeUpdate,
    sink_of: SinkMaker = stored_sink,
) -> None:
    for table in made.tables:
        table.kept = True
    context.engine.add(query_of(context, item, made, sink_of(context, item, made)))
    context.dormant.pop(item.key, None)


def wake_dormant(context: Context) -> None:
    """Tries queries again that could not start, after a function was made."""
    for item in context.catalog.all("continuous query"):
        if item.key in context.dormant:
            try:
                start(context, item)
            except Error as error:
                context.dormant[item.key] = error
    context.engine.miss(_read_by_dormant(context))


def close_queries(context: Context) -> None:
    """Ends after the firings under way."""
    context.engine.close()
    for query in context.engine.named():
        query.sink.log.close()


# Control


def find_query(context: Context, name: Name | str, text: str | None = None) -> CatalogObject:
    """The continuous query of that name, or the one behind a materialized view."""
    other = item = context.find(name)
    if item is not None and item.kind == "materialized view":
        item = context.find(f"_{item.name}")
    if item is None or item.kind != "continuous query":
        names = [o.name.removeprefix("_") for o in context.catalog.all("continuous query")]
        near = nearest(str(name), names)
        hint = f"did you mean {near}?" if near else "SHOW QUERIES lists what there is"
        place = name.span.place(text) if isinstance(name, Name) and text is not None else None
        raise BindError(
            f"there is no continuous query {name}",
            sqlstate="42P01",
            hint=hint if other is None else f"{other.name} is a {other.kind}",
            place=place,
        )
    return item


def control_query(running: Running, statement: ControlQuery) -> Result:
    """PAUSE, RESUME, KILL QUERY."""
    context = running.context
    with context.ddl:
        item = find_query(context, statement.name, statement.text)
        if statement.action == "kill":
            if item.definition["view"] is not None:
                raise BindError(
                    f"query {statement.name} keeps a materialized view",
                    sqlstate="2BP01",
                    hint=f"PAUSE QUERY {statement.name}, or DROP MATERIALIZED VIEW {statement.name}",
                )
            check_no_sinks(context, item.name)
            check_no_functions(context, item)
            _remove(context, item)
            return Result("KILL QUERY")
        query = context.engine.find_named(item.name)
        if statement.action == "pause":
            context.catalog.change(item, {**item.definition, "state": "paused"})
            if query is not None:
                context.engine.pause(query)
            return Result("PAUSE QUERY")
        item = context.catalog.change(item, {**item.definition, "state": "running"})
        if query is None:
            start(context, item)
            context.engine.miss(_read_by_dormant(context))
        elif query.standing[0] != "running":
            query.sink.log.recover()
            context.engine.resume(query)
    return Result("RESUME QUERY")


def _remove(context: Context, item: CatalogObject, *views: CatalogObject) -> None:
    """Ends a query, and removes it with its results, its own streams and the view that it keeps."""
    generated = generated_for(context, item)
    context.catalog.remove(item, *views, *generated)
    _forget(context, item)
    for each in generated:
        if each.kind == "source":
            context.sources.end(each)
    for each in (*views, *generated):
        forget_stream(context, each)


def _forget(context: Context, item: CatalogObject) -> None:
    """Stops a query that has left the catalog, and removes its results."""
    query = context.engine.remove(item.name)
    if context.dormant.pop(item.key, None) is not None:
        context.engine.miss(_read_by_dormant(context))
    if isinstance(query, LoggedQuery):
        query.sink.log.close()
    with contextlib.suppress(OSError):  # nobody reads what is left: its number never comes again
        for each in () if query is None else (query, *query.parts):
            each.keeper.forget()
        context.forget_snapshots(item)
        context.functions_of(item).remove()
    forget_stream(context, item)
    release_streams(context, item.definition["reads"])


def release_streams(context: Context, numbers: Iterable[int]) -> None:
    """A stream that nobody reads any more keeps no rows."""
    read: set[int] = set()
    for item in context.catalog.all("continuous query", "view"):
        read.update(item.definition["reads"])
    for number in numbers:
        stream = context.streams.find(number)
        unread = number not in read and not context.engine.readers_of(number)
        if stream is not None and stream.definition.kind == "stream" and unread:
            stream.kept = False


def drop_query(running: Running, statement: Drop) -> Result:
    """DROP QUERY."""
    context = running.context
    with context.ddl:
        item = context.find(statement.name)
        if item is None and statement.if_exists:
            return Result("DROP QUERY")
        item = find_query(context, statement.name, statement.text)
        if item.definition["view"] is not None:
            raise BindError(
                f"{statement.name} is a materialized view",
                sqlstate="42809",
                hint=f"DROP MATERIALIZED VIEW {statement.name}",
            )
        check_no_sinks(context, item.name)
        check_no_functions(context, item)
        _remove(context, item)
    return Result("DROP QUERY")


def drop_materialized_view(running: Running, statement: Drop) -> Result:
    """DROP MATERIALIZED VIEW: the view, its rows and its query."""
    context = running.context
    with context.ddl:
        item = context.find(statement.name)
        if item is None and statement.if_exists:
            return Result("DROP MATERIALIZED VIEW")
        if item is None or item.kind != "materialized view":
            raise BindError(f"there is no materialized view {statement.name}", sqlstate="42P01")
        check_unread(context, item)
        check_no_sinks(context, item.name)
        query = context.find(f"_{item.name}")
        assert query is not None
        _remove(context, query, item)
    return Result("DROP MATERIALIZED VIEW")


def reset_landmark(running: Running, statement: AlterQueryResetLandmark) -> Result:
    """ALTER QUERY q RESET LANDMARK [AT ts]: landmark windows begin anew after the time."""
    context = running.context
    with context.ddl:
        item = find_query(context, statement.name, statement.text)
        query = context.engine.find(item.name)
        if query is None or not any(leaf.grows for leaf in query.plan.leaves):
            raise BindError(f"query {statement.name} has no landmark window", sqlstate="55000")
        with context.engine.standing_still([query]):
            query.reset_landmark(_landmarks(query, statement))
            saved = {**item.definition, "beginning": query.beginning.as_json()}
            context.catalog.change(item, saved)
    return Result("ALTER QUERY")


def _landmarks(
    query: ContinuousQuery, statement: AlterQueryResetLandmark
) -> Sequence[FeedCursor | None]:
    found: list[FeedCursor | None] = []
    for table in query.tables:
        if statement.at is not None:
            found.append(FeedCursor(table.definition.tick(statement.at) - 1))
        elif query.sampling.after is not None:
            found.append(FeedCursor(query.sampling.after))
        else:
            found.append(None)
    return found
