"""The results that a view has made: numbered, the last ones kept (CV2).

Owns: the numbers and how many versions stay. Must never: make a result. Any thread may ask.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Version:
    """One result of a view."""

    number: int
    rows: pa.Table
    key: object  # what it was made of: equal keys, equal results
    made_at: float  # by the wall clock, in seconds
    instant: int  # what functions of time meant, in µs


class Versions:
    """The last versions of one view."""

    def __init__(self, keep: Callable[[], int]) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Version] = OrderedDict()
        self._next = 1

    @property
    def last(self) -> Version | None:
        """The newest version."""
        with self._lock:
            return next(reversed(self._kept.values())) if self._kept else None

    def add(self, rows: pa.Table, key: object, instant: int) -> Version:
        """A new version; the oldest go."""
        with self._lock:
            made = Version(self._next, rows, key, time.time(), instant)
            self._kept[self._next] = made
            self._next += 1
            while len(self._kept) > max(self._keep(), 1):
                self._kept.popitem(last=False)
            return made

    def find(self, number: int) -> Version | None:
        """The version of that number, if it is kept."""
        with self._lock:
            return self._kept.get(number)

    def all(self) -> list[Version]:
        """Those kept, the oldest first."""
        with self._lock:
            return list(self._kept.values())
