"""CREATE, DROP and ALTER VIEW: plain views, and continuous ones (CV1, CV3, CV6)."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.engine.view import STRATEGIES, ContinuousView
from headwater.errors import BindError, Error, SettingError
from headwater.execute.catalog_tables import described
from headwater.execute.context import Context, Running, unknown_view
from headwater.execute.continuous import refuse_twice, release_streams
from headwater.execute.continuous_plan import MadeView
from headwater.execute.dependents import (
    check_no_queries,
    check_no_sinks,
    check_unread,
    forget_changes,
    way_to_drop,
)
from headwater.execute.expansion import (
    Replaced,
    Views,
    expanded,
    expanding,
    is_plain,
    named_text,
    stores_all,
    text_of,
)
from headwater.execute.following import check_told, goes_by_time, restart_following
from headwater.execute.kept_views import made_again, new_view, not_split, starts_of
from headwater.execute.parts import cannot_have_parts, check_part_count
from headwater.execute.query import check_tables, columns_of_query, work_of
from headwater.execute.view_check import verify
from headwater.execute.view_static import forget_static, pin_static
from headwater.execute.zones import stored_zone
from headwater.kernel.cancellation import Cancellation
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

OPTIONS = ("maintenance", "volatile", "parts")
AT_INSERT = "WITH (volatile = 'at insert'): the time at which a row is folded"


def create_view(running: Running, statement: CreateView) -> Result:
    """CREATE [OR REPLACE] VIEW: continuous if a stream or streaming table is in it, or a view on one."""
    context = running.context
    with context.ddl:
        old = context.find(statement.name)
        if old is not None and statement.if_not_exists:
            return Result("CREATE VIEW")
        if old is None or old.kind != "view" or not statement.or_replace:
            context.catalog.check_free("view", statement.name)
            old = None
        elif old.definition.get("materialized"):
            raise BindError(
                f"{old.name} is a materialized view, and cannot become another view",
                sqlstate="42809",
                hint=f"{way_to_drop(old)} first",
            )
        options = view_options(statement)
        made = planned_view(context, statement, None if old is None else old.key)
        with contextlib.ExitStack() as stack:
            if made is None:
                definition, notice = _plain(running, statement, options), None
            else:
                notice = check_kept(made, options)
                check_parts(context, options, made)
                definition = _continuous(context, statement, options, made, stack)
            swapped = [ViewSwap(statement.name, definition, made, old)]
            if old is not None:
                swapped += _remade(context, old, statement, stack)
                _check_followed(context, old, swapped)
            _swap_in(context, swapped)
    return Result("CREATE VIEW", notice=notice)


def check_parts(context: Context, options: Mapping[str, Any], made: MadeView) -> None:
    """BindError if a view is to have parts and cannot."""
    reason = None if options["parts"] in (None, 1) else not_split(context, options, made)
    if reason is not None:
        raise cannot_have_parts("view", options["parts"], reason)


def passing_view(
    context: Context,
    query: Query,
    name: str,
    holding: contextlib.ExitStack,
    undo: contextlib.ExitStack,
) -> tuple[dict[str, Any], ContinuousView] | None:
    """A view that is in no catalog, and its definition; None for a plain one.

    Its tables keep their rows while the one stack is open; the other ends it.
    """
    statement = CreateView(query.text, Name(name), query, None, False, {}, False, False)
    made = planned_view(context, statement)
    if made is None:
        return None
    options = view_options(statement)
    check_kept(made, options)
    definition = _continuous(context, statement, options, made, holding)
    return definition, _ready(context, ViewSwap(statement.name, definition, made, None), made, undo)


def planned_view(
    context: Context, statement: CreateView, own: str | None = None
) -> MadeView | None:
    """What keeps the view; None for a plain one. `own`: its key, if it gets another query."""
    within = partial(
        expanding,
        context,
        statement.query,
        statement.text,
        replaced=None if own is None else Replaced(own, None),
    )
    with within(functions="none") as (query, text):
        _check(context, query, text)
        must = statement.materialized or _is_continuous(context, query)
    views: Views = "plain" if statement.from_now else "kept"
    with within(views=views, functions="none") as (query, _):  # by functions alone: a plain one
        if not _is_continuous(context, query) and not statement.materialized:
            return None
    try:
        with within(views=views, functions="all") as (query, text):
            if any(_is_view(context, str(r.name)) for r in query.table_references):
                raise BindError(
                    "a view over a stream cannot read a continuous view or query beside it",
                    sqlstate="42P20",
                    hint="make a view of the stream's part, and a third one that joins both",
                )
            made = _made(context, query, text, view_options(statement), _names(statement))
    except Error:
        if must:
            raise
        return None  # the views below are read as they are
    return made if must or _is_kept(made) else None


def _made(
    context: Context,
    query: Query,
    text: str,
    options: Mapping[str, Any],
    names: Sequence[str] | None,
) -> MadeView:
    times: ViewTimes = "at insert" if options["volatile"] else "refused"
    made = MadeView(context, query, text, times, names)
    refuse_twice(made.output.schema)
    return made


def _is_kept(made: MadeView) -> bool:
    return bool(made.specs) or made.circuit is not None


def _names(statement: CreateView) -> list[str] | None:
    return None if statement.columns is None else [str(name) for name in statement.columns]


def view_options(statement: CreateView) -> dict[str, Any]:
    """The options of a view, those that are not given too."""
    found: dict[str, Any] = {"maintenance": "split", "volatile": None, "parts": None}
    for name, value in (statement.options or {}).items():
        if name not in OPTIONS:
            near = nearest(name, OPTIONS)
            hint = f"did you mean {near}?" if near else "options: " + ", ".join(OPTIONS)
            raise SettingError(f"there is no option {name} of a view", hint=hint)
        if name == "maintenance" and value not in STRATEGIES:
            raise SettingError("maintenance is 'split', 'eager', 'deferred' or 'incremental'")
        if name == "volatile" and value != "at insert":
            raise SettingError("volatile is 'at insert'")
        if name == "parts":
            check_part_count(value)
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


def _plain(running: Running, statement: CreateView, options: dict[str, Any]) -> dict[str, Any]:
    """The definition of a view that is only a text."""
    context = running.context
    given = options["maintenance"] != "split" or options["volatile"] or options["parts"]
    if statement.from_now or given:
        raise BindError(
            "FROM NOW and options belong to continuous views",
            sqlstate="42P20",
            hint="no stream or streaming table is read whole here",
        )
    with work_of(context, statement.query, statement.text) as work:
        columns = context.kernel.analyse(work)
    names = _names(statement)
    if names is not None and len(names) != len(columns):
        raise BindError(
            f"the view names {len(names)} columns, its query has {len(columns)}", sqlstate="42601"
        )
    refuse_twice(pa.schema([pa.field(n, pa.null()) for n in names or [c for c, _ in columns]]))
    reads = context.names_read(statement.query)
    found = [context.find(name) for name in sorted(reads)]
    return {
        "continuous": False,
        "text": statement.query.text,
        "columns": names,
        "reads": [item.id for item in found if item is not None],
        "tables": sorted(reads),
    }


def _continuous(
    context: Context,
    statement: CreateView,
    options: dict[str, Any],
    made: MadeView,
    stack: contextlib.ExitStack,
) -> dict[str, Any]:
    """The definition of a continuous view; its tables keep their rows while the stack is open."""
    definition = {
        "continuous": True,
        "columns": _names(statement),
        **options,
        **_read_by(context, statement.query, made),
        "materialized": statement.materialized,
        "time_zone": made.world.time_zone,
    }
    _hold(context, definition, made, stack, statement.from_now)
    return definition


def _read_by(context: Context, written: Query, made: MadeView) -> dict[str, Any]:
    """What a definition says of a view's query."""
    return {
        "written": written.text,
        "text": made.query.text,
        "reads": sorted({table.definition.id for table in made.tables}),
        "tables": sorted(context.names_read(written) | context.names_read(made.query)),
        "types": made.analyser.known,
        "output": described(made.output.schema),
    }


