"""What can be seen of a streaming table: its tail, its blocks and where its clocks stand.

Owns: the lock under which all of it changes. Two kinds of tables are seen: the one that the driver stores
(`stored.py`, `table.py`), and the one that a factory follows in the driver's log (`followed.py`). Readers,
baskets and folds know only this.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from headwater.storage.streaming import blocks as block_files
from headwater.storage.streaming.blocks import TableState
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.indexes import TableIndexes
from headwater.storage.streaming.read import StreamSnapshot
from headwater.storage.streaming.records import Delivery, RecordStamp
from headwater.storage.streaming.tail import Tail, TailBatch

HIDDEN_BYTES = 9  # a sequence number and a late flag


@dataclass(frozen=True)
class Needs:
    """What the readers of a table still need of it; None: nothing that is held, or all of it."""

    from_tick: int | None = None  # of a stream: rows before it are needed by nobody
    held_tick: int | None = None  # rows from here on stay although RANGE hides them
    sequence: int | None = None  # rows from here on stay: no durable state holds them


NO_TICK_BEFORE = -(1 << 63)
EVERYTHING = Needs(None, NO_TICK_BEFORE, 0)  # until the readers have said what they need


class SeenTable(ABC):
    """A streaming table as its readers see it."""

    def __init__(
        self,
        definition: Definition,
        folder: Path,
        indexes: TableIndexes,
        visibility: threading.Lock | None = None,
    ) -> None:
        self.definition = definition
        self.folder = folder
        self.indexes = indexes
        self.folded_by: dict[str, Callable[[], int]] = {}  # how far each pipeline of views is
        self.generation = 0  # counts changes of stored rows: DELETE, UPDATE
        self.on_show: Callable[[], None] | None = (
            None  # told after every commit, by the log's writer
        )
        self._visibility = visibility or threading.Lock()  # held to see several tables at once
        self._held_us: int | None = None  # the arrival clock stands here for a micro-batch
        # Of everybody, under the lock:
        self._lock = threading.Lock()
        self._blocks = block_files.interval_index(())
        self._tail = Tail(definition)
        self._memory: dict[str, pa.Table] = {}
        self._visible = TableState()
        self._let_go = 0
        self._version = 0
        self._horizon: int | None = None  # rows before it are needed by nobody

    @property
    def schema(self) -> pa.Schema:
        """The user's columns."""
        return self.definition.schema

    @property
    def let_go(self) -> int:
        """Of rows before this sequence number some are gone, as nobody needed them."""
        return self._let_go

    @property
    def state(self) -> TableState:
        """Clock, closed mark, sequence and late rows, as visible now."""
        with self._lock:
            return self._visible

    @contextlib.contextmanager
    def reading(self) -> Iterator[StreamSnapshot]:
        """The table as of now; its files stay until the reader is done."""
        sidecar = self.indexes.sidecar
        with self._lock:
            snapshot = StreamSnapshot(
                definition=self.definition,
                folder=self.folder,
                version=self._version,
                blocks=self._blocks.snapshot(),
                tail=self._tail.pieces(),
                clock=self._now(),
                closed=self._visible.time.closed,
                memory=dict(self._memory),
                find_rows=None if sidecar is None else self.indexes.find_rows,
                sidecar=sidecar,
                horizon=self._horizon,
                next_sequence=self._visible.next_sequence,
                generation=self.generation,
            )
            self._hold_files(self._version)
        try:
            yield snapshot
        finally:
            self._let_files_go(snapshot.version)

    def files_held(self, version: int) -> Callable[[], None]:
        """Keeps the files of a version that is being read; returns what lets them go."""
        self._hold_files(version)
        return partial(self._let_files_go, version)

    @abstractmethod
    def _hold_files(self, version: int) -> None:
        """A reader of this version has begun; its files stay."""

    @abstractmethod
    def _let_files_go(self, version: int) -> None:
        """A reader of this version is done."""

    def _now(self) -> int | None:
        if not self.definition.by_arrival:
            return self._visible.time.clock
        return max(self._wall_us(), self._visible.time.clock or 0)

    def _wall_us(self) -> int:
        """The wall clock, held while executors write rows that have their arrival time already."""
        now, held = time.time_ns() // 1000, self._held_us
        return now if held is None else min(now, held)

    def rows_since(self, sequence: int) -> int:
        """How many rows are held from a sequence number on; numbers are left out, rows are not."""
        with self._lock:
            return self._rows_since(sequence)

    def _rows_since(self, sequence: int) -> int:
        """The same, under the lock; of a block that holds such rows, all of them."""
        stamps = [b.stamp for b in self._tail.batches if b.batch is not None]
        waiting = sum(s.row_count for s in stamps if s.base_sequence >= sequence)
        blocks = self._blocks.snapshot()
        return waiting + sum(b.row_count for b in blocks if b.high_sequence >= sequence)

    def _put(
        self,
        lsn: int,
        stamp: RecordStamp,
        batch: pa.RecordBatch | None,
        batch_id: str | None,
        source: str,
        delivery: Delivery | None,
        ends: tuple[int, int] | None,
    ) -> None:
        """What a record of the log holds becomes visible."""
        low, high = ends if ends and batch is not None else self._ends(batch, stamp)
        size = 0 if batch is None else batch.nbytes + HIDDEN_BYTES * batch.num_rows
        files = () if delivery is None else delivery.files
        shown = TailBatch(lsn, stamp, batch, batch_id, low, high, size, files)
        with self._lock:
            self._tail.append(shown)
            for block in map(block_files.known_block, files):
                self._blocks.add(block, block.low, block.high)
            self._visible = self._visible.after(lsn, stamp, source, delivery)

    def _ends(self, batch: pa.RecordBatch | None, stamp: RecordStamp) -> tuple[int, int]:
        """The smallest and largest tick of rows sorted by T; of none, an empty range."""
        if batch is None or not batch.num_rows:
            return 0, -1
        if self.definition.by_arrival:
            return stamp.arrival_us, stamp.arrival_us
        column = batch.column(self.definition.time)
        ends = [self.definition.tick(column[i].as_py()) for i in (0, len(column) - 1)]
        return ends[0], ends[1]

    # What readers ask of the one who stores the rows

    @abstractmethod
    def tick(self) -> None:
        """Arrival time comes to now, durably: no later row gets an earlier time."""

    @abstractmethod
    def made_room(self) -> None:
        """A view has caught up."""

    @abstractmethod
    def keep_from(self, tick: int | None) -> None:
        """Rows from the tick on are needed, those before it by nobody; None: all are."""

    @abstractmethod
    def hold(self, tick: int | None) -> None:
        """Rows from the tick on stay although RANGE hides them: a query that is behind reads them."""

    @abstractmethod
    def hold_sequence(self, sequence: int | None) -> None:
        """Rows from a sequence number on stay: a view has no durable state of them."""
