"""Spark's notes of what each micro-batch holds, made durable, which Spark itself does not do.

Otherwise, after a power cut, the number of a micro-batch could stand for other rows. A note is written
once and never changed, so only those that are new since the last look are synced. Beside us Spark removes
notes of old micro-batches whenever it likes: one that is gone is needed by nobody. Must never: write.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from headwater.storage.folder import sync_file, sync_folder


class Checkpoint:
    """The folder of Spark's notes of one run of a source."""

    def __init__(
        self,
        folder: Path,
        sync_file: Callable[[Path], None] = sync_file,
        sync_folder: Callable[[Path], None] = sync_folder,
    ) -> None:
        self._folder = folder
        self._sync_file, self._sync_folder = sync_file, sync_folder
        self._synced: dict[str, int] = {}  # by path: the inode, which a replaced file has anew

    def sync(self) -> int:
        """Makes all that is new durable; how many files that were."""
        there = dict(_files(str(self._folder)))
        new = [path for path, inode in there.items() if self._synced.get(path) != inode]
        folders: set[Path] = set()
        for path in map(Path, new):
            with contextlib.suppress(FileNotFoundError):  # purged since it was listed
                self._sync_file(path)
                folders.update((path.parent, path.parent.parent))
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                self._sync_folder(folder)
        self._synced = there
        return len(new)


def _files(folder: str) -> Iterator[tuple[str, int]]:
    """The files below a folder and their inodes; what goes meanwhile may be among them or not."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                yield entry.path, entry.inode()
