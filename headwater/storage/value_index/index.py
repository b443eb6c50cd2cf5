"""All files of one value index of one table: a folder with one file per block.

Owns: which blocks are indexed, the files, a bounded cache of their mappings, and what happens to
a damaged one: it is deleted, the block counts as missing, the builder adds it again.
Must never: hide a row. What it cannot answer it reports as None, and the caller scans the block.
One builder and many readers at once.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.errors import StorageError
from headwater.expression.predicate import Comparison
from headwater.storage.derived import TEMPORARY, Handles, block_digest, remove_quietly
from headwater.storage.disk import Disk
from headwater.storage.value_index.file import DamagedIndex, load_with_block, stage
from headwater.storage.value_index.keys import BTREE, HASH, SortedKeys, build
from headwater.storage.value_index.lookup import Rows, answers, lookup

SUFFIX = ".keys"
OPEN_FILES = 1024
NO_SUCH_FILE = "58P01"


class ValueIndex:
    """One index: a column of a table, by BTREE (=, <, <=, >, >=) or HASH (=)."""

    def __init__(
        self,
        folder: str | Path,
        column: str,
        method: str = BTREE,
        open_files: int = OPEN_FILES,
        disk: Disk | None = None,
    ) -> None:
        if method not in (BTREE, HASH):
            raise ValueError(f"an index is {BTREE} or {HASH}, not {method}")
        self.column = column
        self.method = method
        self.damaged_count = 0  # files found damaged since the index was opened
        self._folder = str(folder)
        self._disk = disk or Disk()
        self._lock = threading.Lock()
        self._generations = itertools.count()
        self._files: dict[str, int] = {}  # by digest: which writing of the file is current
        self._handles: Handles[SortedKeys] = Handles(open_files)
        self._disk.mkdir(self._folder)
        self._rescan()

    def __len__(self) -> int:
        return len(self._files)

    def has(self, block_id: str) -> bool:
        """Whether the block is indexed; `keys` may still find its file damaged."""
        return block_digest(block_id) in self._files

    def missing(self, block_ids: Iterable[str]) -> list[str]:
        """Those of the blocks that are not indexed, in the order given."""
        return [block_id for block_id in block_ids if not self.has(block_id)]

    def lag(self, block_ids: Iterable[str]) -> int:
        """How many of the blocks are not indexed yet."""
        return len(self.missing(block_ids))

    def add(self, block_id: str, table: pa.Table) -> None:
        """Indexes a block, or indexes it anew."""
        keys = build(table.column(self.column), self.column, self.method)
        digest = block_digest(block_id)
        temporary = stage(self._path(digest), keys, block_id, self._disk)
        with self._lock:
            try:
                self._disk.rename(temporary, self._path(digest))
            except BaseException:
                remove_quietly(temporary)
                raise
            self._handles.discard((digest, self._files.get(digest)))
            self._files[digest] = next(self._generations)

    def drop(self, block_id: str) -> None:
        """Removes a block's file; keys already handed out stay valid."""
        with self._lock:
            self._forget(block_digest(block_id))

    def keep_only(self, block_ids: Collection[str]) -> int:
        """Removes the files of all other blocks (left over from a crash); how many."""
        kept = {block_digest(block_id) for block_id in block_ids}
        with self._lock:
            others = [digest for digest in self._files if digest not in kept]
            for digest in others:
                self._forget(digest)
        return len(others)

    def drop_all(self) -> None:
        """Removes every file and the folder, for DROP INDEX."""
        self.keep_only(())
        try:
            os.rmdir(self._folder)
        except OSError:
            pass

    def close(self) -> None:
        """Lets all mappings go; the files stay."""
        self._handles.clear()

    def keys(self, block_id: str) -> SortedKeys | None:
        """The block's sorted keys; None if it is not indexed or its file is damaged."""
        digest = block_digest(block_id)
        generation = self._files.get(digest)
        if generation is None:
            return None
        keys = self._handles.get((digest, generation))
        if keys is None:
            keys = self._open(digest, block_id)
            with self._lock:
                if self._files.get(digest) != generation:
                    pass  # dropped or written anew meanwhile: right, but not kept
                elif keys is None:
                    self._forget(digest)
                    self.damaged_count += 1
                else:
                    self._handles.put((digest, generation), keys)
        return keys

    def lookup(self, block_id: str, comparison: Comparison) -> Rows | None:
        """The block's rows for which the comparison is true, ascending; None: scan the block."""
        keys = self.keys(block_id)
        if keys is None or comparison.column != self.column or not answers(keys, comparison):
            return None
        return lookup(keys, comparison)

    def frequency(self, block_id: str, value: Any) -> int | None:
        """In how many rows of the block the value stands; None if it is not indexed."""
        keys = self.keys(block_id)
        return None if keys is None else keys.frequency(value)

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder, digest + SUFFIX)

    def _rescan(self) -> None:
        for name in self._disk.listdir(self._folder):
            if name.endswith(TEMPORARY):
                remove_quietly(os.path.join(self._folder, name))
            elif name.endswith(SUFFIX):
                self._files[name.removesuffix(SUFFIX)] = next(self._generations)

    def _forget(self, digest: str) -> None:
        generation = self._files.pop(digest, None)
        if generation is not None:
            self._handles.discard((digest, generation))
            remove_quietly(self._path(digest))

    def _open(self, digest: str, block_id: str) -> SortedKeys | None:
        """The keys in the file, if they are whole and of this block, column and method."""
        try:
            loaded = load_with_block(self._path(digest))
        except DamagedIndex:
            return None
        except StorageError as error:
            if error.sqlstate != NO_SUCH_FILE:
                raise
            return None  # dropped meanwhile, or removed behind our back
        found = (loaded.block_id, loaded.keys.column, loaded.keys.method)
        return loaded.keys if found == (block_id, self.column, self.method) else None
