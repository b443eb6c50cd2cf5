"""The chunks of a source that is cut by its values: where they end, which are kept (EQ1, EQ6).

Owns: the ends of finished chunks among rows not yet taken, and the places where the kept ones end. A
chunk is finished by the first row with another value, and that row belongs to the next one. Must never:
read storage, or look at a row twice. DESIGN §5, Epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.feed import FeedCursor
from headwater.plan.folds import Leaf
from headwater.storage.streaming.definition import DAY

Values = Callable[[pa.Array], pa.Array]
Flags = npt.NDArray[np.bool_]


@dataclass
class Chunks:
    """One cut source: a position counts the rows released to its reader."""

    column: str
    values: Values  # what must stay equal within a chunk
    keep: int
    count: int  # chunks answered
    bounds: list[
        FeedCursor | None
    ]  # the ends of the last ones, at most `keep`; None: before all rows
    turns: list[FeedCursor] = field(
        default_factory=list
    )  # the ends of those that are being answered
    seen: int = 0  # the position up to which rows were looked at
    _last: pa.Array | None = None  # the value of the last row that was looked at
    _ends: deque[int] = field(default_factory=deque)  # positions

    def look(self, rows: pa.Table) -> None:
        """The rows released after those seen so far."""
        if not rows.num_rows:
            return
        values = self.values(_flat(rows.column(self.column)))
        changed = changes(values, self._last)
        self._ends.extend((np.flatnonzero(changed) + self.seen).tolist())
        self._last = values.slice(len(values) - 1)
        self.seen += rows.num_rows

    @property
    def finished(self) -> int:
        """How many chunks have ended and are not answered."""
        return len(self._ends)

    def ends(self, position: int, most: int | None = None) -> list[int]:
        """How many rows after a position each of the next finished chunks ends."""
        stop = len(self._ends) if most is None else most
        return [self._ends[n] - position for n in range(min(stop, len(self._ends)))]

    def answered(self, turns: int) -> None:
        """So many chunks have their results."""
        for _ in range(turns):
            self._ends.popleft()
        self.bounds = self.bounds_after(turns)
        self.count += turns
        self.turns = self.turns[turns:]

    def bounds_after(self, turns: int) -> list[FeedCursor | None]:
        """The bounds once so many of the turns are answered."""
        return [*self.bounds, *self.turns[:turns]][-self.keep :]

    def start(self, turn: int) -> FeedCursor | None:
        """The place before the kept chunks of a turn."""
        ends = [*self.bounds, *self.turns[:turn]]
        return ends[max(len(ends) - self.keep, 0)]

    def newest_start(self, turn: int) -> FeedCursor | None:
        """The place before the newest chunk of a turn."""
        return [*self.bounds, *self.turns[:turn]][-1]

    def ordinals(
        self,
        ticks: npt.NDArray[np.int64],
        sequence: npt.NDArray[np.int64],
        turn: int = 0,
    ) -> np.ndarray:
        """Of rows of the kept chunks and after them: which chunk each belongs to, counted from 1.

        `turn`: so many of the chunks that are being answered have ended.
        """
        found = np.full(len(ticks), self.count - len(self.bounds) + 1)
        for bound in (*self.bounds, *self.turns[:turn]):
            if bound is None:
                found += 1
                continue
            later = (ticks > bound.tick) | ((ticks == bound.tick) & (sequence > bound.sequence))
            found += later
        return found


def changes(values: pa.Array, last: pa.Array | None) -> Flags:
    """Which values differ from the one before; NULL and NaN equal themselves."""
    whole = values if last is None else pa.concat_arrays([last, values])
    before, after = whole.slice(0, len(whole) - 1), whole.slice(1)
    nulls = pc.not_equal(before.is_null(), after.is_null())
    unequal = pc.fill_null(pc.not_equal(before, after), False)
    if pa.types.is_floating(values.type):
        both = pc.fill_null(pc.and_(pc.is_nan(before), pc.is_nan(after)), False)
        unequal = pc.and_not(unequal, both)
    found = pc.or_(unequal, nulls).to_numpy(zero_copy_only=False)
    return found if last is not None else np.concatenate([[False], found])


def step_values(type_: pa.DataType, microseconds: int | None, step: int | None) -> Values:
    """What must stay equal within a chunk: the value, or how often the step goes into it."""
    if microseconds is None and step is None:
        return lambda values: values
    if pa.types.is_temporal(type_):
        length = microseconds if microseconds is not None else (step or 1) * 1_000_000
        return lambda values: _floored(_microseconds(values), length)
    whole = step if step is not None else (microseconds or 0) // 1_000_000
    if pa.types.is_integer(type_):
        return lambda values: _floored(values.cast(pa.int64()), whole)
    return lambda values: pc.floor(pc.divide(values.cast(pa.float64()), float(whole)))


def _microseconds(values: pa.Array) -> pa.Array:
    if pa.types.is_date(values.type):
        return pc.multiply(values.cast(pa.int32()).cast(pa.int64()), DAY)
    return values.cast(pa.int64())


def _floored(values: pa.Array, step: int) -> pa.Array:
    nulls = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(values.fill_null(0).to_numpy(zero_copy_only=False) // step, mask=nulls)


def _flat(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)


def chunks_of(leaf: Leaf, count: int, bounds: Sequence[FeedCursor | list[int] | None]) -> Chunks:
    """The chunks of a cut table, of which so many are answered."""
    cut = leaf.cut
    assert cut is not None
    assert cut.column is not None
    named = [f for f in leaf.columns.schema if f.name.casefold() == cut.column.casefold()]
    length = None if cut.duration is None else cut.duration.microseconds
    values = step_values(named[0].type, length, cut.step)
    places = [FeedCursor(*b) if isinstance(b, list) else b for b in bounds]
    return Chunks(named[0].name, values, cut.keep, count, places)


def saved_bounds(bounds: Sequence[FeedCursor | None]) -> list[list[int] | None]:
    """Bounds as a note keeps them."""
    return [None if bound is None else [bound.tick, bound.sequence] for bound in bounds]
