"""Inserting a DataFrame of the program's: Spark writes it as files, then executors make rows of the table.

Owns the two steps. The frame is evaluated once, in its own session; what follows may be repeated. Many rows
become blocks, which executors write and one record of the log names; few go the way of every insert, for a
block has its price. Must never: bring many rows to this process.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.execute.context import Context, Running
from headwater.execute.insert import append_from_spark, column_of_text
from headwater.kernel.given_frame import schema_of, write_frame
from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation
from headwater.plan.assign import insert_projection
from headwater.settings import MEBIBYTE
from headwater.sources.block_writer import REPORT, Task, work
from headwater.sources.handed_blocks import HandedBlocks
from headwater.sql.types import name_of
from headwater.storage.rows import as_table
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.table import RepeatedBatch, StreamingTable, check_batch_id

if TYPE_CHECKING:
    from headwater.kernel.spark import DataFrame

SMALL_BYTES = 16 * MEBIBYTE  # of the frame's files: so much goes through the log
GIVEN = "headwater_given"


def insert_frame(
    running: Running,
    table: StandardTable | StreamingTable,
    frame: DataFrame,
    batch_id: str | None,
) -> int:
    """Adds the rows of a frame; returns once they are durable. 0 if the batch was there already."""
    check_batch_id(batch_id)
    if _was_stored(table, batch_id):
        return 0
    schema = schema_of(frame)
    as_table(schema.empty_table(), table.schema)  # names and types, before Spark writes anything
    folder = running.context.folder.staging / f"given-{uuid.uuid4().hex}"
    try:
        relation = write_frame(frame, folder)
        query = _rows_of(relation, schema, table.schema)
        if isinstance(table, StandardTable):
            return append_from_spark(running, table, query, batch_id)
        if sum(Path(file).stat().st_size for file in relation.files) <= SMALL_BYTES:
            return table.insert(running.context.kernel.run(query), batch_id)
        return _as_blocks(running.context, table, query, max(len(relation.files), 1), batch_id)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _was_stored(table: StandardTable | StreamingTable, batch_id: str | None) -> bool:
    if isinstance(table, StreamingTable):
        return table.was_stored(batch_id)
    return batch_id is not None and table.batch_was_applied(batch_id)


def _rows_of(relation: Relation, given: pa.Schema, wanted: pa.Schema) -> Work:
    """The rows in the table's columns and types, converted as those of an INSERT are."""
    types = [(field.name, name_of(field.type)) for field in given]
    targets = [column_of_text(name, wanted) for name in given.names]
    columns = insert_projection(types, targets, wanted)
    names = ", ".join(f"c{i}" for i in range(len(types)))
    return Work(
        f"SELECT /*+ COALESCE({max(len(relation.files), 1)}) */ {columns}"
        f" FROM {GIVEN} AS given({names})",
        {GIVEN: relation},
    )


def _as_blocks(
    context: Context, table: StreamingTable, query: Work, partitions: int, batch_id: str | None
) -> int:
    """Has executors write blocks, no more partitions than files; one record makes them rows."""

    def write(task: Task) -> Sequence[tuple[str, bytes]]:
        found = context.kernel.map_batches(query, work(task), REPORT)
        return [(row["report"], row["ticks"]) for row in found.to_pylist()]

    table.wait_for_room()
    try:
        written = HandedBlocks(table, "", partitions, write, batch_id=batch_id).commit(0)
    except RepeatedBatch:  # it came twice at once
        if table.was_stored(batch_id):
            return 0
        return _as_blocks(context, table, query, partitions, batch_id)  # the first was refused
    context.streams.settle(table)
    dropped = written.late_count if table.definition.late == "drop" else 0
    return written.row_count - dropped
