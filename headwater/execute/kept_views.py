"""Continuous views as the engine runs them, made of their definitions: when they begin, and at open."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from headwater.compile.fold import FoldSpec
from headwater.engine.fold_run import StaticProbes
from headwater.engine.view import STRATEGIES, ContinuousView, ViewCut, member_name
from headwater.engine.view_circuit import ViewCircuit
from headwater.engine.view_pipeline import PipelinePlace, Start, ViewPipeline
from headwater.engine.view_versions import Versions
from headwater.errors import Error, StorageError
from headwater.execute.context import Context
from headwater.execute.continuous_plan import MadeView
from headwater.execute.view_check import over_stored
from headwater.execute.view_static import held_static, pin_static
from headwater.execute.zones import stored_zone
from headwater.kernel.relation import HeldTables
from headwater.plan.planner import ViewTimes
from headwater.sql.statements.query import make_query
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.fresh import ends_of
from headwater.storage.streaming.table import StreamingTable


def starts_of(tables: Sequence[StreamingTable], from_now: bool) -> list[list[int | None]]:
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


def new_view(context: Context, name: str, saved: dict[str, Any], made: MadeView) -> ContinuousView:
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


def made_again(context: Context, saved: Mapping[str, Any]) -> MadeView:
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
            found.append((item, made_again(context, item.definition)))
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
        view = new_view(context, item.name, definition, made)
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
