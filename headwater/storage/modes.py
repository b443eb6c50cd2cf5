"""Who of the machine's users may read a data folder: its owner alone.

Owns the modes of folders (0700) and files (0600), and the tightening of a folder that an earlier version
made. The root alone would keep others out; the modes below it hold in copies too. Must never change the
umask of the process: that is the program's around us.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = 0o700
FILE = 0o600
_OTHERS = 0o077


def make_folder(path: str | Path) -> None:
    """Makes a folder, and those above it that are not there, for the owner alone."""
    folder = Path(path)
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER, exist_ok=True)
    Path(path).mkdir(exist_ok=True)  # a file of that name is an error


def make_private(path: str | Path) -> None:
    """Keeps others out of a file or folder that a library has written."""
    os.chmod(path, FOLDER if os.path.isdir(path) else FILE)


def tighten(root: Path) -> None:
    """Keeps others out of a data folder that they may look into, and out of everything in it.

    A folder that belongs to somebody else, such as a mounted one, stays as it is.
    """
    if root.stat().st_mode & _OTHERS == 0:
        return
    try:
        os.chmod(root, FOLDER)
        for folder, _, files in os.walk(root):
            os.chmod(folder, FOLDER)
            for name in files:
                os.chmod(os.path.join(folder, name), FILE, follow_symlinks=True)
    except (PermissionError, FileNotFoundError):
        return
