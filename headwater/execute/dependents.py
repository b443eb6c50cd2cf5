"""What depends on what: a table that a continuous query reads cannot go."""

from __future__ import annotations

from headwater.errors import BindError
from headwater.execute.context import Context
from headwater.sql.statements.query import Query
from headwater.storage.catalog import CatalogObject


def names_read(query: Query) -> set[str]:
    """The names of tables and views that a query reads; a column of the same name is none."""
    return {reference.name.key for reference in query.table_references}


def check_unread(context: Context, item: CatalogObject) -> None:
    """BindError 2BP01 if a continuous query or a view reads a table."""
    views = [
        view.name
        for view in context.catalog.all("view")
        if item.id in view.definition["reads"] or item.key in view.definition["tables"]
    ]
    if views:
        raise BindError(
            f"{item.kind} {item.name} is read by view{'s' * (len(views) > 1)} {', '.join(views)}",
            sqlstate="2BP01",
            hint=f"DROP VIEW {views[0]} first",
        )
    readers: list[str] = []
    for query in context.catalog.all("continuous query"):
        streams = item.id in query.definition["reads"]
        if streams or (item.kind == "table" and item.key in query.definition["tables"]):
            readers.append(query.name.removeprefix("_"))
    if readers:
        view = context.find(readers[0])
        is_view = view is not None and view.kind == "materialized view"
        way = "DROP MATERIALIZED VIEW" if is_view else "KILL QUERY"
        raise BindError(
            f"{item.kind} {item.name} is read by continuous query {', '.join(readers)}",
            sqlstate="2BP01",
            hint=f"{way} {readers[0]} first",
        )
