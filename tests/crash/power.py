"""Disks for tests: one that loses power, one whose calls fail, one that stops the process.

`PowerDisk` is in memory and keeps apart what is durable and what is only written. A power cut
keeps any subset of the sectors of unsynced writes and of the unsynced changes of names, which
is more than most file systems would do. `FailingDisk` and `StopAt` count the calls that change
something, so that every one of them can be made to fail, or to be the last.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from headwater.storage.disk import Buffer, Disk, File, storage_error

SECTOR = 512


class SimulatedCrash(BaseException):
    """The process is gone; no handler of ours may swallow it."""


@dataclass
class Inode:
    """A file: what the process sees, what is durable, and the writes between the two."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: new size

    def write(self, offset: int, data: bytes | None) -> None:
        _apply(self.data, offset, data)
        self.pending.append((offset, data))

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.durable, offset, data)
        self.pending.clear()

    def cut(self, random: Random) -> None:
        """Keep some sectors of some unsynced writes: the last may be torn, others have holes."""
        keep = random.choice((0.0, 0.5, 0.9, 1.0))
        for offset, data in self.pending:
            if random.random() < keep:
                for start, part in _sectors(offset, data, random):
                    _apply(self.durable, start, part)
        self.pending.clear()
        self.data = bytearray(self.durable)


