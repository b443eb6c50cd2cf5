"""UPDATE, DELETE and MERGE of tables: copy-on-write.

One mechanism for all three. The files that hold rows which change are written again without them, the new
rows are added, and one commit swaps the files. Operators find the rows and their new values where the
whitelist has all that the statement says and the table's files are not large; else Spark does. It computes
the *actions*: which row (file and row number) changes, how, and the new values. Rows in untouched files are
not read a second time.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.engine.following import Following
from headwater.engine.table_changes import TableChanges
from headwater.errors import BindError, DataError, NotSupportedError
from headwater.execute.context import Context, Running, column_of
from headwater.execute.query import check_tables, work_with_functions
from headwater.execute.system_tables import columns as columns_of
from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation
from headwater.plan.assign import cast_text
from headwater.plan.change import ChangePlan, change_plan
from headwater.result import Result
from headwater.sql.assemble import Assembly
from headwater.sql.statements.delete import Delete
from headwater.sql.statements.merge import Merge, MergeClause
from headwater.sql.statements.query import Query
from headwater.sql.statements.update import Assignment, Update
from headwater.sql.text import Name, Span
from headwater.sql.types import quoted
from headwater.storage.door import check
from headwater.storage.modes import make_folder
from headwater.storage.scan import scan_rows
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.blocks import Block
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.seen import SeenTable
from headwater.storage.streaming.set_clock import wait_for_stored_rows
from headwater.storage.streaming.table import StreamingTable

DELETED, UPDATED, INSERTED = 1, 2, 3
ACTIONS = "headwater_actions"
TOUCHED = "headwater_touched"


class RowsTaker(Protocol):
    """What takes the rows that go and those that come in their place, instead of all rows again."""

    number: str
    lock: threading.RLock

    def rows_replaced(self, table: SeenTable, gone: pa.Table, added: pa.Table, was: int) -> None:
        """Stored rows have gone and others come in their place; its lock is held."""


class ChangeTarget(Protocol):
    """A table whose rows are being changed; other writers wait meanwhile."""

    schema: pa.Schema
    files: tuple[str, ...]
    seen_by: tuple[str, ...]  # columns that say whether readers see a row

    def seen(self, rows: pa.Table) -> int:
        """How many of the rows readers see."""

    def rewrite(self, touched: Sequence[str], work: Work, keys: pa.Table) -> None:
        """Puts the result of the work in the place of touched files, in one commit; `keys`: the actions."""

    def put(self, touched: Sequence[str], rows: pa.Table, changed: pa.Table) -> None:
        """Puts rows in the place of touched files, in one commit; `changed`: the rows that go."""

    def clear(self) -> int:
        """Removes all rows; how many of them readers saw."""

    def check_assigned(self, column: Name, text: str) -> None:
        """An error if the column must not be set."""


@contextlib.contextmanager
def _target(running: Running, name: Name) -> Iterator[ChangeTarget]:
    """The table to be changed, with its writers held."""
    stream = running.context.stream(name)
    if stream is None:
        table = running.context.standard_table(name, running.text)
        with table.writing:
            yield _StandardTarget(running, table)
        return
    if stream.definition.kind == "materialized view":
        raise BindError(
            f"rows of materialized view {name} are its query's",
            sqlstate="42809",
            hint="change the tables that it reads",
        )
    if stream.definition.kind == "stream":
        raise BindError(
            f"rows of stream {name} are never changed",
            sqlstate="0A000",
            hint="a streaming table keeps its rows and takes UPDATE and DELETE",
            place=name.span.place(running.text),
        )
    engine = running.context.engine
    with engine.staying(engine.reading(stream)), stream.upkeep:
        _check_views(running.context, stream)
        running.context.streams.seal(stream)
        yield _StreamTarget(running, stream)


def _check_views(context: Context, table: StreamingTable) -> None:
    """BindError if a view could not be made again: RANGE has dropped rows of it, or it cannot start."""
    for item in context.catalog.all("view"):
        if item.key in context.dormant and table.definition.id in item.definition["reads"]:
            raise BindError(
                f"rows of {table.definition.name} cannot be changed: view {item.name} cannot start",
                sqlstate="55000",
                detail=str(context.dormant[item.key]),
                hint=f"DROP VIEW {item.name} first",
            )
    for view in context.engine.views():
        mine = [p for p in view.pipelines if p.place.table is table]
        if any(pipeline.outlives_rows for pipeline in mine):
            raise BindError(
                f"rows of {table.definition.name} cannot be changed: view {view.name} has counted "
                "rows that RANGE has dropped",
                sqlstate="55000",
                hint=f"DROP VIEW {view.name} first",
            )


class _StandardTarget:
    """A standard table under change."""

    seen_by: tuple[str, ...] = ()

    def __init__(self, running: Running, table: StandardTable) -> None:
        self._running = running
        self._table = table
        self.schema = table.schema
        self.files = table.snapshot.files

    def seen(self, rows: pa.Table) -> int:
        """All of them."""
        return rows.num_rows

    def rewrite(self, touched: Sequence[str], work: Work, keys: pa.Table) -> None:  # noqa: ARG002
        """Spark writes the new files under the table's folder."""
        folder = self._table.folder / f"rows-{uuid.uuid4().hex}"
        try:
            paths = self._running.context.kernel.write(work, folder, self._running.cancellation)
            self._table.commit(self._table.written(paths), touched)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def put(self, touched: Sequence[str], rows: pa.Table, changed: pa.Table) -> None:  # noqa: ARG002
        """One file takes the place of the touched ones."""
        check(rows, self.schema)
        self._table.replace(touched, rows.cast(self.schema))

    def clear(self) -> int:
        """One commit removes all files."""
        snapshot = self._table.snapshot
        if snapshot.files:
            self._table.commit((), snapshot.files)
        return snapshot.row_count

    def check_assigned(self, column: Name, text: str) -> None:
        """Every column may be set."""


