"""Window functions: columns appended to each row that are computed from the rows of its partition.

Owns: which values each row was given with. A change makes the touched partitions be computed anew, all at
once; only rows whose values changed are given anew. Rows that are equal in the order stand as they came. If a
sum does not fit, `apply` raises after the rows were taken in, and a later call gives what is owed. Must
never: look at a partition that is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.aggregates import ALIASES, Aggregate, result_type
from headwater.fold.columns import Column, Slots, Vector, columns_of, decode, vector_dtype
from headwater.fold.order import ranks_of
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes, come, go, nothing, together
from headwater.operators.flat import whole
from headwater.operators.frames import Eligible, aggregated
from headwater.operators.grouped_rows import OrderColumn, Partitions
from headwater.operators.operator import Operator
from headwater.operators.range_frames import RangeFrames, has_range
from headwater.operators.spilled_keys import SpilledKeys
from headwater.operators.vectors import Growing

NUMBERS = ("row_number", "rank", "dense_rank", "ntile")
SHARES = ("percent_rank", "cume_dist")
PICKS = ("lag", "lead", "first_value", "last_value", "nth_value")
FRAMED = ("count", "sum", "avg", "min", "max", "bool_and", "bool_or")


@dataclass(frozen=True)
class WindowFrame:
    """From where to where, by the current row (0); None: unbounded. RANGE adds offsets to the order."""

    unit: Literal["rows", "range"]
    start: int | None
    end: int | None

    @property
    def has_offsets(self) -> bool:
        """Whether it is by values of the order, not only by peers."""
        return self.unit == "range" and not {self.start, self.end} <= {None, 0}


WHOLE = WindowFrame("range", None, None)
RUNNING = WindowFrame("range", None, 0)


@dataclass(frozen=True)
class WindowFunction:
    """One function over columns of the input; a second argument of lag and lead is their default."""

    function: str
    arguments: tuple[str, ...]
    name: str
    type: pa.DataType | None = None  # of the result; None: as Spark derives it from the arguments
    frame: WindowFrame | None = None  # None: as Spark's, running with peers if there is an order
    number: int = 1  # of lag, lead, nth_value and ntile
    ignore_nulls: bool = False

    @property
    def known_name(self) -> str:
        """The function's name in the tables."""
        picks = {"first": "first_value", "last": "last_value", "any_value": "first_value"}
        name = picks.get(self.function, self.function)
        return name if name in PICKS else ALIASES.get(name, name)