def _apply(target: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del target[offset:]
        target.extend(bytes(offset - len(target)))
    else:
        target.extend(bytes(max(0, offset + len(data) - len(target))))
        target[offset : offset + len(data)] = data


def _sectors(offset: int, data: bytes | None, random: Random) -> list[tuple[int, bytes | None]]:
    """The sectors of a write that reach the disk."""
    if data is None or random.random() < 0.3:
        return [(offset, data)]
    first = SECTOR - offset % SECTOR
    ends = [*range(first, len(data), SECTOR), len(data)]
    parts = [
        (offset + a, data[a:b]) for a, b in zip([0, *ends], ends, strict=False)
    ]  # fmt: skip
    if random.random() < 0.5:
        return list(parts[: random.randrange(len(parts) + 1)])
    return [part for part in parts if random.random() < 0.6]


Change = tuple[str, str, str]  # what, name, other name or inode number


class PowerDisk(Disk):
    """A disk in memory. `power_cut` leaves what a real one might hold, `kill` all written."""

    def __init__(self) -> None:
        self.inodes: list[Inode] = []
        self.names: dict[str, int] = {}
        self.folders: set[str] = {"/"}
        self.capacity: int | None = None
        self._durable_names: dict[str, int] = {}
        self._durable_folders: set[str] = {"/"}
        self._changes: list[Change] = []
        self._open: dict[int, int] = {}
        self._opened = 0

    # Crashes

    def power_cut(self, random: Random) -> None:
        """The machine loses power and starts again."""
        for inode in self.inodes:
            inode.cut(random)
        keep = random.choice((0.0, 0.5, 1.0))
        for change in self._changes:
            if random.random() < keep:
                self._make_durable(change)
        self.names = {
            path: number
            for path, number in self._durable_names.items()
            if os.path.dirname(path) in self._durable_folders
        }
        self._durable_names = dict(self.names)
        self.folders = set(self._durable_folders)
        self._changes.clear()
        self._open.clear()

    def kill(self) -> None:
        """The process dies; what it wrote stays in the memory of the system."""
        self._open.clear()

    def lose_unsynced(self, file: File) -> None:
        """A sync failed: what the process sees stays, but will never be written by itself."""
        self._inode(file).pending.clear()

    def contents(self) -> dict[str, bytes]:
        """Every file as the process sees it."""
        return {path: bytes(self.inodes[n].data) for path, n in sorted(self.names.items())}

    @property
    def open_files(self) -> int:
        return len(self._open)

    # Files

    def open(self, path: str, *, create: bool = False) -> File:
        if create:
            if path in self.names:
                raise _error("create", path, errno.EEXIST)
            self._check_folder(path)
            self.inodes.append(Inode())
            self._link(path, len(self.inodes) - 1)
        elif path not in self.names:
            raise _error("open", path, errno.ENOENT)
        self._opened += 1
        self._open[self._opened] = self.names[path]
        return File(path, self._opened)

    def close(self, file: File) -> None:
        if self._open.pop(file.descriptor, None) is None:
            raise _error("close", file.path, errno.EBADF)

    def _inode(self, file: File) -> Inode:
        return self.inodes[self._open[file.descriptor]]

    def pwritev(self, file: File, buffers: Sequence[Buffer], offset: int) -> int:
        data = b"".join(bytes(buffer) for buffer in buffers)
        inode = self._inode(file)
        grows = offset + len(data) - len(inode.data)
        if grows > 0 and (room := self._room()) < grows:
            data = data[: len(data) - (grows - room)]
            if not data:
                raise _error("write", file.path, errno.ENOSPC)
        inode.write(offset, data)
        return len(data)

    def pread(self, file: File, length: int, offset: int) -> bytes:
        return bytes(self._inode(file).data[offset : offset + length])

    def fdatasync(self, file: File) -> None:
        self._inode(file).sync()

    fsync = fdatasync

    def truncate(self, file: File, size: int) -> None:
        self._inode(file).write(size, None)

    def allocate(self, file: File, size: int) -> None:
        if self._room() < size - len(self._inode(file).data):
            raise _error("allocate", file.path, errno.ENOSPC)
        self._inode(file).write(size, None)

    # Names

    def _check_folder(self, path: str) -> None:
        if os.path.dirname(path) not in self.folders:
            raise _error("create", path, errno.ENOENT)

    def _link(self, path: str, number: int) -> None:
        self.names[path] = number
        self._changes.append(("link", path, str(number)))

    def rename(self, old: str, new: str) -> None:
        if old not in self.names:
            raise _error("rename", old, errno.ENOENT)
        self.names[new] = self.names.pop(old)
        self._changes.append(("rename", old, new))

    def link(self, old: str, new: str) -> None:
        if new in self.names:
            raise _error("link", new, errno.EEXIST)
        self._link(new, self.names[old])

    def unlink(self, path: str) -> None:
        if self.names.pop(path, None) is None:
            raise _error("remove", path, errno.ENOENT)
        self._changes.append(("unlink", path, ""))

    def mkdir(self, path: str) -> None:
        self.folders.add(path)
        self._changes.append(("mkdir", path, ""))

    def fsync_folder(self, path: str) -> None:
        for change in [c for c in self._changes if os.path.dirname(c[1]) == path]:
            self._make_durable(change)
            self._changes.remove(change)

    def _make_durable(self, change: Change) -> None:
        what, name, other = change
        if what == "mkdir":
            self._durable_folders.add(name)
        elif what == "link":
            self._durable_names[name] = int(other)
        elif what == "unlink":
            self._durable_names.pop(name, None)
        elif name in self._durable_names:
            self._durable_names[other] = self._durable_names.pop(name)

    # Looking

    def listdir(self, path: str) -> list[str]:
        if path not in self.folders:
            raise _error("list", path, errno.ENOENT)
        return sorted(os.path.basename(p) for p in self.names if os.path.dirname(p) == path)

    def read(self, path: str) -> bytes:
        if path not in self.names:
            raise _error("read", path, errno.ENOENT)
        return bytes(self.inodes[self.names[path]].data)

    def size(self, path: str) -> int:
        return len(self.read(path))

    def exists(self, path: str) -> bool:
        return path in self.names or path in self.folders

    def _room(self) -> int:
        if self.capacity is None:
            return 1 << 62
        return self.capacity - sum(len(self.inodes[n].data) for n in set(self.names.values()))


def _error(action: str, path: str, number: int) -> Exception:
    return storage_error(action, path, OSError(number, os.strerror(number)))


class WrappedDisk(Disk):
    """Passes every call on; those that change something go through `step` first."""

    def __init__(self, inner: Disk) -> None:
        self.inner = inner
        self.steps: list[str] = []

    def step(self, name: str, path: str, call: Callable[[], object]) -> object:
        self.steps.append(name)
        return call()

    def look(self) -> None:
        """Called before each call that changes nothing."""

    def open(self, path: str, *, create: bool = False) -> File:
        if not create:
            self.look()
            return self.inner.open(path)
        return self.step("open", path, lambda: self.inner.open(path, create=True))  # type: ignore[return-value]

    def close(self, file: File) -> None:
        self.look()
        self.inner.close(file)

    def pwritev(self, file: File, buffers: Sequence[Buffer], offset: int) -> int:
        return self.step(  # type: ignore[return-value]
            "pwritev", file.path, lambda: self.inner.pwritev(file, buffers, offset)
        )

    def pread(self, file: File, length: int, offset: int) -> bytes:
        self.look()
        return self.inner.pread(file, length, offset)

    def fdatasync(self, file: File) -> None:
        self.step("fdatasync", file.path, lambda: self.inner.fdatasync(file))

    def fsync(self, file: File) -> None:
        self.step("fsync", file.path, lambda: self.inner.fsync(file))

    def truncate(self, file: File, size: int) -> None:
        self.step("truncate", file.path, lambda: self.inner.truncate(file, size))

    def allocate(self, file: File, size: int) -> None:
        self.step("allocate", file.path, lambda: self.inner.allocate(file, size))

    def rename(self, old: str, new: str) -> None:
        self.step("rename", old, lambda: self.inner.rename(old, new))

    def link(self, old: str, new: str) -> None:
        self.step("link", new, lambda: self.inner.link(old, new))

    def unlink(self, path: str) -> None:
        self.step("unlink", path, lambda: self.inner.unlink(path))

    def mkdir(self, path: str) -> None:
        self.step("mkdir", path, lambda: self.inner.mkdir(path))

    def fsync_folder(self, path: str) -> None:
        self.step("fsync_folder", path, lambda: self.inner.fsync_folder(path))

    def listdir(self, path: str) -> list[str]:
        self.look()
        return self.inner.listdir(path)

    def read(self, path: str) -> bytes:
        self.look()
        return self.inner.read(path)

    def size(self, path: str) -> int:
        self.look()
        return self.inner.size(path)

    def exists(self, path: str) -> bool:
        self.look()
        return self.inner.exists(path)


class StopAt(WrappedDisk):
    """The process dies at the nth change, before it is made; a write may be half made."""

    def __init__(self, inner: Disk, at: int, half: bool = False) -> None:
        super().__init__(inner)
        self.at = at
        self.half = half

    def look(self) -> None:
        if len(self.steps) >= self.at:
            raise SimulatedCrash

    def step(self, name: str, path: str, call: Callable[[], object]) -> object:
        self.look()
        self.steps.append(name)
        if len(self.steps) == self.at:
            raise SimulatedCrash
        return call()

    def pwritev(self, file: File, buffers: Sequence[Buffer], offset: int) -> int:
        if self.half and len(self.steps) + 1 == self.at:
            data = b"".join(bytes(buffer) for buffer in buffers)
            self.inner.pwritev(file, [data[: len(data) // 2]], offset)
        return super().pwritev(file, buffers, offset)


class FailingDisk(WrappedDisk):
    """Fails the nth call of those named (all, if none is), once or for ever.

    With `short`, every write is short as well. A failed sync loses what was not synced, as on
    Linux: the process still sees it, and the next sync says that all is well.
    """

    def __init__(
        self,
        inner: Disk,
        at: int,
        number: int = errno.EIO,
        *,
        calls: Sequence[str] = (),
        forever: bool = False,
        short: bool = False,
    ) -> None:
        super().__init__(inner)
        self.at = at
        self.number = number
        self.calls = calls
        self.forever = forever
        self.short = short
        self.failed = 0
        self.counted = 0

    def _due(self, name: str) -> bool:
        if self.calls and name not in self.calls:
            return False
        self.counted += 1
        return self.counted == self.at or (self.forever and self.counted > self.at)

    def step(self, name: str, path: str, call: Callable[[], object]) -> object:
        self.steps.append(name)
        if self._due(name):
            self.failed += 1
            raise storage_error(name, path, OSError(self.number, os.strerror(self.number)))
        return call()

    def fdatasync(self, file: File) -> None:
        failed = self.failed
        try:
            super().fdatasync(file)
        finally:
            if self.failed > failed and isinstance(self.inner, PowerDisk):
                self.inner.lose_unsynced(file)

    def pwritev(self, file: File, buffers: Sequence[Buffer], offset: int) -> int:
        if self.short:
            data = b"".join(bytes(buffer) for buffer in buffers)
            buffers = [data[: max(1, len(data) * 2 // 3)]]
        return super().pwritev(file, buffers, offset)
