"""The results of one continuous query: kept, handed out by position, dropped at a bound.

Owns: the positions of results (0, 1, 2, … over the life of a query), which of them are kept, and
the hidden streaming table that holds them. One result is one row of that table, so that it is
durable, recovered and dropped as rows of streaming tables are; a result is shown to readers after
it is durable. Must never: wait for a reader, or change a result. One thread appends, any number
read. DESIGN §3 (`results_kept`), §8; ST6.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import ClosedError, Error, OverloadError, StorageError
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.read import Wanted, select
from headwater.storage.streaming.table import StreamingTable

RECENT_RESULTS = 1024  # results in memory where the table holds all of them …
RECENT_BYTES = 16 << 20  # … and their bytes
AHEAD_RESULTS = 2048  # results read from the table at once …
AHEAD_BYTES = 4 << 20  # … and their bytes
INSERT_BYTES = 64 << 20  # results stored in one insert, unless a single one is larger
LARGEST_RESULT_BYTES = 512 << 20
COMPRESSED_FROM_BYTES = 4096
RESULT_BYTES = 1024  # what a result costs in memory beside its rows
SLACK = 16  # at the bound of bytes a 16th more is dropped, so that the sizes are read seldom

STORED = pa.schema(
    [
        pa.field("position", pa.int64(), False),
        pa.field("instant", pa.int64(), False),
        pa.field("epoch", pa.int64()),
        pa.field("note", pa.string(), False),
        pa.field("result", pa.binary()),  # an Arrow stream; NULL: no rows
        pa.field("row_count", pa.int64(), False),
        pa.field("bytes_before", pa.int64(), False),  # of all results before this one
    ]
)


@dataclass(frozen=True)
class NewResult:
    """The whole result of one instant or epoch, and what was decided for it."""

    instant: int
    rows: pa.Table
    epoch: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ResultSet:
    """A result at its position."""

    position: int
    instant: int
    rows: pa.Table
    epoch: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)


def definition(query_id: int, name: str, folder: str) -> Definition:
    """The hidden table that holds the results of a query; its T is the position.

    Positions, unlike instants, never repeat: one tick is one result, so that a result is found
    by the interval index and old ones are trimmed exactly.
    """
    return Definition(
        id=query_id,
        name=name,
        kind="results",
        schema=STORED,
        time_column="position",
        range_ticks=None,
        watermark_ticks=0,
        late="keep",
        update_key=None,
        compartments=1,
        max_step_ticks=None,
        folder=folder,
    )


@dataclass(slots=True)
class _Entry:
    """A result with its place among the bytes of all results."""

    result: ResultSet
    before: int
    size: int  # towards `keep_bytes`
    held: int  # in memory
    data: bytes | None = None  # the rows as they are stored, on their way to the table


class ResultLog:
    """The last results of one query: the newest in memory, all kept ones in a hidden table."""

    def __init__(
        self,
        table: StreamingTable | None,
        schema: pa.Schema,
        *,
        keep: Callable[[], int],
        keep_bytes: Callable[[], int],
    ) -> None:
        """Without a table (a query that lives as long as its reader) all is in memory."""
        self.schema = schema
        self._stored = None if table is None else _Stored(table, schema)
        self._keep, self._keep_bytes = keep, keep_bytes
        self._empty = schema.empty_table()
        self.readers: weakref.WeakSet[object] = weakref.WeakSet()  # subscriptions that are open
        self._appending = threading.Lock()
        self._unsure = False  # an insert failed: it may have become durable all the same
        # Of everybody, under the lock of the condition; changed by the appending thread alone:
        self._changed = threading.Condition()
        self._recent: deque[_Entry] = deque()  # the newest, without gaps
        self._recent_bytes = 0
        self._first = self._next = 0
        self._before = 0  # bytes before the oldest kept result, or fewer
        self._total = 0
        self._closed = False
        self._error: BaseException | None = None
        self._load()

    @property
    def first(self) -> int:
        """The position of the oldest kept result; `next` if there is none."""
        with self._changed:
            return self._first

    @property
    def next(self) -> int:
        """The position that the next result will have."""
        with self._changed:
            return self._next

    @property
    def closed(self) -> bool:
        """Whether the query is gone: no result will follow."""
        return self._closed

    @property
    def error(self) -> BaseException | None:
        """Why the query failed; no result will follow."""
        return self._error

    # Appending

    def append(self, results: Sequence[NewResult]) -> list[ResultSet]:
        """Stores results, durable when this returns; readers see them then, in order.

        After an error some of them may be there: ask `last()` before trying again.
        """
        made: list[ResultSet] = []
        with self._appending:
            if self._closed:
                raise ClosedError("the query was dropped", sqlstate="55000")
            if self._unsure and self._stored is not None:
                self._stored.settle()
                self._load()
            for part in _parts(self._entries(results)):
                self._add(part)
                made += [entry.result for entry in part]
        return made

    def settle(self) -> None:
        """After an insert that failed: finds out whether it became durable all the same."""
        with self._appending:
            if self._unsure and self._stored is not None:
                self._stored.settle()
                self._load()

    def _entries(self, results: Sequence[NewResult]) -> Iterator[_Entry]:
        """The results at the positions that follow."""
        before = self._total
        for position, new in enumerate(results, self._next):
            rows = self._fitting(new.rows)
            data = None if self._stored is None else encoded(rows)
            held = RESULT_BYTES + rows.nbytes
            size = held if self._stored is None else RESULT_BYTES + _size(data)
            result = ResultSet(position, new.instant, rows, new.epoch, new.note)
            yield _Entry(result, before, size, held, data)
            before += size

    def _add(self, entries: Sequence[_Entry]) -> None:
        if self._stored is not None:
            self._unsure = True
            self._stored.insert(entries)
            self._unsure = False
            for entry in entries:
                entry.data = None
        self._show(entries)
        self._drop()

    def _fitting(self, rows: pa.Table) -> pa.Table:
        """The rows in the query's schema; empty ones are all one object."""
        if not rows.num_rows:
            return self._empty
        return rows if rows.schema == self.schema else rows.cast(self.schema)

    def _show(self, entries: Sequence[_Entry]) -> None:
        with self._changed:
            for entry in entries:
                self._recent.append(entry)
                self._recent_bytes += entry.held
            if entries:
                newest = entries[-1]
                self._next = newest.result.position + 1
                self._total = newest.before + newest.size
            self._forget()
            self._changed.notify_all()

    def _forget(self) -> None:
        """Lets the oldest results leave memory: those in the table too, or dropped ones."""
        recent = self._recent
        while len(recent) > 1:
            full = len(recent) > RECENT_RESULTS or self._recent_bytes > RECENT_BYTES
            dropped = recent[0].result.position < self._first
            if not dropped and (self._stored is None or not full):
                return
            self._recent_bytes -= recent.popleft().held

    # Bounds

    def _drop(self) -> None:
        """Drops the oldest results until the rest is within both bounds; the newest stays."""
        first, before = max(self._first, self._next - max(self._keep(), 1)), self._before
        limit = self._keep_bytes()
        if self._total - before > limit:
            positions, starts = self._sizes(first)
            enough = self._total - (limit - limit // SLACK)
            place = min(int(np.searchsorted(starts, enough)), len(starts) - 1)
            first, before = int(positions[place]), int(starts[place])
        if first == self._first and before == self._before:
            return
        with self._changed:
            self._first, self._before = first, before
            self._forget()
        if self._stored is not None:
            self._stored.trim(first)

    def _sizes(self, first: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Positions of results from `first`, and the bytes before each."""
        if self._stored is not None:
            return self._stored.sizes(first, self._next)
        kept = [e for e in self._recent if e.result.position >= first]
        return (
            np.array([e.result.position for e in kept], np.int64),
            np.array([e.before for e in kept], np.int64),
        )

    def _load(self) -> None:
        """Finds its place in the table: at the start, and after an insert that failed."""
        self._unsure = False
        if self._stored is None or (found := self._stored.count()) == self._next:
            return
        newest = self._stored.entries(found - 1, found)
        if not newest:
            raise self._missing(found - 1)
        oldest, before = self._stored.oldest()
        with self._changed:
            self._first, self._before = max(self._first, oldest), max(self._before, before)
            self._recent.clear()  # what is in memory has no gaps: begin with the newest
            self._recent_bytes = 0
            self._show(newest)
        self._drop()

    def _missing(self, position: int) -> StorageError:
        assert self._stored is not None
        return StorageError(
            f"result {position} of {self._stored.name} is missing",
            sqlstate="XX001",
            hint="restore the folder from a copy",
        )

    # Reading

    def last(self) -> ResultSet | None:
        """The newest result; None before the first."""
        with self._changed:
            return self._recent[-1].result if self._recent else None

    def read(self, position: int) -> ResultSet | None:
        """The result at a position; None if it is not there yet, an error if it was dropped."""
        found = self.read_from(position, most=1)
        return found[0] if found else None

    def read_from(self, position: int, most: int | None = None) -> list[ResultSet]:
        """The result at a position and some that follow; none if it is not there yet."""
        with self._changed:
            if position >= self._next:
                return []
            self._check_kept(position)
            place = position - self._recent[0].result.position
            if place >= 0:
                return [self._recent[place].result]
            end = min(position + (most or AHEAD_RESULTS), self._recent[0].result.position)
        assert self._stored is not None
        try:
            found = [entry.result for entry in self._stored.ahead(position, end)]
        except (Error, OSError):
            if self._closed:  # the table went with the query
                return []
            raise
        if found and found[0].position == position:
            return found
        with self._changed:
            self._check_kept(position)
        raise self._missing(position)

    def _check_kept(self, position: int) -> None:
        if position < self._first:
            raise self.dropped("the reader is too slow: its next result was dropped")

    def dropped(self, message: str) -> OverloadError:
        """The error of a reader whose results are not kept any more."""
        with self._changed:
            kept = f"kept are {self._next - self._first} results, from position {self._first}"
        return OverloadError(
            message,
            sqlstate="55000",
            detail=kept,
            hint="raise results_kept, or start again with 'earliest'",
        )

    def wait(
        self,
        position: int,
        timeout: float | None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Waits until that result is there, or none will come; whether it is there."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    position < self._next or self._closed or self._error is not None or stopped()
                ),
                timeout,
            )
            return position < self._next

    def wake(self) -> None:
        """Lets waiting readers look again whether they were stopped."""
        with self._changed:
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """The query failed: readers get its error after the results before it."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def recover(self) -> None:
        """The query was resumed after its error."""
        with self._changed:
            self._error = None

    def close(self) -> None:
        """The query is gone: readers end, after what is still in memory."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _size(data: bytes | pa.Buffer | None) -> int:
    return 0 if data is None else len(data)


# The hidden table


class _Stored:
    """The hidden table of one query."""

    def __init__(self, table: StreamingTable, schema: pa.Schema) -> None:
        self._table = table
        self._empty = schema.empty_table()

    @property
    def name(self) -> str:
        return self._table.definition.name

    def insert(self, entries: Sequence[_Entry]) -> None:
        """One durable insert for all."""
        results = [entry.result for entry in entries]
        columns = {
            "position": [r.position for r in results],
            "instant": [r.instant for r in results],
            "epoch": [r.epoch for r in results],
            "note": [json.dumps(dict(r.note), separators=(",", ":")) for r in results],
            "result": [entry.data for entry in entries],
            "row_count": [r.rows.num_rows for r in results],
            "bytes_before": [entry.before for entry in entries],
        }
        self._table.insert(pa.table(columns, schema=STORED))

    def settle(self) -> None:
        """Waits for an insert that failed and may be on its way all the same."""
        self._table.barrier()

    def count(self) -> int:
        """How many results were ever stored."""
        return self._table.state.next_sequence

    def oldest(self) -> tuple[int, int]:
        """The position of the oldest stored result and the bytes before it."""
        found = self._rows(Wanted(("position", "bytes_before"), limit=1))
        return found.column("position")[0].as_py(), found.column("bytes_before")[0].as_py()

    def sizes(self, first: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Positions of the results in [first, end), and the bytes before each."""
        found = self._rows(Wanted(("position", "bytes_before"), low=first, high=end - 1))
        return found.column("position").to_numpy(), found.column("bytes_before").to_numpy()

    def ahead(self, first: int, end: int) -> list[_Entry]:
        """The results in [first, end), as far as they are not too large to be read at once."""
        if end - first > 1:
            positions, starts = self.sizes(first, end)
            fit = int(np.searchsorted(starts, starts[:1].sum() + AHEAD_BYTES))
            end = int(positions[min(fit, len(positions) - 1)]) + 1 if len(positions) else end
        return self.entries(first, end)

    def entries(self, first: int, end: int) -> list[_Entry]:
        """The results in [first, end)."""
        rows = self._rows(Wanted(tuple(STORED.names), low=first, high=end - 1))
        found = []
        for data, row in zip(
            rows.column("result"), rows.drop_columns(["result"]).to_pylist(), strict=True
        ):
            buffer = data.as_buffer() if data.is_valid else None
            table = self._empty if buffer is None else decoded(buffer)
            note = json.loads(row["note"])
            result = ResultSet(row["position"], row["instant"], table, row["epoch"], note)
            size, held = RESULT_BYTES + _size(buffer), RESULT_BYTES + table.nbytes
            found.append(_Entry(result, row["bytes_before"], size, held))
        return found

    def _rows(self, wanted: Wanted) -> pa.Table:
        with self._table.reading() as snapshot:
            return select(snapshot, wanted).rows

    def trim(self, first: int) -> None:
        """Lets the table drop the results before `first`."""
        self._table.trim(first)


def encoded(rows: pa.Table) -> bytes | None:
    """Rows as an Arrow stream, compressed where that pays; None for no rows."""
    if not rows.num_rows:
        return None
    compression = "lz4" if rows.nbytes > COMPRESSED_FROM_BYTES else None
    target = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(target, rows.schema, options=options) as writer:
        writer.write_table(rows)
    data: bytes = target.getvalue().to_pybytes()
    if len(data) > LARGEST_RESULT_BYTES:
        raise OverloadError(
            f"a result of {len(data) >> 20} MiB is too large to be kept",
            sqlstate="54000",
            detail=f"at most {LARGEST_RESULT_BYTES >> 20} MiB fit",
            hint="aggregate or filter in the query",
        )
    return data


def decoded(data: bytes | pa.Buffer) -> pa.Table:
    """The rows of an Arrow stream."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def _parts(entries: Iterable[_Entry]) -> Iterator[list[_Entry]]:
    """The results in as few inserts as their sizes allow: one, unless they are very large."""
    part: list[_Entry] = []
    size = 0
    for entry in entries:
        if part and size + entry.size > INSERT_BYTES:
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.size
    if part:
        yield part
