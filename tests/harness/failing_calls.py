"""System calls of this thread that fail at a given call, for files under one folder.

Where `tests/crash/power.py` stands in for the disk of the log, this reaches every call that Python code
makes, wherever it makes it. Calls of other threads and of libraries in C go on as they are.
"""

from __future__ import annotations

import builtins
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater.storage import disk
from headwater.storage.catalog import Catalog

# The calls, and where they are looked up.
CALLS: dict[str, list[tuple[Any, str]]] = {
    "open": [(os, "open"), (builtins, "open"), (io, "open")],
    "sync": [(os, "fsync"), (disk, "_data_sync")],
    "mkdir": [(os, "mkdir")],
    "rename": [(os, "rename"), (os, "replace"), (os, "link")],
    "catalog": [(Catalog, "add"), (Catalog, "change"), (Catalog, "remove")],
}


class FailingCalls:
    """Fails one call of a kind with an error number, and counts all."""

    def __init__(self, folder: Path, at: int, number: int) -> None:
        self._inside = f"{folder}/"
        self._thread = threading.get_ident()
        self._at, self._number = at, number
        self.count = 0
        self.failed: str | None = None  # the file

    @contextmanager
    def of(self, kind: str) -> Iterator[FailingCalls]:
        """While inside, calls of that kind are counted and one of them fails."""
        with pytest.MonkeyPatch.context() as patch:
            for where, name in CALLS[kind]:
                patch.setattr(where, name, self._failing(getattr(where, name)))
            yield self

    def _failing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(first: Any, *others: Any, **options: Any) -> Any:
            path = _path(first)
            if threading.get_ident() == self._thread and path.startswith(self._inside):
                self.count += 1
                if self.count == self._at:
                    self.failed = path
                    named = () if isinstance(first, int) else (path,)
                    raise OSError(self._number, os.strerror(self._number), *named)
            return call(first, *others, **options)

        return failing


def _path(given: Any) -> str:
    if isinstance(given, Catalog):
        return f"{given._folder}/"
    if isinstance(given, int):
        return os.readlink(f"/proc/self/fd/{given}")
    return os.fsdecode(given)
