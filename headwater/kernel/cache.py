"""Folders of this user that can be thrown away at any time: the launcher, the class cache, scratch.

`HEADWATER_CACHE`, else `$XDG_CACHE_HOME/headwater`, else `~/.cache/headwater`, else a temporary
folder of this user's.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path


def cache_folder(*parts: str) -> Path:
    """A folder under the cache, made if it is not there."""
    for root in _candidates():
        folder = root.joinpath(*parts)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="headwater-cache-"))


def _candidates() -> list[Path]:
    given = os.environ.get("HEADWATER_CACHE")
    if given:
        return [Path(given)]
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return [Path(base) / "headwater", Path(tempfile.gettempdir()) / f"headwater-{os.getuid()}"]


SCRATCH_PREFIX = "headwater-scratch-"


_held: dict[Path, int] = {}  # scratch folders of this process: the descriptors that lock them


def scratch_folder(parent: Path) -> Path:
    """A new folder of this process under `parent`; those of dead processes are removed first.

    Its process holds a lock on it, for processes of another container are not seen by their numbers.
    """
    for left in parent.glob(f"{SCRATCH_PREFIX}*"):
        if not _alive(left.name.removeprefix(SCRATCH_PREFIX).partition("-")[0]):
            _remove_if_free(left)
    made = Path(tempfile.mkdtemp(prefix=".headwater-", dir=parent))
    descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    number = made.name.removeprefix(".headwater-")
    folder = made.rename(parent / f"{SCRATCH_PREFIX}{os.getpid()}-{number}")
    _held[folder] = descriptor
    return folder


def remove_scratch(folder: Path) -> None:
    """Removes a scratch folder of this process."""
    shutil.rmtree(folder, ignore_errors=True)
    descriptor = _held.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)


@atexit.register
def _remove_held() -> None:
    """At the end of the program: a folder whose user was still being started, Java above all."""
    for folder in list(_held):
        if folder.name.startswith(f"{SCRATCH_PREFIX}{os.getpid()}-"):  # not those of who forked us
            remove_scratch(folder)


def _remove_if_free(left: Path) -> None:
    """Removes a folder that no process holds; another user's stays."""
    try:
        descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(left, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