class _StreamTarget:
    """A streaming table under change: its tail is sealed, inserts go on into a new one."""

    def __init__(self, running: Running, table: StreamingTable) -> None:
        self._running = running
        self._table = table
        self._blocks = {str(table.folder / block.path): block for block in table.blocks}
        self.schema = table.definition.stored_schema
        self.files = tuple(self._blocks)
        self.seen_by: tuple[str, ...] = (table.definition.time, SEQUENCE)
        with table.reading() as snapshot:
            self._oldest = snapshot.oldest_visible

    def seen(self, rows: pa.Table) -> int:
        """Those that RANGE does not hide."""
        if self._oldest is None:
            return rows.num_rows
        definition = self._table.definition
        times = rows.column(definition.time).cast(definition.time_type)
        return int((definition.ticks(times) >= self._oldest).sum())

    def rewrite(self, touched: Sequence[str], work: Work, keys: pa.Table) -> None:
        """The touched blocks are written again, each row with its time, sequence and lateness."""
        self.put(touched, self._running.context.kernel.run(work, self._running.cancellation), keys)

    def put(self, touched: Sequence[str], rows: pa.Table, changed: pa.Table) -> None:
        """The same, with the rows."""
        check(rows, self._table.schema)
        rows = rows.cast(self.schema)
        self._replace([self._blocks[path] for path in touched], rows, changed.column(SEQUENCE))

    def clear(self) -> int:
        """One commit removes all blocks."""
        blocks, seen = list(self._blocks.values()), 0
        for path, block in self._blocks.items():
            if self._oldest is None or block.low >= self._oldest:
                seen += block.row_count
            elif block.high >= self._oldest:
                seen += self.seen(pq.read_table(path, columns=list(self.seen_by)))
        if blocks:
            self._replace(blocks, None)
        return seen

    def _replace(
        self,
        old: Sequence[Block],
        rows: pa.Table | None,
        changed: pa.ChunkedArray | None = None,
    ) -> None:
        """Readers make their state again, also if the commit does not come about.

        `changed`: the numbers of rows that go or are replaced, if others stay: some take these alone.
        """
        takers, parts = list[RowsTaker](), None
        if changed is not None and rows is not None:
            takers = self._takers()
            parts = self._parts(old, rows, changed) if takers else None
        was = self._table.generation
        with contextlib.ExitStack() as stack:
            for taker in takers:
                stack.enter_context(taker.lock)  # none reads between the commit and its change
            self._forget_snapshots()
            try:
                self._table.replace(old, rows)
            except BaseException:
                self._table.rows_changed()
                raise
            self._table.rows_changed()
            for taker in takers:
                assert parts is not None
                taker.rows_replaced(self._table, *parts, was)
        left = 0 if rows is None else rows.num_rows
        if left < sum(block.row_count for block in old):
            wait_for_stored_rows(self._table)

    def _takers(self) -> list[RowsTaker]:
        """What keeps views on the table and who follows it, in one order."""
        engine = self._running.context.engine
        circuits = [circuit for view in engine.views() for circuit in view.circuits]
        found: list[RowsTaker] = [c for c in circuits if self._table in c.tables.values()]
        pipelines = {p.number: p for view in engine.views() for p in view.pipelines}
        found += [p for p in pipelines.values() if p.place.table is self._table]
        for query in engine.reading(self._table):
            if isinstance(query, Following) and isinstance(query.source, TableChanges):
                found.append(query.source)
        return sorted(found, key=lambda taker: taker.number)

    def _parts(
        self, old: Sequence[Block], rows: pa.Table, changed: pa.ChunkedArray
    ) -> tuple[pa.Table, pa.Table]:
        """The rows that go, and those that come in their place."""
        paths = [str(self._table.folder / block.path) for block in old]
        names = self.schema.names
        before = pa.concat_tables([pq.read_table(path, columns=names) for path in paths])
        which = changed.combine_chunks()
        gone, added = (
            table.filter(pc.is_in(table.column(SEQUENCE), value_set=which))
            for table in (before.cast(self.schema), rows)
        )
        return gone, added

    def _forget_snapshots(self) -> None:
        """State that was made of the old rows must not be there if the process ends now."""
        context = self._running.context
        for query in context.engine.reading(self._table):
            query.rows_will_change(self._table)
        for item in context.catalog.all("continuous query"):
            if (
                item.key in context.dormant
                and self._table.definition.id in item.definition["reads"]
            ):
                context.forget_snapshots(item)

    def check_assigned(self, column: Name, text: str) -> None:
        """T, and what the database itself keeps, cannot be set."""
        definition = self._table.definition
        fixed = {definition.time.casefold(), *definition.hidden}
        if column.casefold() in fixed:
            raise BindError(
                f"column {column} cannot be changed",
                sqlstate="42P10",
                hint="the time of a stored row stays; DELETE it and INSERT a new one",
                place=column.span.place(text),
            )


