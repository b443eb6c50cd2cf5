"""All streaming tables of a database: the one write-ahead log, recovery, and the upkeep thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from headwater.errors import StorageError
from headwater.settings import MEBIBYTE, Settings
from headwater.storage.batch_ids import BatchIds
from headwater.storage.catalog import Catalog, CatalogObject
from headwater.storage.disk import is_damage
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.limits import LiveLimits
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.wal import LogState, WriteAheadLog

UPKEEP_PERIOD_S = 0.25
INDEX_BLOCKS_PER_ROUND = 4
RESULT_ROWS = 4096  # most results in one block: a reader that resumes opens one
FOREIGN_PERIOD_S = 5.0  # how often commits of other Delta writers are looked for


def source_key(source: CatalogObject) -> str:
    """What a source is called in logs: unlike its name, never given twice."""
    return f"{source.name}-{source.id}"


# Where the definition of an object's streaming table stands in the object's own, by kind.
definition_keys = {
    "streaming table": None,
    "stream": None,
    "continuous query": "results",
    "changes": "results",
    "materialized view": "table",
}


def stored_definition(item: CatalogObject) -> Definition:
    """The streaming table behind an object of the catalog."""
    key = definition_keys[item.kind]
    saved = item.definition if key is None else item.definition[key]
    kind = "results" if key == "results" else item.kind
    return Definition.from_json(item.id, item.name, kind, saved)


class StreamStore:
    """The streaming tables of one open database."""

    def __init__(self, folder: Path, catalog: Catalog, settings: Settings) -> None:
        self._settings = settings
        self._catalog = catalog
        self._tables_folder = folder / "tables"
        self._batches = BatchIds(folder / "batches", lambda: settings.number("dedup_window_s"))
        self._lock = threading.Lock()
        self._tables: dict[int, StreamingTable] = {}
        self.damaged: dict[int, StorageError] = {}  # by number: tables that could not be opened
        self._needed: dict[int, int] = {}  # by number of these: the first record that they need
        self._settled: set[int] = set()  # tables with new blocks of sources
        self.visibility = threading.Lock()  # held to see several tables at one instant
        self._stopping = False
        self._looked_at = time.monotonic()
        self._wanted = threading.Event()
        self.on_image: Callable[[int], None] | None = None  # told whose blocks have changed
        self.read_from: Callable[[], int | None] = lambda: None  # by others, from this record on
        self.last_error: Exception | None = None
        try:
            self._wal = self._opened(folder / "wal")
        except BaseException:
            self._batches.close()
            raise
        self._keeper = threading.Thread(target=self._keep, name="headwater-keeper", daemon=True)
        self._keeper.start()

    def _opened(self, folder: Path) -> WriteAheadLog:
        """Opens the log and every table, and replays what is in no block yet."""
        for item in self._catalog.all(*definition_keys):
            with self._noting_damage(item.id):
                self._open_table(item)
        sealed = max((table.sealed_lsn for table in self._tables.values()), default=0)
        wal = WriteAheadLog(
            str(folder),
            segment_bytes=self._settings.integer("wal_segment_mb") * MEBIBYTE,
            append_timeout_s=lambda: self._settings.number("insert_timeout_s"),
            first_lsn=sealed + 1,
        )
        try:
            for record in wal.recover():
                table = self._tables.get(record.table)
                if table is not None:
                    with self._noting_damage(record.table):
                        table.replay(record)
                elif record.table in self.damaged:
                    self._needed.setdefault(record.table, record.lsn)
                elif record.table > self._catalog.last_id:
                    raise _unheard_of(folder, record.table)
            if wal.next_lsn <= sealed:
                raise StorageError(
                    f"the write-ahead log in {folder} ends before rows that are in blocks already",
                    sqlstate="XX001",
                    detail=f"it ends at {wal.next_lsn - 1}, blocks go up to {sealed}",
                    hint="files of the log are missing; restore the folder from a copy",
                )
            for table in list(self._tables.values()):
                with self._noting_damage(table.definition.id):
                    _check_torn(table, wal.state().first_lsn)
        except BaseException:
            wal.close()
            raise
        for table in self._tables.values():
            table.attach(wal)
        return wal

    def _open_table(self, item: CatalogObject) -> None:
        opened = self._tables[item.id] = self._table(stored_definition(item))
        opened.kept = item.kind != "stream" or self._has_reader(item.id)
        if self._has_reader(item.id, "view"):
            opened.hold_sequence(0)  # until the view says what it holds itself

    @contextlib.contextmanager
    def _noting_damage(self, number: int) -> Iterator[None]:
        """A table whose files are damaged is left out, with the error; its records stay in the log."""
        try:
            yield
        except StorageError as error:
            if not is_damage(error):
                raise
            self.damaged[number] = error
            table = self._tables.pop(number, None)
            if table is not None:
                self._needed[number] = table.sealed_lsn + 1
                table.indexes.close()

    def _has_reader(self, number: int, *kinds: str) -> bool:
        """Whether a continuous query, or something of these kinds, reads a table."""
        readers = self._catalog.all(*kinds or ("continuous query", "materialized view", "view"))
        return any(number in item.definition.get("reads", ()) for item in readers)

    def _table(self, definition: Definition) -> StreamingTable:
        sources = [
            source_key(o)
            for o in self._catalog.all("source")
            if o.definition.get("table_id") == definition.id
        ]
        table = StreamingTable(
            definition,
            self._tables_folder / definition.folder,
            LiveLimits(self._settings, RESULT_ROWS if definition.kind == "results" else None),
            lambda: self._settings.number("removed_files_kept_s"),
            self._wanted.set,
            self._batches.known(definition.id),
            sources,
            self.visibility,
        )
        table.on_image = lambda: self._tell_image(definition.id)
        return table

    def _tell_image(self, number: int) -> None:
        if self.on_image is not None:
            self.on_image(number)

    def add(self, definition: Definition) -> StreamingTable:
        """Takes in a table that was just made."""
        table = self._table(definition)
        table.kept = definition.kind != "stream"
        table.attach(self._wal)
        with self._lock:
            self._tables[definition.id] = table
        return table

    def remove(self, number: int) -> StreamingTable | None:
        """Forgets a table."""
        with self._lock:
            self.damaged.pop(number, None)
            self._needed.pop(number, None)
            return self._tables.pop(number, None)

    def find(self, number: int) -> StreamingTable | None:
        """The table of that number."""
        with self._lock:
            return self._tables.get(number)

    def all(self) -> list[StreamingTable]:
        """All tables."""
        with self._lock:
            return list(self._tables.values())

    def shown(self) -> list[StreamingTable]:
        """The tables that users know of: not those that hold results of queries."""
        return [table for table in self.all() if table.definition.kind != "results"]

    # Upkeep

    def _keep(self) -> None:
        """Seals, expires and compacts; an error is kept for `headwater.tables` and tried again."""
        while not self._stopping:
            self._wanted.wait(UPKEEP_PERIOD_S)
            self._wanted.clear()
            try:
                self.keep_once()
                self.last_error = None
            except Exception as error:  # upkeep goes on; the error is shown in headwater.metrics
                self.last_error = error

    def keep_once(self) -> None:
        """One round of upkeep over all tables."""
        sealed = False
        look = time.monotonic() - self._looked_at >= FOREIGN_PERIOD_S
        if look:
            self._looked_at = time.monotonic()
        failure: Exception | None = None
        for table in self.all():
            try:
                sealed |= self._keep_table(table, look)
            except Exception as error:  # the other tables get their upkeep all the same
                failure = error
        if sealed:
            self.free_log()
        if failure is not None:
            raise failure

    def _keep_table(self, table: StreamingTable, look: bool) -> bool:
        """One round of upkeep of one table; whether it was sealed."""
        sealed = False
        if look:
            table.look_for_foreign_commits()
        if table.due():
            sealed = table.seal(self._batches.remember)
            table.forget_ids(self._settings.number("dedup_window_s"))
            table.compact()
        self._compact(table)
        table.expire()
        table.collect_garbage()
        table.fit_memory()
        while table.build_indexes(INDEX_BLOCKS_PER_ROUND):
            self._wanted.set()
            # Further behind than its bound, an index is built before anything else is sealed:
            # then `unsealed_mb` slows the writers down.
            if table.indexes.largest_lag(table.blocks) <= self._settings.integer(
                "index_lag_blocks"
            ):
                break
        return sealed

    def on_group(self, tell: Callable[[int], None] | None) -> None:
        """Tells the last record of each group once it is visible; no segment is written twice then."""
        self._wal.keep_written()
        self._wal.on_group = tell

    @property
    def durable_lsn(self) -> int:
        """The last record that is durable."""
        return self._wal.next_lsn - 1

    def log_state(self) -> LogState:
        """What the write-ahead log looks like now."""
        return self._wal.state()

    def wake(self) -> None:
        """Asks for a round of upkeep now."""
        self._wanted.set()

    def seal_all(self) -> None:
        """Seals every table, whatever its size."""
        for table in self.all():
            table.seal(self._batches.remember)
        self.free_log()

    def index_all(self) -> None:
        """Builds every index file that is missing."""
        for table in self.all():
            while table.build_indexes(INDEX_BLOCKS_PER_ROUND):
                pass

    def seal(self, table: StreamingTable) -> None:
        """Seals one table, whatever its size."""
        table.seal(self._batches.remember)

    def settle(self, table: StreamingTable) -> None:
        """After a source's micro-batch: its blocks go into the Delta log; upkeep may compact."""
        table.seal(self._batches.remember)
        self.free_log()
        with self._lock:
            self._settled.add(table.definition.id)
        self._wanted.set()

    def _compact(self, table: StreamingTable) -> None:
        with self._lock:
            if table.definition.id not in self._settled:
                return
            self._settled.discard(table.definition.id)
        table.compact()

    def free_log(self) -> None:
        """Lets go of log segments that every table has sealed past."""
        # Records become visible in the order of the log: up to the newest visible one, each is in
        # a tail or in a block. The order of reading matters: the newest first, then the tails.
        tables = self.all()
        bound = max((table.state.lsn for table in tables), default=0) + 1
        for table in tables:
            first = table.first_unsealed_lsn
            if first is not None:
                bound = min(bound, first)
        with self._lock:
            bound = min(bound, *self._needed.values(), bound)
        read = self.read_from()
        self._wal.free((bound if read is None else min(bound, read)) - 1)

    def close(self, *, seal: bool = True) -> None:
        """Stops upkeep, seals what is left, closes the log."""
        self._stopping = True
        self._wanted.set()
        self._keeper.join()
        try:
            if seal and self._wal.failure is None:
                self.seal_all()
        finally:
            self._wal.close()
            self._batches.close()
            for table in self.all():
                table.collect_garbage()
                table.indexes.close()


def _unheard_of(folder: Path, number: int) -> StorageError:
    """Rows of a table that was not dropped, and that the catalog has never known."""
    return StorageError(
        f"the catalog in {folder.parent / 'catalog'} is older than the rows in {folder}",
        sqlstate="XX001",
        detail=f"there are rows of table {number}, which the catalog does not know yet",
        hint="put the newest files of the catalog back; nothing has been changed",
    )


def _check_torn(table: StreamingTable, first_lsn: int) -> None:
    """A commit put aside as torn was never synced; then the log still has everything after it."""
    torn = table.torn_commit
    if torn is not None and first_lsn > table.sealed_lsn + 1:
        commit = torn.with_suffix("")
        torn.rename(commit)
        raise StorageError(
            f"the commit {commit} is damaged",
            sqlstate="XX001",
            detail=f"the write-ahead log begins at {first_lsn}, blocks go up to {table.sealed_lsn}",
            hint="restore the file from a copy",
        )
