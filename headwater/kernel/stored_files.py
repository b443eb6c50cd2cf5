"""Rows of a streaming table as Spark reads them: the files of its blocks, and the tail, staged.

Owns: which files hold a stretch of time, and how a place in the order (T, _seq) reads as a condition.
Blocks stay on disk as long as the snapshot is held; whoever staged the tail releases it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.expression.predicate import Ranges
from headwater.kernel.relation import Relation
from headwater.sql.types import quoted
from headwater.storage.clock import TICK_MAX, TICK_MIN
from headwater.storage.streaming.definition import DAY, MICROSECONDS, SEQUENCE, Definition
from headwater.storage.streaming.read import StreamSnapshot, blocks_within, in_order

_FIRST = TICK_MIN + DAY  # no interval of Spark reaches the day before


@dataclass
class StoredFiles:
    """One snapshot of a table as files; the tail is staged when it is first needed."""

    snapshot: StreamSnapshot
    stage: Callable[[pa.Table], Relation]
    _tail: tuple[str, ...] | None = None

    def relation(
        self,
        columns: Sequence[str],
        ranges: Ranges,
        where: str | None,
        computed: Sequence[tuple[str, str]] = (),
    ) -> Relation:
        """The rows that meet a condition, all of which lie in some ranges of ticks."""
        snapshot = self.snapshot
        blocks = blocks_within(snapshot.blocks, ranges)
        files = [str(snapshot.folder / block.path) for block in blocks]
        return Relation(
            snapshot.definition.stored_schema,
            (*files, *self._tail_files()),
            columns=tuple(columns),
            where=where,
            computed=tuple(computed),
        )

    def _tail_files(self) -> tuple[str, ...]:
        if self._tail is None:
            tail = [piece.rows for piece in self.snapshot.tail if piece.rows.num_rows]
            rows = in_order(pa.concat_tables(tail), self.snapshot.definition) if tail else None
            self._tail = () if rows is None else self.stage(rows).files
        return self._tail


def from_tick(definition: Definition, tick: int) -> str:
    """The condition T ≥ tick."""
    value = -(-tick // DAY) * DAY if pa.types.is_date(definition.time_type) else tick
    return f"{quoted(definition.time)} >= {time_text(definition, value)}"


def until_place(definition: Definition, tick: int, sequence: int) -> str:
    """The condition that a row comes at or before the place (tick, sequence)."""
    time, value = quoted(definition.time), time_text(definition, tick)
    if not _is_time(definition, tick):
        return f"{time} <= {value}"
    return f"({time} < {value} OR ({time} = {value} AND {SEQUENCE} <= {_integer(sequence)}))"


def after_place(definition: Definition, tick: int, sequence: int) -> str:
    """The condition that a row comes after the place (tick, sequence)."""
    time, value = quoted(definition.time), time_text(definition, tick)
    if not _is_time(definition, tick):
        return f"{time} > {value}"
    return f"({time} > {value} OR ({time} = {value} AND {SEQUENCE} > {_integer(sequence)}))"


def time_text(definition: Definition, tick: int) -> str:
    """A tick as SQL of the time column's type, whatever the session's time zone; dates round down."""
    type_, tick = definition.time_type, max(TICK_MIN, min(tick, TICK_MAX))
    if pa.types.is_integer(type_):
        return _integer(tick)
    if pa.types.is_date(type_):
        return f"date_from_unix_date({tick // DAY})"
    if type_.tz is not None:
        return f"timestamp_micros({_integer(tick)})"
    days, rest = divmod(max(tick, _FIRST), DAY)
    seconds = f"{rest // MICROSECONDS}.{rest % MICROSECONDS:06}"
    return f"(TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval({days}, 0, 0, {seconds}))"


def _integer(value: int) -> str:
    return f"CAST('{value}' AS BIGINT)"  # the smallest one has no literal


def _is_time(definition: Definition, tick: int) -> bool:
    """Whether a row can have this T: dates are midnights."""
    return not pa.types.is_date(definition.time_type) or tick % DAY == 0
