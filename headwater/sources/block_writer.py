"""What runs in executors: one partition of a micro-batch becomes blocks.

Rows are numbered in the order they come, sorted by T, marked late up to the closed mark, split by
compartment and written as Parquet files under the table's folder. Only a small report goes back.
Owns nothing beyond the task: a file counts once the driver has committed it. Must never import
Spark's session or the database.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import DataError, Error
from headwater.storage.clock import NO_TICKS, Ticks
from headwater.storage.delta import DataFile
from headwater.storage.door import check
from headwater.storage.streaming import blocks as block_files
from headwater.storage.streaming.definition import ARRIVAL, LATE, Definition
from headwater.storage.streaming.micro_batch import PARTITION_SEQUENCES, WrittenBatch
from headwater.storage.streaming.table import LARGEST_TICK

REPORT = pa.schema([pa.field("report", pa.string()), pa.field("ticks", pa.binary())])
REPORT_TYPE = "report STRING, ticks BINARY"


@dataclass(frozen=True)
class Task:
    """What an executor must know of the micro-batch and the table."""

    definition: Definition
    folder: str
    base_sequence: int
    partitions: int  # their rows take turns in the order, so that the numbers stay dense
    arrival_us: int
    closed: int | None
    sole: bool
    block_rows: int
    limit: int | None = None  # rows beyond it move no clock
    kept: bool = True  # False: a stream that nobody reads


@dataclass(frozen=True)
class Report:
    """What one partition wrote, and who did it."""

    written: WrittenBatch
    host: str
    process: int
    parent: int  # the process that starts Python workers: one per executor


def write_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes all rows of one partition; yields one report."""
    from pyspark import TaskContext

    context = TaskContext.get()
    writer = PartitionWriter(task, context.partitionId() if context is not None else 0)
    try:
        for batch in batches:
            writer.add(batch)
        yield _packed(writer.finish())
    except Error as error:  # the same at every try, so Spark should not try again
        writer.discard()
        yield _refusal(error)


