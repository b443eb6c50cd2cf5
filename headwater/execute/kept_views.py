"""Continuous views as the engine runs them, made of their definitions: when they begin, and at open."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from headwater.compile.circuit import CircuitSpec
from headwater.compile.fold import FoldSpec
from headwater.compile.split_circuit import SplitCircuit, split_circuit
from headwater.engine.fold_run import StaticProbes
from headwater.engine.split_view import SplitView, ViewPart, cannot_split
from headwater.engine.view import STRATEGIES, ContinuousView, ViewCut, member_name
from headwater.engine.view_circuit import ViewCircuit
from headwater.engine.view_pipeline import PipelinePlace, Start, ViewPipeline
from headwater.engine.view_versions import Versions
from headwater.errors import Error, StorageError
from headwater.execute.context import Context
from headwater.execute.continuous_plan import MadeView
from headwater.execute.parts import part_count, shares, varies
from headwater.execute.view_check import over_stored
from headwater.execute.view_static import held_static, pin_static
from headwater.execute.zones import stored_zone
from headwater.fold.share import Share
from headwater.kernel.relation import HeldTables
from headwater.plan.planner import ViewTimes
from headwater.plan.relational.partition import NotSplit
from headwater.sql.statements.query import make_query
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.fresh import ends_of
from headwater.storage.streaming.table import StreamingTable

SPLIT_MAINTENANCE = ("split", "incremental")


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


def not_split(context: Context, saved: Mapping[str, Any], made: MadeView) -> str | None:
    """Why a view that begins stays whole, however many parts it is to have; None if it can be split."""
    if saved["maintenance"] not in SPLIT_MAINTENANCE:
        return _keeps_nothing_apart(saved["maintenance"])
    if saved["volatile"]:
        return "its parts would see other times"
    return varies(context, made) or _cannot_split(made)


def _cannot_split(made: MadeView) -> str | None:
    """Why its groups, or the rows of its circuit, cannot be shared out."""
    if made.circuit is None:
        return cannot_split(made.plan)
    found = made_split(made)
    return str(found) if isinstance(found, NotSplit) else None


def made_split(made: MadeView) -> SplitCircuit | NotSplit:
    """The circuit of a view in parts."""
    assert made.circuit is not None
    return _split_over(made.circuit, made.tables)


def _split_over(circuit: CircuitSpec, tables: Sequence[StreamingTable]) -> SplitCircuit | NotSplit:
    return split_circuit(circuit, {table.definition.name.casefold() for table in tables})


def stays_whole(view: ContinuousView) -> str | None:
    """Why a view cannot be split; None if it is, or could be."""
    if view.parts:
        return None
    if view.maintenance not in SPLIT_MAINTENANCE:
        return _keeps_nothing_apart(view.maintenance)
    if view.circuit is None:
        return cannot_split(view.plan)
    found = _split_over(view.circuit.spec, view.tables)
    return str(found) if isinstance(found, NotSplit) else None


def _keeps_nothing_apart(maintenance: str) -> str:
    return f"maintenance = '{maintenance}' keeps no groups apart from the result"


def _stands(saved: Mapping[str, Any], made: MadeView) -> list[tuple[str, FoldSpec, Share | None]]:
    """What stands in a pipeline each: a fold, or a part of the only one, with the name of its member."""
    count, incarnation = part_count(saved), saved["incarnation"]
    if count == 1 or made.circuit is not None or cannot_split(made.plan) is not None:
        return [(member_name(incarnation, n), spec, None) for n, spec in enumerate(made.specs)]
    return [(member_name(incarnation, 0), made.specs[0], share) for share in shares(count)]


def new_view(context: Context, name: str, saved: dict[str, Any], made: MadeView) -> ContinuousView:
    """A view that begins: each of its folds, or parts, in a pipeline, shared where one fits."""
    static = held_static(context, saved["static"])
    joined: list[tuple[str, ViewPipeline]] = []
    try:
        for member, spec, share in _stands(saved, made):
            place = _place(context, made, spec, saved, static, share)
            make = partial(_pipeline, context, made, uuid.uuid4().hex[:12], place)
            joined.append((member, context.pipelines.join(member, spec, place, make)))
        return _view(context, name, saved, made, [pipeline for _, pipeline in joined])
    except BaseException:
        for member, pipeline in joined:
            context.pipelines.leave(member, pipeline)
        raise


def regroup(context: Context, item: CatalogObject, definition: Mapping[str, Any]) -> bool:
    """A view goes on in other parts, or whole, with the groups that it has; False if it cannot.

    One that circuits keep begins anew from its stored rows. Of others the new snapshots are there before the
    catalog says so, and the old ones until after: a kill at any moment leaves one or the other, and nothing
    is folded twice.
    """
    view, saved = context.engine.find_view(item.name), dict(definition)
    if view is None or part_count(saved) == max(len(view.parts), 1):
        return False
    with contextlib.ExitStack() as stack:
        for table in view.tables:
            stack.enter_context(table.holding())  # rows since then are the new pipelines' to fold
        stack.enter_context(context.engine.staying([view]))
        for table in {id(table): table for table in view.tables}.values():
            stack.enter_context(table.upkeep)  # no stored row is deleted or replaced meanwhile
        made = made_again(context, saved)
        if made.circuit is not None and not_split(context, saved, made) is not None:
            return False
        pipelines = _shared_out(context, saved, made, view.pipelines)
        if pipelines is None:
            return False
        try:
            for own in pipelines:
                own.put_away()
            saved["pipelines"] = [own.number for own in pipelines]
            changed = context.catalog.change(item, saved)
        except BaseException:
            for own in pipelines:
                own.place.table.folded_by.pop(own.number, None)
                own.remove()
            raise
        for own in pipelines:
            context.pipelines.add(own)
        other = _view(context, item.name, saved, made, pipelines)
        other.versions = view.versions
        other.called(changed.id, changed.name)
        context.engine.add(other)
        view.end()
    return True


def _shared_out(
    context: Context, saved: Mapping[str, Any], made: MadeView, before: Sequence[ViewPipeline]
) -> list[ViewPipeline] | None:
    """Pipelines with the groups of others, all as of one place; None if these are shared or spilled."""
    static, found = held_static(context, saved["static"]), list[ViewPipeline]()
    if not before:
        return found
    with contextlib.ExitStack() as stack:
        for pipeline in sorted(before, key=lambda p: p.number):
            stack.enter_context(pipeline.lock)
        end = ends_of([before[0].place.table])[before[0].place.table.definition.id]
        for pipeline in before:
            pipeline.catch_up(end)
            shared = len(pipeline.members) > 1 or pipeline.awaited
            if shared or pipeline.runs or pipeline.changed:
                return None
        groups = pa.concat_tables([pipeline.groups_for(made.specs[0]) for pipeline in before])
        for member, spec, share in _stands(saved, made):
            place = _place(context, made, spec, saved, static, share)
            own = _pipeline(context, made, uuid.uuid4().hex[:12], place)
            own.begin_with(member, spec, groups, before)
            found.append(own)
    return found


def _place(
    context: Context,
    made: MadeView,
    spec: FoldSpec,
    saved: Mapping[str, Any],
    static: HeldTables,
    share: Share | None,
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
        share,
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
    """A view; whole or in parts, as its pipelines are."""
    own = _own(context, name, saved, made)
    split = _split(saved, made)
    parts = _parts(context, own, saved, made, pipelines)
    if parts:
        return SplitView(**own, pipelines=pipelines, parts=parts, split=split)
    circuit = None
    if made.circuit is not None:
        circuit = _circuit(context, saved, made, made.circuit, None)
    return ContinuousView(**own, pipelines=pipelines, circuit=circuit)


def _split(saved: Mapping[str, Any], made: MadeView) -> SplitCircuit | None:
    """How the circuit of a view is split; None if it has none, or is whole."""
    if made.circuit is None or part_count(saved) == 1:
        return None
    found = made_split(made)
    return None if isinstance(found, NotSplit) else found


def _parts(
    context: Context,
    own: Mapping[str, Any],
    saved: Mapping[str, Any],
    made: MadeView,
    pipelines: Sequence[ViewPipeline],
    places: Collection[int] | None = None,
) -> list[ViewPart]:
    """The parts of a view, or some of them; none if it is whole. `pipelines`: of these parts."""
    split = _split(saved, made)
    if split is None:
        shared = [(p, p.place.share) for p in pipelines]
        return [_part(own, share, pipelines=[p]) for p, share in shared if share is not None]
    return [
        _part(own, share, circuit=_circuit(context, saved, made, split.part(share), share))
        for share in shares(part_count(saved))
        if places is None or share.place in places
    ]


def _part(
    own: Mapping[str, Any],
    mine: Share,
    pipelines: Sequence[ViewPipeline] = (),
    circuit: ViewCircuit | None = None,
) -> ViewPart:
    """The part of a view that has a share of its keys."""
    known = {**own, "versions": Versions(lambda: 1)}
    part = ViewPart(**known, pipelines=pipelines, circuit=circuit, mine=mine)
    part.called(own["number"], own["name"])
    return part


def _own(context: Context, name: str, saved: Mapping[str, Any], made: MadeView) -> dict[str, Any]:
    """What a view and its parts have in common."""
    static = held_static(context, saved["static"])
    starts = [Start(*start) for start in saved["starts"]]
    return {
        "number": 0,
        "name": name,
        "incarnation": saved["incarnation"],
        "plan": made.plan,
        "specs": made.specs,
        "evaluation": made.evaluation,
        "tables": made.tables,
        "world": made.world,
        "static": static,
        "starts": starts,
        "versions": Versions(lambda: context.settings.integer("view_versions")),
        "over_stored": partial(over_stored, context, made, static, starts),
        "registry": context.pipelines,
        "maintenance": saved["maintenance"],
    }


def _circuit(
    context: Context,
    saved: Mapping[str, Any],
    made: MadeView,
    spec: CircuitSpec,
    share: Share | None,
) -> ViewCircuit:
    """The circuit of a view that no fold holds, or of a part of one; as far as its snapshot brings it."""
    number = circuit_number(saved, share)
    names = [table.definition.name.casefold() for table in made.tables]
    starts = [Start(*start) for start in saved["starts"]]
    circuit = ViewCircuit(
        number,
        spec,
        dict(zip(names, made.tables, strict=True)),
        dict(zip(names, starts, strict=True)),
        made.world,
        context.pipeline_snapshot(number),
        context.circuit_runs(number),
    )
    circuit.take_up()
    return circuit


def circuit_number(saved: Mapping[str, Any], share: Share | None = None) -> str:
    """What the snapshot of a view's circuit is called, or of the circuit of a part."""
    part = "" if share is None else f"-part-{share.place}-of-{share.parts}"
    return f"{saved['incarnation']}.circuit{part}"


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
    for item in views:
        count = part_count(item.definition)
        every = shares(count) if count > 1 else [None]
        numbers |= {circuit_number(item.definition, share) for share in every}
    context.forget_pipelines(numbers)
    open_some(context, views)