def delete(running: Running, statement: Delete) -> Result:
    """DELETE FROM t [WHERE …]."""
    with _target(running, statement.table) as table:
        if statement.where is None:
            return Result("DELETE", row_count=table.clear())
        count = _by_operators(running, table, statement, ())
        if count is not None:
            return Result("DELETE", row_count=count)
        text = Assembly(statement.text)
        text.say(f"SELECT _file, _row, {DELETED} AS _action")
        for field in table.schema:
            text.say(f", {quoted(field.name)}")
        text.say(f" FROM {_source(statement.table, statement.alias)} WHERE ").copy(statement.where)
        return Result("DELETE", row_count=_apply(running, table, statement.table, text))


def update(running: Running, statement: Update) -> Result:
    """UPDATE t SET … [WHERE …]."""
    with _target(running, statement.table) as table:
        for assignment in statement.assignments:
            table.check_assigned(assignment.column, statement.text)
        count = _by_operators(running, table, statement, statement.assignments)
        if count is not None:
            return Result("UPDATE", row_count=count)
        types = _value_types(running, table, statement)
        text = Assembly(statement.text)
        text.say(f"SELECT _file, _row, {UPDATED} AS _action")
        _new_values(
            text, table.schema, statement.assignments, types, statement.alias or statement.table
        )
        text.say(f" FROM {_source(statement.table, statement.alias)}")
        if statement.where is not None:
            text.say(" WHERE ").copy(statement.where)
        return Result("UPDATE", row_count=_apply(running, table, statement.table, text))


def _source(table: Name, alias: Name | None) -> str:
    # Always with an alias: Spark reads `t WHERE (flag)` as a table with an alias and a column list.
    return f"{quoted(table)} AS {quoted(alias if alias is not None else table)}"


