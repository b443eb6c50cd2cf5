"""A streaming table as a factory follows it: rows from the driver's log, blocks by the images it is told.

Owns: nothing that lasts. What is decided about a row stands in its record, so the table is brought about
here exactly as it is there, one append at a time. What readers ask of the one who stores the rows (to hold
some, to move the arrival clock) is kept for him or sent to him.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.settings import Live
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.image import blocks_of, state_from_json
from headwater.storage.streaming.indexes import TableIndexes
from headwater.storage.streaming.records import BARRIER, read_record
from headwater.storage.streaming.seen import EVERYTHING, Needs, SeenTable
from headwater.storage.wal import Record


class FollowedTable(SeenTable):
    """One streaming table, or a stream, of the database that a factory belongs to."""

    def __init__(
        self,
        definition: Definition,
        folder: Path,
        image: Mapping[str, Any],
        visibility: threading.Lock,
        sidecar_bytes: Live[int],
        ask: Callable[[str, int], None],
    ) -> None:
        """`ask`: sends the driver a wish about the table: to move its clock, to look for room."""
        super().__init__(definition, folder, TableIndexes(folder, sidecar_bytes), visibility)
        self.kept = True
        self._ask = ask
        self._plain = pa.schema([field.with_nullable(True) for field in definition.schema])
        self._visible = state_from_json(image["state"])
        self._sealed_lsn = 0
        self._known: dict[str, Any] = {}  # blocks by path
        self._readers: Counter[int] = Counter()  # by version of the image
        self.needs = EVERYTHING
        self.change(image)

    def take(self, record: Record) -> None:
        """One record of the log, in order; the caller holds the lock of all tables."""
        if record.kind == BARRIER or record.lsn <= self._visible.lsn:
            return
        found = read_record(memoryview(record.payload[0]), record.kind, self._plain)
        parts = (found.stamp, found.batch, found.batch_id, found.source, found.delivery)
        self._put(record.lsn, *parts, None)
        if found.delivery is not None:
            for block in blocks_of([[f.path, f.size] for f in found.delivery.files]):
                self._known[block.path] = block

    def tell(self) -> None:
        """Tells those who wait for rows, once these are visible."""
        if self.on_show is not None:
            self.on_show()

    def change(self, told: Mapping[str, Any]) -> None:
        """The stored side has changed; every record up to the one that is told was taken before."""
        with self._lock:
            for path in told["removed"]:
                block = self._known.pop(path, None)
                if block is not None:
                    self._blocks.remove(block)
            for block in blocks_of(told["added"]):
                if block.path not in self._known:
                    self._known[block.path] = block
                    self._blocks.add(block, block.low, block.high)
            self._sealed_lsn = told["lsn"]
            sealed = [b for b in self._tail.batches if b.lsn <= self._sealed_lsn]
            if sealed:
                self._tail.drop(len(sealed))
            changed = self.generation != told["generation"]
            self._version, self.generation = told["version"], told["generation"]
            self._horizon, self._let_go = told["horizon"], told["let_go"]
        if changed:
            self.tell()

    @property
    def oldest_image(self) -> int:
        """Images before this version are read by nobody here any more."""
        with self._lock:
            return min(self._readers, default=self._version)

    def _hold_files(self, version: int) -> None:
        self._readers[version] += 1

    def _let_files_go(self, version: int) -> None:
        with self._lock:
            self._readers[version] -= 1
            if not self._readers[version]:
                del self._readers[version]

    # What readers ask of the one who stores the rows

    def tick(self) -> None:
        """Arrival time comes to now; the record that says so comes by the log."""
        self._ask("tick", self.definition.id)

    def made_room(self) -> None:
        """A view has caught up."""
        self._ask("room", self.definition.id)

    def keep_from(self, tick: int | None) -> None:
        """Rows before the tick are needed by nobody here; None: all are needed."""
        self._need(replace(self.needs, from_tick=tick))

    def hold(self, tick: int | None) -> None:
        """Rows from the tick on stay although RANGE hides them."""
        self._need(replace(self.needs, held_tick=tick))

    def hold_sequence(self, sequence: int | None) -> None:
        """Rows from a sequence number on stay."""
        self._need(replace(self.needs, sequence=sequence))

    def _need(self, needs: Needs) -> None:
        if needs != self.needs:
            self.needs = needs
            self._ask("needs", self.definition.id)
