"""Files that are derived from blocks (Arrow sidecars, index files): never the truth, rebuildable.

Owns: how such a file is named after its block, how it comes into place whole (temporary name,
rename; no sync, a checksum tells after a power cut), and a bounded cache of open mappings.
Must never: know what the bytes mean, or change a file in place: readers have it mapped, and a
file that shrinks under a mapping ends the process.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from headwater.errors import StorageError
from headwater.storage.disk import IOV_MAX, Buffer, Disk, File

TEMPORARY = ".new"
MOST_DIGESTS = 4096  # that are remembered: a read asks for those of all its blocks, for every index
_serial = itertools.count()

Handle = TypeVar("Handle")


@lru_cache(maxsize=MOST_DIGESTS)
def block_digest(block_id: str) -> str:
    """32 hexadecimal digits that stand for a block's path in file names."""
    return hashlib.blake2b(block_id.encode(), digest_size=16).hexdigest()


def write_temporary(disk: Disk, path: str, buffers: Sequence[Buffer]) -> str:
    """Writes the bytes beside `path`; the temporary name, to be renamed. Nothing stays on failure."""
    temporary = f"{path}.{next(_serial)}{TEMPORARY}"
    file = disk.open(temporary, create=True)
    try:
        try:
            _write_all(disk, file, buffers)
        finally:
            disk.close(file)
    except BaseException:
        disk.unlink(temporary)
        raise
    return temporary


def _write_all(disk: Disk, file: File, buffers: Sequence[Buffer]) -> None:
    offset = 0
    left = [view for view in (memoryview(b).cast("B") for b in buffers) if view.nbytes]
    while left:
        written = disk.pwritev(file, left[:IOV_MAX], offset)
        if not written:
            raise StorageError(f"cannot write {file.path}: nothing was written")
        offset += written
        while left and written >= left[0].nbytes:
            written -= left.pop(0).nbytes
        if written:
            left[0] = left[0][written:]


def remove_quietly(path: str) -> None:
    """Removes a derived file; one that is gone already, or cannot be removed, is left at that."""
    try:
        os.unlink(path)
    except OSError:
        pass


class Handles(Generic[Handle]):
    """The most recently used open mappings, at most `limit`; safe for many threads.

    A mapping is closed when the last reader lets go of it, not when it leaves the cache.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("the cache holds at least one mapping")
        self._limit = limit
        self._held: OrderedDict[Hashable, Handle] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Hashable) -> Handle | None:
        """The mapping, now the most recently used; None if it is not held."""
        with self._lock:
            handle = self._held.get(key)
            if handle is not None:
                self._held.move_to_end(key)
            return handle

    def put(self, key: Hashable, handle: Handle) -> None:
        """Holds the mapping and lets the least recently used go."""
        with self._lock:
            self._held[key] = handle
            self._held.move_to_end(key)
            while len(self._held) > self._limit:
                self._held.popitem(last=False)

    def discard(self, key: Hashable) -> None:
        """Lets one mapping go."""
        with self._lock:
            self._held.pop(key, None)

    def clear(self) -> None:
        """Lets all mappings go."""
        with self._lock:
            self._held.clear()
