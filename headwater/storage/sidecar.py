"""Arrow sidecars: a block's rows once more, as an uncompressed Arrow IPC file, memory-mapped.

Owns: a folder of files `<digest of the block's path>-<crc32c of the file>.arrow`, their total size
(the oldest are dropped first) and a bounded cache of mappings: opening files in each query was
measured as ten times slower. A file is checked whole when this process first opens it; one that
is truncated, damaged or not ours is deleted and the block reported as missing.
Must never: be the truth (Parquet is), sync, or give rows that are not the block's.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from crc32c import crc32c

from headwater.settings import Live, current
from headwater.storage.derived import Handles, block_digest, remove_quietly, write_temporary
from headwater.storage.disk import Disk, storage_error

NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{8})\.arrow")
BLOCK, ROWS, CHECK = b"headwater.block", b"headwater.rows", b"headwater.check"


@dataclass(frozen=True)
class _File:
    name: str
    size: int
    crc: int


class Sidecar:
    """The sidecars of one table; many readers and writers at once."""

    def __init__(
        self, folder: str | Path, limit_bytes: Live[int], open_files: int, disk: Disk | None = None
    ) -> None:
        self._folder = str(folder)
        self._limit_bytes = limit_bytes
        self._disk = disk or Disk()
        self._lock = threading.Lock()
        self._files: dict[str, _File] = {}  # by digest, oldest first
        self._trusted: set[str] = set()  # names whose bytes this process wrote or checked
        self._total_bytes = 0
        self._handles: Handles[pa.Table] = Handles(open_files)
        self._disk.mkdir(self._folder)
        self._rescan()

    @property
    def total_bytes(self) -> int:
        """Bytes of all sidecars."""
        return self._total_bytes

    def __len__(self) -> int:
        return len(self._files)

    def has(self, block_id: str) -> bool:
        """Whether there is a file for the block; `read` may still find it damaged."""
        return block_digest(block_id) in self._files

    def fit(self) -> None:
        """Lets the oldest files go if the limit has been lowered."""
        if self._total_bytes > current(self._limit_bytes):
            with self._lock:
                self._shrink()

    def write(self, block_id: str, table: pa.Table) -> bool:
        """Keeps the rows; False if they alone are larger than the limit. Replaces an older file."""
        content = _serialised(block_id, table)
        if content.size > current(self._limit_bytes):
            return False
        digest, crc = block_digest(block_id), crc32c(content)
        file = _File(f"{digest}-{crc:08x}.arrow", content.size, crc)
        temporary = write_temporary(self._disk, self._path(file), [memoryview(content)])
        with self._lock:
            self._forget(digest)
            try:
                self._disk.rename(temporary, self._path(file))
            except BaseException:
                remove_quietly(temporary)
                raise
            self._remember(digest, file)
            self._trusted.add(file.name)
            self._shrink()
        return True

    def read(self, block_id: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The block's rows without a copy; None if they, or one of the columns, are not here."""
        table = self._table(block_id)
        if table is None or columns is None:
            return table
        if not set(columns) <= set(table.column_names):
            return None
        return table.select(list(columns))

    def take(
        self, block_id: str, rows: npt.NDArray[np.int64], columns: Sequence[str] | None = None
    ) -> pa.Table | None:
        """The rows of these numbers, in that order; None as in `read`."""
        table = self.read(block_id, columns)
        if table is None or table.num_columns == 0:
            return table
        wanted: Any = pa.array(rows)
        taken = [
            column.chunk(0).take(wanted) if column.num_chunks == 1 else column.take(wanted)
            for column in table.columns
        ]
        return pa.Table.from_arrays(taken, schema=table.schema)

    def drop(self, block_id: str) -> None:
        """Deletes the block's sidecar; tables already read stay valid."""
        with self._lock:
            self._forget(block_digest(block_id))

    def close(self) -> None:
        """Lets all mappings go; the files stay."""
        self._handles.clear()

    def _path(self, file: _File) -> str:
        return os.path.join(self._folder, file.name)

    def _rescan(self) -> None:
        """Finds the files of an earlier process; deletes what is not named as ours."""
        found: list[tuple[int, str, str, _File]] = []
        for name in self._disk.listdir(self._folder):
            path = os.path.join(self._folder, name)
            if os.path.isdir(path):
                continue
            if (ours := NAME.fullmatch(name)) is None:
                remove_quietly(path)
                continue
            state = os.stat(path)
            file = _File(name, state.st_size, int(ours[2], 16))
            found.append((state.st_mtime_ns, name, ours[1], file))
        for _, _, digest, file in sorted(found, key=lambda each: each[:2]):
            self._forget(digest)
            self._remember(digest, file)
        self._shrink()

    def _remember(self, digest: str, file: _File) -> None:
        self._files[digest] = file
        self._total_bytes += file.size

    def _forget(self, digest: str) -> None:
        file = self._files.pop(digest, None)
        if file is not None:
            self._total_bytes -= file.size
            self._trusted.discard(file.name)
            self._handles.discard(file)
            remove_quietly(self._path(file))

    def _shrink(self) -> None:
        limit_bytes = current(self._limit_bytes)
        while self._total_bytes > limit_bytes:
            self._forget(next(iter(self._files)))

    def _table(self, block_id: str) -> pa.Table | None:
        digest = block_digest(block_id)
        file = self._files.get(digest)
        if file is None:
            return None
        table = self._handles.get(file)
        if table is None:
            table = self._open(block_id, file)
            with self._lock:
                if self._files.get(digest) is not file:
                    pass  # dropped or replaced meanwhile: these rows are right, but not kept
                elif table is None:
                    self._forget(digest)
                else:
                    self._trusted.add(file.name)
                    self._handles.put(file, table)
        return table

    def _open(self, block_id: str, file: _File) -> pa.Table | None:
        path = self._path(file)
        try:
            if os.stat(path).st_size != file.size or not file.size:
                return None
            content = pa.memory_map(path).read_buffer()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error("map", path, error) from error
        if file.name not in self._trusted and crc32c(content) != file.crc:
            return None
        return _parsed(block_id, content)


def _serialised(block_id: str, table: pa.Table) -> pa.Buffer:
    """The table as one Arrow file, as few batches as may be, with our marks in its schema."""
    table = table.combine_chunks()
    marks = {
        BLOCK: block_id.encode(),
        ROWS: str(table.num_rows).encode(),
        CHECK: _check(table.schema, block_id, table.num_rows),
    }
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), **marks})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, marked.schema) as writer:
        writer.write_table(marked)
    return sink.getvalue()


def _parsed(block_id: str, content: pa.Buffer) -> pa.Table | None:
    """The rows in the file without our marks; None unless they are this block's, all of them."""
    try:
        table = pa.ipc.open_file(content).read_all()
    except (OSError, pa.ArrowException):
        return None
    metadata = dict(table.schema.metadata or {})
    found = [metadata.pop(mark, None) for mark in (BLOCK, ROWS, CHECK)]
    plain = table.replace_schema_metadata(metadata or None)
    rows = str(plain.num_rows).encode()
    expected = [block_id.encode(), rows, _check(plain.schema, block_id, plain.num_rows)]
    return plain if found == expected else None


def _check(schema: pa.Schema, block_id: str, row_count: int) -> bytes:
    """A checksum of the columns' names and types, the block and the row count."""
    bare = schema.remove_metadata().serialize().to_pybytes()
    return f"{crc32c(bare + f'{block_id} {row_count}'.encode()):08x}".encode()
