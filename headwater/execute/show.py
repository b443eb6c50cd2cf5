"""SHOW, DESCRIBE, SET, RESET and EXPLAIN."""

from __future__ import annotations

import pyarrow as pa

from headwater.errors import Error, NotSupportedError
from headwater.execute import system_tables, users
from headwater.execute.by_operators import operators_query
from headwater.execute.context import Context, Running
from headwater.execute.discretion import without_paths
from headwater.execute.expansion import text_of
from headwater.execute.explain_continuous import explain_select, explain_view
from headwater.execute.query import PlainScan, plain_scan, work_of
from headwater.execute.query_results import last_result
from headwater.execute.reading import Reading, ranges_read, reading, tree_tables
from headwater.plan.blocks import unknown_table
from headwater.result import Result
from headwater.settings import BY_NAME, shown, unknown_setting
from headwater.sql.caller import current
from headwater.sql.statements.create_continuous_query import CreateContinuousQuery
from headwater.sql.statements.create_materialized_view import CreateMaterializedView
from headwater.sql.statements.create_view import CreateView
from headwater.sql.statements.describe import Describe
from headwater.sql.statements.explain import Explain
from headwater.sql.statements.query import Query, make_query
from headwater.sql.statements.setting import ResetSetting, SetSetting
from headwater.sql.statements.show import Show, ShowSetting
from headwater.sql.text import Span
from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.read import blocks_within

KINDS = {
    "tables": ("table", "streaming table"),
    "streams": ("stream",),
    "sources": ("source",),
    "indexes": ("index",),
    "procedures": ("procedure",),
}


def show(running: Running, statement: Show) -> Result:
    """SHOW TABLES and the like: the names, kinds and times of creation."""
    context = running.context
    kind = statement.kind.lower()
    if kind == "tables":
        table = system_tables.tables(context).select(["name", "kind", "row_count", "created_at"])
        return Result("SHOW", table)
    if kind == "indexes":
        return Result("SHOW", system_tables.indexes(context))
    if kind == "queries":
        rows = system_tables.shown_to_caller(context, kind)
        return Result("SHOW", rows.drop_columns(["statement"]))
    if kind == "views":
        return Result("SHOW", _views(context))
    if kind in ("users", "tokens"):
        return Result("SHOW", users.listed(context, kind.removesuffix("s")))
    if kind in ("settings", "functions", "sinks", "sources"):
        return Result("SHOW", system_tables.shown_to_caller(context, kind))
    names = KINDS.get(kind)
    if names is None:
        raise NotSupportedError(f"SHOW {statement.kind} is not supported yet")
    rows = [
        {"name": o.name, "kind": o.kind, "created_at": o.created_at}
        for o in context.catalog.all(*names)
    ]
    schema = system_tables.columns(name=pa.string(), kind=pa.string(), created_at=pa.string())
    return Result("SHOW", pa.Table.from_pylist(rows, schema))


def _views(context: Context) -> pa.Table:
    """Views of every kind: how each is kept and how far it is."""
    shown = [
        "name",
        "kind",
        "maintenance",
        "state",
        "progress",
        "waiting_rows",
        "groups",
        "version",
    ]
    rows = system_tables.views(context).select(shown).to_pylist()
    for item in context.catalog.all("materialized view"):
        rows.append({"name": item.name, "kind": "materialized"})
    schema = pa.schema([system_tables.VIEWS.field(name) for name in shown])
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["name"])), schema)


def show_setting(running: Running, statement: ShowSetting) -> Result:
    """SHOW name: the value of one setting."""
    settings = running.context.settings
    name = statement.name.lower()
    if name in BY_NAME:
        value = str(settings[name])
    elif name in settings.spark:
        value = shown(name, settings.spark[name])
        if not current().is_admin:
            value = without_paths(value, running.context.folder.path)
    else:
        raise unknown_setting(str(statement.name)).at(statement.name.span.place(statement.text))
    return Result("SHOW", pa.table({name: [value]}))


def set_setting(running: Running, statement: SetSetting) -> Result:
    """SET name = value."""
    running.context.settings.set(str(statement.name), _plain_value(statement.value))
    return Result("SET")


def _plain_value(value: object) -> object:
    seconds = getattr(value, "microseconds", None)
    return seconds / 1e6 if seconds is not None else value


def reset_setting(running: Running, statement: ResetSetting) -> Result:
    """RESET name: the default again."""
    settings = running.context.settings
    names = (
        [statement.name.lower()] if statement.name else [s.name for s, _ in settings if not s.fixed]
    )
    for name in names:
        if name.startswith("spark."):
            settings.spark.pop(name, None)
        elif name in BY_NAME:
            settings.set(name, BY_NAME[name].default)
        else:
            raise unknown_setting(name)
    return Result("RESET")


def describe(running: Running, statement: Describe) -> Result:
    """DESCRIBE a table, a system table or a query: its columns and their types."""
    context = running.context
    target = statement.target
    if isinstance(target, Query):
        with work_of(context, target, statement.text) as work:
            rows = [(name, _type_name(type_), True) for name, type_ in context.kernel.analyse(work)]
        return _columns(rows)
    system = system_tables.find(context, target)
    if system is not None:
        return _columns([(f.name, name_of(f.type), f.nullable) for f in system.schema])
    found = context.find(target)
    if found is None:
        raise unknown_table(target, context.relation_names(), statement.text)
    if found.kind == "view":
        return _describe_view(context, found)
    result = last_result(context, target)
    if result is not None:
        return _columns([(f.name, name_of(f.type), True) for f in result.schema])
    stream = context.stream(target)
    if stream is not None:
        visible = [stream.definition.schema.field(name) for name in stream.definition.visible]
        return _columns([(f.name, name_of(f.type), f.nullable) for f in visible])
    schema = context.standard_table(target, statement.text).schema
    return _columns([(f.name, name_of(f.type), f.nullable) for f in schema])