class OverRows(Operator):
    """Rows with the values of window functions."""

    name = "over"
    takes_back = True

    def __init__(
        self,
        schema: pa.Schema,
        partition: Sequence[str],
        order: Sequence[tuple[str, bool, bool]],
        functions: Sequence[WindowFunction],
        takes_back: bool,
    ) -> None:
        self.input_schema, self.partition = schema, tuple(partition)
        self.order = tuple(OrderColumn(*key) for key in order)
        self.functions, self._taken_back = tuple(functions), takes_back
        self._check_frames()
        fields = [pa.field(one.name, one.type or self._type(one)) for one in functions]
        self.schema = pa.schema([*schema, *fields])
        self._types = [field.type for field in fields]
        used = [*(key.name for key in self.order), *(a for one in functions for a in one.arguments)]
        self._used = list(dict.fromkeys(used))
        self._rows = Arrangement(schema, self.partition, spills=bool(self.partition))
        self._given = self._rows.beside(np.bool_)
        self._values = [self._beside(type_) for type_ in self._types]
        self._valid = [self._rows.beside(np.bool_) for _ in self._types]
        self._owed: Slots = np.empty(0, np.int64)  # partitions that were touched
        self._minus = self.schema.empty_table()  # rows of theirs that went

    def _beside(self, type_: pa.DataType) -> Growing:
        dtype = vector_dtype(type_)
        return self._rows.beside(dtype, type_ if dtype == np.object_ else None)

    def _check_frames(self) -> None:
        """NotSupportedError if offsets would be added to what has none, or to several columns."""
        if any(one.frame is not None and one.frame.has_offsets for one in self.functions):
            types = [self.input_schema.field(key.name).type for key in self.order]
            if len(types) != 1 or not has_range(types[0]):
                raise NotSupportedError("RANGE with an offset needs one order of whole numbers")

    def _type(self, one: WindowFunction) -> pa.DataType:
        name = one.known_name
        types = [self.input_schema.field(argument).type for argument in one.arguments]
        if name in NUMBERS:
            return pa.int32()
        if name in SHARES:
            return pa.float64()
        if name in PICKS:
            return types[0]
        if name in FRAMED and (types or name == "count"):
            return result_type(Aggregate(name, 0, types[0] if types else pa.null(), one.name))
        raise NotSupportedError(f"window function {one.function} cannot be kept by operators")

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._rows.nbytes + self._minus.nbytes

    def apply(self, *inputs: Changes) -> Changes:
        """− for rows that went or have other values now, + for those that came or have."""
        (changes,) = inputs
        assert changes.only_come or self._taken_back, "rows were said never to be taken back"
        if not len(changes) and not len(self._owed):
            return nothing(self.schema)
        if not len(self._owed):
            self._rows.forget()
        self._rows.bring(changes.rows)
        done = self._rows.apply(changes)
        went = done.went[self._given.values[done.went]]
        self._minus = pa.concat_tables([self._minus, self._given_rows(went)])
        self._owed = np.union1d(self._owed, done.touched)
        numbers, columns = self._evaluated(self._rows.of_slots(self._owed))
        out = self._settled(numbers, columns)
        self._owed, self._minus = np.empty(0, np.int64), self.schema.empty_table()
        return out

    def _evaluated(self, numbers: Slots) -> tuple[Slots, list[Column]]:
        """Rows of whole partitions, sorted, and their values."""
        rows = self._rows.rows.take(numbers, self._used)
        ranks: list[Vector] = []
        for key in self.order:
            (column,) = columns_of(rows, [key.name])
            ranks += ranks_of(column, key.descending, key.nulls_first)
        partitions = Partitions(self._rows.slot_of(numbers), ranks)
        ordered = rows.take(pa.array(partitions.order))
        arrays = [self._value(one, partitions, rows, ordered) for one in self.functions]
        pairs = zip(arrays, self._types, strict=True)
        columns = [Column(a if a.type == type_ else a.cast(type_)) for a, type_ in pairs]
        return numbers[partitions.order], columns

    def _value(
        self, one: WindowFunction, partitions: Partitions, came: pa.Table, rows: pa.Table
    ) -> pa.Array:
        """`came`: the rows as they came; `rows`: sorted."""
        name = one.known_name
        if name in NUMBERS or name in SHARES:
            return _numbered(one, partitions)
        starts, ends = self._bounds(one, partitions, came)
        if name in FRAMED:
            column = Column(rows.column(one.arguments[0])) if one.arguments else None
            return aggregated(name, column, one.name, starts, ends)
        array = whole(rows.column(one.arguments[0]))
        places = _picked(one, partitions, Eligible(array, one.ignore_nulls), starts, ends)
        picked = array.take(pa.array(places, mask=places < 0))
        if len(one.arguments) == 1:
            return picked
        default = whole(rows.column(one.arguments[1])).cast(array.type)
        both = pa.concat_arrays([array, default])
        return both.take(pa.array(np.where(places < 0, len(array) + partitions.places, places)))

    def _bounds(
        self, one: WindowFunction, partitions: Partitions, came: pa.Table
    ) -> tuple[Slots, Slots]:
        frame = one.frame or (RUNNING if self.order else WHOLE)
        if frame.has_offsets:
            (key,) = self.order
            column = Column(came.column(key.name))
            return RangeFrames(partitions, column, key.descending).bounds(frame.start, frame.end)
        starts, ends, places = partitions.starts, partitions.ends, partitions.places
        if frame.unit == "range":
            first = starts if frame.start is None else partitions.peer_starts
            return first, ends if frame.end is None else partitions.peer_ends
        first = starts if frame.start is None else np.clip(places + frame.start, starts, ends)
        last = ends if frame.end is None else np.clip(places + frame.end + 1, starts, ends)
        return first, last

    def _settled(self, numbers: Slots, columns: Sequence[Column]) -> Changes:
        given = self._given.values[numbers]
        changed = ~given
        for column, values, valid in zip(columns, self._values, self._valid, strict=True):
            changed |= _differs(column, values.values[numbers], valid.values[numbers])
        minus = self._given_rows(numbers[changed & given])
        rows = np.flatnonzero(changed)
        chosen = numbers[rows]
        self._given.values[chosen] = True
        for column, values, valid in zip(columns, self._values, self._valid, strict=True):
            values.values[chosen] = column.values[rows]
            valid.values[chosen] = True if column.valid is None else column.valid[rows]
        plus = self._given_rows(chosen)
        return together([go(self._minus), go(minus), come(plus)], self.schema)

    def _given_rows(self, numbers: Slots) -> pa.Table:
        """Rows with the values that they were given with."""
        arrays = [whole(column) for column in self._rows.rows.take(numbers).columns]
        for type_, values, valid in zip(self._types, self._values, self._valid, strict=True):
            there = valid.values[numbers]
            arrays.append(decode(values.values[numbers], None if there.all() else there, type_))
        return pa.Table.from_arrays(arrays, schema=self.schema)

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        return [] if self._rows.spilled is None else [self._rows.spilled]

    def spill(self) -> None:
        if not len(self._owed):
            self._rows.spill()

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        minus = [whole(column) for column in self._minus.columns]
        return {"rows": self._rows.state(), "owes": len(self._owed), "minus": minus}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot; if it owed anything, all partitions are looked at once."""
        self._rows.restore(state["rows"])
        every = np.unique(self._rows.slot_of(np.flatnonzero(self._rows.rows.alive)))
        self._owed = every if state["owes"] else np.empty(0, np.int64)
        self._minus = pa.Table.from_arrays(state["minus"], schema=self.schema)


def _numbered(one: WindowFunction, partitions: Partitions) -> pa.Array:
    """Functions that look at the order only."""
    counts = partitions.ends - partitions.starts
    name = one.known_name
    if name == "percent_rank":
        return pa.array((partitions.rank - 1) / np.maximum(counts - 1, 1))
    if name == "cume_dist":
        return pa.array((partitions.peer_ends - partitions.starts) / counts)
    if name != "ntile":
        return pa.array(getattr(partitions, name), pa.int32())
    places, size = partitions.places - partitions.starts, counts // one.number
    larger = counts % one.number  # so many buckets have one row more, and come first
    edge = larger * (size + 1)
    rest = larger + (places - edge) // np.maximum(size, 1)
    return pa.array(np.where(places < edge, places // (size + 1), rest) + 1, pa.int32())


def _picked(
    one: WindowFunction, partitions: Partitions, rows: Eligible, starts: Slots, ends: Slots
) -> Slots:
    """Functions that give the value of another row: its place, −1 if there is none."""
    name, places = one.known_name, partitions.places
    if name == "last_value":
        return rows.last(starts, ends)
    if name not in ("lag", "lead"):
        return rows.first(starts, ends, one.number if name == "nth_value" else 1)
    forward = one.number if name == "lead" else -one.number
    if not forward:
        return places
    if forward > 0:
        return rows.first(places + 1, partitions.ends, forward)
    return rows.last(partitions.starts, places, -forward)


def _differs(column: Column, values: Vector, valid: Vector) -> Vector:
    new = column.values
    if new.dtype == np.float64:
        new, values = new.view(np.int64), values.view(np.int64)
    there = np.ones(len(valid), np.bool_) if column.valid is None else column.valid
    return (there != valid) | (there & np.asarray(new != values, np.bool_))
