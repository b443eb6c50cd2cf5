"""Continuous queries as the engine runs them, whole or in parts, made of their definitions."""

from __future__ import annotations

from typing import Any

from headwater.engine.hosted import part_name
from headwater.engine.mode import FOLD
from headwater.engine.query import ContinuousQuery
from headwater.engine.query_parts import Beginning
from headwater.engine.query_sinks import LogSink
from headwater.engine.split_query import (
    PartEvaluation,
    PartSink,
    QueryPart,
    SplitQuery,
    query_cannot_split,
)
from headwater.execute.context import Context
from headwater.execute.continuous_plan import Made
from headwater.execute.parts import part_count, shares, varies
from headwater.fold.share import Share
from headwater.plan.leaves import cut_length
from headwater.sql.extensions import Emit
from headwater.storage.catalog import CatalogObject


def query_not_split(context: Context, made: Made, mode: str) -> str | None:
    """Why a query that begins stays whole, however many parts it is to have; None if it can be split."""
    if mode == "reevaluate":
        return "mode = 'reevaluate' keeps no groups"
    return varies(context, made) or query_cannot_split(made.plan, made.kind)


def emit_of(made: Made) -> Emit:
    """What a query gives of its results."""
    return made.query.emit.what if made.query.emit is not None else "all"


def _budget(made: Made) -> float | None:
    """An epoch of a time should not take longer than that time; None for other queries."""
    if not made.query.cuts or made.kind != "interval":
        return None
    return cut_length(made.query.cuts[0]) / 1e6


def query_at_work(
    context: Context, item: CatalogObject, made: Made, sink: LogSink
) -> ContinuousQuery:
    """The query of a catalog object, whole or in parts, attached to its tables."""
    count = part_count(item.definition)
    own = _own(item, made, sink)
    if count > 1:
        split = SplitQuery(**own, part_count=count)
        split.parts = [
            part_at_work(context, item, made, PartSink(split, mine.place), mine)
            for mine in shares(count)
        ]
        return split
    file = None if item.passes else context.functions_of(item)
    query = ContinuousQuery(
        **own,
        snapshot=None if item.passes else context.snapshot_of(item),
        functions=made.functions(own["sampling"], file),
    )
    query.attach()
    return query


def part_at_work(
    context: Context, item: CatalogObject, made: Made, sink: LogSink, mine: Share
) -> QueryPart:
    """The part of a query that has some of the groups, attached to its tables."""
    part = QueryPart(
        **{
            **_own(item, made, sink),
            "name": part_name(item.name, mine),
            "evaluation": PartEvaluation(**vars(made.evaluation)),
            "wish": FOLD,
        },
        mine=mine,
        snapshot=context.snapshot_of(item, mine),
    )
    part.attach()
    return part


def _own(item: CatalogObject, made: Made, sink: LogSink) -> dict[str, Any]:
    """What a query and its parts have in common."""
    saved = item.definition
    return {
        "number": item.id,
        "name": item.name,
        "statement": saved["text"],
        "plan": made.plan,
        "specs": made.specs,
        "evaluation": made.evaluation,
        "sampling": made.sampling(),
        "beginning": Beginning.from_json(saved["beginning"]),
        "tables": made.tables,
        "sink": sink,
        "world": made.world,
        "emit": emit_of(made),
        "wish": saved["options"]["mode"],
        "priority": saved["options"]["priority"],
        "max_wait_s": saved["options"]["max_wait"],
        "budget_s": saved["options"].get("budget") or _budget(made),
        "state": saved["state"],
    }
