"""Each row with the start and the end of the windows of time that it lies in: Spark's `window`.

Owns: nothing; a row that is taken back takes back what came of it. Windows begin at multiples of the slide
after the offset, and are so long; a row lies in none, one or several. Rows without a time lie in none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.columns import Column, decode
from headwater.operators.changes import Changes
from headwater.operators.operator import Operator


class TimeWindowRows(Operator):
    """The input's columns, then the start and the end; lengths are in the unit of the time column."""

    name = "time windows"

    def __init__(
        self,
        schema: pa.Schema,
        time: str,
        lengths: tuple[int, int, int],
        start: str,
        end: str,
        takes_back: bool,
    ) -> None:
        """`lengths`: of a window, of the slide, and the offset."""
        self._time, (self._length, self._slide, self._offset) = time, lengths
        self._type = schema.field(time).type
        if not pa.types.is_timestamp(self._type) or not 0 < self._slide <= self._length:
            raise NotSupportedError(f"windows of {self._type} by {lengths}")
        fields = [pa.field(start, self._type), pa.field(end, self._type)]
        self.schema, self.takes_back = pa.schema([*schema, *fields]), takes_back

    def apply(self, *inputs: Changes) -> Changes:
        (changes,) = inputs
        column = changes.rows.column(self._time)
        there = np.flatnonzero(column.is_valid().to_numpy())
        times = Column(column).values[there]
        latest = times - (times - self._offset) % self._slide
        most = -(-self._length // self._slide)
        starts = (latest[:, None] - self._slide * np.arange(most)).ravel()
        inside = starts + self._length > np.repeat(times, most)
        starts, rows = starts[inside], np.repeat(there, most)[inside]
        taken = changes.taken(rows)
        bounds = [decode(vector, None, self._type) for vector in (starts, starts + self._length)]
        every = [*taken.rows.columns, *bounds]
        return taken.with_rows(pa.Table.from_arrays(every, schema=self.schema))
