"""What a streaming table holds, the tail and the blocks, and their upkeep: seal, compact, expire.

Owns the table's Delta log and everything that commits to it. Must never be called on the path of an
insert: `table.py` puts rows on the tail, the keeper thread does the rest.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from headwater.storage.delta import DataFile, DeltaLog
from headwater.storage.garbage import Garbage
from headwater.storage.streaming import blocks as block_files
from headwater.storage.streaming.blocks import Block, TableState
from headwater.storage.streaming.definition import SEQUENCE, Definition
from headwater.storage.streaming.image import TableImage
from headwater.storage.streaming.indexes import TableIndexes
from headwater.storage.streaming.limits import Limits
from headwater.storage.streaming.read import StreamSnapshot, Wanted, select
from headwater.storage.streaming.seen import SeenTable
from headwater.storage.streaming.tail import TailBatch, stored_rows

LET_GO = "headwater.let_go"
JOINED_BLOCKS = 4  # blocks are joined up to so many times `block_mb`, and to `block_rows`


class StoredTable(SeenTable):
    """The stored side of a streaming table."""

    def __init__(
        self,
        definition: Definition,
        folder: Path,
        bounds: Callable[[], Limits],
        kept_s: Callable[[], float],
        sources: Iterable[str] = (),
        visibility: threading.Lock | None = None,
    ) -> None:
        indexes = TableIndexes(folder, lambda: self.limits.sidecar_bytes)
        super().__init__(definition, folder, indexes, visibility)
        self.bounds = bounds  # asked for whenever one is needed
        self.upkeep = threading.RLock()  # seal, compact, expire and changes take turns
        self.on_image: Callable[[], None] | None = None  # told after every change of the blocks
        self._log = DeltaLog(folder, cut_torn=True)
        state = block_files.sealed_state(self._log, sources)
        # Of everybody, under the lock:
        self._room = threading.Condition(self._lock)
        found, self.foreign = block_files.read_blocks(self._log)
        self._blocks = block_files.interval_index(found)
        self._fitted = 0  # the bound that memory was last fitted to
        self._wide: set[str] = set()  # of few rows, but too many bytes to be joined with others
        self._visible = self._sealed = state
        self._let_go = self._log.transaction(LET_GO) or 0
        self._version = self._log.version
        self._kept_s = kept_s
        self._hidden_since: dict[int, float] = {}  # by compartment: when RANGE first hid it whole
        self._held_from: int | None = None  # rows from here on are still read, whatever RANGE says
        self._holding = 0  # views that are being made
        self._held_sequence: int | None = None  # blocks with rows from here on stay, for views
        self._garbage = Garbage(folder, kept_s)
        used = {str(folder / b.path) for b in found} | {str(folder / f.path) for f in self.foreign}
        self._garbage.find_left_overs(used, self._version)

    @property
    def limits(self) -> Limits:
        """The bounds in force."""
        return self.bounds()

    @property
    def torn_commit(self) -> Path | None:
        """A commit that a power cut left unfinished, put aside: its rows must be in the log."""
        return self._log.torn

    @property
    def sealed_lsn(self) -> int:
        """Records up to here are in blocks."""
        return self._sealed.lsn

    def _rows_gone(self, last: int) -> None:
        """Rows up to this sequence number go; the next commit makes that durable."""
        self._let_go = max(self._let_go, last + 1)

    def _hold_files(self, version: int) -> None:
        self._garbage.hold(version)

    def _let_files_go(self, version: int) -> None:
        self._garbage.let_go(version)

    @property
    def tail_bytes(self) -> int:
        """Bytes not sealed yet."""
        with self._lock:
            return self._tail.bytes

    @property
    def first_unsealed_lsn(self) -> int | None:
        """The oldest record of the log that this table still needs; None if there is none."""
        with self._lock:
            return self._tail.batches[0].lsn if self._tail.batches else None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The sealed blocks, by time."""
        with self._lock:
            blocks = tuple(self._blocks.snapshot())
            unsealed = {file.path for batch in self._tail.batches for file in batch.files}
        return tuple(b for b in blocks if b.path not in unsealed) if unsealed else blocks

    def due(self) -> bool:
        """Whether the tail should be sealed now."""
        with self._lock:
            if not self._tail.batches:
                return False
            old = time.monotonic() - self._tail.since >= self.limits.block_age_s
            most = min(self.limits.block_bytes, self.limits.unsealed_bytes)
            return old or self._tail.bytes >= most

    def seal(self, remember: Callable[[Sequence[str], int], None] | None = None) -> bool:
        """Moves the tail into blocks; one commit holds the files and the table's state."""
        with self.upkeep:
            with self._lock:
                batches = list(self._tail.batches)
                state = self._visible
            if not batches:
                return False
            self._seal(batches, state, remember)
            return True

    def _seal(
        self,
        batches: list[TailBatch],
        state: TableState,
        remember: Callable[[Sequence[str], int], None] | None,
    ) -> None:
        ids = [batch.batch_id for batch in batches if batch.batch_id is not None]
        if ids and remember is not None:
            remember(ids, self.definition.id)
        rows = stored_rows(self.definition, batches)
        written = self._write(self._unexpired(rows, state.time.clock))
        files = [file for _, file, _ in written]
        files += [file for batch in batches for file in batch.files]
        version = self._commit(written, files, (), state.transactions(self._sealed))
        with self._lock:
            self._version = version
            self._tail.drop(len(batches))
            self._add_blocks(written)
            self._sealed = state
            self._room.notify_all()
        self._tell_image()

    def _write(self, rows: pa.Table) -> list[tuple[Block, DataFile, pa.Table]]:
        """Writes rows as blocks, at most `block_rows` each, none across compartments."""
        if not rows.num_rows:
            return []
        rows = block_files.ordered(rows.combine_chunks(), self.definition)
        written: list[tuple[Block, DataFile, pa.Table]] = []
        try:
            for number, part in block_files.split(rows, self.definition, self.limits.block_rows):
                made = block_files.write(self.folder, self.definition, number, part)
                written.append((*made, part))
        except BaseException:
            self._unlink(written)
            raise
        return written

    def _commit(
        self,
        written: Sequence[tuple[Block, DataFile, pa.Table]],
        files: Sequence[DataFile],
        removed: Sequence[str],
        transactions: Mapping[str, int] | None = None,
    ) -> int:
        """One commit; the files that were written for it go if it does not come about."""
        known = {**(transactions or {}), **({LET_GO: self._let_go} if self._let_go else {})}
        try:
            return self._log.commit(files, removed, transactions=known)
        except BaseException:
            if not self._log.failed:
                self._unlink(written)
            raise

    def _unlink(self, written: Sequence[tuple[Block, DataFile, pa.Table]]) -> None:
        for block, _, _ in written:
            (self.folder / block.path).unlink(missing_ok=True)

    def _unexpired(self, rows: pa.Table, clock: int | None) -> pa.Table:
        """The rows that somebody may still read; what `trim` hides need not be written.

        Nor what RANGE hides, unless such rows are kept for a while: the clock may be set back.
        """
        oldest, held = self._horizon if self._kept_s() else self._oldest(clock), self._first_held
        if oldest is None or not rows.num_rows:
            return rows
        needed = self.definition.ticks(rows.column(self.definition.time)) >= oldest
        if held is not None:
            needed |= rows.column(SEQUENCE).to_numpy() >= held
        if needed.all():
            return rows
        self._rows_gone(int(rows.column(SEQUENCE).to_numpy()[~needed].max()))
        return rows.filter(pa.array(needed))

    def _oldest(self, clock: int | None) -> int | None:
        """The smallest tick that RANGE and `trim` let anybody read at a clock; None for all."""
        limit = self.definition.range_ticks
        ranged = None if limit is None or clock is None else clock - limit
        if ranged is not None and self._held_from is not None:
            ranged = min(ranged, self._held_from)
        bounds = [ranged, self._horizon]
        return max((bound for bound in bounds if bound is not None), default=None)

    def trim(self, tick: int) -> None:
        """Rows with T before the tick are needed by nobody: hidden now, dropped by upkeep."""
        with self._lock:
            if self._horizon is not None and tick <= self._horizon:
                return
            self._horizon = tick
        self._tell_image()

    def keep_from(self, tick: int | None) -> None:
        """Rows from the tick on are needed, those before it by nobody; None: all are.

        A reader that comes later may need rows of earlier times than those before it did.
        """
        with self._lock:
            told = self._horizon == tick
            self._horizon = tick
        if not told:
            self._tell_image()

    def hold(self, tick: int | None) -> None:
        """Rows from the tick on stay although RANGE hides them: a query that is behind reads them."""
        with self._lock:
            self._held_from = tick

    def hold_sequence(self, sequence: int | None) -> None:
        """Rows from a sequence number on stay: a view has no durable state of them."""
        with self._lock:
            self._held_sequence = sequence

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """No row goes meanwhile: a view that begins has not said yet which it needs."""
        with self._lock:
            self._holding += 1
        try:
            yield
        finally:
            with self._lock:
                self._holding -= 1

    @property
    def _first_held(self) -> int | None:
        return 0 if self._holding else self._held_sequence

    def _is_held(self, block: Block) -> bool:
        held = self._first_held
        return held is not None and block.high_sequence >= held

    def image(self) -> TableImage:
        """The stored side as of now; its files stay until `let_image_go`."""
        with self._lock:
            held = TableImage(
                version=self._version,
                sealed=self._sealed,
                blocks=tuple(self._blocks.snapshot()),
                unsealed=frozenset(f.path for batch in self._tail.batches for f in batch.files),
                generation=self.generation,
                horizon=self._horizon,
                let_go=self._let_go,
            )
            self._hold_files(held.version)
            return held

    def let_image_go(self, image: TableImage) -> None:
        """Nobody follows this image any more."""
        self._let_files_go(image.version)

    def _tell_image(self) -> None:
        if self.on_image is not None:
            self.on_image()

    def rows_changed(self) -> None:
        """Stored rows were deleted or replaced: what was made of them must be made again."""
        with self._lock:
            self.generation += 1
        self._tell_image()
        if self.on_show is not None:
            self.on_show()

    def _add_blocks(self, written: Sequence[tuple[Block, DataFile, pa.Table]]) -> None:
        for block, _, rows in written:
            self._blocks.add(block, block.low, block.high)
            self._memory[block.path] = rows
        self._forget_old()

    def fit_memory(self) -> None:
        """Lets blocks leave memory if `recent_mb` has been lowered."""
        if self.limits.recent_bytes < self._fitted:
            with self._lock:
                self._forget_old()

    def _forget_old(self) -> None:
        """Lets the oldest blocks leave memory until the rest fits (ST7)."""
        self._fitted = self.limits.recent_bytes
        held = sum(rows.nbytes for rows in self._memory.values())
        for block in self._blocks.snapshot() if held > self._fitted else ():
            if held <= self._fitted:
                return
            gone = self._memory.pop(block.path, None)
            held -= 0 if gone is None else gone.nbytes

    def expire(self) -> int:
        """Drops compartments that RANGE hides whole, one commit each; how many (ST10).

        Not before RANGE has hidden them for `removed_files_kept_s`: a clock that a wrong row moved
        can be set back until then. A restart counts anew.
        """
        if self._horizon is not None:
            self._drop_below(self._horizon)
        if self.definition.range_ticks is None:
            return 0
        with self.upkeep:
            limit = self.definition.range_ticks  # under the lock: ALTER may just have changed it
            clock = self.state.time.clock if not self.definition.by_arrival else self._now()
            if clock is None or limit is None:
                return 0
            # By the bounds of blocks: their numbers may be those of an earlier RANGE.
            oldest = self._oldest(clock)
            assert oldest is not None
            kept = {b.compartment for b in self.blocks if b.high >= oldest or self._is_held(b)}
            hidden, now = {b.compartment for b in self.blocks} - kept, time.monotonic()
            self._hidden_since = {c: self._hidden_since.get(c, now) for c in hidden}
            kept_s = self._kept_s()
            gone = sorted(c for c, since in self._hidden_since.items() if now - since >= kept_s)
            for compartment in gone:
                self.replace([b for b in self.blocks if b.compartment == compartment], None)
            return len(gone)

    def _drop_below(self, tick: int) -> None:
        """Drops the blocks that end before a tick, in one commit."""
        if not any(block.high < tick for block in self.blocks):
            return
        with self.upkeep:
            gone = [b for b in self.blocks if b.high < tick and not self._is_held(b)]
            if gone:
                self.replace(gone, None)

    def replace(self, old: Sequence[Block], rows: pa.Table | None) -> list[Block]:
        """Puts rows in the place of blocks, in one commit; the caller holds `upkeep`."""
        written = self._write(rows) if rows is not None else []
        files = [file for _, file, _ in written]
        if rows is None:
            self._rows_gone(max(block.high_sequence for block in old))
        version = self._commit(written, files, [b.path for b in old])
        paths = {b.path for b in old}
        with self._lock:
            self._version = version
            for block in old:
                self._blocks.remove(block)
                self._memory.pop(block.path, None)
            self._add_blocks(written)
        self._tell_image()
        self.indexes.forget(old)
        self._garbage.add([self.folder / path for path in paths], version)
        self._garbage.collect()
        return [block for block, _, _ in written]

    def compact(self) -> int:
        """Joins small neighbours of one compartment into larger blocks; how many were joined."""
        with self.upkeep:
            run = self._small_run()
            if not run:
                return 0
            with self.reading() as snapshot:
                tables = _read_together(snapshot, run, JOINED_BLOCKS * self.limits.block_bytes)
            joined = run[: len(tables)]
            new = self.replace(joined, pa.concat_tables(tables)) if len(joined) > 1 else joined
            if len(joined) < len(run):  # the next one did not fit
                self._wide |= {block.path for block in new}
            self._wide &= {block.path for block in self.blocks}
            return len(joined) if len(joined) > 1 else 0

    def _small_run(self) -> list[Block]:
        run: list[Block] = []
        rows = 0
        for block in self.blocks:
            few = block.row_count * 2 <= self.limits.block_rows
            small = few and block.path not in self._wide
            if run and (
                not small
                or block.compartment != run[0].compartment
                or rows >= self.limits.block_rows
            ):
                if len(run) >= self.limits.compact_files:
                    return run
                run, rows = [], 0
            if small:
                run.append(block)
                rows += block.row_count
        return run if len(run) >= self.limits.compact_files else []

    def build_indexes(self, most: int) -> int:
        """Indexes up to `most` blocks that have no index file yet; how many."""
        if self.indexes.sidecar is None:  # no index: a snapshot of every table in every round costs
            return 0
        with self.reading() as snapshot:
            return self.indexes.build(
                list(snapshot.blocks), lambda b: read_block(snapshot, b), most
            )

    def rebuild_compartments(self) -> None:
        """After a change of RANGE: blocks go into the compartments of the new one."""
        with self.upkeep, self.reading() as snapshot:
            moved = [
                b
                for b in self.blocks
                if self.definition.compartment_of(b.low) != b.compartment
                or self.definition.compartment_of(b.high) != b.compartment
            ]
            if moved:
                self.replace(moved, pa.concat_tables([read_block(snapshot, b) for b in moved]))

    def collect_garbage(self) -> None:
        """Deletes removed files that nobody needs any more."""
        self._garbage.collect()


def _read_together(
    snapshot: StreamSnapshot, blocks: Sequence[Block], most_bytes: int
) -> list[pa.Table]:
    """The rows of the first blocks, as many as fit into so many bytes; of one at least."""
    found: list[pa.Table] = []
    held = 0
    for block in blocks:
        rows = read_block(snapshot, block)
        held += rows.nbytes
        if found and held > most_bytes:
            break
        found.append(rows)
    return found


def read_block(
    snapshot: StreamSnapshot, block: Block, columns: tuple[str, ...] | None = None
) -> pa.Table:
    """All rows of one block, at least these columns; None for all."""
    held = snapshot.memory.get(block.path)
    if held is not None:
        return held
    columns = columns or tuple(snapshot.definition.stored_schema.names)
    alone = block_files.interval_index([block]).snapshot()
    one = StreamSnapshot(
        snapshot.definition, snapshot.folder, snapshot.version, alone, (), None, None, {}
    )
    return select(one, Wanted(columns)).rows
