"""Where a query's results go: its log, and for a materialized view the view's table too.

The log is the durable fact: what is in it was decided. The table of a view follows it; after a crash
between the two, the view takes the missing results from the log, each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.engine.emit import emitted, instant_scalar
from headwater.engine.newest_results import shown_rows
from headwater.engine.query_parts import Evaluated
from headwater.engine.result_changes import KnownChanges, find_changes
from headwater.engine.results import NewResult, ResultLog, ResultSet
from headwater.sql.extensions import Emit
from headwater.storage.streaming.definition import EPOCH_NUMBER
from headwater.storage.streaming.table import StreamingTable

VIEW_SEQUENCE = "view_sequence"
CLOCK = "clock"  # no later result of an update query is older
MANY_ROWS = 256  # of a result, so that it pays to look for changes in place first


class LogSink:
    """Results into the query's log."""

    table: StreamingTable | None = None  # that others read

    def __init__(self, log: ResultLog) -> None:
        self.log = log

    def last(self) -> tuple[int, dict[str, Any]] | None:
        """The tick and the note of the newest result."""
        found = self.log.newest()
        return None if found is None else (found.instant, dict(found.note))

    def recover(self) -> None:
        """After an insert that failed: what became durable all the same is known again."""
        self.log.settle()

    def append(self, results: Sequence[Evaluated]) -> None:
        """One durable insert for all."""
        self._append(results, [result.changes for result in results])

    def _append(self, results: Sequence[Evaluated], changes: Sequence[KnownChanges | None]) -> None:
        self.log.append(
            [
                NewResult(r.instant.tick, r.rows, r.epoch, r.note, known)
                for r, known in zip(results, changes, strict=True)
            ]
        )


class ViewSink(LogSink):
    """Results into the log, then into the table of a materialized view."""

    def __init__(
        self, log: ResultLog, table: StreamingTable, emit: Emit, ties: bool = False
    ) -> None:
        """`ties`: several results may have one instant, as those of chunks of rows may."""
        super().__init__(log)
        self.table = self._view = table
        self._emit, self._ties = emit, ties
        self._previous: pa.Table | None = None
        self.recover()

    def recover(self) -> None:
        """The view's place is read from its table; what the log has and it has not is stored."""
        super().recover()
        self._view.barrier()
        self._sequence = self._view.state.next_sequence
        self._previous = None
        self._catch_up()

    def append(self, results: Sequence[Evaluated]) -> None:
        """The log first, then the table; all instants of one firing in one commit."""
        shown, changes = list[pa.Table](), list[KnownChanges | None]()
        previous, sequence = self._previous, self._sequence
        for result in results:
            rows, known = self._shown(previous, result.rows, result.instant.tick, result.epoch)
            shown.append(rows)
            changes.append(result.changes if known is None else known)
            previous = result.rows
            sequence += rows.num_rows
            result.note[VIEW_SEQUENCE] = sequence
        self._append(results, changes)
        if results:
            last = results[-1]
            self._store(pa.concat_tables(shown), self._reached(last.instant.tick, last.note))
        self._previous, self._sequence = previous, sequence

    def _shown(
        self, previous: pa.Table | None, rows: pa.Table, tick: int, epoch: int | None
    ) -> tuple[pa.Table, KnownChanges | None]:
        """What the view's table gets of a result, and what changed where that was looked for.

        The same when the table catches up, or its place would not be that of the note.
        """
        instant = instant_scalar(self.log.schema.field(len(self.log.schema) - 1).type, tick)
        changes = None
        if self._emit != "all" and previous is not None and rows.num_rows >= MANY_ROWS:
            changes = find_changes(previous, rows, instant)
        if changes is None:
            shown = emitted(self._emit, previous, rows, instant)
        else:
            shown = emitted(self._emit, changes.gone, changes.added, instant)
        if EPOCH_NUMBER in self._view.schema.names:
            number = pa.repeat(pa.scalar(epoch, pa.int64()), shown.num_rows)
            shown = shown.append_column(EPOCH_NUMBER, number)
        return shown, changes

    def _catch_up(self) -> None:
        """Stores what the log has and the table has not."""
        missing: list[ResultSet] = []
        position = self.log.next - 1
        while position >= self.log.first:
            result = self.log.read(position)
            assert result is not None
            if result.note.get(VIEW_SEQUENCE, 0) <= self._sequence:
                self._previous = result.rows
                break
            missing.append(result)
            position -= 1
        for result in reversed(missing):
            shown, _ = self._shown(self._previous, result.rows, result.instant, result.epoch)
            self._previous = result.rows
            self._sequence += shown.num_rows
            self._store(shown, self._reached(result.instant, result.note))
        last = self.log.newest()
        time = self._view.state.time
        there = time.clock if self._ties else time.closed
        reached = None if last is None else self._reached(last.instant, last.note)
        if reached is not None and (there is None or there < reached):
            self._store(self._view.schema.empty_table(), reached)

    def _reached(self, instant: int, note: Mapping[str, Any]) -> int | None:  # noqa: ARG002
        """Where the view's clock is after a result; None: it does not move."""
        return instant

    def _store(self, rows: pa.Table, instant: int | None) -> None:
        self._view.store_result(rows, instant, self._ties)


class UpdateViewSink(ViewSink):
    """Results of an update query: those of some keys at a time, as they were taken (US9)."""

    def __init__(self, log: ResultLog, table: StreamingTable) -> None:
        super().__init__(log, table, "all", ties=True)

    def _shown(
        self,
        previous: pa.Table | None,  # noqa: ARG002
        rows: pa.Table,
        tick: int,  # noqa: ARG002
        epoch: int | None,  # noqa: ARG002
    ) -> tuple[pa.Table, KnownChanges | None]:
        return shown_rows(rows), None

    def _reached(self, instant: int, note: Mapping[str, Any]) -> int | None:  # noqa: ARG002
        reached: int | None = note[CLOCK]
        return reached
