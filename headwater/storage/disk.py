"""The one seam between our own storage code and the disk.

Owns: every system call that storage code makes on files and folders, and the mapping of their
failures to `StorageError`. Tests put a simulated disk in its place (`tests/crash/power.py`).
Must never: retry a failed write or sync, hide a short write, or know what the bytes mean.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from headwater.errors import Error, KernelError, StorageError
from headwater.storage.modes import FILE, make_folder

Buffer = bytes | bytearray | memoryview

IOV_MAX = int(os.sysconf("SC_IOV_MAX")) if hasattr(os, "sysconf") else 16
ZEROS = bytes(1 << 20)

# errno → (SQLSTATE, what happened, what to do)
MEANINGS: dict[int, tuple[str, str, str | None]] = {
    errno.ENOSPC: ("53100", "the disk is full", "free some space; the statement can be repeated"),
    errno.EDQUOT: ("53100", "the disk quota is used up", "raise the quota or free some space"),
    errno.EFBIG: ("53100", "the file is too large for this file system", None),
    errno.EIO: ("58030", "the disk reported an error", "check the disk and the system log"),
    errno.EACCES: ("42501", "permission denied", "check the owner and the mode of the folder"),
    errno.EPERM: ("42501", "operation not permitted", "check the owner and the mode of the folder"),
    errno.EROFS: ("42501", "the file system is read-only", "mount it for writing"),
    errno.ENOENT: ("58P01", "no such file or folder", None),
    errno.EEXIST: ("58P02", "the file exists already", None),
    errno.EMFILE: ("53000", "too many open files", "raise the limit (ulimit -n)"),
    errno.ENFILE: ("53000", "too many open files in the system", "raise fs.file-max"),
}
DISK_FULL = "53100"
BUSY = "53000"
PASSING = (DISK_FULL, "58030", BUSY)  # what may be over when it is tried again


@dataclass(frozen=True, slots=True)
class File:
    """An open file: its path, for messages, and its descriptor."""

    path: str
    descriptor: int


def storage_error(action: str, path: str, error: OSError) -> StorageError:
    """The error a user sees for a failed system call."""
    number = error.errno or 0
    text = os.strerror(number) if number else str(error)
    sqlstate, what, hint = MEANINGS.get(number, ("58030", text.lower(), None))
    name = errno.errorcode.get(number, "no errno")
    detail = f"{name}: {error.strerror or text}"
    return StorageError(
        f"cannot {action} {path}: {what}", sqlstate=sqlstate, detail=detail, hint=hint
    )


class failures_told(contextlib.ContextDecorator):  # it reads as a word
    """What the system refuses inside leaves as a `StorageError`: no bare OSError reaches a user."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise as_known(error) from error


def as_known(error: Error | OSError) -> Error:
    """An error that may leave the database: what the system refused is a `StorageError`."""
    if isinstance(error, Error):
        return error
    path = error.filename or error.filename2
    known = storage_error("use", os.fsdecode(path) if path else "a file", error)
    known.__cause__ = error
    return known


