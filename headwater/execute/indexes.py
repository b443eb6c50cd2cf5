"""CREATE INDEX and DROP INDEX on streaming tables."""

from __future__ import annotations

from headwater.errors import BindError, NotSupportedError
from headwater.execute.context import Context, Running, column_of
from headwater.result import Result
from headwater.sql.names import nearest
from headwater.sql.statements.create_index import CreateIndex
from headwater.sql.statements.drop import Drop
from headwater.sql.types import name_of
from headwater.storage.value_index import indexable


def open_indexes(context: Context) -> None:
    """Gives every streaming table the indexes that the catalog has for it."""
    for item in context.catalog.all("index"):
        table = context.streams.find(item.definition["table_id"])
        if table is not None:
            table.indexes.add(
                item.name, item.id, item.definition["column"], item.definition["method"]
            )
    for table in context.streams.all():
        table.indexes.keep_only(table.blocks)


def create_index(running: Running, statement: CreateIndex) -> Result:
    """CREATE INDEX i ON t [USING BTREE | HASH] (column): built in the background."""
    context = running.context
    with context.ddl:
        if context.catalog.find(statement.name, "index") is not None and statement.if_not_exists:
            return Result("CREATE INDEX")
        if context.find(statement.table) is not None and context.stream(statement.table) is None:
            raise NotSupportedError(
                "indexes stand on streaming tables", hint="a standard table is scanned by Spark"
            )
        table = context.streaming_table(statement.table, statement.text)
        if len(statement.columns) != 1:
            raise NotSupportedError("an index has one column", hint="make one index per column")
        field = column_of(statement.columns[0], table.definition.schema, statement.text)
        if not indexable(field.type):
            raise BindError(
                f"column {field.name} {name_of(field.type)} cannot be indexed",
                sqlstate="42804",
                place=statement.columns[0].span.place(statement.text),
            )
        definition = {
            "table_id": table.definition.id,
            "column": field.name,
            "method": statement.method,
        }
        item = context.catalog.add("index", statement.name, definition)
        table.indexes.add(item.name, item.id, field.name, statement.method)
    context.streams.wake()
    return Result("CREATE INDEX")


def drop_index(running: Running, statement: Drop) -> Result:
    """DROP INDEX."""
    context = running.context
    with context.ddl:
        found = context.catalog.find(statement.name, "index")
        if found is None:
            if statement.if_exists:
                return Result("DROP INDEX")
            near = nearest(str(statement.name), [o.name for o in context.catalog.all("index")])
            raise BindError(
                f"index {statement.name} does not exist",
                sqlstate="42704",
                hint=f"did you mean {near}?" if near else "SHOW INDEXES lists what there is",
                place=statement.name.span.place(statement.text),
            )
        context.catalog.remove(found)
        table = context.streams.find(found.definition["table_id"])
        if table is not None:
            table.indexes.remove(found.name)
    return Result("DROP INDEX")
