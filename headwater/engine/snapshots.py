"""A query's state in a file: written whole, synced, and put in place by a rename; or in memory.

A snapshot spares a restart the reading of history, and is the only memory of rows that a stream has let
go. It is never the truth where rows are stored: a damaged one is as good as none.

The keeper of a state knows when its snapshot is due, which one is in place, and writes it in the caller's
thread or beside. One that was begun before rows changed, or before the state went to another host, is never
put in place.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headwater.errors import StorageError
from headwater.fold.snapshot import Snapshotted, detached, dump, load, read, write
from headwater.storage.disk import may_pass, sync_file, sync_folder
from headwater.storage.modes import FILE, make_folder
from headwater.storage.streaming.seen import SeenTable

COPIED_BYTES = 64 << 20  # of a state that memory holds twice while its snapshot is written

Vector = np.ndarray[Any, Any]


class SetAside:
    """Copies of vectors for a snapshot under way: the first in memory, what is more in files that are mapped.

    The files have no name, so nothing is left of them after a crash, and the system drops their pages as it
    likes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._left = folder, COPIED_BYTES

    def copy(self, vector: Vector) -> Vector:
        """A vector that nobody writes to."""
        if vector.nbytes > self._left and not vector.dtype.hasobject:
            with contextlib.suppress(OSError):  # no room there: memory it is
                return self._mapped(vector)
        self._left -= vector.nbytes
        own = vector.copy()
        own.flags.writeable = False
        return own

    def _mapped(self, vector: Vector) -> Vector:
        make_folder(self._folder)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            file.write(np.ascontiguousarray(vector).data)
            file.flush()
            return np.memmap(file, vector.dtype, "r", shape=vector.shape)


class SnapshotFile:
    """The snapshot of one query."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self._path.exists()

    def copy_of(self, state: dict[str, Any]) -> dict[str, Any]:
        """A state that stays as it is while its structure goes on, without a second copy in memory."""
        copied: dict[str, Any] = detached(state, SetAside(self._path.parent).copy)
        return copied

    def write(self, structure: Snapshotted, position: dict[str, Any]) -> None:
        """Puts a new snapshot in the place of the old one."""
        self.put(self.prepare(structure.state(), position))

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
        try:
            with open(self._path, "rb") as file:
                position: dict[str, Any] | None = read(structure, file)
            return position
        except FileNotFoundError:
            return None
        except (StorageError, OSError, ValueError, KeyError, TypeError):
            return None

    def remove(self) -> None:
        """Forgets the snapshot, durably."""
        if self.exists:
            self._path.unlink(missing_ok=True)
            sync_folder(self._path.parent)


class SnapshotKeeper:
    """Keeps the snapshot of one state; nothing is kept without a file."""

    def __init__(self, file: SnapshotFile | None, lock: threading.RLock | None = None) -> None:
        """`lock`: under which a snapshot is put in place, with what is `placed` with it."""
        self.file = file
        self.kept: dict[str, Any] | None = None  # the position of the one in place
        self.looked_at = 0.0  # when one was begun, or there was nothing to write
        self._lock = lock or threading.RLock()
        self._stamp = 0  # how often those under way were declared void
        self._held_off: dict[int, tuple[SeenTable, int]] = {}  # tables, with their generation then
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def stamp(self) -> int:
        """Taken before the state is: a snapshot of an older one is never put in place."""
        return self._stamp

    @property
    def may_keep(self) -> bool:
        """Whether there is where to keep one, and the rows it would stand for are the table's."""
        return self.file is not None and not self._held_off

    def is_due(self, period_s: float) -> bool:
        """Whether the last one is that old, and none is being written; one that failed is told here."""
        if self._writer is not None and self._writer.is_alive():
            return False
        self._settle_passing()
        due = time.monotonic() - self.looked_at >= period_s
        if due:
            self.looked_at = time.monotonic()  # also where there is nothing to write, or no room
        return due

    def keep(
        self,
        state: dict[str, Any],
        position: dict[str, Any],
        stamp: int,
        *,
        beside: bool = False,
        placed: Callable[[], None] = lambda: None,
    ) -> None:
        """Puts a new snapshot in the place of the old one; `beside`: a thread does, with the state of now."""
        self.settle()
        self.looked_at = time.monotonic()
        if not beside:
            self._put(state, position, stamp, placed)
            return
        work = (self.copy_of(state), position, stamp, placed)
        self._writer = threading.Thread(target=self._try_put, args=work, name="headwater-snapshot")
        self._writer.start()

    def copy_of(self, state: dict[str, Any]) -> dict[str, Any]:
        """A state that stays as it is until it is kept; what is copied already is not copied again."""
        assert self.file is not None
        return self.file.copy_of(state)

    def _put(
        self,
        state: dict[str, Any],
        position: dict[str, Any],
        stamp: int,
        placed: Callable[[], None],
    ) -> None:
        assert self.file is not None
        fresh = self.file.prepare(state, position)
        with self._lock:
            if stamp != self._stamp or self._held_off:
                fresh.unlink(missing_ok=True)
                return
            self.file.put(fresh)
            self.kept = position
            placed()

    def _try_put(self, *work: Any) -> None:
        try:
            self._put(*work)
        except BaseException as error:
            self._failure = error

    def settle(self) -> None:
        """Waits for what is written beside; its error comes out here."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _settle_passing(self) -> None:
        """That there was no room for it is not told: the one before holds, and the next comes in time."""
        try:
            self.settle()
        except (StorageError, OSError) as error:
            if not may_pass(error):
                raise

    def read(self, structure: Snapshotted) -> dict[str, Any] | None:
        """Brings a structure to the snapshot's state; its position, None if there is none to trust.

        Whoever takes it up says so by `kept`.
        """
        self._settle_passing()
        return None if self.file is None else self.file.read(structure)

    def void(self) -> None:
        """What is being written is not put in place."""
        with self._lock:
            self._stamp += 1

    def forget(self) -> None:
        """What was made of old rows is not to be used again."""
        self.void()
        with contextlib.suppress(Exception):  # what was to be written is not wanted any more
            self.settle()
        with self._lock:
            self.kept = None
            if self.file is not None:
                self.file.remove()

    def hold_off(self, table: SeenTable) -> None:
        """Before stored rows are deleted or replaced: no snapshot until the state is made of the new ones."""
        self._held_off[table.definition.id] = (table, table.generation)
        self.forget()

    def begin_anew(self) -> None:
        """The state is made of the rows that are there now; they may be those that are about to go."""
        self._held_off = {
            number: (table, generation)
            for number, (table, generation) in self._held_off.items()
            if table.generation == generation
        }


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
