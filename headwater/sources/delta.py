"""`delta:folder`: the rows that are appended to a Delta table, version by version.

The log names the files of each version, and they never change; so rows have one order, and how many of
them are stored says where to go on. A version that only puts files together (OPTIMIZE) adds nothing. One
that takes rows away or changes them stops the source: a stream has no way to take a row back.
Must never: read a file that the log does not name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.errors import BindError, NotSupportedError, SettingError, StorageError
from headwater.sources.pulled import PulledRunner
from headwater.storage.local_path import local_path

READ_FEATURES = frozenset({"timestampNtz", "vacuumProtocolCheck"})  # that change no file's meaning


@dataclass(frozen=True)
class AddedFile:
    """A file of a version, and the values that all its rows share."""

    path: str
    shared: tuple[tuple[str, str | None], ...] = ()


def log_file(folder: Path, version: int) -> Path:
    """Where a version is written down."""
    return folder / "_delta_log" / f"{version:020}.json"


def check_delta(folder: str) -> None:
    """SettingError unless a folder holds a Delta table whose log is whole."""
    hint = "copy the table here; sources of parquet, csv and json may read other file systems"
    log = local_path(folder, "the table of a delta source", hint) / "_delta_log"
    if not log.is_dir():
        raise SettingError(f"{folder} is no Delta table", hint="it has no folder _delta_log")
    if not log_file(Path(folder), 0).exists():
        raise SettingError(
            f"the log of {folder} no longer has its first versions",
            detail="a source reads a Delta table from version 0 on",
        )


def added_files(version: int, text: str) -> list[AddedFile]:
    """The files that a version appends, in the log's order."""
    added: list[AddedFile] = []
    for line in text.splitlines():
        action = json.loads(line) if line.strip() else {}
        _check_readable(action)
        removed = action.get("remove")
        if removed is not None and removed.get("dataChange", True):
            raise NotSupportedError(
                f"version {version} of the Delta table removes or changes rows",
                hint="a source takes in rows that are appended; DROP SOURCE, and INSERT the rest",
            )
        file = action.get("add")
        if file is None or not file.get("dataChange", True):
            continue
        if file.get("deletionVector"):
            raise NotSupportedError("the Delta table has deletion vectors, which are not read")
        added.append(AddedFile(unquote(file["path"]), tuple(file["partitionValues"].items())))
    return added


def _check_readable(action: dict[str, Any]) -> None:
    """NotSupportedError if the files do not mean what they say."""
    needed = set(action.get("protocol", {}).get("readerFeatures") or ()) - READ_FEATURES
    settings = action.get("metaData", {}).get("configuration", {})
    if settings.get("delta.columnMapping.mode", "none") != "none":
        needed.add("columnMapping")
    if needed:
        named = ", ".join(sorted(needed))
        raise NotSupportedError(f"the Delta table needs what is not read here: {named}")


class DeltaRunner(PulledRunner):
    """One run of a source that follows a Delta table."""

    def rows(self) -> Iterator[pa.Table | None]:
        """The rows after those that are stored; None where there are no more yet."""
        folder, version = Path(self.feed.address.rest), 0
        to_skip = self.delivered_rows
        while not self.stopping.is_set():
            log = log_file(folder, version)
            if not log.exists():
                self._check_log(folder, version)
                yield None
                self.stopping.wait(self.feed.options.trigger_s)
                continue
            for file in added_files(version, log.read_text()):
                count = _row_count(folder / file.path)
                skipped = min(to_skip, count)
                to_skip -= skipped
                if skipped < count:
                    yield from self._of_file(folder, file, skipped)
            version += 1

    def _check_log(self, folder: Path, version: int) -> None:
        """StorageError if a later version is there: the one that is missing will not come."""
        later = [p for p in (folder / "_delta_log").glob("*.json") if p.stem.isdecimal()]
        if any(int(p.stem) > version for p in later) and not log_file(folder, version).exists():
            raise StorageError(
                f"version {version} of the Delta table is not in its log any more",
                hint="keep the log for longer than the source is stopped",
            )

    def _of_file(self, folder: Path, file: AddedFile, skipped: int) -> Iterator[pa.Table]:
        """The rows of a file after the first ones."""
        with pq.ParquetFile(folder / file.path) as found:
            for batch in found.iter_batches(self.feed.options.batch_rows):
                rest = batch.slice(skipped)
                skipped = max(skipped - batch.num_rows, 0)
                if rest.num_rows:
                    yield self._fitted(pa.Table.from_batches([rest]), file)

    def _fitted(self, rows: pa.Table, file: AddedFile) -> pa.Table:
        """The columns that the table has, with those that all rows of the file share."""
        definition = self.feed.table.definition
        given = {name.casefold(): rows.column(name) for name in rows.column_names}
        for name, value in file.shared:
            same = pa.repeat(pa.scalar(value, pa.string()), len(rows))
            given[name.casefold()] = pa.chunked_array([same])
        wanted = {f.name: f.type for f in definition.schema if f.name.casefold() in given}
        time = definition.time_column
        if not wanted or (time is not None and time not in wanted):
            missing = f"column {time}" if time else f"columns of {definition.name}"
            raise BindError(
                f"the Delta table has no {missing}",
                sqlstate="42703",
                detail="its columns: " + ", ".join(given),
            )
        texts = {name.casefold() for name, _ in file.shared}
        columns = {name: given[name.casefold()] for name in wanted}
        for name in [n for n in wanted if n.casefold() in texts]:
            columns[name] = columns[name].cast(wanted[name])
        return pa.table(columns)


def _row_count(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            f"the file {path.name} of the Delta table cannot be read",
            detail=str(error)[:300],
            hint="VACUUM may have removed it before the source came to its version",
        ) from error