def _plan(
    running: Running, table: ChangeTarget, statement: Delete | Update, set_: Sequence[Assignment]
) -> ChangePlan | None:
    """How operators carry out the statement; None where that is Spark's."""
    settings = running.context.settings
    if not settings.operators or _size(table.files) > settings.integer("change_mb") << 20:
        return None
    text = Assembly(statement.text).say("SELECT ")
    for index, assignment in enumerate(set_):
        text.say(", " if index else "").copy(assignment.value)
    text.say(f"{'' if set_ else '1'} FROM {_source(statement.table, statement.alias)}")
    if statement.where is not None:
        text.say(" WHERE ").copy(statement.where)
    targets = [column_of(a.column, table.schema, statement.text) for a in set_]
    qualifier = statement.alias or statement.table
    return change_plan(text.text, table.schema, qualifier, targets, running.context.terms())


def _size(files: Sequence[str]) -> int:
    """Bytes on disk; who reads a file that is missing says so."""
    there = [Path(path) for path in files if Path(path).exists()]
    return sum(path.stat().st_size for path in there)


def _by_operators(
    running: Running, table: ChangeTarget, statement: Delete | Update, set_: Sequence[Assignment]
) -> int | None:
    """Carries a statement out without Spark; the rows changed that are seen.

    None if it is Spark's, also where a row's expression raised: Spark says whether the statement does.
    """
    plan = _plan(running, table, statement, set_)
    if plan is None:
        return None
    looked_at = [f for f in table.schema if f.name in plan.columns] or [table.schema.field(0)]
    touched, left, gone = list[str](), list[pa.Table](), list[pa.Table]()
    try:
        for path in table.files:
            running.cancellation.check()
            chosen = plan.chosen(scan_rows([path], pa.schema(looked_at)))
            if not pc.any(chosen).as_py():
                continue
            rows = scan_rows([path], table.schema)
            touched.append(path)
            gone.append(rows.filter(chosen))
            left.append(rows.filter(pc.invert(chosen)))
            if plan.values:
                left.append(plan.changed(gone[-1]))
    except DataError:
        return None
    if not touched:
        return 0
    changed = pa.concat_tables(gone)
    table.put(touched, pa.concat_tables(left), changed)
    return table.seen(changed)


def _value_types(running: Running, table: ChangeTarget, statement: Update) -> list[str]:
    """The types of the SET expressions, from Spark's own analysis."""
    text = Assembly(statement.text).say("SELECT ")
    for index, assignment in enumerate(statement.assignments):
        text.say(", " if index else "").copy(assignment.value).say(f" AS c{index}")
    text.say(f" FROM {_source(statement.table, statement.alias)}")
    return _analysed(running, table, statement.table, text)


def _analysed(running: Running, table: ChangeTarget, name: Name, text: Assembly) -> list[str]:
    context = running.context
    with work_with_functions(context, text) as work:
        itself = Relation(table.schema, table.files, with_rows=True)
        work = replace(work, relations={**work.relations, name.key: itself})
        return [type_ for _, type_ in context.kernel.analyse(work)]


def _new_values(
    text: Assembly,
    schema: pa.Schema,
    assignments: Sequence[Assignment],
    types: Sequence[str],
    qualifier: Name,
) -> None:
    """Adds one column per column of the table: the assigned expression, or the old value."""
    assigned = {
        column_of(a.column, schema, text.original).name: (a, type_)
        for a, type_ in zip(assignments, types, strict=True)
    }
    for field in schema:
        found = assigned.get(field.name)
        if found is None:
            text.say(f", {quoted(qualifier)}.{quoted(field.name)}")
            continue
        assignment, type_ = found
        cast_text("", type_, field)  # refuses what may not be stored
        text.say(", ")
        _cast(text, assignment.value, field)
        text.say(f" AS {quoted(field.name)}")


def _cast(text: Assembly, value: Span, field: pa.Field[pa.DataType]) -> None:
    head, tail = cast_text("\0", "void", field).split("\0")
    text.say(head).copy(value).say(tail)


