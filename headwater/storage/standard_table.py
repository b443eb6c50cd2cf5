"""A standard table: Parquet files under a Delta log, copy-on-write.

Readers take a snapshot and never wait; writers take turns. A file that a commit removed stays on
disk while a reader of this process may need it, and for `removed_files_kept_s` for readers outside.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.storage.delta import DataFile, DeltaLog, described, write_file
from headwater.storage.door import check, check_file, has_required, null_value
from headwater.storage.garbage import Garbage


@dataclass(frozen=True)
class Snapshot:
    """The files of one version of a table."""

    version: int
    schema: pa.Schema
    files: tuple[str, ...]
    row_count: int
    size: int  # bytes of the files


class StandardTable:
    """One standard table."""

    def __init__(self, folder: Path, schema: pa.Schema, kept_s: Callable[[], float]) -> None:
        self.folder = folder
        self.schema = schema
        self.writing = threading.RLock()
        self._state = threading.Lock()
        self._log = DeltaLog(folder)
        # ADD COLUMN commits here first: after a crash the catalog may know fewer columns.
        self.schema = pa.schema([*schema, *list(self._log.schema)[len(schema) :]])
        self._garbage = Garbage(folder, kept_s)
        self._snapshot = self._read_log()
        self._garbage.find_left_overs(set(self._snapshot.files), self._snapshot.version)

    @classmethod
    def create(cls, folder: Path, schema: pa.Schema, kept_s: Callable[[], float]) -> StandardTable:
        """Makes a new empty table."""
        try:
            DeltaLog.create(folder, schema)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(folder, schema, kept_s)

    def _read_log(self) -> Snapshot:
        files = self._log.files()
        paths = tuple(str(self.folder / f.path) for f in files)
        rows, size = sum(f.row_count for f in files), sum(f.size for f in files)
        return Snapshot(self._log.version, self.schema, paths, rows, size)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """The newest version; its files stay until the reader is done."""
        with self._state:
            snapshot = self._snapshot
            self._garbage.hold(snapshot.version)
        try:
            yield snapshot
        finally:
            self._garbage.let_go(snapshot.version)

    @property
    def snapshot(self) -> Snapshot:
        """The newest version, for its numbers; to read its files use `reading`."""
        with self._state:
            return self._snapshot

    def look_for_foreign_commits(self) -> bool:
        """Takes in what another Delta writer committed; whether there was anything."""
        with self.writing:
            if not self._log.refresh():
                return False
            snapshot = self._read_log()
            with self._state:
                self._snapshot = snapshot
            return True

    def batch_was_applied(self, batch_id: str) -> bool:
        """Whether a batch of this id was committed before."""
        with self.writing:
            return self._log.transaction(_batch_name(batch_id)) is not None

    def append(self, rows: pa.Table, batch_id: str | None = None) -> int:
        """Adds checked rows in one commit; the number of rows added (0 for a repeated batch)."""
        with self.writing:
            if batch_id is not None and self.batch_was_applied(batch_id):
                return 0
            if rows.num_rows or batch_id is not None:
                added = [write_file(self.folder, rows)] if rows.num_rows else []
                self.commit(added, (), batch_id=batch_id)
            return rows.num_rows

    def replace(self, removed: Sequence[str], rows: pa.Table) -> None:
        """Puts checked rows in the place of files, in one commit; the caller holds `writing`."""
        added = [write_file(self.folder, rows)] if rows.num_rows else []
        self.commit(added, removed)

    def commit(
        self, added: Sequence[DataFile], removed: Sequence[str], batch_id: str | None = None
    ) -> None:
        """Adds and removes files in one commit; the caller holds `writing`."""
        names = {_batch_name(batch_id): 0} if batch_id is not None else None
        relative = [str(Path(path).relative_to(self.folder)) for path in removed]
        version = self._log.commit(added, relative, transactions=names)
        snapshot = self._read_log()
        with self._state:
            self._snapshot = snapshot
        self._garbage.add([Path(path) for path in removed], version)
        self._garbage.collect()

    def add_columns(self, fields: Sequence[pa.Field[pa.DataType]]) -> None:
        """Adds columns that are NULL in all rows there are."""
        with self.writing:
            self._log.add_columns(list(fields))
            self.schema = pa.schema([*self.schema, *fields])
            snapshot = self._read_log()
            with self._state:
                self._snapshot = snapshot

    def written(self, paths: Sequence[Path]) -> list[DataFile]:
        """Files that Spark wrote under the table's folder, described and checked as all rows are."""
        for path in paths:
            check_file(path, self.schema)
        files = [described(self.folder, path) for path in paths]
        required = [f for f in self.schema if has_required(f)]
        for file in files:
            if required and file.row_count:
                self._check_required(file, required)
        return [file for file in files if file.row_count]

    def _check_required(self, file: DataFile, required: list[pa.Field[pa.DataType]]) -> None:
        counts = file.statistics.get("nullCount", {})
        unknown = []
        for field in required:
            if field.name not in counts:
                unknown.append(field)
            elif counts[field.name]:
                raise null_value(field.name)
        if unknown:
            names = [field.name for field in unknown]
            check(pq.read_table(self.folder / file.path, columns=names), pa.schema(unknown))

    def collect_garbage(self) -> None:
        """Deletes removed files that nobody needs any more."""
        self._garbage.collect()

    def drop(self) -> None:
        """Deletes everything once its readers are done; the catalog no longer knows the table."""
        with self.writing:
            self._garbage.drop_folder()


def _batch_name(batch_id: str) -> str:
    return f"batch:{batch_id}"
