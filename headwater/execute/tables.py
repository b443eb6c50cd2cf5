"""CREATE, DROP, ALTER and TRUNCATE of standard tables.

A table exists once it is in the catalog. Files are made before that and deleted after the catalog gave it
up, so that a crash in between leaves only a folder that the next open removes or puts aside.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

from headwater.errors import BindError, Error, NotSupportedError, StorageError
from headwater.execute.change import delete
from headwater.execute.context import Context, Running, column_of
from headwater.execute.dependents import check_unread, forget_changes
from headwater.execute.query import work_of
from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation
from headwater.plan.blocks import unknown_table
from headwater.result import Result
from headwater.sql.statements.alter import (
    AlterTableAddColumns,
    AlterTableDropColumns,
    AlterTableRename,
    AlterTableRenameColumn,
)
from headwater.sql.statements.create_table import CreateTable
from headwater.sql.statements.delete import Delete
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.truncate import Truncate
from headwater.sql.text import Name
from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of, quoted
from headwater.storage.catalog import Catalog, CatalogObject
from headwater.storage.disk import is_damage
from headwater.storage.folder import DataFolder
from headwater.storage.standard_table import StandardTable


def open_tables(context: Context) -> None:
    """Opens every standard table of the catalog; one whose files are damaged is kept, with its error."""
    for item in context.catalog.all("table"):
        folder = context.folder.tables / item.definition["folder"]
        try:
            context.tables[item.id] = StandardTable(folder, schema_of(item), context.kept_s)
        except StorageError as error:
            if not is_damage(error):
                raise
            context.damaged[item.id] = error


def clear_left_overs(folder: DataFolder, catalog: Catalog) -> None:
    """Removes what a process left: staged rows, dropped tables; puts others aside that no object names.

    A folder of the second kind is of a statement that a crash cut short, or of a catalog that is not this
    folder's: who knows whether its rows are needed.
    """
    shutil.rmtree(folder.staging, ignore_errors=True)
    needed = {name for item in catalog.all() for name in item.folders}
    dropped = catalog.dropped
    for left in folder.tables.iterdir():
        if left.name in needed:
            continue
        if left.name in dropped:
            shutil.rmtree(left, ignore_errors=True)
        else:
            folder.put_aside(left)
    catalog.forget_dropped(name for name in dropped if not (folder.tables / name).exists())


def schema_of(item: CatalogObject) -> pa.Schema:
    """The columns of a table in the catalog."""
    return pa.schema(
        [
            pa.field(c["name"], parse_type(c["type"]), c["nullable"])
            for c in item.definition["columns"]
        ]
    )


def definition(schema: pa.Schema, folder: Path, comment: str | None = None) -> dict[str, object]:
    """A table as the catalog keeps it."""
    columns = [{"name": f.name, "type": name_of(f.type), "nullable": f.nullable} for f in schema]
    return {"columns": columns, "folder": folder.name, "comment": comment}


def create_table(running: Running, statement: CreateTable) -> Result:
    """CREATE TABLE, with columns or AS a query."""
    context = running.context
    with context.ddl:
        existing = context.find(statement.name)
        if existing is not None and statement.if_not_exists:
            return Result("CREATE TABLE")
        if existing is not None and not (statement.or_replace and existing.kind == "table"):
            context.catalog.check_free("table", statement.name)
        context.check_sound(existing)
        folder = context.table_folder(statement.name, fresh_number(context))
        try:
            table, count = _made(running, statement, folder)
            _publish(context, statement, table, existing)
        except BaseException:
            context.discard(folder)
            raise
    return Result("CREATE TABLE", row_count=count)


def fresh_number(context: Context) -> int:
    """A number that no folder of a table has, and no object of the catalog will get."""
    numbers = [0]
    for folder in context.folder.tables.iterdir():
        number = folder.name.rpartition("-")[2]
        numbers.append(int(number) if number.isdigit() else 0)
    return max(*numbers, context.catalog.next_id() - 1) + 1


def _made(
    running: Running, statement: CreateTable, folder: Path
) -> tuple[StandardTable, int | None]:
    context = running.context
    if statement.query is None:
        schema = pa.schema([column.field for column in statement.columns])
        return StandardTable.create(folder, schema, context.kept_s), None
    with work_of(context, statement.query, statement.text) as work:
        schema = query_schema(context.kernel.analyse(work))
        table = StandardTable.create(folder, schema, context.kept_s)
        files = table.written(context.kernel.write(work, folder / "first", running.cancellation))
    with table.writing:
        table.commit(files, ())
    return table, sum(file.row_count for file in files)


def query_schema(types: list[tuple[str, str]]) -> pa.Schema:
    """The columns of a new table made from a query; refused where a name or type cannot be stored."""
    seen: set[str] = set()
    fields = []
    for name, type_ in types:
        if name.casefold() in seen:
            raise BindError(
                f"the query has two columns named {name}",
                sqlstate="42701",
                hint="name them with AS",
            )
        seen.add(name.casefold())
        if name.startswith("_"):
            raise BindError(
                f"the name {name} starts with _",
                sqlstate="42602",
                hint="names that start with _ belong to the system; use AS to give another",
            )
        if type_ == "void":
            raise NotSupportedError(
                f"column {name} is always NULL and has no type", hint="CAST(NULL AS …) gives it one"
            )
        fields.append(pa.field(name, parse_type(type_)))
    return pa.schema(fields)


def _publish(
    context: Context, statement: CreateTable, table: StandardTable, existing: CatalogObject | None
) -> None:
    made = definition(table.schema, table.folder, statement.comment)
    if existing is None:
        item = context.catalog.add("table", statement.name, made)
        context.tables[item.id] = table
        return
    old = context.tables[existing.id]
    item = context.catalog.change(existing, made)
    context.tables[item.id] = table
    old.drop()


def drop_table(running: Running, statement: Drop) -> Result:
    """DROP TABLE."""
    context = running.context
    tag = f"DROP {statement.kind.upper()}"
    with context.ddl:
        found = context.find(statement.name)
        if found is None:
            if statement.if_exists:
                return Result(tag)
            raise unknown_table(statement.name, context.relation_names(), statement.text)
        if found.kind != "table":
            raise BindError(
                f"{found.name} is a {found.kind}, not a table",
                sqlstate="42809",
                hint=f"DROP {found.kind.upper()} {found.name}",
                place=statement.name.span.place(statement.text),
            )
        check_unread(context, found)
        forget_changes(context, found)
        context.catalog.remove(found)
        if context.damaged.pop(found.id, None) is None:
            context.tables.pop(found.id).drop()
        else:
            context.discard(context.folder.tables / found.definition["folder"])
    return Result(tag)


def truncate(running: Running, statement: Truncate) -> Result:
    """TRUNCATE TABLE: all rows go, without Spark."""
    removed = delete(running, Delete(statement.text, statement.table, None, None))
    return Result("TRUNCATE", row_count=removed.row_count)


def add_columns(running: Running, statement: AlterTableAddColumns) -> Result:
    """ALTER TABLE … ADD COLUMNS: NULL in the rows there are."""
    context = running.context
    with context.ddl:
        item, table = _target(context, statement.name, statement.text)
        for column in statement.columns:
            if any(f.name.casefold() == column.name.casefold() for f in table.schema):
                place = column.name.span.place(statement.text)
                raise BindError(
                    f"column {column.name} exists already", sqlstate="42701", place=place
                )
            if not column.nullable:
                raise NotSupportedError(
                    "a new column cannot be NOT NULL",
                    hint="rows there are have NULL in it",
                    place=column.name.span.place(statement.text),
                )
        table.add_columns([column.field for column in statement.columns])
        _record(context, item, table)
    return Result("ALTER TABLE")


def _target(context: Context, name: Name, text: str) -> tuple[CatalogObject, StandardTable]:
    table = _alterable(context, name, text)
    item = context.find(name)
    assert item is not None
    return item, table


def _alterable(context: Context, name: Name, text: str) -> StandardTable:
    """The standard table of that name; others keep their names and columns."""
    found = context.find(name)
    if found is not None and context.stream(name) is not None:
        raise NotSupportedError(
            f"a {found.kind} keeps its name and its columns",
            hint=f"create another one, and INSERT INTO it SELECT … FROM {found.name}"
            if found.kind == "streaming table"
            else "drop it and create it again",
            place=name.span.place(text),
        )
    return context.standard_table(name, text)


def _record(context: Context, item: CatalogObject, table: StandardTable) -> CatalogObject:
    made = definition(table.schema, table.folder, item.definition.get("comment"))
    return context.catalog.change(item, made)


def rename_table(running: Running, statement: AlterTableRename) -> Result:
    """ALTER TABLE … RENAME TO: the files stay where they are."""
    context = running.context
    with context.ddl:
        item, _ = _target(context, statement.name, statement.text)
        check_unread(context, item)
        forget_changes(context, item)
        context.catalog.change(item, item.definition, name=str(statement.new_name))
    return Result("ALTER TABLE")


def rename_column(running: Running, statement: AlterTableRenameColumn) -> Result:
    """ALTER TABLE … RENAME COLUMN a TO b."""
    with running.context.ddl:
        table = _alterable(running.context, statement.name, statement.text)
        old = column_of(statement.column, table.schema, statement.text)
        new = str(statement.new_name)
        if any(f.name.casefold() == new.casefold() and f.name != old.name for f in table.schema):
            place = statement.new_name.span.place(statement.text)
            raise BindError(f"column {new} exists already", sqlstate="42701", place=place)
        columns = [(f.name, f.with_name(new) if f.name == old.name else f) for f in table.schema]
        return _rebuild(running, statement.name, columns)


def drop_columns(running: Running, statement: AlterTableDropColumns) -> Result:
    """ALTER TABLE … DROP COLUMNS."""
    with running.context.ddl:
        table = _alterable(running.context, statement.name, statement.text)
        gone = set()
        for name in statement.columns:
            try:
                gone.add(column_of(name, table.schema, statement.text).name)
            except Error:
                if not statement.if_exists:
                    raise
        columns = [(f.name, f) for f in table.schema if f.name not in gone]
        if not columns:
            raise BindError(
                "a table needs at least one column", sqlstate="42P16", hint="DROP TABLE"
            )
        return _rebuild(running, statement.name, columns)


def _rebuild(
    running: Running, name: Name, columns: list[tuple[str, pa.Field[pa.DataType]]]
) -> Result:
    """Copies a table into a new folder under other column names, and swaps the two."""
    context = running.context
    item, table = _target(context, name, running.text)
    check_unread(context, item)
    schema = pa.schema([field for _, field in columns])
    folder = context.table_folder(item.name, fresh_number(context))
    with table.writing:
        try:
            new = StandardTable.create(folder, schema, context.kept_s)
            _copy(running, table, new, columns)
            made = context.catalog.change(
                item, definition(schema, folder, item.definition.get("comment"))
            )
        except BaseException:
            context.discard(folder)
            raise
        context.tables[made.id] = new
    table.drop()
    return Result("ALTER TABLE")


def _copy(
    running: Running,
    table: StandardTable,
    new: StandardTable,
    columns: list[tuple[str, pa.Field[pa.DataType]]],
) -> None:
    snapshot = table.snapshot
    if not snapshot.files:
        return
    selected = ", ".join(f"{quoted(old)} AS {quoted(field.name)}" for old, field in columns)
    work = Work(
        f"SELECT {selected} FROM old_table",
        {"old_table": Relation(snapshot.schema, snapshot.files)},
    )
    paths = running.context.kernel.write(work, new.folder / "first", running.cancellation)
    with new.writing:
        new.commit(new.written(paths), ())
