"""The Parquet files of runs: how one is written, read whole, and searched for some keys.

Owns: the format. Rows that have a hash stand in its order, 8 192 together, and the footer tells the greatest
hash of each piece: what is on disk of a key is found by reading one piece. Spark reads the same files. Must
never: know what the rows are, or remove a file that it did not write.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headwater.fold.spill import HASH
from headwater.storage.disk import storage_error

ROWS_TOGETHER = 1 << 13  # of a run's file: what is read for one key
FEW_PIECES = 4  # are read by one thread


@dataclass(frozen=True)
class WrittenPart:
    """A file of a partition."""

    part: int
    rows: int
    size: int


def part_path(prefix: str, part: int) -> str:
    """The file of a partition."""
    return f"{prefix}-{part}.parquet"


def write_part(table: pa.Table, prefix: str, part: int) -> WrittenPart:
    """Writes one partition's file, whole or not at all."""
    path = part_path(prefix, part)
    by_hash = HASH in table.column_names  # a state, not a result
    fresh = f"{path}.{uuid.uuid4().hex[:8]}.new"  # a task may be tried twice
    try:
        rows_together = ROWS_TOGETHER if by_hash else None
        with pq.ParquetWriter(fresh, table.schema, **_options(by_hash)) as writer:
            writer.write_table(table, rows_together)
        size = os.stat(fresh).st_size
        os.replace(fresh, path)
    except OSError as error:
        Path(fresh).unlink(missing_ok=True)
        raise storage_error("write", path, error) from error
    return WrittenPart(part, table.num_rows, size)


def _options(by_hash: bool) -> dict[str, Any]:
    return {
        "compression": "lz4",
        "use_dictionary": False,
        "write_statistics": [HASH] if by_hash else False,
        "write_page_checksum": True,
    }


class PartWriter:
    """A file whose rows come in order, piece by piece; whoever begins it ends it or gives it up."""

    def __init__(self, prefix: str, part: int, schema: pa.Schema) -> None:
        self._path, self._part, self._rows = part_path(prefix, part), part, 0
        self._waiting: list[pa.Table] = []  # not enough for a piece
        self._writer = self._tried(lambda: pq.ParquetWriter(self._path, schema, **_options(True)))

    def write(self, rows: pa.Table) -> None:
        """The next rows."""
        self._rows += rows.num_rows
        self._waiting.append(rows)
        count = sum(table.num_rows for table in self._waiting)
        if count >= ROWS_TOGETHER:
            waiting = pa.concat_tables(self._waiting)
            full = count - count % ROWS_TOGETHER
            self._waiting = [waiting.slice(full)]
            self._tried(lambda: self._writer.write_table(waiting.slice(0, full), ROWS_TOGETHER))

    def end(self) -> WrittenPart:
        """The file is whole."""
        rest = pa.concat_tables(self._waiting)
        if rest.num_rows:
            self._tried(lambda: self._writer.write_table(rest, ROWS_TOGETHER))
        self._tried(self._writer.close)
        return WrittenPart(self._part, self._rows, os.stat(self._path).st_size)

    def give_up(self) -> None:
        """There is no file."""
        with contextlib.suppress(OSError):
            self._writer.close()
        Path(self._path).unlink(missing_ok=True)

    def _tried(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as error:
            raise storage_error("write", self._path, error) from error


def read_part(path: str, names: Sequence[str]) -> pa.Table:
    """Some columns of a file."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(list(names))
    except OSError as error:
        raise storage_error("read", path, error) from error


@dataclass(frozen=True)
class RunPart:
    """A file of a run, in which the rows of some keys are found."""

    path: str
    footer: pq.FileMetaData
    last: np.ndarray[Any, Any]  # of each row group, the greatest hash

    @staticmethod
    def opened(path: str) -> RunPart | None:
        """None for a file whose rows are in no order."""
        try:
            footer = pq.read_metadata(path)
        except OSError as error:
            raise storage_error("read", path, error) from error
        if HASH not in footer.schema.names:
            return None
        place = footer.schema.names.index(HASH)
        groups = [footer.row_group(n).column(place) for n in range(footer.num_row_groups)]
        return RunPart(path, footer, np.array([g.statistics.max for g in groups], np.uint64))

    @property
    def piece_count(self) -> int:
        """How many pieces it has, each read alone."""
        return len(self.last)

    def pieces(self, places: Sequence[int], names: Sequence[str] | None = None) -> pa.Table:
        """Some pieces, with some columns or all."""
        try:
            with pq.ParquetFile(
                self.path, metadata=self.footer, page_checksum_verification=True
            ) as file:
                columns = None if names is None else list(names)
                together = (
                    len(places) > FEW_PIECES
                )  # else handing work out costs more than it saves
                return file.read_row_groups(list(places), columns, use_threads=together)
        except OSError as error:
            raise storage_error("read", self.path, error) from error

    def read(self, hashes: np.ndarray[Any, Any], names: Sequence[str] | None = None) -> pa.Table:
        """The rows whose keys have some hashes; the hash is the last column."""
        firsts = np.searchsorted(self.last, hashes, "left")
        lasts = np.minimum(np.searchsorted(self.last, hashes, "right"), len(self.last) - 1)
        places = set(firsts[firsts < len(self.last)].tolist())
        for first, last in zip(firsts[firsts < lasts], lasts[firsts < lasts], strict=True):
            places.update(range(first, last + 1))  # rows of one key are in several
        found = self.pieces(sorted(places), None if names is None else [*names, HASH])
        known = np.isin(found.column(HASH).to_numpy(), hashes)
        return found.filter(pa.array(known))
