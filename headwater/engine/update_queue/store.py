"""Rows in pages that are taken when they are needed and given back at once.

Owns: the memory of waiting rows, as one vector per column, in whole pages. Blocks of one or
several rows lie side by side without holes: a freed block is filled by the last one. Hence all
pages but the last are full, which the on-demand paging of UpStream §7.1 reaches with a list of
empty locations only while as many rows come as go. Must never: hold more pages than the rows
need, or more than the pool has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError, OverloadError
from headwater.fold.columns import OBJECT, Column, Slots, Vector, decode, kind_of, vector_dtype

PAGE_ROWS = 256
Moves = tuple[Slots, Slots]  # blocks: from where, to where
Cells = tuple[Vector, Vector | None]  # values, and which are not NULL (None: all)


class PagePool:
    """How many pages all queues together may have; memory itself is taken page by page."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.taken = 0

    def take(self, count: int) -> None:
        """Give out pages, or refuse."""
        self.require(count)
        self.taken += count

    def require(self, count: int) -> None:
        """Refuse if there are not so many pages left."""
        if self.limit is not None and self.taken + count > self.limit:
            raise OverloadError(
                "update queues have no memory left",
                detail=f"{self.taken} of {self.limit} pages are taken, {count} more are needed",
            )

    def give_back(self, count: int) -> None:
        """Take pages back."""
        self.taken -= count


class PagedRowStore:
    """Rows of one schema in packed blocks; block b holds the places b·n … b·n + n − 1."""

    def __init__(
        self, schema: pa.Schema, pool: PagePool, *, page_rows: int = PAGE_ROWS, block_rows: int = 1
    ) -> None:
        if page_rows % block_rows:
            raise ValueError("a page holds a whole number of blocks")
        self.schema = schema
        self._pool = pool
        self._page_rows, self._block_rows = page_rows, block_rows
        self._block_count = self._page_count = 0
        self._columns = [_ColumnStore(field.type) for field in schema]

    @property
    def block_count(self) -> int:
        """How many blocks are in use: 0 … block_count − 1."""
        return self._block_count

    @property
    def allocated_rows(self) -> int:
        """How many rows the pages have room for."""
        return self._page_count * self._page_rows

    def allocate(self, count: int) -> Slots:
        """New blocks, behind all others."""
        first = self._block_count
        self._fit(first + count)
        return np.arange(first, first + count)

    def require(self, count: int) -> None:
        """Refuse if so many blocks more would not fit, before anything is changed."""
        self._pool.require(max(0, self._pages(self._block_count + count) - self._page_count))

    def free(self, blocks: Slots) -> Moves:
        """Give blocks back. The last blocks take their places: says which went where."""
        kept = self._block_count - len(blocks)
        targets = np.sort(blocks[blocks < kept])
        last = np.ones(len(blocks), np.bool_)
        last[blocks[blocks >= kept] - kept] = False
        sources = np.flatnonzero(last) + kept
        if len(targets):
            self._copy(self._places(sources), self._places(targets))
        self._fit(kept)
        return sources, targets

    def write(self, places: Slots, cells: Sequence[Cells]) -> None:
        """Put encoded rows at places."""
        for column, (values, valid) in zip(self._columns, cells, strict=True):
            column.write(places, values, valid)

    def read(self, places: Slots) -> pa.Table:
        """The rows at places, in their order."""
        arrays = [column.read(places) for column in self._columns]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def encode(self, rows: pa.Table, numbers: Slots | None = None) -> list[Cells]:
        """Some rows of a table as vectors, or all."""
        if numbers is not None and len(numbers) == rows.num_rows:
            numbers = None
        columns = zip(self._columns, rows.columns, strict=True)
        return [own.encode(data, numbers) for own, data in columns]

    def _places(self, blocks: Slots) -> Slots:
        if self._block_rows == 1:
            return blocks
        return (blocks[:, None] * self._block_rows + np.arange(self._block_rows)).reshape(-1)

    def _copy(self, sources: Slots, targets: Slots) -> None:
        for column in self._columns:
            column.copy(sources, targets)

    def _pages(self, block_count: int) -> int:
        return -(-block_count * self._block_rows // self._page_rows)

    def _fit(self, block_count: int) -> None:
        """Have exactly the pages that so many blocks need."""
        pages = self._pages(block_count)
        if pages > self._page_count:
            self._pool.take(pages - self._page_count)
        elif pages < self._page_count:
            self._pool.give_back(self._page_count - pages)
        if pages != self._page_count:
            for column in self._columns:
                column.resize(pages * self._page_rows)
        self._page_count, self._block_count = pages, block_count


class _ColumnStore:
    """One column's values by place."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        self._nested = _is_nested(type_)
        dtype = np.dtype(np.object_) if self._nested else vector_dtype(type_)
        self._values: Vector = np.empty(0, dtype)
        self._valid: Vector = np.empty(0, np.bool_)
        self._has_nulls = False  # whether one ever came

    def encode(self, data: pa.ChunkedArray, numbers: Slots | None) -> Cells:
        if numbers is not None and self._values.dtype == object:
            data, numbers = data.take(pa.array(numbers)), None
        if not self._nested:
            column = Column(data)
            values, valid = column.values, column.valid
            if numbers is None:
                return values, valid
            return values[numbers], None if valid is None else valid[numbers]
        values = np.empty(len(data), np.object_)
        values[:] = [
            (value,) for value in data.to_pylist()
        ]  # in tuples, or NumPy takes lists apart
        return values, None

    def write(self, places: Slots, values: Vector, valid: Vector | None) -> None:
        self._values[places] = values
        if valid is not None and not self._has_nulls:
            self._has_nulls = True
            self._valid = np.ones(len(self._values), np.bool_)
        if self._has_nulls:
            self._valid[places] = True if valid is None else valid

    def read(self, places: Slots) -> pa.Array:
        values = self._values[places]
        if self._nested:
            return pa.array([value for (value,) in values], self.type)
        valid = self._valid[places] if self._has_nulls else None
        return decode(values, None if valid is None or valid.all() else valid, self.type)

    def copy(self, sources: Slots, targets: Slots) -> None:
        self._values[targets] = self._values[sources]
        if self._has_nulls:
            self._valid[targets] = self._valid[sources]

    def resize(self, row_count: int) -> None:
        # in place: the C library moves page tables, not rows; nobody else sees these vectors
        if self._values.dtype == object:
            self._values[row_count:] = None
        self._values.resize(row_count, refcheck=False)
        if self._has_nulls:
            self._valid.resize(row_count, refcheck=False)


def _is_nested(type_: pa.DataType) -> bool:
    try:
        return kind_of(type_) not in ("integer", "float", OBJECT)
    except NotSupportedError:
        return True
