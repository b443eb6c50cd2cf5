"""`python:NAME`: rows from a table function that the user has registered (EQ9).

One thread pulls rows from the function's iterator, another inserts what has come, so that a slow
function delays nothing. How many rows have been delivered is durable with the rows themselves; a
function with a parameter `start` is told that number and goes on from there. A function that waits
for its rows yields None now and then: only between two rows can it be stopped.
"""

from __future__ import annotations

import inspect
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headwater.errors import DataError, Error
from headwater.kernel.functions import PythonFunction, table_columns
from headwater.sources.runner import POLL_S, Feed, Runner, Surroundings
from headwater.sql.type_parser import parse_fields

PULL_PATIENCE_S = 1.0
START = "start"


def takes_start(function: Any) -> bool:
    """Whether the function wants to know how many rows it has delivered."""
    return START in inspect.signature(function).parameters


class PythonRunner(Runner):
    """One run of a Python source."""

    def __init__(self, feed: Feed, around: Surroundings) -> None:
        super().__init__(feed, around)
        self._puller: _Puller | None = None

    def run(self) -> None:
        """Inserts rows until the function has no more."""
        function = self._function()
        if function is None:
            return
        names = [name for name, _ in parse_fields(table_columns(function.returns))]
        puller = self._puller = _Puller(self._rows(function), self.feed)
        try:
            while not self.stopping.is_set():
                found = puller.take(self.feed.options.batch_rows)
                if found is None:
                    return
                if len(found):
                    self._insert(found, names)
                else:
                    self.watch_idle()
        finally:
            puller.stop()  # stop() may have come before there was one to interrupt

    def interrupt(self) -> None:
        """Ends the pulling thread, if the function lets it."""
        if self._puller is not None:
            self._puller.stop()

    def _function(self) -> PythonFunction | None:
        """The function, as soon as the program has registered it; None if the run is stopped."""
        name = self.feed.address.rest.lower()
        while True:
            found = self.around.functions.get(name)
            if isinstance(found, PythonFunction) and found.kind == "table":
                self.error = None
                return found
            self.error = DataError(
                f"the source waits for function {name}",
                hint=f'db.create_function("{name}", …, kind="table") lets it go on',
            )
            self.watch_idle()
            if self.stopping.wait(POLL_S):
                return None

    def _rows(self, function: PythonFunction) -> Iterator[Any]:
        progress = self.feed.table.state.progress.get(self.feed.key)
        count = 0 if progress is None else progress.row_count
        work = function.function
        result = work(**{START: count}) if takes_start(work) else work()
        return iter([result] if isinstance(result, (pa.Table, pa.RecordBatch)) else result)

    def _insert(self, found: pa.Table | list[Any], names: list[str]) -> None:
        self.busy = True
        try:
            if isinstance(found, list):
                found = [_named(row, names) for row in found]
            count = len(found)
            self.feed.table.insert(found, source=self.feed.key)
            self.delivered(count)
        finally:
            self.busy = False


def _named(row: Any, names: list[str]) -> dict[str, Any]:
    """A row as the function gave it, by column name."""
    if isinstance(row, dict):
        return row
    values = tuple(row) if isinstance(row, (tuple, list)) else (row,)
    if len(values) != len(names):
        raise DataError(
            f"a row has {len(values)} values, the function returns {len(names)} columns",
            sqlstate="42601",
            hint="columns: " + ", ".join(names),
        )
    return dict(zip(names, values, strict=True))


class _End:
    """What stands in the queue after the last row."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class _Puller:
    """Pulls rows in a thread of its own; at most two batches wait."""

    def __init__(self, rows: Iterator[Any], feed: Feed) -> None:
        self._rows = rows
        self._queue: queue.Queue[Any] = queue.Queue(2 * feed.options.batch_rows)
        self._stopping = threading.Event()
        self._held: Any = None
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
        while not self._stopping.is_set():
            try:
                self._queue.put(item, timeout=POLL_S)
                return True
            except queue.Full:
                continue
        return False

    def take(self, most: int) -> pa.Table | list[Any] | None:
        """Rows that have come, none if none came for a moment; None at the end."""
        rows: list[Any] = []
        until = time.monotonic() + POLL_S
        while len(rows) < most:
            item = self._next(until if not rows else 0.0)
            if item is None:
                return rows
            if isinstance(item, (_End, pa.Table, pa.RecordBatch)):
                if rows:
                    self._held = item
                    return rows
                return _ended(item)
            rows.append(item)
        return rows

    def _next(self, until: float) -> Any:
        held, self._held = self._held, None
        if held is not None:
            return held
        try:
            return self._queue.get(timeout=max(until - time.monotonic(), 0.001))
        except queue.Empty:
            return None

    def stop(self) -> None:
        """Ends the thread; one that waits inside the user's function is left to it."""
        self._stopping.set()
        self._thread.join(PULL_PATIENCE_S)


def _ended(item: Any) -> pa.Table | None:
    if isinstance(item, _End):
        if item.error is not None:
            raise item.error
        return None
    return pa.Table.from_batches([item]) if isinstance(item, pa.RecordBatch) else item


def _failed(error: Exception) -> DataError:
    return DataError(
        f"the function of the source failed: {type(error).__name__}: {error}", sqlstate="38000"
    )