def _hold(
    context: Context,
    definition: dict[str, Any],
    made: MadeView,
    stack: contextlib.ExitStack,
    from_now: bool = False,
) -> None:
    """Its tables keep their rows from where it starts while it is made; those below folds are pinned."""
    stack.callback(release_streams, context, definition["reads"])  # if it does not come about
    stack.callback(forget_static, context)
    for table in made.tables:
        stack.enter_context(table.holding())
        table.kept = True
    if not_split(context, definition, made) is not None:
        definition["parts"] = 1  # for good: what is asked of it later does not change that
    definition["starts"] = starts_of(made.tables, from_now)  # what comes from here on is counted
    definition["static"] = pin_static(context, made)


# In the place of others


@dataclass(frozen=True)
class ViewSwap:
    """A view that comes, or gets another query."""

    name: Name
    definition: dict[str, Any]
    made: MadeView | None  # None: a plain one
    old: CatalogObject | None


def _remade(
    context: Context, old: CatalogObject, statement: CreateView, stack: contextlib.ExitStack
) -> list[ViewSwap]:
    """The continuous views that read a view which gets another query, over that query."""
    text = named_text(old.name, statement.query.text, _names(statement))
    replaced = Replaced(old.key, text)
    found: list[ViewSwap] = []
    for item in _readers(context, old):
        saved = item.definition
        if saved["continuous"]:
            made = _over_another(context, item, replaced)
            written = make_query(saved.get("written", saved["text"]))
            definition = {**saved, **_read_by(context, written, made)}
            _hold(context, definition, made, stack)
            found.append(ViewSwap(Name(item.name), definition, made, item))
    return found


