"""The clock of a table set back: a record of the log, like an advance.

What was released beyond the new clock waits again; what was late stays late; files that RANGE hid since are
seen again if they are still there. The rows beyond the clock are read when the record is decided, so every
row that was decided before it must be visible: inserts wait, and the record is tried until that is so.
Rows that a DELETE took are forgotten in the same way.
Must never: change a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.errors import DataError, Error, OverloadError
from headwater.storage.streaming.records import (
    ADVANCE,
    BARRIER,
    NOTHING,
    STAMP_BYTES,
    RecordStamp,
    names_payload,
)
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.wal import Record

ATTEMPTS = 1000


class _InFlight(Error):
    """Raised inside the log's writer: a record before this one is not visible yet."""


def set_clock(table: StreamingTable, tick: int) -> None:
    """Sets the clock of a table with TIMESTAMP BY back to a tick; durable when this returns."""

    def attempt() -> None:
        entry = _Entry(table, tick)
        table._open_log.append(
            [entry.record()],
            on_assigned=entry.decide,
            on_durable=entry.show,
            on_refused=lambda _lsn: table._take_back(None),
        ).wait()

    _until_all_is_visible(table, attempt)


def wait_for_stored_rows(table: StreamingTable) -> None:
    """After rows were deleted: none of them moves the clock any more, as after a restart."""
    if table.definition.by_arrival or not table._clock.waiting_count:
        return

    def decide(_lsn: int) -> None:
        _check_visible(table)
        table._clock = table._restored_clock(table.state)

    barrier = Record(BARRIER, table.definition.id, (NOTHING,))
    _until_all_is_visible(
        table, lambda: table._open_log.append([barrier], on_assigned=decide).wait()
    )


def _until_all_is_visible(table: StreamingTable, attempt: Callable[[], object]) -> None:
    """Attempts it until no record before it is under way; inserts and upkeep wait meanwhile.

    Else files might go, after it is done, that the clock before it had hidden.
    """
    with table.upkeep:  # before inserts are held: upkeep may insert rows itself
        table.is_setting_clock = True
        try:
            for _ in range(ATTEMPTS):
                try:
                    attempt()
                    return
                except _InFlight:
                    table.barrier()
        finally:
            table.is_setting_clock = False
            table.made_room()
    raise OverloadError(
        f"rows for {table.definition.name} come too fast for its clock to be set",
        hint="PAUSE SOURCE, then try again",
    )


def _check_visible(table: StreamingTable) -> None:
    """Called by the log's writer before it decides anything."""
    if table._taken_back:
        table._restore()
    if table._decided_lsn > table.state.lsn:
        raise _InFlight("a record before this one is not visible yet")


@dataclass
class _Entry:
    """The record on its way through the log."""

    table: StreamingTable
    tick: int
    buffer: bytearray = field(default_factory=lambda: bytearray(STAMP_BYTES))
    stamp: RecordStamp | None = None

    def record(self) -> Record:
        return Record(ADVANCE, self.table.definition.id, (self.buffer, names_payload(None, "")))

    def decide(self, lsn: int) -> None:
        """In commit order, before the write."""
        table = self.table
        _check_visible(table)
        self._check()
        table._clock, found = table._set_back(self.tick)
        arrival = table._arrival.stamp(table._wall_us())
        self.stamp = RecordStamp(
            table._next_sequence, arrival, found, table._late_total, 0, back=True
        )
        self.buffer[:] = self.stamp.pack()
        table._decided_lsn = lsn

    def _check(self) -> None:
        clock, definition = self.table._clock.clock, self.table.definition
        if clock is None or self.tick > clock:
            stands = "has none yet" if clock is None else f"stands at {definition.value(clock)}"
            raise DataError(
                f"the clock of {definition.name} cannot be set back to {definition.value(self.tick)}",
                sqlstate="22023",
                detail=f"it {stands}",
                hint=f"ADVANCE {definition.name} TO … moves a clock on",
            )

    def show(self, lsn: int) -> None:
        """In commit order, after the sync."""
        assert self.stamp is not None
        self.table._show(lsn, self.stamp, None, None, "")
