"""Random streams: schemas, rows with ties, gaps, late rows, NULL and NaN, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000

ARROW = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "SMALLINT": pa.int16(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "DECIMAL(20,4)": pa.decimal128(20, 4),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "DATE": pa.date32(),
}
INTEGERS = ("INT", "BIGINT", "SMALLINT")
DECIMALS = ("DECIMAL(10,2)", "DECIMAL(20,4)")
TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")


@dataclass(frozen=True)
class Stream:
    """A streaming table."""

    name: str
    columns: tuple[tuple[str, str], ...]
    time: str
    watermark: int = 0  # in units
    range: int | None = None
    kind: str = "STREAMING TABLE"

    @property
    def time_type(self) -> str:
        """The type of T."""
        return dict(self.columns)[self.time]

    @property
    def unit(self) -> int:
        """Ticks in a second."""
        return 1 if self.time_type in INTEGERS else SECOND

    def of(self, *types: str) -> list[str]:
        """The names of columns of some types, T left out."""
        return [n for n, t in self.columns if t in types and n != self.time]

    def schema(self) -> pa.Schema:
        """As Arrow's."""
        return pa.schema([(name, ARROW[type_]) for name, type_ in self.columns])

    def moment(self, tick: int) -> Any:
        """A tick as a value of T."""
        if self.unit == 1:
            return tick
        when = EPOCH + timedelta(microseconds=tick)
        return when if self.time_type == "TIMESTAMP" else when.replace(tzinfo=None)

    @property
    def ddl(self) -> str:
        """CREATE STREAMING TABLE."""
        columns = ", ".join(
            f"{n} {t}{' NOT NULL' if n == self.time else ''}" for n, t in self.columns
        )
        text = f"CREATE {self.kind} {self.name} ({columns}) TIMESTAMP BY {self.time}"
        if self.range is not None:
            text += f" RANGE INTERVAL {self.range} SECONDS"
        if self.watermark:
            text += f" WATERMARK INTERVAL {self.watermark} SECONDS"
        return text


@dataclass(frozen=True)
class Insert:
    """Rows of a stream: their ticks and values."""

    stream: str
    rows: tuple[tuple[int, Row], ...]


@dataclass(frozen=True)
class Advance:
    """db.advance."""

    stream: str
    tick: int


@dataclass(frozen=True)
class Change:
    """A change of the standard table: rows come, or all rows of a key go."""

    added: tuple[Row, ...] = ()
    removed: int | None = None

    @property
    def sql(self) -> str:
        """The statement."""
        if self.removed is not None:
            return f"DELETE FROM dim WHERE k = {self.removed}"
        rows = ", ".join(f"({', '.join(map(literal, row))})" for row in self.added)
        return f"INSERT INTO dim VALUES {rows}"


@dataclass(frozen=True)
class Restart:
    """Close and connect again."""


@dataclass(frozen=True)
class Create:
    """The queries are created."""


Action = Insert | Advance | Change | Restart | Create


def literal(value: Any) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class History:
    """Streams, a standard table, and what happens."""

    streams: tuple[Stream, ...]
    dim: tuple[Row, ...]
    actions: tuple[Action, ...]
    constructs: frozenset[str] = field(default_factory=frozenset)


DIM = (("k", "INT"), ("label", "STRING"), ("w", "BIGINT"), ("x", "DOUBLE"))
STRINGS = ("a", "b", "ab", "B", "", "ä", "aa")
DOUBLES = (0.0, -0.0, 1.5, -2.25, 100.0, float("nan"), 0.25, 7.0, 1e10)