def sync_file(path: Path) -> None:
    """Makes a file's content durable; what fails names the file."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Makes the folder's entries durable; what fails names the folder."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        error.filename = str(path)  # the system knows only a number
        raise
    finally:
        os.close(handle)


def _fail(action: str, path: str, error: OSError) -> NoReturn:
    raise storage_error(action, path, error) from error


def is_full(error: BaseException) -> bool:
    """Whether the error says that the disk is full."""
    return isinstance(error, StorageError) and error.sqlstate == DISK_FULL


def is_damage(error: StorageError) -> bool:
    """Whether files are missing or not what was written; a full disk, for one, is something else."""
    return error.sqlstate in ("XX001", "58P01")


def may_pass(error: BaseException) -> bool:
    """Whether a later attempt may succeed: the disk was full, or the system had no room for now."""
    if isinstance(error, KernelError):
        return error.sqlstate == BUSY
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return MEANINGS.get(error.errno or 0, ("58030",))[0] in PASSING
    if not isinstance(error, StorageError):
        return False
    if isinstance(error.__cause__, OSError):
        return error.sqlstate in PASSING
    return error.sqlstate in (DISK_FULL, BUSY)  # any other says that something is wrong for good


class Disk:
    """The real disk. Every method is one system call, or one loop over one."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; `create` makes a new file and refuses an old one."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        try:
            return File(path, os.open(path, flags, FILE))
        except OSError as error:
            _fail("create" if create else "open", path, error)

    def close(self, file: File) -> None:
        """Close the file; nothing is synced by it."""
        try:
            os.close(file.descriptor)
        except OSError as error:
            _fail("close", file.path, error)

    def pwritev(self, file: File, buffers: Sequence[Buffer], offset: int) -> int:
        """Write at most IOV_MAX buffers at the offset; the count written may be short."""
        try:
            return os.pwritev(file.descriptor, buffers, offset)
        except OSError as error:
            _fail("write", file.path, error)

    def pread(self, file: File, length: int, offset: int) -> bytes:
        """Read at the offset; fewer bytes than asked only at the end of the file."""
        try:
            parts: list[bytes] = []
            while length > 0 and (part := os.pread(file.descriptor, length, offset)):
                parts.append(part)
                offset += len(part)
                length -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        except OSError as error:
            _fail("read", file.path, error)

    def fdatasync(self, file: File) -> None:
        """Make the file's bytes and size durable."""
        try:
            _data_sync(file.descriptor)
        except OSError as error:
            _fail("sync", file.path, error)

    def fsync(self, file: File) -> None:
        """Make the file's bytes and all its metadata durable."""
        try:
            _full_sync(file.descriptor)
        except OSError as error:
            _fail("sync", file.path, error)

    def fsync_folder(self, path: str) -> None:
        """Make the names in a folder durable."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            _fail("sync folder", path, error)

    def truncate(self, file: File, size: int) -> None:
        """Set the file's size."""
        try:
            os.ftruncate(file.descriptor, size)
        except OSError as error:
            _fail("resize", file.path, error)

    def allocate(self, file: File, size: int) -> None:
        """Reserve space for the file and set its size, so that later writes find room."""
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.descriptor, 0, size)
            else:
                os.ftruncate(file.descriptor, size)
        except OSError as error:
            _fail("allocate", file.path, error)

    def zero_fill(self, file: File, offset: int, length: int) -> None:
        """Write zeros over a range."""
        while length > 0:
            written = self.pwritev(file, [memoryview(ZEROS)[: min(length, len(ZEROS))]], offset)
            if not written:
                raise StorageError(f"cannot write {file.path}: nothing was written")
            offset += written
            length -= written

    def rename(self, old: str, new: str) -> None:
        """Rename, replacing `new` if it is there; durable after `fsync_folder`."""
        try:
            os.rename(old, new)
        except OSError as error:
            _fail("rename", old, error)

    def link(self, old: str, new: str) -> None:
        """A second name for a file; refused if `new` is there: the way to commit exclusively."""
        try:
            os.link(old, new)
        except OSError as error:
            _fail("link", new, error)

    def unlink(self, path: str) -> None:
        """Remove a name; durable after `fsync_folder`."""
        try:
            os.unlink(path)
        except OSError as error:
            _fail("remove", path, error)

    def mkdir(self, path: str) -> None:
        """Make a folder and those above it; one that is there already is fine."""
        try:
            make_folder(path)
        except OSError as error:
            _fail("make folder", path, error)

    def listdir(self, path: str) -> list[str]:
        """The names in a folder, sorted."""
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            _fail("list", path, error)

    def read(self, path: str) -> bytes:
        """The whole file."""
        try:
            with open(path, "rb", buffering=0) as handle:
                return handle.read()
        except OSError as error:
            _fail("read", path, error)

    def size(self, path: str) -> int:
        """The file's size in bytes."""
        try:
            return os.stat(path).st_size
        except OSError as error:
            _fail("look at", path, error)

    def exists(self, path: str) -> bool:
        """Whether the name is there."""
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            _fail("look at", path, error)
        return True


def _full_sync(descriptor: int) -> None:
    """fsync; on macOS the call that also empties the drive's cache."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


if sys.platform == "darwin":
    _data_sync = _full_sync
else:
    _data_sync = os.fdatasync
