"""Rows that somebody still holds, given again to whoever asks for the same rows of the same version.

A client that reads slowly holds its result until it has taken all of it; twenty of them share one. Owns weak
references only, so that rows which nobody holds are gone. Must never hold rows itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary

import pyarrow as pa

LARGE_TABLE = 50_000  # rows; what is read of smaller tables is not worth sharing


class SharedRows:
    """The large results of one database that are being read now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakValueDictionary[Hashable, pa.Table] = WeakValueDictionary()
        self._turns: dict[Hashable, threading.Lock] = {}  # one reader makes rows, others wait

    def of(self, key: Hashable, table_rows: int, make: Callable[[], pa.Table]) -> pa.Table:
        """The rows of a key, made only if nobody holds them; it must say all that they depend on."""
        if table_rows < LARGE_TABLE:
            return make()
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        try:
            with turn:
                found = self._held.get(key)
                if found is None:
                    found = self._held[key] = make()
                return found
        finally:
            with self._lock:
                self._turns.pop(key, None)