def _readers(context: Context, old: CatalogObject) -> list[CatalogObject]:
    """The views that read a view, themselves or through others, which may be younger than they are."""
    views, found = context.catalog.all("view"), {old.key: old}
    while more := [
        item
        for item in views
        if item.key not in found and found.keys() & set(item.definition["tables"])
    ]:
        found |= {item.key: item for item in more}
    return sorted((i for i in found.values() if i.key != old.key), key=lambda each: each.id)


def _check_followed(context: Context, old: CatalogObject, swaps: Sequence[ViewSwap]) -> None:
    """BindError if a sink or query reads a view whose columns become others, or a sink one of no changes."""
    others = [swap.old for swap in swaps if swap.old is not None and _is_other(context, swap)]
    for item in others:
        check_no_sinks(context, item.name)
        check_no_queries(context, item)
    for swap in swaps:
        if not _tells_changes(context, swap):
            check_no_sinks(context, str(swap.name))
    for item in _readers(context, old) if others else ():
        if is_plain(item):
            check_no_sinks(context, item.name)


def _is_other(context: Context, swap: ViewSwap) -> bool:
    """Whether a view gets other columns, or becomes a plain one or no longer is one."""
    view = context.engine.find_view(str(swap.name))
    if swap.made is not None or swap.old is None or not is_plain(swap.old):
        now = None if swap.made is None else swap.made.output.schema
        return view is None or view.evaluation.output.schema != now
    return _columns(context, make_query(text_of(swap.old))) != _columns(context, _own_query(swap))


def _columns(context: Context, query: Query) -> pa.Schema:
    return columns_of_query(Running(context, query.text, Cancellation()), query)


def _own_query(swap: ViewSwap) -> Query:
    """The query of a plain view."""
    saved = swap.definition
    return make_query(named_text(str(swap.name), saved["text"], saved["columns"]))


def _tells_changes(context: Context, swap: ViewSwap) -> bool:
    """Whether who follows a view can be told its changes, by the query that it gets."""
    if swap.made is not None:
        return not goes_by_time(swap.made)
    try:
        check_told(context, f"view {swap.name}", _own_query(swap))
    except BindError:
        return False
    return True


def _over_another(context: Context, item: CatalogObject, replaced: Replaced) -> MadeView:
    """A view that reads one which gets another query; BindError if it cannot follow."""
    saved, zone = item.definition, stored_zone(item.definition)
    reason = "rows that it has counted are not stored any more"
    if zone != context.time_zone:
        reason = f"it was made in time zone {zone}, and {context.time_zone} is set"
    elif stores_all(context, item):
        written = make_query(saved.get("written", saved["text"]))
        try:
            whole = expanded(
                context, written, views="kept", functions="all", replaced=replaced
            ).query
            made = _made(context, whole, whole.text, saved, saved["columns"])
            check_kept(made, saved)
        except Error as error:
            reason = error.message
        else:
            return made
    raise BindError(
        f"view {item.name} reads it, and cannot follow: {reason}",
        sqlstate="2BP01",
        hint=f"{way_to_drop(item)} first",
    )


