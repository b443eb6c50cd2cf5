"""Batch ids of sealed rows, remembered for `dedup_window_s`; those of rows in the log are in the log.

Owns: the log in the folder `batches/`, of the same kind as the one that rows go to. A record holds the ids
that one seal took out of the tail; a segment of records that are all older than the window is let go.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from headwater.errors import StorageError
from headwater.storage.disk import Disk
from headwater.storage.wal import Record, WriteAheadLog

REMEMBERED = 1
SEGMENT_BYTES = 1 << 20
FIRST_SEGMENT_BYTES = 64 << 10


class BatchIds:
    """The batch ids of one open database."""

    def __init__(
        self,
        folder: Path,
        window_s: Callable[[], float],
        now: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> None:
        self._window_s = window_s
        self._now = now
        self._lock = threading.Lock()
        self._ages: deque[tuple[int, float]] = deque()  # of each record: its LSN, its time
        self._found: dict[int, dict[str, float]] = {}  # by table, until the table asks
        self._log = WriteAheadLog(
            str(folder),
            disk,
            segment_bytes=SEGMENT_BYTES,
            first_segment_bytes=FIRST_SEGMENT_BYTES,
            spare_segments=1,
            threads=False,
        )
        try:
            for record in self._log.recover():
                self._take(folder, record)
        except BaseException:
            self._log.close()
            raise

    def _take(self, folder: Path, record: Record) -> None:
        try:
            at, ids = json.loads(bytes(record.payload[0]))
        except (ValueError, TypeError) as error:
            raise StorageError(
                f"the batch ids in {folder} are damaged",
                sqlstate="XX001",
                detail=f"record {record.lsn}: {error}",
                hint="restore the folder from a copy; without it, repeated batches count twice",
            ) from error
        self._ages.append((record.lsn, at))
        if at >= self._now() - self._window_s():
            self._found.setdefault(record.table, {}).update(dict.fromkeys(ids, at))

    def remember(self, ids: Sequence[str], table: int) -> None:
        """Makes the ids durable; what is older than the window is let go."""
        now = self._now()
        payload = json.dumps([now, list(ids)], separators=(",", ":")).encode()
        lsn = self._log.append([Record(REMEMBERED, table, (payload,))]).wait()
        with self._lock:
            self._ages.append((lsn, now))
            gone = 0
            while self._ages and self._ages[0][1] < now - self._window_s():
                gone, _ = self._ages.popleft()
        if gone:
            self._log.free(gone)

    def known(self, table: int) -> dict[str, float]:
        """The ids that a table had when the database was opened, and when they came; told once."""
        return self._found.pop(table, {})

    def close(self) -> None:
        """Closes the log."""
        self._log.close()
