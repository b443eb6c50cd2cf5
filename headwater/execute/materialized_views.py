"""CREATE and DROP MATERIALIZED VIEW: with a window a query and its results, else a view that is kept."""

from __future__ import annotations

from headwater.errors import BindError
from headwater.execute import continuous, views
from headwater.execute.context import Running
from headwater.result import Result
from headwater.sql.statements.create_materialized_view import CreateMaterializedView
from headwater.sql.statements.create_view import CreateView
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.query import Query


def create_materialized_view(running: Running, statement: CreateMaterializedView) -> Result:
    """CREATE MATERIALIZED VIEW of either kind."""
    if not _is_kept_view(statement.query):
        return continuous.create_materialized_view(running, statement)
    if statement.range is not None:
        raise BindError(
            "RANGE is for the results of a query with a window: a kept view has no time",
            sqlstate="42P20",
            hint="leave RANGE out, or give the query a window and SAMPLE",
        )
    if statement.update_key is not None:
        raise BindError(
            "UPDATE KEY is for the results of a query with a window: a kept view has no newer rows",
            sqlstate="42P20",
            hint="leave UPDATE KEY out, or give the query a window and SAMPLE",
        )
    view = CreateView(
        text=statement.text,
        name=statement.name,
        query=statement.query,
        columns=None,
        from_now=False,
        options=statement.options,
        if_not_exists=statement.if_not_exists,
        or_replace=False,
        materialized=True,
    )
    made = views.create_view(running, view)
    return Result("CREATE MATERIALIZED VIEW", notice=made.notice)


def _is_kept_view(query: Query) -> bool:
    """Whether nothing says when it is evaluated: it is to show what its query gives at any time."""
    timed = query.sample or query.emit or query.cuts or query.windows or query.update_mode
    return not timed and not query.pair_newest


def drop_materialized_view(running: Running, statement: Drop) -> Result:
    """DROP MATERIALIZED VIEW of either kind."""
    item = running.context.find(statement.name)
    if item is not None and item.kind == "view" and item.definition.get("materialized"):
        views.drop_view(running, statement)
        return Result("DROP MATERIALIZED VIEW")
    return continuous.drop_materialized_view(running, statement)
