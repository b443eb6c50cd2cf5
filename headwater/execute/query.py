"""One-time queries: plain scans in line, everything else on Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.execute import system_tables
from headwater.execute.context import Context, Running, unknown_table
from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation
from headwater.plan.scan import ScanPlan, plain_source, scan_plan
from headwater.result import Result
from headwater.sql.statements.query import Query
from headwater.sql.text import EditedText, Name
from headwater.storage.scan import scan_files, scan_table


def run_query(running: Running, query: Query) -> Result:
    """The rows of a query."""
    refuse_streaming(query)
    table = plain_scan(running.context, query)
    if table is None:
        with work_of(running.context, query, running.text) as work:
            table = running.context.kernel.run(work, running.cancellation)
    return Result("SELECT", table)


def refuse_streaming(query: Query) -> None:
    """What later versions carry out."""
    if not query.is_plain:
        raise NotSupportedError(
            "windows, cuts and the other clauses of continuous queries are not supported yet"
        )


def plain_scan(context: Context, query: Query) -> pa.Table | None:
    """The rows, if the query is a plain scan of one table; else None."""
    found = scan_of(context, query)
    if found is None:
        return None
    plan, source = found
    if isinstance(source, pa.Table):
        return scan_table(plan, source)
    with context.standard_table(source).reading() as snapshot:
        return scan_files(plan, snapshot.files, snapshot.schema)


def scan_of(context: Context, query: Query) -> tuple[ScanPlan, str | pa.Table] | None:
    """The plan of a plain scan and what it reads: a table's name, or a system table's rows."""
    name = plain_source(query.text)
    if name is None:
        return None
    zone = context.settings.text("time_zone")
    rows = system_tables.find(context, name)
    if rows is not None:
        plan = scan_plan(query.text, rows.schema, time_zone=zone)
        return None if plan is None else (plan, rows)
    item = context.find(name)
    if item is None or item.id not in context.tables:
        return None
    plan = scan_plan(query.text, context.tables[item.id].schema, time_zone=zone)
    return None if plan is None else (plan, name)


@contextlib.contextmanager
def work_of(context: Context, query: Query, text: str) -> Iterator[Work]:
    """The query as work for Spark: its own text, with system tables under names Spark can hold."""
    check_tables(context, query, text)
    edited = EditedText(query.text)
    staged: dict[str, Relation] = {}
    try:
        for reference in query.table_references:
            rows = system_tables.find(context, str(reference.name))
            if rows is not None:
                view = str(reference.name).lower().replace(".", "__")
                if view not in staged:
                    staged[view] = context.kernel.staging.stage(rows)
                alias = "" if reference.alias else f" AS {reference.name.rpartition('.')[2]}"
                edited.replace(reference.name.span.start, reference.name.span.end, view + alias)
        with context.relations(query.identifiers) as relations:
            yield Work(
                edited.text,
                {**relations, **staged},
                original=text,
                original_position=lambda p: query.offset + edited.original_position(p),
            )
    finally:
        for relation in staged.values():
            context.kernel.staging.release(relation)


def check_tables(context: Context, query: Query, text: str) -> None:
    """BindError for a table that does not exist, before Spark is asked (or even there)."""
    if query.tree is None:
        return
    for reference in query.table_references:
        name = reference.name
        if "." in name:
            if name.key.startswith("headwater.") and system_tables.find(context, name.key) is None:
                names = [f"headwater.{n}" for n in system_tables.NAMES]
                raise unknown_table(_shifted(reference.name, query), names, text)
        elif context.find(name) is None:
            raise unknown_table(_shifted(reference.name, query), context.relation_names(), text)


def _shifted(name: Name, query: Query) -> Name:
    return Name(str(name), name.span.shifted(query.offset))
