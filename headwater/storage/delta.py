"""Delta Lake as the log of Parquet files, and nothing else: delta-rs evaluates nothing.

delta-rs syncs nothing, so this module does: data files and their folder before a commit, the
commit's file and the log's folder after it. A handle is refreshed after each commit, because
delta-rs does not do so by itself. One writer per table: callers hold the table's lock.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.errors import StorageError
from headwater.storage.folder import sync_file, sync_folder

CHECKPOINT_INTERVAL = 10
STATISTICS_COLUMNS = 32
LONGEST_TEXT_BOUND = 64


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table: its path under the table's folder, and what it holds."""

    path: str
    size: int
    row_count: int
    statistics: Mapping[str, Any]


class DeltaLog:
    """The log of one table's files."""

    def __init__(self, folder: Path) -> None:
        from deltalake import DeltaTable

        self.folder = folder
        try:
            self._handle = DeltaTable(folder)
        except Exception as error:  # delta-rs raises many types; all mean an unreadable log
            raise StorageError(
                f"the Delta log of {folder} cannot be read",
                sqlstate="XX001",
                detail=str(error).splitlines()[0],
                hint="restore the folder from a copy",
            ) from error

    @classmethod
    def create(cls, folder: Path, schema: pa.Schema) -> DeltaLog:
        """Makes a new empty table in a new folder."""
        from deltalake import DeltaTable

        folder.mkdir(parents=True)
        configuration = {"delta.checkpointInterval": str(CHECKPOINT_INTERVAL)}
        DeltaTable.create(str(folder), schema, configuration=configuration)
        sync_file(_commit_file(folder, 0))
        sync_folder(folder / "_delta_log")
        sync_folder(folder)
        sync_folder(folder.parent)
        return cls(folder)

    @property
    def version(self) -> int:
        """The version of the newest commit we know of."""
        return int(self._handle.version())

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema(self._handle.schema().to_arrow())

    def refresh(self) -> bool:
        """Looks for commits of others; whether there were any."""
        before = self.version
        self._handle.update_incremental()
        return self.version != before

    def transaction(self, name: str) -> int | None:
        """The last version that an application wrote under its name."""
        found = self._handle.transaction_version(name)
        return None if found is None else int(found)

    def files(self) -> list[DataFile]:
        """The files of the newest version, in the order they were added."""
        actions = pa.table(self._handle.get_add_actions(flatten=False))
        names = actions.column_names
        found = []
        for row in actions.to_pylist():
            stats: dict[str, Any] = {
                k: row.get(k) for k in ("min", "max", "null_count") if k in names
            }
            found.append(DataFile(row["path"], row["size_bytes"], row["num_records"] or 0, stats))
        return sorted(found, key=lambda f: f.path)

    def commit(
        self,
        added: Sequence[DataFile] = (),
        removed: Iterable[str] = (),
        *,
        transactions: Mapping[str, int] | None = None,
    ) -> int:
        """Adds and removes files in one commit; the new version, durable when this returns."""
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        now = int(time.time() * 1000)
        self._sync_data(added)
        actions: list[Any] = [
            AddAction(f.path, f.size, {}, now, True, json.dumps(dict(f.statistics))) for f in added
        ]
        actions += [RemoveAction(path, True, now) for path in removed]
        names = [Transaction(name, number) for name, number in (transactions or {}).items()]
        properties = CommitProperties(app_transactions=names) if names else None
        self._handle.create_write_transaction(
            actions, "append", self._handle.schema(), commit_properties=properties
        )
        self._handle.update_incremental()
        sync_file(_commit_file(self.folder, self.version))
        sync_folder(self.folder / "_delta_log")
        return self.version

    def add_columns(self, fields: Sequence[pa.Field]) -> int:
        """Adds columns that are NULL in all rows there are."""
        from deltalake import Schema

        new = Schema.from_arrow(pa.schema(fields)).fields
        self._handle.alter.add_columns(new)
        self._handle.update_incremental()
        sync_file(_commit_file(self.folder, self.version))
        sync_folder(self.folder / "_delta_log")
        return self.version

    def _sync_data(self, added: Sequence[DataFile]) -> None:
        folders = {self.folder}
        for file in added:
            path = self.folder / file.path
            sync_file(path)
            folders.add(path.parent)
        if added:
            for folder in folders:
                sync_folder(folder)


def _commit_file(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020d}.json"


def write_file(folder: Path, table: pa.Table) -> DataFile:
    """Writes rows as one new Parquet file of the table; not part of it until it is committed."""
    path = folder / f"part-{uuid.uuid4().hex}.parquet"
    pq.write_table(table, path, compression="zstd")
    return described(folder, path)


def described(folder: Path, path: Path) -> DataFile:
    """A Parquet file as the log describes it, from the file's own footer."""
    footer = pq.read_metadata(path)
    statistics: dict[str, Any] = {"numRecords": footer.num_rows}
    bounds = _bounds(footer)
    if bounds is not None:
        statistics |= bounds
    name = str(path.relative_to(folder))
    return DataFile(name, path.stat().st_size, footer.num_rows, statistics)


def _bounds(footer: Any) -> dict[str, dict[str, Any]] | None:
    """Smallest and largest value and NULL count of plain columns, as Delta writes them."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(min(footer.num_columns, STATISTICS_COLUMNS)):
        chunks = [footer.row_group(g).column(index) for g in range(footer.num_row_groups)]
        name = footer.schema.column(index).path
        if "." in name or not chunks or any(c.statistics is None for c in chunks):
            continue
        if all(c.statistics.has_null_count for c in chunks):
            nulls[name] = sum(c.statistics.null_count for c in chunks)
        bounds = [(c.statistics.min, c.statistics.max) for c in chunks if c.statistics.has_min_max]
        if bounds and len(bounds) == len(chunks) and _plain(bounds[0][0]):
            low[name], high[name] = min(b[0] for b in bounds), max(b[1] for b in bounds)
    return {"minValues": low, "maxValues": high, "nullCount": nulls} if nulls else None


def _plain(value: Any) -> bool:
    """Whether a bound can be written as it is; the others are left out, which is always allowed."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= LONGEST_TEXT_BOUND)


def null_count(folder: Path, file: DataFile, column: str) -> int:
    """How many NULLs a file's column holds, from its footer; nested columns count as none."""
    footer = pq.read_metadata(folder / file.path)
    total = 0
    for index in range(footer.num_columns):
        if footer.schema.column(index).path == column:
            for group in range(footer.num_row_groups):
                statistics = footer.row_group(group).column(index).statistics
                total += (statistics.null_count or 0) if statistics is not None else 0
    return total
