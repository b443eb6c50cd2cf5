"""Sources that are iterators: one thread pulls rows, another inserts what has come.

So a slow iterator delays nothing. How many rows have been delivered is durable with the rows themselves.
An iterator that waits for its rows yields None now and then: only between two rows can it be stopped.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headwater.errors import DataError, Error
from headwater.sources.runner import POLL_S, SourceFeed, SourceRunner, SourceSurroundings

PULL_PATIENCE_S = 1.0


class PulledRunner(SourceRunner):
    """One run of a source that is an iterator of rows, tables or batches."""

    def __init__(self, feed: SourceFeed, around: SourceSurroundings) -> None:
        super().__init__(feed, around)
        self._puller: _Puller | None = None

    @abstractmethod
    def rows(self) -> Iterator[Any] | None:
        """What is inserted; None if the run is stopped before it can begin."""

    def named(self, row: Any) -> dict[str, Any]:
        """A row by column name."""
        return dict(row)

    def run(self) -> None:
        """Inserts rows until there are no more."""
        rows = self.rows()
        if rows is None:
            return
        puller = self._puller = _Puller(rows, self.feed)
        try:
            while not self.stopping.is_set():
                found = puller.take(self.feed.options.batch_rows)
                if found is None:
                    return
                if len(found):
                    self._insert(found)
                else:
                    self.watch_idle()
        finally:
            puller.stop()  # stop() may have come before there was one to interrupt

    def interrupt(self) -> None:
        """Ends the pulling thread, if the iterator lets it."""
        if self._puller is not None:
            self._puller.stop()

    @property
    def delivered_rows(self) -> int:
        """How many rows of this source the table has."""
        progress = self.feed.table.state.progress.get(self.feed.key)
        return 0 if progress is None else progress.row_count

    def _insert(self, found: pa.Table | list[Any]) -> None:
        self.busy = True
        try:
            if isinstance(found, list):
                found = [self.named(row) for row in found]
            rows, count, before = found, len(found), self.delivered_rows

            def insert() -> None:
                if self.delivered_rows == before:  # else an attempt before was stored all the same
                    self.feed.table.insert(rows, source=self.feed.key)

            self.patiently(insert)  # an iterator gives its rows once
            self.delivered(count)
        finally:
            self.busy = False


class _End:
    """What stands in the queue after the last row."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def check(self) -> None:
        """Raises what ended the rows, unless they came to their end."""
        if self.error is not None:
            raise self.error


class _Puller:
    """Pulls rows in a thread of its own; at most two batches wait, or one table that is larger."""

    def __init__(self, rows: Iterator[Any], feed: SourceFeed) -> None:
        self._rows = rows
        self._most = 2 * feed.options.batch_rows
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._waiting: deque[Any] = deque()  # rows, tables, and after them the end
        self._row_count = 0  # of those that wait
        self._thread = threading.Thread(
            target=self._pull, name=f"headwater-source-{feed.name}-pull", daemon=True
        )
        self._thread.start()

    def _pull(self) -> None:
        end = _End()
        try:
            for row in self._rows:
                if self._stopping.is_set() or (row is not None and not self._put(row)):
                    break
        except Exception as error:
            failure = error if isinstance(error, Error) else _failed(error)
            end = _End(failure)
        finally:
            close = getattr(self._rows, "close", None)
            if close is not None:
                close()
        self._put(end)

    def _put(self, item: Any) -> bool:
        """Waits for room; False if there is to be none."""
        if isinstance(item, pa.RecordBatch):
            item = pa.Table.from_batches([item])
        size = _size(item)
        with self._changed:
            self._changed.wait_for(lambda: self._stopping.is_set() or self._has_room(size))
            if self._stopping.is_set():
                return False
            self._waiting.append(item)
            self._row_count += size
            self._changed.notify_all()
            return True

    def _has_room(self, size: int) -> bool:
        return not self._row_count or self._row_count + size <= self._most

    def take(self, most: int) -> pa.Table | list[Any] | None:
        """Rows that have come, none if none came for a moment; None at the end."""
        found: list[Any] = []
        count = 0
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting), POLL_S)
            if self._waiting and isinstance(self._waiting[0], _End):
                self._waiting[0].check()
                return None
            while self._waiting and count < most and _go_together(found, self._waiting[0]):
                found.append(self._waiting.popleft())
                count += _size(found[-1])
            self._row_count -= count
            self._changed.notify_all()
        return pa.concat_tables(found) if found and isinstance(found[0], pa.Table) else found

    def stop(self) -> None:
        """Ends the thread; one that waits inside the user's function is left to it."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(PULL_PATIENCE_S)


def _size(item: Any) -> int:
    if isinstance(item, pa.Table):
        return int(item.num_rows)
    return 0 if isinstance(item, _End) else 1


def _go_together(found: list[Any], item: Any) -> bool:
    """Whether an item can be inserted with others: rows with rows, tables with tables like them."""
    if isinstance(item, _End):
        return False
    if not found:
        return True
    if isinstance(item, pa.Table) or isinstance(found[0], pa.Table):
        return isinstance(item, type(found[0])) and item.schema == found[0].schema
    return True


def _failed(error: Exception) -> DataError:
    return DataError(
        f"the function of the source failed: {type(error).__name__}: {error}", sqlstate="38000"
    )