def _apply(running: Running, table: ChangeTarget, name: Name, text: Assembly) -> int:
    """Computes the actions, rewrites the files they touch, and commits; the rows changed that are seen."""
    context = running.context
    actions_folder = context.folder.staging / f"actions-{uuid.uuid4().hex}"
    make_folder(actions_folder.parent)
    try:
        with work_with_functions(context, text) as work:
            itself = Relation(table.schema, table.files, with_rows=True)
            work = replace(work, relations={**work.relations, name.key: itself})
            paths = context.kernel.write(work, actions_folder, running.cancellation)
        keys = _keys(paths, table)
        if keys.num_rows:
            touched = _touched(keys, table.files)
            table.rewrite(touched, _rewriting(table.schema, touched, paths), keys)
        return table.seen(keys)
    finally:
        shutil.rmtree(actions_folder, ignore_errors=True)


def _keys(paths: Sequence[Path], table: ChangeTarget) -> pa.Table:
    """The actions without the new values."""
    columns = ["_file", "_row", "_action", *table.seen_by]
    return pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])


def _touched(keys: pa.Table, files: Sequence[str]) -> list[str]:
    """Which files hold rows that change; a row that changes twice is an error."""
    old = keys.filter(pc.field("_action") != INSERTED)
    distinct = old.group_by(["_file", "_row"]).aggregate([])
    if distinct.num_rows < old.num_rows:
        raise DataError(
            "MERGE would change a row of the table more than once",
            sqlstate="21000",
            hint="more than one row of the source matches it; make the source's keys unique",
        )
    names = set(old.column("_file").unique().to_pylist())
    return [path for path in files if Path(path).name in names]


def _rewriting(schema: pa.Schema, touched: list[str], actions: Sequence[Path]) -> Work:
    """The rows of the touched files that stay, and the new ones."""
    columns = ", ".join(quoted(f.name) for f in schema)
    fields = columns_of(_file=pa.string(), _row=pa.int64(), _action=pa.int32())
    with_actions = pa.schema([*fields, *[f.with_nullable(True) for f in schema]])
    relations = {
        TOUCHED: Relation(schema, tuple(touched), with_rows=True),
        ACTIONS: Relation(with_actions, tuple(str(p) for p in actions)),
    }
    sql = (
        f"SELECT {columns} FROM {TOUCHED} WHERE NOT EXISTS (SELECT 1 FROM {ACTIONS}"
        f" WHERE {ACTIONS}._action <> {INSERTED} AND {ACTIONS}._file = {TOUCHED}._file"
        f" AND {ACTIONS}._row = {TOUCHED}._row)"
        f" UNION ALL SELECT {columns} FROM {ACTIONS} WHERE _action <> {DELETED}"
    )
    return Work(sql, relations)


def merge(running: Running, statement: Merge) -> Result:
    """MERGE INTO t USING s ON … WHEN …."""
    if running.context.stream(statement.table) is not None:
        raise NotSupportedError(
            "MERGE into a streaming table is not supported",
            hint="UPDATE and DELETE change stored rows; INSERT adds new ones",
        )
    _check_source(running.context, statement)
    with _target(running, statement.table) as table:
        builder = _MergeText(running, table, statement)
        return Result("MERGE", row_count=_apply(running, table, statement.table, builder.text()))


def _check_source(context: Context, statement: Merge) -> None:
    if isinstance(statement.source, Query):
        check_tables(context, statement.source, statement.text)
    else:
        context.standard_table(statement.source, statement.text)