def _swap_in(context: Context, swaps: Sequence[ViewSwap]) -> None:
    """Views that are ready before the old ones of their names go; the catalog says all or none of it."""
    before = [context.engine.find_view(str(swap.name)) for swap in swaps]
    known = [view for view in before if view is not None]
    with context.engine.staying(known), contextlib.ExitStack() as undo:
        views: list[ContinuousView | None] = []
        for swap in swaps:
            views.append(None if swap.made is None else _ready(context, swap, swap.made, undo))
        items = _put(context, swaps)
        undo.pop_all()
        for swap, item, view, gone in zip(swaps, items, views, before, strict=True):
            if view is not None:
                view.called(item.id, item.name)
                context.engine.add(view)
            elif gone is not None:
                context.engine.remove(item.name)
            if gone is not None:
                gone.end()
                context.staged_views.forget(gone.incarnation)
            context.dormant.pop(item.key, None)
            if swap.old is not None:
                _clean_up(context, swap.old)
                restart_following(context, item)


def _ready(
    context: Context, swap: ViewSwap, made: MadeView, undo: contextlib.ExitStack
) -> ContinuousView:
    """A view with all rows that are there, if it is to stand for another."""
    definition = swap.definition
    definition["incarnation"] = uuid.uuid4().hex[:12]
    view = new_view(context, str(swap.name), definition, made)
    undo.callback(view.end)
    definition["pipelines"] = [pipeline.number for pipeline in view.pipelines]
    if swap.old is not None:
        view.catch_up()
    return view


def _put(context: Context, swaps: Sequence[ViewSwap]) -> list[CatalogObject]:
    """The views into the catalog, in the place of old ones of their names."""
    first = swaps[0]
    if first.old is None:
        return [context.catalog.add("view", first.name, first.definition)]
    changes = [(swap.old, swap.definition) for swap in swaps if swap.old is not None]
    return context.catalog.change_all(changes)


def _is_view(context: Context, name: str) -> bool:
    item = context.find(name)
    return item is not None and item.kind in ("view", "continuous query")


def check_kept(made: MadeView, options: Mapping[str, Any]) -> str | None:
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
        forget_changes(context, item)
        view = context.engine.find_view(item.name)
        context.catalog.remove(item)
        context.engine.remove(item.name)
        context.dormant.pop(item.key, None)
        if view is not None:
            view.end()
            context.staged_views.forget(view.incarnation)
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
        make_again(context, item, item.definition)
    return Result("ALTER VIEW")


def make_again(
    context: Context, item: CatalogObject, saved: Mapping[str, Any], why: str | None = None
) -> None:
    """A view of another definition is made of the stored rows; BindError if these are not all there."""
    made = made_again(context, saved)
    if not all(table.definition.keeps_all for table in made.tables):
        raise BindError(
            f"view {item.name} cannot be made again: its rows are not all stored",
            sqlstate="55000",
            detail=why,
            hint="a streaming table with RANGE FOREVER keeps them",
        )
    definition = {**saved, "static": pin_static(context, made)}
    _swap_in(context, [ViewSwap(Name(item.name), definition, made, item)])


def verify_view(running: Running, statement: VerifyView) -> Result:
    """VERIFY VIEW v: its rows against its query over the stored rows; the differences, if any."""
    item, view = find_view(running, statement.name)
    found = verify(running.context, view, made_again(running.context, item.definition))
    rows = [{"difference": sign, "row": row} for sign, row in found]
    schema = pa.schema([pa.field("difference", pa.string()), pa.field("row", pa.string())])
    state = "equal to its query" if not found else "not equal to its query"
    notice = f"view {item.name} is {state}"
    return Result("VERIFY VIEW", pa.Table.from_pylist(rows, schema), notice=notice)
