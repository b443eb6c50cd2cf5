"""A query's state in a file: written whole, synced, and put in place by a rename; or in memory.

A snapshot spares a restart the reading of history, and is the only memory of rows that a stream has let
go. It is never the truth where rows are stored: a damaged one is as good as none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headwater.errors import StorageError
from headwater.fold.snapshot import Snapshotted, dump, load, write
from headwater.storage.folder import sync_folder


class SnapshotFile:
    """The snapshot of one query."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self._path.exists()

    def write(self, structure: Snapshotted, position: dict[str, Any]) -> None:
        """Puts a new snapshot in the place of the old one."""
        self.put(self.prepare(structure.state(), position))

    def prepare(self, state: dict[str, Any], position: dict[str, Any]) -> Path:
        """A new snapshot beside the old one, durable; it counts once it is `put`."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        with open(fresh, "wb") as file:
            write(file, state, position)
            file.flush()
            os.fsync(file.fileno())
        return fresh

    def put(self, fresh: Path) -> None:
        """A prepared snapshot takes the place of the old one."""
        fresh.replace(self._path)
        sync_folder(self._path.parent)

    def read(self, structure: Snapshotted) -> dict[str, Any] | None:
        """Brings a structure to the snapshot's state; its position, None if there is none to trust."""
        try:
            return load(structure, self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (StorageError, OSError, ValueError, KeyError, TypeError):
            return None

    def remove(self) -> None:
        """Forgets the snapshot, durably."""
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