class Streams:
    """Makes histories from random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.constructs: set[str] = set()

    def history(self) -> History:
        """A history."""
        random = self.random
        time_type = random.choice(["INT", "BIGINT", "INT", "TIMESTAMP", "TIMESTAMP_NTZ"])
        names = ["r", "u"]
        streams = tuple(self.stream(name, time_type) for name in names)
        dim = tuple(self.dim_row() for _ in range(random.randint(0, 6)))
        actions = self.actions(streams)
        self.constructs.add("integer time" if time_type in INTEGERS else "timestamp time")
        return History(streams, dim, tuple(actions), frozenset(self.constructs))

    def stream(self, name: str, time_type: str) -> Stream:
        """A table: a key, a text, a number and some more columns in any order."""
        random = self.random
        columns = [("k", "INT"), ("s", "STRING"), ("i", random.choice(INTEGERS)), ("d", "DOUBLE")]
        more = [("m", random.choice(DECIMALS)), ("b", "BOOLEAN"), ("n", "BIGINT"), ("f", "FLOAT")]
        columns += random.sample(more, random.randint(1, 4))
        columns.append(("t", time_type))
        random.shuffle(columns)
        watermark = random.choice([0, 0, 0, 2, 5])
        if watermark:
            self.constructs.add("watermark")
        limit = random.choice([None, None, None, 16])
        if limit is not None:
            self.constructs.add("range")
        return Stream(name, tuple(columns), "t", watermark, limit)

    def value(self, type_: str) -> Any:
        """A value, often NULL, often one that came before."""
        random = self.random
        if random.random() < 0.12:
            self.constructs.add("nulls")
            return None
        if type_ in INTEGERS:
            return random.choice([random.randint(-3, 6), random.randint(-100, 100)])
        if type_ in ("DOUBLE", "FLOAT"):
            value = random.choice(
                [*DOUBLES[: 8 if type_ == "FLOAT" else 9], random.randint(-40, 40) / 4]
            )
            if value != value:
                self.constructs.add("NaN")
            return value
        if type_ in DECIMALS:
            return Decimal(random.randint(-999, 999)).scaleb(-2)
        if type_ == "BOOLEAN":
            return random.random() < 0.5
        return random.choice(STRINGS)

    def dim_row(self) -> Row:
        """A row of the standard table."""
        random = self.random
        key = None if random.random() < 0.1 else random.randint(0, 4)
        return (
            key,
            random.choice([None, "x", "y", "z"]),
            random.randint(0, 9),
            random.randint(0, 8) / 4,
        )

    def row(self, stream: Stream, tick: int) -> tuple[int, Row]:
        """A row at a tick."""
        values = []
        for name, type_ in stream.columns:
            if name == stream.time:
                values.append(stream.moment(tick))
            elif name == "k":
                values.append(None if self.random.random() < 0.08 else self.random.randint(0, 3))
            else:
                values.append(self.value(type_))
        return tick, tuple(values)

    def actions(self, streams: tuple[Stream, ...]) -> list[Action]:
        """Inserts in order and out of it, advances, changes of the table, a restart."""
        random = self.random
        unit = streams[0].unit
        start = random.choice([0, 3, 17, -20])
        now = {stream.name: start for stream in streams}
        count = random.randint(3, 6)
        created = random.choice([0, 0, 1, 2])
        restarted = random.randint(1, count) if random.random() < 0.4 else None
        found: list[Action] = []
        for turn in range(count):
            if turn == created:
                found.append(Create())
                self.constructs.add(
                    "created on empty" if created == 0 else "created on stored rows"
                )
            if turn == restarted:
                found.append(Restart())
                self.constructs.add("restart")
            if random.random() < 0.6:
                now = dict.fromkeys(now, max(now.values()))
            for stream in streams:
                found += self.turn(stream, now, unit)
            if random.random() < 0.2:
                self.constructs.add("table changes")
                new = tuple(self.dim_row() for _ in range(random.randint(1, 2)))
                gone = random.randint(0, 4)
                found.append(Change(new) if random.random() < 0.6 else Change((), gone))
        if not any(isinstance(action, Create) for action in found):
            found.append(Create())
        for stream in streams:
            found.append(Advance(stream.name, (max(now.values()) + random.randint(0, 6)) * unit))
        return found

    def turn(self, stream: Stream, now: dict[str, int], unit: int) -> list[Action]:
        """One insert (or an advance) into a stream."""
        random = self.random
        if random.random() < 0.1:
            now[stream.name] += random.randint(0, 4)
            self.constructs.add("advance")
            return [Advance(stream.name, now[stream.name] * unit)]
        rows = []
        for _ in range(random.randint(0, 5)):
            step = random.choice([0, 0, 1, 1, 1, 2, random.choice([3, 9])])
            now[stream.name] += step
            if step == 0:
                self.constructs.add("ties")
            if step == 9:
                self.constructs.add("gaps")
            back = 0
            if random.random() < 0.15:
                back = random.randint(1, 5)
                self.constructs.add("out of order")
            tick = (now[stream.name] - back) * unit
            if unit > 1 and random.random() < 0.3:
                tick += random.choice([1, 500_000, 999_999])
            rows.append(self.row(stream, tick))
        return [Insert(stream.name, tuple(rows))] if rows else []
