"""Rows that executors write as blocks, from the hand-out to the commit: of a micro-batch, or of a frame.

Owns the attempts: where the clock overtakes a batch while it is written, it is written again. The driver sees
reports, never rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from headwater.errors import DataError, Error, KernelError
from headwater.sources.block_writer import Report, Task, read_report
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.micro_batch import ClockMoved, Handout, Stopped, WrittenBatch
from headwater.storage.streaming.table import RepeatedBatch, StreamingTable

ATTEMPTS = 10

Write = Callable[[Task], Iterable[tuple[str, bytes]]]  # has executors write; what each reports


class HandedBlocks:
    """One batch of rows on its way into a table."""

    def __init__(
        self,
        table: StreamingTable,
        source: str,
        partitions: int,
        write: Write,
        *,
        batch_id: str | None = None,
        stopping: threading.Event | None = None,
    ) -> None:
        """`source`: "" for rows that are inserted, which have a batch id if they are not to come twice."""
        self._table, self._source, self._partitions = table, source, partitions
        self._write, self._batch_id, self._stopping = write, batch_id, stopping
        self.reports: list[Report] = []  # of the last attempt

    def commit(self, number: int) -> WrittenBatch:
        """Writes and commits; durable when this returns."""
        for _ in range(ATTEMPTS):
            written = self._try(number)
            if written is not None:
                return written
        raise KernelError(
            f"the clock of {self._table.definition.name} overtook a micro-batch {ATTEMPTS} times",
            sqlstate="40001",
            hint="ADVANCE and other sources move it; RESUME SOURCE tries again",
        )

    def _try(self, number: int) -> WrittenBatch | None:
        """None if the clock moved so that rows must be written again."""
        table = self._table
        with micro_batch.handed_out(table, self._source, self._partitions) as handout:
            written = self._written(handout)
            if not written.row_count:
                return written  # nothing to keep: were the batch repeated, it would be empty again
            try:
                micro_batch.refuse_late(table, handout, written)
                if not self._source:
                    micro_batch.refuse_ahead(handout, written)
                micro_batch.commit(table, handout, number, written, self._stopping, self._batch_id)
            except ClockMoved:
                micro_batch.discard(table.folder, written.files)
                return None
            except (DataError, RepeatedBatch, Stopped):
                micro_batch.discard(table.folder, written.files)
                raise
            # After any other error the record may be on disk, and then it needs the files.
        return written

    def _written(self, handout: Handout) -> WrittenBatch:
        """Has executors write the rows; what they report."""
        table = self._table
        task = Task(
            handout.definition,
            str(table.folder.absolute()),
            handout.base_sequence,
            self._partitions,
            handout.arrival_us,
            handout.closed,
            handout.sole,
            table.limits.block_rows,
            handout.limit,
            handout.kept,
        )
        found = [read_report(report, ticks) for report, ticks in self._write(task)]
        self.reports = [report for report in found if isinstance(report, Report)]
        written = micro_batch.merged([report.written for report in self.reports])
        for report in found:
            if isinstance(report, Error):
                micro_batch.discard(table.folder, written.files)
                raise report
        return written
