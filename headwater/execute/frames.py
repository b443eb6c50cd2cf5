"""Rows as DataFrames of the program's own Spark session.

Owns what such a frame reads: files of blocks or of a standard table, and rows staged beside them, all of one
instant; `held_frames.py` says how long they stay. Must never: bring rows of a table here.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.execute.context import Context, Running
from headwater.execute.query import work_of
from headwater.execute.reading import Reading, reading, relation_read
from headwater.kernel.relation import Relation, Staging
from headwater.plan.blocks import unknown_table
from headwater.sql.statements.query import Query, make_query
from headwater.sql.statements.subscribe import parse_target
from headwater.sql.type_parser import parse_type
from headwater.sql.types import quoted

if TYPE_CHECKING:
    from headwater.kernel.spark import DataFrame


def table_frame(running: Running, target: str) -> DataFrame:
    """What a name or a select stands for, as of now."""
    context, wanted = running.context, parse_target(target)
    with ExitStack() as held:
        if isinstance(wanted, Query):
            relation = _evaluated(running, wanted, held)
        else:
            relation = _named(running, wanted, held)
        frame = context.kernel.frame(relation)
        context.frames.hold(held.pop_all())
    return frame


def frame_of_rows(context: Context, rows: pa.Table) -> DataFrame:
    """Rows at hand, by way of a file."""
    with ExitStack() as held:
        frame = context.kernel.frame(_staged(context.kernel.staging, rows, held))
        context.frames.hold(held.pop_all())
    return frame


def _named(running: Running, name: str, held: ExitStack) -> Relation:
    """The files of a table, and rows that are in none; what a view says is evaluated."""
    context, item = running.context, running.context.find(name)
    written = name if item is None and "." in name else quoted(name)  # of a system table
    text = f"SELECT * FROM {written}"
    query = make_query(text)
    if item is None and "." not in name:
        raise unknown_table(name, context.relation_names())
    if item is not None and item.kind == "view" and not item.definition["continuous"]:
        return _evaluated(running, query, held)
    with reading(context, query, text) as found:
        relation = relation_read(found, found.query.table_references[0], None)
        if relation is not None:
            _keep(found, held)
            return relation
    context.check_sound(item)
    relations = held.enter_context(context.relations({name.lower()}))
    if name.lower() not in relations:
        raise unknown_table(name, context.relation_names())
    return relations[name.lower()]


def _keep(found: Reading, held: ExitStack) -> None:
    """What a reading has staged, and the versions that it reads, outlive it."""
    for relation in found.staged:
        held.callback(found.context.kernel.staging.release, relation)
    found.staged.clear()
    for name, snapshot in found.snapshots.items():
        table = found.context.stream(name)
        assert table is not None
        held.callback(table.files_held(snapshot.version))


def _staged(staging: Staging, rows: pa.Table, held: ExitStack) -> Relation:
    relation = staging.stage(rows)
    held.callback(staging.release, relation)
    return relation


def _evaluated(running: Running, query: Query, held: ExitStack) -> Relation:
    """The rows of a query in files that Spark has written: they never come here."""
    context = running.context
    folder = context.folder.staging / f"frame-{uuid.uuid4().hex}"
    held.callback(shutil.rmtree, folder, ignore_errors=True)
    with work_of(context, query, query.text) as work:
        columns = context.kernel.analyse(work)
        files = context.kernel.write(work, folder, running.cancellation)
    return Relation(_schema(columns), tuple(map(str, files)))


def _schema(columns: Sequence[tuple[str, str]]) -> pa.Schema:
    return pa.schema([pa.field(name, parse_type(type_)) for name, type_ in columns])