def wake_views(context: Context) -> None:
    """Tries views again that could not start, after a function was made."""
    open_some(context, [i for i in context.catalog.all("view") if i.key in context.dormant])


def open_some(
    context: Context,
    items: Sequence[CatalogObject],
    places: Mapping[int, Collection[int]] = MappingProxyType({}),
) -> None:
    """Views with their pipelines, each with the folds of all views that share it.

    `places`: by the number of a view which parts of it are opened, instead of the whole.
    """
    found: list[tuple[CatalogObject, MadeView]] = []
    awaited: set[str] = set()  # pipelines with groups of views that cannot start
    for item in items:
        try:
            found.append((item, made_again(context, item.definition)))
        except Error as error:
            context.dormant[item.key] = error
            awaited.update(item.definition["pipelines"])
    folds: dict[str, dict[str, FoldSpec]] = {}
    for item, made in found:
        stands = _stands(item.definition, made)
        for number, (member, spec, _) in zip(item.definition["pipelines"], stands, strict=False):
            folds.setdefault(number, {})[member] = spec
    for item, made in found:
        for table in made.tables:
            table.kept = True
        try:
            opened = _opened(context, item, made, folds, places.get(item.id))
        except Exception as error:  # whatever is wrong with one, the others open
            context.dormant[item.key] = _cannot_start(item, error)
            continue
        for view in opened:
            view.called(item.id, item.name)
            context.engine.add(view)
        context.dormant.pop(item.key, None)
    for number in awaited:
        pipeline = context.pipelines.find(number)
        if pipeline is not None:
            pipeline.awaited = True


