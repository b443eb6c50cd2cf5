"""What stands in FROM, with its columns: for catalogs that others read."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.execute.context import TABLE_KINDS, Context
from headwater.execute.query_results import output_of
from headwater.storage.catalog import CatalogObject


@dataclass(frozen=True)
class RelationColumns:
    """A table, view or query: its number, name, kind, columns and the text that made it."""

    id: int
    name: str
    kind: str
    schema: pa.Schema
    text: str | None = None


def relations(context: Context) -> list[RelationColumns]:
    """All of them; a plain view, whose columns only Spark knows, comes without columns."""
    names = [item.name for item in context.catalog.all(*TABLE_KINDS)]
    return [found for name in names if (found := relation(context, name)) is not None]


def relation(context: Context, name: str) -> RelationColumns | None:
    """The table, view or query of that name."""
    item = context.find(name)
    if item is None or item.name.startswith("_"):
        return None
    return RelationColumns(
        item.id, item.name, item.kind, columns_of(context, item), item.definition.get("text")
    )


def columns_of(context: Context, item: CatalogObject) -> pa.Schema:
    """The columns that a reader of `SELECT *` sees; none where they are not known without Spark."""
    table = context.tables.get(item.id)
    if table is not None:
        return table.schema
    stream = context.streams.find(item.id)
    if stream is not None and item.kind != "continuous query":
        definition = stream.definition
        return pa.schema([definition.schema.field(name) for name in definition.visible])
    view = context.engine.find_view(item.name)
    if view is not None:
        return view.evaluation.output.schema
    query = context.engine.find_named(item.name)
    return pa.schema([]) if query is None else output_of(query)
