"""Folders of this user that can be thrown away at any time: the launcher, the class cache, scratch.

`HEADWATER_CACHE`, else `$XDG_CACHE_HOME/headwater`, else `~/.cache/headwater`, else a temporary
folder of this user's.
"""

from __future__ import annotations

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


def scratch_folder(parent: Path) -> Path:
    """A new folder of this process under `parent`; those of dead processes are removed first."""
    for left in parent.glob(f"{SCRATCH_PREFIX}*"):
        if not _alive(left.name.removeprefix(SCRATCH_PREFIX).partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-", dir=parent))


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