def _opened(
    context: Context,
    item: CatalogObject,
    made: MadeView,
    folds: dict[str, dict[str, FoldSpec]],
    places: Collection[int] | None,
) -> Sequence[ContinuousView]:
    """A view of the catalog at work, or parts of it; one that was split otherwise begins anew."""
    saved = item.definition
    stands = _stands(saved, made)
    if len(saved["pipelines"]) != len(stands):
        definition = {**saved, "static": pin_static(context, made)}
        view = new_view(context, item.name, definition, made)
        definition["pipelines"] = [pipeline.number for pipeline in view.pipelines]
        context.catalog.change(item, definition)
        return [view]
    pipelines = [
        _taken_up(context, number, folds[number], saved, made, spec, share)
        for number, (_, spec, share) in zip(saved["pipelines"], stands, strict=True)
        if places is None or (share is not None and share.place in places)
    ]
    if places is None:
        return [_view(context, item.name, saved, made, pipelines)]
    own = _own(context, item.name, saved, made)
    return _parts(context, own, saved, made, pipelines, places)


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
    share: Share | None,
) -> ViewPipeline:
    known = context.pipelines.find(number)
    if known is not None:
        for member, own in folds.items():
            if member not in known.members:
                known.join(member, own)
        return known
    place = _place(context, made, spec, saved, held_static(context, saved["static"]), share)
    pipeline = _pipeline(context, made, number, place)
    pipeline.take_up(folds)
    context.pipelines.add(pipeline)
    return pipeline