def _describe_view(context: Context, item: CatalogObject) -> Result:
    if not item.definition["continuous"]:
        query = make_query(text_of(item))
        with work_of(context, query, query.text) as work:
            rows = [(name, _type_name(type_), True) for name, type_ in context.kernel.analyse(work)]
        return _columns(rows)
    view = context.engine.find_view(item.name)
    if view is None:
        raise context.dormant[item.key]
    return _columns([(f.name, name_of(f.type), True) for f in view.evaluation.output.schema])


def _type_name(spark_type: str) -> str:
    """A type as DESCRIBE shows it; those that no column can have as Spark names them."""
    try:
        return name_of(parse_type(spark_type))
    except Error:
        return spark_type.upper()


def _columns(rows: list[tuple[str, str, bool]]) -> Result:
    schema = system_tables.columns(column=pa.string(), type=pa.string(), nullable=pa.bool_())
    columns = [pa.array([row[i] for row in rows], schema.field(i).type) for i in range(3)]
    return Result("DESCRIBE", pa.Table.from_arrays(columns, schema=schema))


def explain(running: Running, statement: Explain) -> Result:
    """EXPLAIN: how a statement would be carried out."""
    inner = statement.statement
    if isinstance(inner, (CreateContinuousQuery, CreateMaterializedView)):
        return explain_select(running, statement, inner.query)
    if isinstance(inner, CreateView):
        return explain_view(running, inner)
    if isinstance(inner, Query) and (inner.sample is not None or inner.cuts or inner.update_mode):
        return explain_select(running, statement, inner)
    if not isinstance(inner, Query):
        raise NotSupportedError(f"EXPLAIN of {type(inner).__name__} is not supported yet")
    with reading(running.context, inner, statement.text) as found:
        plain = plain_scan(found)
        by_operators = operators_query(found) if plain is None else None
        if by_operators is not None:
            lines = ["run by operators", *by_operators.lines]
        elif plain is None:
            lines = ["run by Spark", *_stream_lines(found)]
            lines += _spark_plan(running.context, inner, statement)
        else:
            lines = _scan_lines(running.context, plain)
            if statement.analyze:
                lines.append(f"rows returned: {plain.rows.num_rows}")
    if not current().is_admin:
        folder = running.context.folder.path
        lines = [without_paths(line, folder, statement.text) for line in lines]
    return Result("EXPLAIN", pa.table({"plan": lines}))


def _spark_plan(context: Context, inner: Query, statement: Explain) -> list[str]:
    try:
        with work_of(context, inner, inner.text) as work:
            return context.kernel.explain(work).splitlines()
    except Error as error:
        if error.place is not None:
            span = Span(error.place.start, error.place.end).shifted(statement.statement_span.start)
            error.place = span.place(statement.text)
        raise


def _stream_lines(found: Reading) -> list[str]:
    """What of each streaming table Spark will read."""
    lines = []
    nodes = tree_tables(found.query)
    for reference in found.query.table_references:
        snapshot = found.snapshot(reference.name)
        if snapshot is None:
            continue
        if reference.window is not None:
            lines.append(f"window on {reference.name}: rows found by the storage and staged")
            continue
        ranges = ranges_read(found, snapshot, nodes.get(reference.name.span.start))
        kept = blocks_within(snapshot.blocks, ranges)
        lines.append(
            f"blocks of {reference.name}: {len(snapshot.blocks)} in all, "
            f"{len(kept)} after the interval index; the tail is staged"
        )
    return lines


def _scan_lines(context: Context, scan: PlainScan) -> list[str]:
    plan = scan.plan
    lines = ["plain scan, no Spark", *_source_lines(context, scan)]
    if plan.predicate is not None:
        lines.append(f"rows: {plan.predicate.arrow()}")
    kind = "columns" if plan.total is None else "sum"
    lines.append(f"{kind}: " + ", ".join(name for _, name in plan.columns))
    if plan.order:
        order = ", ".join(f"{o.column}{' DESC' if o.descending else ''}" for o in plan.order)
        lines.append(f"order: {order}")
    if plan.limit is not None:
        lines.append(f"limit: {plan.limit}")
    return lines


def _source_lines(context: Context, scan: PlainScan) -> list[str]:
    counts = scan.counts
    if counts is not None:
        blocks = context.streaming_table(scan.source).blocks
        groups = sum(block.row_groups for block in blocks)
        return [
            f"blocks of {scan.source}: {len(blocks)} in all, {counts.blocks_in_interval} after the "
            f"interval index, {counts.blocks_after_values} after value indexes",
            f"row groups: {groups} in all, {counts.row_groups_in_interval} after the "
            f"interval index, {counts.row_groups_after_values} after value indexes, "
            f"{counts.row_groups_read} read from disk",
            f"tail: {counts.tail_rows} rows searched; {counts.blocks_in_memory} blocks in memory",
        ]
    item = context.find(scan.source)
    table = context.tables.get(item.id) if item is not None else None
    if table is None:
        return [f"reads {scan.source}"]
    snapshot = table.snapshot
    return [f"reads {len(snapshot.files)} files of {scan.source}, version {snapshot.version}"]