class PartitionWriter:
    """Collects rows up to the size of a block, and writes them."""

    def __init__(self, task: Task, partition: int) -> None:
        self._task = task
        self._definition = task.definition
        self._first = task.base_sequence + partition
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._files: list[DataFile] = []
        self._ticks = NO_TICKS
        self._row_count = self._late_count = 0
        self._low: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes in some rows."""
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= self._task.block_rows:
            self._flush()

    def finish(self) -> WrittenBatch:
        """Writes what is left; what was written in all."""
        self._flush()
        last = self._sequence(self._row_count - 1) if self._row_count else -1
        return WrittenBatch(
            tuple(self._files), self._row_count, self._late_count, last, self._ticks, self._low
        )

    def discard(self) -> None:
        """Removes what was written."""
        for file in self._files:
            (Path(self._task.folder) / file.path).unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._waiting_rows:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._waiting_rows = [], 0
        rows = self._stored(table)
        ticks = self._checked_ticks(rows)
        late = np.zeros(len(ticks), bool)
        if self._task.closed is not None and not self._definition.by_arrival:
            late = ticks <= self._task.closed
        self._late_count += int(late.sum())
        self._remember(ticks[~late])
        rows = rows.append_column(LATE, pa.array(late))
        if self._definition.late == "drop" and late.any():
            rows = rows.filter(pa.array(~late))
        if rows.num_rows and self._keeps(late):
            self._write(rows)

    def _keeps(self, late: np.ndarray[Any, Any]) -> bool:
        """Whether rows are written: a stream without readers keeps none, a refused batch neither."""
        refused = self._definition.late == "reject" and bool(late.any())
        return self._task.kept and not refused

    def _stored(self, table: pa.Table) -> pa.Table:
        """The rows with their hidden columns, all but `_late`."""
        definition, count = self._definition, table.num_rows
        if self._row_count + count > PARTITION_SEQUENCES:
            raise DataError(
                f"a partition of a micro-batch has more than {PARTITION_SEQUENCES} rows",
                sqlstate="54000",
                hint="take less at once: max_files_per_trigger, or more partitions",
            )
        schema = definition.stored_schema
        arrays: list[Any] = [
            table.column(f.name).cast(schema.field(f.name).type) for f in definition.schema
        ]
        if definition.by_arrival:
            arrival = pa.array(np.full(count, self._task.arrival_us, np.int64))
            arrays.append(arrival.cast(schema.field(ARRIVAL).type))
        places = np.arange(self._row_count, self._row_count + count)
        arrays.append(pa.array(self._sequence(places)))
        self._row_count += count
        rows = pa.Table.from_arrays(arrays, schema=pa.schema(list(schema)[:-1]))
        check(rows, definition.schema)
        return rows

    def _sequence(self, place: Any) -> Any:
        """The number of the row, or rows, at a place of the partition."""
        return self._first + place * self._task.partitions

    def _checked_ticks(self, rows: pa.Table) -> Ticks:
        definition = self._definition
        column = rows.column(definition.time)
        if column.null_count:
            raise DataError(
                f"NULL in time column {definition.time}",
                sqlstate="23502",
                hint="every row of a streaming table needs its time; nothing was written",
            )
        ticks = definition.ticks(column)
        if ticks.size and max(int(ticks.max()), -int(ticks.min())) >= LARGEST_TICK:
            raise DataError(f"a time in column {definition.time} is out of range", sqlstate="22008")
        return ticks

    def _remember(self, ticks: Ticks) -> None:
        """Keeps the ticks that the clock must know: those that may have to wait, and the one before.

        With no other source in the way, rows up to M − d are released at once, and of those only
        the largest matters.
        """
        if self._definition.by_arrival or not ticks.size:
            return
        low = int(ticks.min())
        self._low = low if self._low is None else min(self._low, low)
        known = np.unique(np.concatenate((self._ticks, ticks)))
        if self._task.sole:
            near = known if self._task.limit is None else known[known <= self._task.limit]
            if not near.size:
                self._ticks = known
                return
            released = near[-1] - self._definition.watermark_ticks
            known = known[max(int(np.searchsorted(known, released, side="right")) - 1, 0) :]
        self._ticks = known

    def _write(self, rows: pa.Table) -> None:
        definition = self._definition
        ordered = block_files.ordered(rows, definition)
        for compartment, part in block_files.split(ordered, definition, self._task.block_rows):
            _, file = block_files.write(Path(self._task.folder), definition, compartment, part)
            self._files.append(file)


def _packed(written: WrittenBatch) -> pa.RecordBatch:
    report = {
        "files": [[f.path, f.size, f.row_count, dict(f.statistics)] for f in written.files],
        "rows": [written.row_count, written.late_count, written.last_sequence, written.low],
        "who": [socket.gethostname(), os.getpid(), os.getppid()],
    }
    return _batch(json.dumps(report), written.ticks.tobytes())


def _refusal(error: Error) -> pa.RecordBatch:
    report = {"error": [error.message, error.sqlstate, error.detail, error.hint]}
    return _batch(json.dumps(report), b"")


def _batch(report: str, ticks: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([report]), pa.array([ticks], pa.binary())], schema=REPORT
    )


def read_report(report: str, ticks: bytes) -> Report | DataError:
    """A report as the driver reads it; the error if the partition was refused."""
    found = json.loads(report)
    if "error" in found:
        message, sqlstate, detail, hint = found["error"]
        return DataError(message, sqlstate=sqlstate, detail=detail, hint=hint)
    row_count, late_count, last, low = found["rows"]
    files = tuple(DataFile(*file) for file in found["files"])
    known = np.frombuffer(ticks, np.int64)
    host, process, parent = found["who"]
    written = WrittenBatch(files, row_count, late_count, last, known, low)
    return Report(written, host, process, parent)


def work(task: Task) -> Any:
    """The function for mapInArrow."""
    return partial(write_partition, task)
