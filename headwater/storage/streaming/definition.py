"""What a streaming table is: its columns, its time column, its policies; and ticks, the unit of T.

T is discrete: ticks of 1 µs for timestamps (dates are midnights), of 1 for integers, which mean
seconds. All of storage compares ticks; values of the column's own type stay at the edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import DataError
from headwater.sql.duration import duration_ticks
from headwater.sql.type_parser import parse_type
from headwater.sql.types import TIMESTAMP, name_of

ARRIVAL = "_t"
SEQUENCE = "_seq"
LATE = "_late"
EPOCH_NUMBER = "_epoch"  # of a materialized view over epochs: which one a row came with
MICROSECONDS = 1_000_000
DAY = 86_400 * MICROSECONDS
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Definition:
    """A streaming table or stream, as the catalog keeps it."""

    id: int
    name: str
    kind: str  # "streaming table" | "stream"
    schema: pa.Schema  # the user's columns
    time_column: str | None  # None: arrival time, in the hidden column _t
    range_ticks: int | None  # None: FOREVER
    watermark_ticks: int
    late: str  # "keep" | "drop" | "reject"
    update_key: tuple[str, ...] | None
    compartments: int
    max_step_ticks: int | None
    folder: str
    comment: str | None = None
    max_ahead_ticks: int | None = None  # None: as max_clock_ahead_s says; 0: no bound
    step_ticks: int | None = None  # every T is a multiple of it: of a view that is sampled by time
    by_key: bool = False  # T goes up for each update key only: results of an update query

    @property
    def time(self) -> str:
        """The name of the column that holds T."""
        return self.time_column or ARRIVAL

    @cached_property
    def time_type(self) -> pa.DataType:
        """The type of T."""
        return self.schema.field(self.time_column).type if self.time_column else TIMESTAMP

    @property
    def keeps_all(self) -> bool:
        """Whether every row that came is there to be read again: no stream, and RANGE FOREVER."""
        return self.kind != "stream" and self.range_ticks is None

    @property
    def by_arrival(self) -> bool:
        """Whether T is the time of arrival."""
        return self.time_column is None

    @property
    def has_wall_clock(self) -> bool:
        """Whether T, given by the user, can be compared with the wall clock."""
        return not self.by_arrival and not pa.types.is_integer(self.time_type)

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Columns that `*` leaves out."""
        always = {SEQUENCE, LATE, EPOCH_NUMBER}
        return frozenset({*always, ARRIVAL} if self.by_arrival else always)

    @property
    def visible(self) -> tuple[str, ...]:
        """The columns that `*` shows."""
        return tuple(name for name in self.schema.names if name != EPOCH_NUMBER)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The columns of blocks: the user's, then the hidden ones."""
        fields = [field.with_nullable(True) for field in self.schema]
        if self.by_arrival:
            fields.append(pa.field(ARRIVAL, TIMESTAMP))
        return pa.schema([*fields, pa.field(SEQUENCE, pa.int64()), pa.field(LATE, pa.bool_())])

    @property
    def compartment_ticks(self) -> int | None:
        """How much time one compartment covers (ST10); None where nothing ever expires."""
        if self.range_ticks is None:
            return None
        return max(self.range_ticks // self.compartments, 1)

    def compartment_of(self, tick: int) -> int:
        """The compartment that a row of this time belongs to."""
        width = self.compartment_ticks
        return 0 if width is None else tick // width

    def as_json(self) -> dict[str, Any]:
        """The definition for the catalog."""
        columns = [
            {"name": f.name, "type": name_of(f.type), "nullable": f.nullable} for f in self.schema
        ]
        return {
            "columns": columns,
            "time_column": self.time_column,
            "range_ticks": self.range_ticks,
            "watermark_ticks": self.watermark_ticks,
            "late": self.late,
            "update_key": None if self.update_key is None else list(self.update_key),
            "compartments": self.compartments,
            "max_step_ticks": self.max_step_ticks,
            "max_ahead_ticks": self.max_ahead_ticks,
            "folder": self.folder,
            "comment": self.comment,
            "step_ticks": self.step_ticks,
            "by_key": self.by_key,
        }

    @classmethod
    def from_json(cls, number: int, name: str, kind: str, saved: Mapping[str, Any]) -> Definition:
        """The definition from the catalog."""
        columns = [
            pa.field(c["name"], parse_type(c["type"]), c["nullable"]) for c in saved["columns"]
        ]
        key = saved["update_key"]
        return cls(
            id=number,
            name=name,
            kind=kind,
            schema=pa.schema(columns),
            time_column=saved["time_column"],
            range_ticks=saved["range_ticks"],
            watermark_ticks=saved["watermark_ticks"],
            late=saved["late"],
            update_key=None if key is None else tuple(key),
            compartments=saved["compartments"],
            max_step_ticks=saved["max_step_ticks"],
            max_ahead_ticks=saved.get("max_ahead_ticks"),
            folder=saved["folder"],
            comment=saved["comment"],
            step_ticks=saved.get("step_ticks"),
            by_key=saved.get("by_key", False),
        )

    # Ticks

    def duration_ticks(self, microseconds: int) -> int:
        """A length of time in ticks; BindError if it is not a whole number of them."""
        return duration_ticks(self.time_type, microseconds)

    def ticks(self, column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The time column as ticks; it holds no NULL."""
        return ticks(self.time_type, column)

    def value(self, tick: int) -> int | datetime:
        """A tick as users see it: an integer, or a datetime in UTC."""
        return tick if pa.types.is_integer(self.time_type) else instant(tick)

    def scalar(self, tick: int) -> pa.Scalar:
        """A tick in the column's own type; dates round down."""
        type_ = self.time_type
        if pa.types.is_date(type_):
            return pa.scalar(tick // DAY, pa.int32()).cast(type_)
        if pa.types.is_timestamp(type_):
            return pa.scalar(tick, pa.int64()).cast(type_)
        return pa.scalar(tick, type_)

    def tick(self, value: object) -> int:
        """A value that a user gave for T, as a tick; DataError if it cannot be one."""
        if pa.types.is_integer(self.time_type):
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        elif isinstance(value, datetime):
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return (aware - EPOCH) // timedelta(microseconds=1)
        elif isinstance(value, date):
            return (value - EPOCH.date()).days * DAY
        elif isinstance(value, str):
            return self._tick_of_text(value)
        raise DataError(
            f"{value!r} is no time of table {self.name}",
            sqlstate="22007",
            hint=f"its time column is {name_of(self.time_type)}",
        )

    def _tick_of_text(self, value: str) -> int:
        from headwater.sql.literals import timestamp

        found = timestamp(value, "UTC")
        if found is None:
            raise DataError(
                f"{value!r} is no time", sqlstate="22007", hint="write 2026-11-15 08:00:00"
            )
        return self.tick(found)


def instant(tick: int) -> datetime:
    """Microseconds since 1970 as a datetime in UTC."""
    return EPOCH + timedelta(microseconds=tick)


def ticks(
    type_: pa.DataType, column: pa.ChunkedArray | pa.Array
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column of a time type as ticks; it holds no NULL."""
    if pa.types.is_date(type_):
        days = pc.cast(column, pa.int32()).to_numpy().astype(np.int64)
        return days * DAY
    if pa.types.is_timestamp(type_):
        column = pc.cast(column, pa.int64())
    values = (
        column.to_numpy()
        if isinstance(column, pa.ChunkedArray)
        else column.to_numpy(zero_copy_only=False)
    )
    return values.astype(np.int64, copy=False)
