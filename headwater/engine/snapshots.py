"""A query's state in a file: written whole, synced, and put in place by a rename; or in memory.

A snapshot spares a restart the reading of history, and is the only memory of rows that a stream has let
go. It is never the truth where rows are stored: a damaged one is as good as none.
"""

from __future__ import annotations

import contextlib
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

from headwater.errors import StorageError
from headwater.fold.snapshot import Snapshotted, detached, dump, load, write
from headwater.storage.disk import may_pass, sync_file, sync_folder
from headwater.storage.modes import FILE, make_folder


class SnapshotFile:
    """The snapshot of one query."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self._path.exists()

    def write(self, structure: Snapshotted, position: dict[str, Any]) -> None:
        """Puts a new snapshot in the place of the old one."""
        self.settle()
        self.put(self.prepare(structure.state(), position))

    def write_beside(self, structure: Snapshotted, position: dict[str, Any]) -> None:
        """The same in a thread of its own; the state is that of now. `is_writing` tells when it is there."""
        self.settle()
        state = detached(structure.state())
        self._writer = threading.Thread(
            target=self._try_put, args=(state, position), name=f"snapshot {self._path.stem}"
        )
        self._writer.start()

    @property
    def is_writing(self) -> bool:
        """Whether a snapshot is being written beside."""
        return self._writer is not None and self._writer.is_alive()

    def settle(self) -> None:
        """Waits for what is written beside; its error comes out here."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def came_about(self) -> bool:
        """Waits for what is written beside; False if there was no room for it.

        That is not told: the snapshot before holds, and the next comes in time.
        """
        try:
            self.settle()
        except (StorageError, OSError) as error:
            if not may_pass(error):
                raise
            return False
        return True

    def _try_put(self, state: dict[str, Any], position: dict[str, Any]) -> None:
        try:
            self.put(self.prepare(state, position))
        except BaseException as error:
            self._failure = error

    def prepare(self, state: dict[str, Any], position: dict[str, Any]) -> Path:
        """A new snapshot beside the old one, durable; it counts once it is `put`."""
        make_folder(self._path.parent)
        fresh = self._path.with_suffix(".new")
        try:
            with open(fresh, "wb", opener=partial(os.open, mode=FILE)) as file:
                write(file, state, position)
            sync_file(fresh)
        except BaseException:
            fresh.unlink(missing_ok=True)  # on a full disk half of one is in the way of everything
            raise
        return fresh

    def put(self, fresh: Path) -> None:
        """A prepared snapshot takes the place of the old one."""
        fresh.replace(self._path)
        sync_folder(self._path.parent)

    def read(self, structure: Snapshotted) -> dict[str, Any] | None:
        """Brings a structure to the snapshot's state; its position, None if there is none to trust."""
        self.settle()
        try:
            return load(structure, self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (StorageError, OSError, ValueError, KeyError, TypeError):
            return None

    def remove(self) -> None:
        """Forgets the snapshot, durably."""
        with contextlib.suppress(Exception):  # what was to be written is not wanted any more
            self.settle()
        if self.exists:
            self._path.unlink(missing_ok=True)
            sync_folder(self._path.parent)


class SnapshotInMemory:
    """The snapshot of a query that ends with its reader."""

    def __init__(self) -> None:
        self._data: bytes | None = None

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self._data is not None

    def write(self, structure: Snapshotted, position: dict[str, Any]) -> None:
        """Puts a new snapshot in the place of the old one."""
        self._data = dump(structure, position)

    def read(self, structure: Snapshotted) -> dict[str, Any] | None:
        """Brings a structure to the snapshot's state; its position, None if there is none."""
        return None if self._data is None else load(structure, self._data)