class _MergeText:
    """Builds the query that computes a MERGE's actions."""

    def __init__(self, running: Running, table: ChangeTarget, statement: Merge) -> None:
        self.running = running
        self.table = table
        self.statement = statement
        self.target = statement.alias or statement.table
        source = statement.source_alias
        if source is None:
            named = isinstance(statement.source, Name)
            source = Name(str(statement.source)) if named else Name("headwater_source")
        self.source = source
        self.types = self._types()

    def text(self) -> Assembly:
        """The actions: one row per row of the table that changes, and per row that is added."""
        text = Assembly(self.statement.text)
        address = f"{quoted(self.target)}._file, {quoted(self.target)}._row"
        text.say(f"SELECT * FROM (SELECT {address}, ")
        self._action(text)
        text.say(" AS _action")
        for field in self.table.schema:
            text.say(", ")
            self._value(text, field)
            text.say(f" AS {quoted(field.name)}")
        self._join(text, "FULL OUTER" if self._by_source() else "RIGHT OUTER")
        return text.say(") AS actions WHERE _action IS NOT NULL")

    def _by_source(self) -> bool:
        return any(c.when == "not matched by source" for c in self.statement.clauses)

    def _join(self, text: Assembly, kind: str) -> None:
        text.say(f" FROM (SELECT *, TRUE AS _in_table FROM {quoted(self.statement.table)})")
        text.say(f" AS {quoted(self.target)} {kind} JOIN (SELECT *, TRUE AS _in_source FROM ")
        if isinstance(self.statement.source, Query):
            text.copy(self.statement.source.span)
        else:
            text.say(quoted(self.statement.source))
        text.say(f") AS {quoted(self.source)} ON ").copy(self.statement.condition)

    def _when(self, text: Assembly, clause: MergeClause) -> None:
        """The condition under which a clause's rows are meant."""
        table, source = f"{quoted(self.target)}._in_table", f"{quoted(self.source)}._in_source"
        conditions = {
            "matched": f"{table} AND {source}",
            "not matched": f"{table} IS NULL",
            "not matched by source": f"{source} IS NULL",
        }
        text.say(f" WHEN {conditions[clause.when]}")
        if clause.condition is not None:
            text.say(" AND ").copy(clause.condition)

    def _action(self, text: Assembly) -> None:
        codes = {"delete": DELETED, "update": UPDATED, "update all": UPDATED}
        text.say("CASE")
        for clause in self.statement.clauses:
            self._when(text, clause)
            text.say(f" THEN {codes.get(clause.action, INSERTED)}")
        text.say(" END")

    def _value(self, text: Assembly, field: pa.Field[pa.DataType]) -> None:
        text.say("CASE")
        for clause in self.statement.clauses:
            self._when(text, clause)
            text.say(" THEN ")
            self._clause_value(text, clause, field)
        text.say(" END")

    def _clause_value(
        self, text: Assembly, clause: MergeClause, field: pa.Field[pa.DataType]
    ) -> None:
        old = f"{quoted(self.target)}.{quoted(field.name)}"
        value = self._expression(clause, field)
        if clause.action in ("update all", "insert all"):
            name = f"{quoted(self.source)}.{quoted(field.name)}"
            text.say(cast_text(name, self.types.get((id(clause), field.name), "void"), field))
        elif value is not None:
            cast_text("", self.types[id(clause), field.name], field)
            _cast(text, value, field)
        elif clause.action == "insert":
            text.say(cast_text("NULL", "void", field))
        else:
            text.say(old)

    def _expression(self, clause: MergeClause, field: pa.Field[pa.DataType]) -> Span | None:
        """The expression that a clause gives for a column."""
        for assignment in clause.assignments:
            if (
                column_of(assignment.column, self.table.schema, self.statement.text).name
                == field.name
            ):
                return assignment.value
        if clause.action != "insert":
            return None
        names = [
            column_of(c, self.table.schema, self.statement.text).name for c in clause.columns
        ] or self.table.schema.names
        if len(names) != len(clause.values):
            raise DataError(
                f"INSERT has {len(clause.values)} values for {len(names)} columns",
                sqlstate="42601",
                place=clause.span.place(self.statement.text),
            )
        return dict(zip(names, clause.values, strict=True)).get(field.name)

    def _types(self) -> dict[tuple[int, str], str]:
        """The types of all expressions, from one analysis by Spark."""
        text = Assembly(self.statement.text).say("SELECT 1")
        wanted: list[tuple[int, str]] = []
        for clause in self.statement.clauses:
            for field in self.table.schema:
                value = self._expression(clause, field)
                if value is not None:
                    text.say(", ").copy(value)
                elif clause.action in ("update all", "insert all"):
                    text.say(f", {quoted(self.source)}.{quoted(field.name)}")
                else:
                    continue
                wanted.append((id(clause), field.name))
        self._join(text, "FULL OUTER")
        found = _analysed(self.running, self.table, self.statement.table, text)
        return dict(zip(wanted, found[1:], strict=True))
