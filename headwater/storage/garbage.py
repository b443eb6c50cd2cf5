"""Files that a commit removed, and the readers that may still need them.

A file goes when no reader of an older version is left in this process and it has been kept for
readers outside for the set time. Shared by standard and streaming tables.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _Removed:
    path: Path
    version: int
    at: float


class Garbage:
    """Removed files of one table."""

    def __init__(self, folder: Path, kept_s: Callable[[], float]) -> None:
        self._folder = folder
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._readers: Counter[int] = Counter()
        self._removed: list[_Removed] = []
        self._dropped = False

    @contextlib.contextmanager
    def reading(self, version: int) -> Iterator[None]:
        """While inside, files that this version uses stay."""
        self.hold(version)
        try:
            yield
        finally:
            self.let_go(version)

    def hold(self, version: int) -> None:
        """A reader of this version has begun."""
        with self._lock:
            self._readers[version] += 1

    def let_go(self, version: int) -> None:
        """A reader of this version is done."""
        with self._lock:
            self._readers[version] -= 1
            if not self._readers[version]:
                del self._readers[version]
            last = self._dropped and not self._readers
        if last:
            shutil.rmtree(self._folder, ignore_errors=True)

    def drop_folder(self) -> None:
        """Deletes the whole folder, once the last reader of this process is done."""
        with self._lock:
            self._dropped = True
            busy = bool(self._readers)
        if not busy:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, paths: Iterable[Path], version: int) -> None:
        """Files that the commit of this version removed."""
        now = time.monotonic()
        with self._lock:
            self._removed += [_Removed(path, version, now) for path in paths]

    def find_left_overs(self, used: set[str], version: int) -> None:
        """Takes in files that no version uses: of writes that never committed, or removed earlier."""
        found = [
            path
            for path in self._folder.rglob("*.parquet")
            if str(path) not in used and "_delta_log" not in path.parts
        ]
        self.add(found, version)

    def keep(self, paths: Iterable[Path]) -> None:
        """These files turned out to be in use: the write-ahead log names them."""
        kept = set(paths)
        with self._lock:
            self._removed = [r for r in self._removed if r.path not in kept]

    def collect(self) -> None:
        """Deletes what nobody needs any more."""
        now = time.monotonic()
        with self._lock:
            oldest = min(self._readers, default=None)
            gone = [
                r
                for r in self._removed
                if now - r.at >= self._kept_s() and (oldest is None or oldest >= r.version)
            ]
            self._removed = [r for r in self._removed if r not in gone]
        for removed in gone:
            removed.path.unlink(missing_ok=True)
            if removed.path.parent != self._folder:
                with contextlib.suppress(OSError):
                    removed.path.parent.rmdir()
