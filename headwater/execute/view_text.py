"""Plain views in a query's text: each is replaced by its query, in parentheses, before anything else."""

from __future__ import annotations

from headwater.errors import BindError
from headwater.execute.context import Context
from headwater.sql.statements.query import Query, make_query
from headwater.sql.text import EditedText
from headwater.sql.types import quoted
from headwater.storage.catalog import CatalogObject

DEEPEST = 32


def is_plain(item: CatalogObject | None) -> bool:
    """Whether a catalog object is a view that is only a text."""
    return item is not None and item.kind == "view" and not item.definition["continuous"]


def with_views(context: Context, query: Query, without: str | None = None) -> Query:
    """The query with plain views replaced by theirs; the same one if there are none.

    `without`: the view that is being replaced; it may not stand in its own query.
    """
    for _ in range(DEEPEST):
        edited = EditedText(query.text)
        found = False
        for reference in query.table_references:
            item = context.find(reference.name)
            if item is not None and item.key == without:
                raise BindError(
                    f"view {item.name} would be made of itself", sqlstate="42P19", hint=None
                )
            if item is None or not is_plain(item):
                continue
            if reference.version is not None or reference.window or reference.cut:
                raise BindError(
                    f"{item.name} is a plain view: it takes no window, no CUT and no version",
                    sqlstate="42P20",
                )
            found = True
            alias = "" if reference.alias else f" AS {quoted(item.name)}"
            span = reference.name.span
            edited.replace(span.start, span.end, f"({text_of(item)}){alias}")
        if not found:
            return query
        query = make_query(edited.text)
    raise BindError("views stand in each other too deep", sqlstate="54001")


def text_of(item: CatalogObject) -> str:
    """A plain view's query, its columns under their names."""
    text, names = item.definition["text"], item.definition["columns"]
    if names is None:
        return str(text)
    columns = ", ".join(quoted(name) for name in names)
    return f"SELECT * FROM ({text}) AS {quoted(item.name)}({columns})"
