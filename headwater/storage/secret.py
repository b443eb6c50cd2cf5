"""A secret of the data folder, made once: the salts of users who do not exist come from it.

Owns the file `login.secret`: 32 random bytes and their checksum. It protects no data: one that is missing or
damaged is made anew, and all that is lost is that somebody may see that it changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from headwater.errors import StorageError
from headwater.storage.disk import Disk

NAME = "login.secret"
SECRET_BYTES = 32


def kept_secret(folder: Path, disk: Disk | None = None) -> bytes:
    """The folder's secret; made if it is not there. A disk that cannot keep it gives one for this time."""
    disk = disk or Disk()
    path = str(folder / NAME)
    with contextlib.suppress(StorageError):
        found = _checked(disk.read(path))
        if found is not None:
            return found
    made = secrets.token_bytes(SECRET_BYTES)
    with contextlib.suppress(StorageError):
        _keep(disk, path, made + _checksum(made))
    return made


def _checked(data: bytes) -> bytes | None:
    found, checksum = data[:SECRET_BYTES], data[SECRET_BYTES:]
    return found if len(found) == SECRET_BYTES and checksum == _checksum(found) else None


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _keep(disk: Disk, path: str, data: bytes) -> None:
    """Writes the file beside its place, and puts it there whole and durable."""
    fresh = f"{path}.new"
    if disk.exists(fresh):
        disk.unlink(fresh)
    file = disk.open(fresh, create=True)
    try:
        if disk.pwritev(file, [data], 0) != len(data):
            raise StorageError(f"cannot write {fresh}: it was written in part")
        disk.fsync(file)
    finally:
        disk.close(file)
    disk.rename(fresh, path)
    disk.fsync_folder(os.path.dirname(path))
