"""The tables of a history of views: streaming tables and streams of every kind, and one standard table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from tests.harness.continuous.streams import INTEGERS, TIMES, Row, Stream, Streams

NO_TIME = "_t"  # arrival time: hidden, and nobody knows it before


@dataclass(frozen=True)
class Source(Stream):
    """A streaming table or a stream."""

    late: str = "keep"

    @property
    def by_arrival(self) -> bool:
        """Whether rows carry no time of their own."""
        return self.time == NO_TIME

    @property
    def keeps_all(self) -> bool:
        """Whether every row can be read again."""
        return self.kind == "STREAMING TABLE" and self.range is None

    @property
    def time_type(self) -> str:
        """The type of T."""
        return "TIMESTAMP" if self.by_arrival else dict(self.columns)[self.time]

    @property
    def ddl(self) -> str:
        """CREATE STREAMING TABLE or CREATE STREAM."""
        columns = ", ".join(f"{name} {type_}" for name, type_ in self.columns)
        text = f"CREATE {self.kind} {self.name} ({columns})"
        if not self.by_arrival:
            text += f" TIMESTAMP BY {self.time}"
        if self.range is not None:
            text += f" RANGE INTERVAL {self.range} SECONDS"
        if self.watermark:
            text += f" WATERMARK INTERVAL {self.watermark} SECONDS"
        return text + (" LATE DROP" if self.late == "drop" else "")

    def literals(self, row: Row) -> str:
        """A row as VALUES wants it."""
        types = [type_ for _, type_ in self.columns]
        return f"({', '.join(map(_literal, row, types))})"


def _literal(value: Any, type_: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"{type_} '{value.isoformat(sep=' ')}'"
    if isinstance(value, str):
        return f"'{value}'"
    return f"CAST('{value!r}' AS {type_})" if isinstance(value, float) else str(value)


class Sources(Streams):
    """Makes tables and their rows from random numbers."""

    def sources(self) -> tuple[Source, ...]:
        """One table that keeps everything, one that may not, and a stream."""
        return (
            self.source("r", "STREAMING TABLE", ranged=False),
            self.source("u", "STREAMING TABLE", ranged=True),
            self.source("q", "STREAM", ranged=False),
        )

    def source(self, name: str, kind: str, ranged: bool) -> Source:
        """A table: a key, a text, a number and some more columns in any order."""
        random = self.random
        time_type = random.choice([*INTEGERS[:2], *TIMES, None])
        plain = self.stream(name, time_type or "INT")
        columns = plain.columns
        if time_type is None:
            self.constructs.add("arrival time")
            columns = tuple(column for column in columns if column[0] != "t")
            return Source(name, columns, NO_TIME, 0, None, kind)
        self.constructs.add("integer time" if time_type in INTEGERS else "timestamp time")
        if plain.watermark:
            self.constructs.add("WATERMARK")
        limit = 12 if ranged and random.random() < 0.5 else None
        if limit:
            self.constructs.add("RANGE")
        late = random.choice(["keep", "keep", "keep", "drop"])
        return Source(name, columns, "t", plain.watermark, limit, kind, late)


def make_row(makes: Streams, source: Source, tick: int) -> tuple[int, Row]:
    """A row at a tick; a table with arrival time has no place for it."""
    values = []
    for name, type_ in source.columns:
        if name == source.time:
            values.append(source.moment(tick))
        elif name == "k":
            values.append(None if makes.random.random() < 0.08 else makes.random.randint(0, 3))
        else:
            values.append(makes.value(type_))
    return tick, tuple(values)


def rows_of(makes: Streams, source: Source, start: int, random: Random) -> list[tuple[int, Row]]:
    """Some rows from a second on: ties, gaps, late ones, some in between seconds."""
    found, now = [], start
    for _ in range(random.choice([1, 1, 2, 3, 5, 9])):
        now += random.choice([0, 0, 1, 1, 2, 6])
        back = random.randint(1, 9) if random.random() < 0.2 else 0
        tick = (now - back) * source.unit
        if source.unit > 1 and random.random() < 0.3:
            tick += random.choice([1, 500_000, 999_999])
        found.append(make_row(makes, source, tick))
    return found
