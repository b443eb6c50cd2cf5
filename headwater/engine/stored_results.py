"""The hidden streaming table of one query: its results as rows, as changes with an image now and then.

Owns: how a result is a row. It holds the whole result (an *image*), or what changed since the result
before, or both; `image` says where reading it begins. Images stand so close that reading a result costs
about twice its size at most. Must never: say what is kept; that is the log's (`results.py`). DESIGN §8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.engine.emit import instant_scalar
from headwater.engine.result_changes import (
    KnownChanges,
    applied,
    decode_changes,
    decode_rows,
    encode_changes,
    encode_rows,
)
from headwater.errors import OverloadError, StorageError
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.read import Wanted, select
from headwater.storage.streaming.table import StreamingTable

Numbers = npt.NDArray[np.int64]

AHEAD_RESULTS = 2048  # results read from the table at once …
AHEAD_BYTES = 4 << 20  # … and their bytes
LARGEST_RESULT_BYTES = 512 << 20
RESULT_BYTES = 1024  # what a result costs beside its rows
MOST_CHANGES = 1024  # results between two images
TRIM_STEP = 64  # results that go together, for the table is asked where the oldest kept one begins

STORED = pa.schema(
    [
        pa.field("position", pa.int64(), False),
        pa.field("instant", pa.int64(), False),
        pa.field("epoch", pa.int64()),
        pa.field("note", pa.string(), False),
        pa.field("result", pa.binary()),  # an image: an Arrow stream; NULL: no rows, or no image
        pa.field("row_count", pa.int64(), False),
        pa.field("bytes_before", pa.int64(), False),  # of all results before this one
        pa.field("image", pa.int64(), False),  # the position of the image that reading begins with
        pa.field("changes", pa.binary()),  # since the result before; NULL: not known
    ]
)
BLOBS = ("result", "changes")


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


@dataclass(frozen=True)
class ResultSet:
    """A result at its position."""

    position: int
    instant: int
    rows: pa.Table
    epoch: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def row_count(self) -> int:
        """How many rows it has."""
        return self.rows.num_rows


@dataclass(frozen=True)
class ResultChanges:
    """What a result changed, at its position; its rows are there only if they were in memory."""

    position: int
    instant: int
    changes: KnownChanges
    rows: pa.Table | None
    epoch: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def row_count(self) -> int:
        """How many rows the result has."""
        return self.changes.row_count


@dataclass(frozen=True)
class ResultImage:
    """A result that is stored whole, among the bytes of all results."""

    position: int
    before: int
    size: int
    row_count: int

    def spares_another(self, position: int, before: int, size: int, row_count: int) -> bool:
        """Whether a result may be stored as changes of a size alone.

        They are smaller than the result would be, and reading it from here costs twice that at most.
        """
        whole = self.size * row_count // max(self.row_count, 1)
        read = before + size - self.before
        return size < whole and read <= 2 * whole and position - self.position < MOST_CHANGES


@dataclass(slots=True)
class ResultEntry:
    """A result with its place among the bytes of all results, and how it is stored."""

    result: ResultSet | ResultChanges  # the rows, or what changed alone
    before: int
    size: int  # towards `keep_bytes`
    held: int  # in memory
    image: ResultImage  # where reading it begins
    changes: KnownChanges | None = None  # if they are stored
    stored_rows: bytes | None = None  # both on their way to the table
    stored_changes: bytes | None = None

    @property
    def end(self) -> int:
        """The bytes of all results up to this one."""
        return self.before + self.size

    def told(self) -> ResultSet | ResultChanges:
        """What a reader of changes needs of it."""
        one = self.result
        if self.changes is None or isinstance(one, ResultChanges):
            return one
        return ResultChanges(one.position, one.instant, self.changes, one.rows, one.epoch, one.note)


def entry_to_store(
    result: ResultSet | ResultChanges,
    before: int,
    changes: KnownChanges | None,
    image: ResultImage | None,
    whole: Callable[[], pa.Table],
) -> ResultEntry:
    """A result as it is stored: the smaller of changes and image, both where an image is due.

    `whole`: makes its rows, if they must be stored.
    """
    held = RESULT_BYTES + (0 if result.rows is None else result.rows.nbytes)
    if changes is not None and image is not None:
        data = encode_changes(changes)
        held += changes.nbytes
        size = RESULT_BYTES + len(data)
        if image.spares_another(result.position, before, size, changes.row_count):
            return ResultEntry(result, before, size, held, image, changes, stored_changes=data)
        rows = whole()
        stored = encoded(rows)
        made = result.rows is None  # of changes, so that they are what readers ask for
        if made or len(data) < _size(stored):
            size, held = size + _size(stored), held + (rows.nbytes if made else 0)
            image = ResultImage(result.position, before, size, changes.row_count)
            one = _whole(result, rows)
            return ResultEntry(one, before, size, held, image, changes, stored, data)
    else:
        rows = whole()
        stored = encoded(rows)
    size = RESULT_BYTES + _size(stored)
    image = ResultImage(result.position, before, size, rows.num_rows)
    held = RESULT_BYTES + rows.nbytes
    return ResultEntry(_whole(result, rows), before, size, held, image, stored_rows=stored)


def _whole(result: ResultSet | ResultChanges, rows: pa.Table) -> ResultSet:
    if isinstance(result, ResultSet):
        return result
    return ResultSet(result.position, result.instant, rows, result.epoch, result.note)


class StoredResults:
    """The hidden table of one query."""

    def __init__(self, table: StreamingTable, schema: pa.Schema) -> None:
        self._table = table
        self._schema, self._empty = schema, schema.empty_table()
        names = table.definition.schema.names
        self.keeps_changes = "image" in names  # tables of earlier versions hold whole results
        self._names = tuple(name for name in STORED.names if name in names)
        self._trimmed = 0

    @property
    def name(self) -> str:
        """Of the query."""
        return self._table.definition.name

    def time(self, instant: int) -> pa.Scalar:
        """An instant as a value of `_t`."""
        return instant_scalar(self._schema.field(len(self._schema) - 1).type, instant)

    # Writing

    def insert(self, entries: Sequence[ResultEntry]) -> None:
        """One durable insert for all."""
        results = [entry.result for entry in entries]
        columns = {
            "position": [r.position for r in results],
            "instant": [r.instant for r in results],
            "epoch": [r.epoch for r in results],
            "note": [json.dumps(dict(r.note), separators=(",", ":")) for r in results],
            "result": [entry.stored_rows for entry in entries],
            "row_count": [r.row_count for r in results],
            "bytes_before": [entry.before for entry in entries],
            "image": [entry.image.position for entry in entries],
            "changes": [entry.stored_changes for entry in entries],
        }
        columns = {name: columns[name] for name in self._names}
        self._table.insert(pa.table(columns, schema=self._table.definition.schema))

    def settle(self) -> None:
        """Waits for an insert that failed and may be on its way all the same."""
        self._table.barrier()

    def trim(self, first: int, step: int) -> None:
        """Lets the table drop what reading `first` and later results does not need.

        Not before so many more can go: where reading begins must be looked up.
        """
        if first - self._trimmed >= min(step, TRIM_STEP):
            self._trimmed = first
            found = self._rows(Wanted(self._numbers, low=first, high=first))
            self._table.trim(int(self._images(found)[0]) if found.num_rows else first)

    # Sizes

    @property
    def _numbers(self) -> tuple[str, ...]:
        return ("position", "bytes_before", *(("image",) if self.keeps_changes else ()))

    def _images(self, rows: pa.Table) -> Numbers:
        name = "image" if self.keeps_changes else "position"
        images: Numbers = rows.column(name).to_numpy()
        return images

    def count(self) -> int:
        """How many results were ever stored."""
        return self._table.state.next_sequence

    def oldest(self) -> tuple[int, int]:
        """The position of the oldest result that can be read and the bytes before it."""
        first = self._rows(Wanted(self._numbers, limit=1))
        low = least = int(first.column("position")[0].as_py())
        while True:
            found = self._rows(Wanted(self._numbers, low=low, high=low + AHEAD_RESULTS - 1))
            if not found.num_rows:
                raise self.missing(low)
            places = np.flatnonzero(self._images(found) >= least)
            if len(places):
                row = found.slice(int(places[0]), 1)
                return row.column("position")[0].as_py(), row.column("bytes_before")[0].as_py()
            low += AHEAD_RESULTS

    def sizes(self, first: int, end: int) -> tuple[Numbers, Numbers]:
        """Positions of the results in [first, end), and the bytes before what each is read from."""
        found = self._rows(Wanted(self._numbers, low=first, high=end - 1))
        positions, before = (found.column(n).to_numpy() for n in ("position", "bytes_before"))
        images = self._images(found)
        earlier = images < first
        if not earlier.any():
            return positions, before[images - first]
        base = self._rows(Wanted(self._numbers, low=int(images[0]), high=int(images[0])))
        least = base.column("bytes_before")[0].as_py() if base.num_rows else before[0]
        return positions, np.where(earlier, least, before[np.where(earlier, 0, images - first)])

    # Reading

    def ahead(self, first: int, end: int) -> list[ResultEntry]:
        """The results in [first, end), as far as they are not too large to be read at once."""
        found, held = list[ResultEntry](), 0
        for entry in self.entries(first, self._near(first, end)):
            found.append(entry)
            held += entry.held - RESULT_BYTES
            if held > AHEAD_BYTES:
                break
        return found

    def changes_ahead(self, first: int, end: int) -> list[ResultChanges]:
        """What the results in [first, end) changed, up to the first of which that is not stored."""
        if not self.keeps_changes:
            return []
        names = ("position", "instant", "epoch", "note", "changes")
        rows = self._rows(Wanted(names, low=first, high=self._near(first, end) - 1))
        found = []
        for _, data, row in _each(rows):
            if data is None:
                break
            changes = decode_changes(data, self._schema, self.time(row["instant"]))
            note = json.loads(row["note"])
            found.append(
                ResultChanges(row["position"], row["instant"], changes, None, row["epoch"], note)
            )
        return found

    def _near(self, first: int, end: int) -> int:
        """An end that is not too far to be read at once, in stored bytes."""
        if end - first <= 1:
            return end
        found = self._rows(Wanted(("position", "bytes_before"), low=first, high=end - 1))
        if not found.num_rows:
            return end
        starts = found.column("bytes_before").to_numpy()
        fit = int(np.searchsorted(starts, starts[0] + AHEAD_BYTES))
        return int(found.column("position")[min(fit, len(starts) - 1)].as_py()) + 1

    def entries(self, first: int, end: int) -> Iterator[ResultEntry]:
        """The results in [first, end); none where `first` cannot be read any more."""
        image, whole, steps = None, self._empty, list[KnownChanges]()
        for result, changes, row in _each(self._rows_from_image(first, end)):
            position, time = row["position"], self.time(row["instant"])
            size = RESULT_BYTES + _size(result) + _size(changes)
            known = None if changes is None else decode_changes(changes, self._schema, time)
            if row.get("image", position) == position:
                image = ResultImage(position, row["bytes_before"], size, row["row_count"])
                whole, steps = self._empty if result is None else decode_rows(result), []
            elif known is not None:
                steps.append(known)
            if position >= first and image is not None:
                whole, steps = applied(whole, steps, time), []
                note = json.loads(row["note"])
                one = ResultSet(position, row["instant"], whole, row["epoch"], note)
                held = RESULT_BYTES + whole.nbytes + (0 if known is None else known.nbytes)
                yield ResultEntry(one, row["bytes_before"], size, held, image, known)

    def _rows_from_image(self, first: int, end: int) -> pa.Table:
        """The rows of results in [first, end), and of those before that the first is made of."""
        with self._table.reading() as snapshot:
            rows = select(snapshot, Wanted(self._names, low=first, high=end - 1)).rows
            if not rows.num_rows or rows.column("position")[0].as_py() != first:
                return rows.slice(0, 0)
            begin = int(self._images(rows)[0])
            if begin == first:
                return rows
            base = select(snapshot, Wanted(self._names, low=begin, high=first - 1)).rows
            complete = base.num_rows == first - begin
            return pa.concat_tables([base, rows]) if complete else rows.slice(0, 0)

    def _rows(self, wanted: Wanted) -> pa.Table:
        with self._table.reading() as snapshot:
            return select(snapshot, wanted).rows

    def missing(self, position: int) -> StorageError:
        """A kept result that is not there."""
        return StorageError(
            f"result {position} of {self.name} is missing",
            sqlstate="XX001",
            hint="restore the folder from a copy",
        )


def _each(rows: pa.Table) -> Iterator[tuple[pa.Buffer | None, pa.Buffer | None, dict[str, Any]]]:
    """ResultImage, changes and the other columns of each row."""
    blobs = [
        (scalar.as_buffer() if scalar.is_valid else None for scalar in rows.column(name))
        if name in rows.column_names
        else repeat(None)
        for name in BLOBS
    ]
    others = rows.select([name for name in rows.column_names if name not in BLOBS])
    yield from zip(*blobs, others.to_pylist(), strict=False)


def _size(data: bytes | pa.Buffer | None) -> int:
    return 0 if data is None else len(data)


def encoded(rows: pa.Table) -> bytes | None:
    """Rows as an Arrow stream; None for no rows."""
    if not rows.num_rows:
        return None
    data = encode_rows(rows)
    if len(data) > LARGEST_RESULT_BYTES:
        raise OverloadError(
            f"a result of {len(data) >> 20} MiB is too large to be kept",
            sqlstate="54000",
            detail=f"at most {LARGEST_RESULT_BYTES >> 20} MiB fit",
            hint="aggregate or filter in the query",
        )
    return data
