"""Readers of a query's results: an iterator, or a thread that calls back.

Owns: a reader's place among the results that are kept, and for EMIT INSERTS, DELETES and CHANGES the
result before it, to compare with one whose changes are not stored. The policy for slow readers: there
is no buffer per reader; one that falls behind what is kept gets an error that names the bound. Must
never: slow the query down, or hand out a result twice or not at all. DESIGN §3, §8; ST6.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from headwater.engine.conflation import Conflation
from headwater.engine.emit import emitted, instant_scalar
from headwater.engine.results import ResultLog, Told
from headwater.engine.stored_results import ResultChanges
from headwater.engine.token import ResultToken
from headwater.errors import DataError
from headwater.result import Result
from headwater.sql.extensions import Emit

EARLIEST = "earliest"


@dataclass(frozen=True, eq=False)
class Out:
    """What a reader gets for one instant or epoch."""

    time: int | datetime
    token: str
    table: pa.Table
    epoch: int | None = None

    def arrow(self) -> pa.Table:
        """The rows as a pyarrow Table."""
        return self.table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        return Result("SELECT", self.table).rows()


def start_position(
    log: ResultLog,
    after: str | None,
    decode: Callable[[str], ResultToken],
    emit: Emit = "all",
    whole_first: bool = False,
) -> int:
    """Where a reader starts: with the next result, the oldest kept one, or after a token.

    A reader of changes needs the result before its first one too; where that was dropped, the oldest kept
    one is only what the next is compared with. `whole_first`: it begins with all rows of a result, the
    newest one or the oldest.
    """
    if after is None:
        return log.next - whole_first
    if after == EARLIEST:
        first = log.first
        return first + 1 if first and emit != "all" and not whole_first else first
    return _after_token(log, decode(after), emit)


def _after_token(log: ResultLog, token: ResultToken, emit: Emit) -> int:
    position, first = token.position, log.first
    if not 0 <= position < log.next:
        raise _unknown(token)
    if position >= first:
        found = log.read(position)
        if found is not None and found.instant != token.instant:
            raise _unknown(token)
    elif emit != "all" or position + 1 < first:
        raise log.dropped("results after the token were dropped")
    return position + 1


def _unknown(token: ResultToken) -> DataError:
    return DataError(
        "the token is of a result that this query does not have",
        sqlstate="22023",
        detail=f"position {token.position}",
        hint="the database may be an older copy; 'earliest' starts with the oldest kept result",
    )


class Subscription:
    """Hands out the results of a query one after the other; an iterator."""

    def __init__(
        self,
        log: ResultLog,
        *,
        emit: Emit,
        start: int,
        time_of: Callable[[int], int | datetime],
        token_of: Callable[[Told], str],
        timeout: float | None,
        on_close: Callable[[], None] | None = None,
        shown: Callable[[pa.Table], pa.Table] | None = None,
        conflation: Conflation | None = None,
        whole_first: bool = False,
    ) -> None:
        """`on_close` is called once, at the latest when nobody holds the subscription any more.

        `shown`: what readers see of a result that holds more; one of which nothing is left is passed over.
        `whole_first`: all rows of the first result have come.
        """
        self._log = log
        self._emit = emit
        self._position = start
        self._time_of, self._token_of = time_of, token_of
        self._timeout = timeout
        self._shown, self._conflation = shown, conflation
        self._time_type = log.schema.field(len(log.schema) - 1).type
        self._turn = threading.Lock()  # two threads may take from one subscription
        self._ahead: deque[Told] = deque()  # read from the table together
        self._previous: pa.Table | None = None  # None: it is read if it is needed
        self._closed = False
        self._whole_first = whole_first
        if whole_first:
            self._previous = log.schema.empty_table()
        elif emit != "all" and start > 0:
            self._previous = self._rows_at(start - 1)
        self._finish = weakref.finalize(self, on_close or _nothing)
        self._finish.atexit = False
        log.readers.add(self)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that it hands out."""
        empty = self._log.schema.empty_table()
        rows = emitted(self._emit, empty, empty, instant_scalar(self._time_type, 0))
        return rows.schema if self._shown is None else self._shown(rows).schema

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    def __iter__(self) -> Iterator[Out]:
        return self

    def __next__(self) -> Out:
        with self._turn:
            try:
                while (result := self._following()) is not None:
                    out = self._out(result)
                    if self._conflation is not None:
                        out = self._conflated(self._conflation, out)
                    if self._shown is None or out.table.num_rows:
                        return out
            except Exception:
                self.close()
                raise
            self.close()
            raise StopIteration

    def take(self, most_rows: int) -> list[Out]:
        """The next result, waited for, and those that are there by now, up to about so many rows.

        None at the end. Also results of which nothing is shown, so that whoever keeps a place keeps
        up. With CONFLATE BY there is no need for it.
        """
        found: list[Out] = []
        row_count = 0
        with self._turn:
            try:
                while not found or (row_count < most_rows and self.waiting):
                    result = self._following()
                    if result is None:
                        break
                    found.append(self._out(result))
                    row_count += found[-1].table.num_rows
            except Exception:
                self.close()
                raise
        return found

    @property
    def waiting(self) -> int:
        """How many results are there that were not handed out yet."""
        return self._log.next - self._position

    def _following(self) -> Told | None:
        """The next result; None where nothing follows (in time). Raises the query's error."""
        log = self._log
        if not self._ahead and not self._closed:
            log.wait(self._position, self._timeout, lambda: self._closed)
            if self._whole_first and self._emit != "all":
                self._ahead.extend(log.read_from(self._position, most=1))
                self._whole_first = False
            elif self._emit == "all":
                self._ahead.extend(log.read_from(self._position))
            else:
                self._ahead.extend(log.read_changes(self._position))
        if self._closed:
            return None
        if self._ahead:
            self._position += 1
            return self._ahead.popleft()
        if log.error is not None and not log.closed:
            raise log.error
        return None

    def _out(self, result: Told) -> Out:
        rows = self._rows_of(result)
        if self._shown is not None:
            rows = self._shown(rows)
        return Out(self._time_of(result.instant), self._token_of(result), rows, result.epoch)

    def _rows_of(self, result: Told) -> pa.Table:
        instant = instant_scalar(self._time_type, result.instant)
        if isinstance(result, ResultChanges):
            self._previous = result.rows
            return emitted(self._emit, result.changes.gone, result.changes.added, instant)
        if self._emit == "all":
            return result.rows
        if self._previous is None and result.position:
            self._previous = self._rows_at(result.position - 1)
        rows = emitted(self._emit, self._previous, result.rows, instant)
        self._previous = result.rows
        return rows

    def _rows_at(self, position: int) -> pa.Table | None:
        found = self._log.read(position)
        return None if found is None else found.rows

    def _conflated(self, conflation: Conflation, out: Out) -> Out:
        """One result for all that are there by now; its time and token are the last one's."""
        conflation.add(out.table)
        end = self._log.next  # what comes meanwhile is for the next one, or it might never be given
        while self._position < end:
            result = self._following()
            if result is None:
                break
            out = self._out(result)
            conflation.add(out.table)
        return Out(out.time, out.token, conflation.take(), out.epoch)

    def close(self) -> None:
        """Ends the subscription; a thread that waits for a result is woken."""
        self._closed = True
        self._log.readers.discard(self)
        self._log.wake()
        self._finish()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _nothing() -> None:
    pass


class Pusher:
    """Calls a function for each result, in a thread of its own, until the subscription ends."""

    def __init__(self, subscription: Subscription, callback: Callable[[Out], object]) -> None:
        self._subscription = subscription
        self._callback = callback
        self.error: BaseException | None = None  # of the callback or the query; it ended there
        self._thread = threading.Thread(target=self._push, name="headwater-push", daemon=True)
        self._thread.start()

    def _push(self) -> None:
        try:
            for out in self._subscription:
                self._callback(out)
        except BaseException as error:  # kept for the caller: nobody is above this thread
            self.error = error
        finally:
            self._subscription.close()

    @property
    def running(self) -> bool:
        """Whether results are still pushed."""
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> bool:
        """Waits until the last call is done; whether it is."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Ends the subscription and waits for a call under way, unless called from within one."""
        self._subscription.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Pusher:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
