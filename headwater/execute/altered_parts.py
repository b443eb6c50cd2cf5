"""Views and queries that get other parts: by ALTER … SET (parts = n), or by the coordinator."""

from __future__ import annotations

import contextlib
from typing import Any

from headwater.engine.view import ContinuousView
from headwater.errors import NotSupportedError, SettingError
from headwater.execute import continuous, kept_views
from headwater.execute.context import Context, Running
from headwater.execute.continuous import find_query, planned
from headwater.execute.continuous_plan import Made
from headwater.execute.kept_queries import query_not_split
from headwater.execute.kept_views import made_again, not_split
from headwater.execute.parts import (
    cannot_have_parts,
    check_part_count,
    part_count,
    splits_by_itself,
)
from headwater.execute.views import find_view, make_again
from headwater.result import Result
from headwater.sql.statements.alter import AlterSetParts
from headwater.storage.catalog import CatalogObject

MOST_REMADE = (
    5_000_000  # stored rows that a view's circuits read again for other parts by themselves
)


def alter_parts(running: Running, statement: AlterSetParts) -> Result:
    """ALTER VIEW v SET (parts = n), ALTER QUERY q SET (parts = n); `auto`: as load asks for it."""
    context, count = running.context, _asked(statement)
    with context.ddl:
        if statement.kind == "view":
            item, _ = find_view(running, statement.name)
        else:
            item = find_query(context, statement.name, statement.text)
            if context.engine.find_named(item.name) is None:
                raise context.dormant[item.key]
        reason = None if count == 1 else _reason(context, item)
        if reason is not None:
            raise cannot_have_parts(statement.kind, count or "several", reason)
        split = part_count(item.definition) if count is None else None
        _change(context, item, {**item.definition, "parts": count, "split": split}, asked=True)
    return Result(f"ALTER {statement.kind.upper()}")


def _asked(statement: AlterSetParts) -> int | None:
    """How many parts; None: as load asks for it."""
    if list(statement.options) != ["parts"]:
        raise SettingError(
            f"of a {statement.kind} that is there only the parts can be set",
            hint=f"ALTER {statement.kind.upper()} {statement.name} SET (parts = 2)",
        )
    value = statement.options["parts"]
    if value == "auto":
        return None
    check_part_count(value)
    assert isinstance(value, int)
    return value


def _reason(context: Context, item: CatalogObject) -> str | None:
    """Why it cannot have parts."""
    if item.kind == "view":
        return not_split(context, item.definition, made_again(context, item.definition))
    made = planned(context, item)
    if not isinstance(made, Made):
        return "it is an update query"
    return query_not_split(context, made, item.definition["options"]["mode"])


def _change(
    context: Context, item: CatalogObject, definition: dict[str, Any], *, asked: bool
) -> bool:
    """It goes on with the parts that a definition says; False if it cannot, and nobody has asked for it."""
    if part_count(definition) == part_count(item.definition):
        context.catalog.change(item, definition)
    elif item.kind != "view":
        _regroup_query(context, item, definition)
    elif not kept_views.regroup(context, item, definition):
        if not asked:
            return False
        make_again(
            context, item, definition, "its groups are spilled, or other views have them too"
        )
    return True


def _regroup_query(context: Context, item: CatalogObject, definition: dict[str, Any]) -> None:
    """A query goes on in other parts, from its last result and the stored rows of its window.

    The results are the durable fact: a kill before or after the change of the catalog loses none.
    """
    query = context.engine.find(item.name)
    assert query is not None
    if any(table.definition.kind == "stream" for table in query.tables):
        raise NotSupportedError(
            "a query over a stream keeps the parts that it began with",
            detail="the rows of its window are in the state of its parts alone",
            hint="CREATE CONTINUOUS QUERY … WITH (parts = n), or read a streaming table",
        )
    with contextlib.ExitStack() as stack:
        for table in query.tables:
            stack.enter_context(table.holding())
        stack.enter_context(context.engine.staying([query]))
        context.engine.pause(
            query
        )  # it stays there for its readers until the other takes its place
        try:
            changed = context.catalog.change(item, definition)
            context.forget_snapshots(item)
            continuous.start(context, changed, lambda *_: query.sink)
        except BaseException:
            if item.definition["state"] == "running":
                context.engine.resume(query)
            raise


def changes_by_itself(context: Context, name: str) -> bool:
    """Whether load decides how many parts a view or query has, and they can be changed."""
    query = context.engine.hosted(name)
    item = None if query is None else context.catalog.by_number(query.number)
    if query is None or item is None or not splits_by_itself(item.definition):
        return False
    if isinstance(query, ContinuousView):
        remade = sum(table.rows_since(0) for table in query.tables) if query.circuits else 0
        return remade <= MOST_REMADE
    return all(t.definition.kind != "stream" for t in query.tables)


def set_parts(context: Context, name: str, count: int) -> bool:
    """A view or query of which nobody has said how many parts it has gets so many; False if it cannot."""
    query = context.engine.hosted(name)
    item = None if query is None else context.catalog.by_number(query.number)
    if item is None or not changes_by_itself(context, name):
        return False
    if part_count(item.definition) == count:
        return False
    return _change(context, item, {**item.definition, "split": count}, asked=False)
