"""Random streams: tables with skewed keys and NULLs, and a list of actions that fills them.

Times are counted in units (one second; one for integers) and kept in ticks. Rows come in order and out of
it, late ones too; a source may be silent and be carried by advances; a query may begin on stored rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECONDS = 1_000_000
COLUMNS = (("k", "INT"), ("g", "STRING"), ("v", "INT"), ("o", "INT"), ("id", "INT"))
DIM = (("k", "INT"), ("name", "STRING"), ("w", "INT"))
GAP_UNITS = 12_000  # more chunks than `max_empty_instants`, whatever their length


@dataclass(frozen=True)
class Table:
    """A stream or a streaming table."""

    name: str
    kind: str  # "STREAM" | "STREAMING TABLE"
    time_type: str  # "INT" | "BIGINT" | "TIMESTAMP"
    watermark: int  # in units

    @property
    def unit(self) -> int:
        """Ticks in a unit of time."""
        return MICROSECONDS if self.time_type == "TIMESTAMP" else 1

    @property
    def ddl(self) -> str:
        """The statement that creates it."""
        columns = ", ".join(f"{name} {type_}" for name, type_ in (("ts", self.time_type), *COLUMNS))
        text = f"CREATE {self.kind} {self.name} ({columns}) TIMESTAMP BY ts"
        return f"{text} WATERMARK INTERVAL '{self.watermark}' SECOND" if self.watermark else text

    def moment(self, tick: int) -> Any:
        """A tick as a value of T."""
        return EPOCH + timedelta(microseconds=tick) if self.unit > 1 else tick


@dataclass(frozen=True)
class Create:
    """The queries begin."""


@dataclass(frozen=True)
class Insert:
    """Rows in one insert, with their ticks."""

    table: str
    rows: tuple[tuple[int, Row], ...]


@dataclass(frozen=True)
class Advance:
    """Punctuation; settled: everything before and everything of it is answered by itself."""

    table: str
    tick: int
    settled: bool = False


@dataclass(frozen=True)
class Change:
    """Rows into the standard table, or all rows of a key out of it."""

    added: tuple[Row, ...]
    removed: int | None = None


@dataclass(frozen=True)
class Restart:
    """The database is closed and opened again."""


@dataclass(frozen=True)
class Pause:
    """All queries wait until the next Resume."""


@dataclass(frozen=True)
class Resume:
    """All queries go on."""


Action = Create | Insert | Advance | Change | Restart | Pause | Resume


@dataclass(frozen=True)
class History:
    """The tables of a scenario and what happens to them."""

    tables: tuple[Table, ...]
    dim: tuple[Row, ...]
    actions: tuple[Action, ...]


class Histories:
    """Makes histories."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._numbers = 0
        self._order = 0  # the non-decreasing column o

    def history(self) -> History:
        """Tables, rows of the standard table, actions."""
        random = self._random
        time_type = random.choice(["INT", "BIGINT", "TIMESTAMP"])
        kind = random.choice(["STREAM", "STREAMING TABLE", "STREAMING TABLE"])
        tables = tuple(
            Table(name, kind, time_type, random.choice([0, 0, 2, 4]))
            for name in ("s", "r", "u")[: random.choice([1, 2, 2, 3])]
        )
        dim = tuple(self._dim_row() for _ in range(random.randint(0, 5)))
        return History(tables, dim, tuple(self._actions(tables)))

    def _dim_row(self) -> Row:
        random = self._random
        key = None if random.random() < 0.15 else random.randint(0, 4)
        return {"k": key, "name": random.choice(["p", "q", None]), "w": random.randint(0, 9)}

    def _row(self, table: Table, tick: int) -> tuple[int, Row]:
        random = self._random
        self._numbers += 1
        self._order += random.choice([0, 0, 1, 3])
        skewed = 0 if random.random() < 0.4 else random.randint(0, 4)
        row = {
            "ts": table.moment(tick),
            "k": None if random.random() < 0.12 else skewed,
            "g": random.choice(["x", "x", "y", "z", None]),
            "v": None if random.random() < 0.1 else random.randint(-5, 9),
            "o": self._order,
            "id": self._numbers,
        }
        return tick, row

    # Actions

    def _actions(self, tables: tuple[Table, ...]) -> list[Action]:
        random, found = self._random, list[Action]()
        turns = random.randint(3, 7)
        created = random.choice([0, 0, 0, 1, 2])
        now = dict.fromkeys((t.name for t in tables), random.choice([0, 0, 3, 17, -20]))
        silent = random.choice([t.name for t in tables]) if random.random() < 0.25 else None
        for turn in range(turns):
            if turn == created:
                found.append(Create())
            if turn > created:
                found += self._event()
            if random.random() < 0.5:
                now = dict.fromkeys(now, max(now.values()))
            for table in random.sample(tables, len(tables)):
                found += self._turn(table, now, table.name == silent)
        if random.random() < 0.04:
            found += self._gap(tables, now)
        if any(isinstance(action, Pause) for action in found):
            found.append(Resume())
        end = max(now.values()) + random.randint(0, 9)
        found += [Advance(t.name, end * t.unit) for t in tables if random.random() < 0.8]
        return found

    def _event(self) -> list[Action]:
        """Between turns: a restart, a change of the standard table, a pause."""
        random = self._random
        chance = random.random()
        if chance < 0.12:
            return [Restart()]
        if chance < 0.22:
            return [Change(tuple(self._dim_row() for _ in range(random.randint(1, 2))))]
        if chance < 0.27:
            return [Change((), random.randint(0, 4))]
        if chance < 0.31:
            return [Pause()]
        return [Resume()] if chance < 0.34 else []

    def _turn(self, table: Table, now: dict[str, int], silent: bool) -> list[Action]:
        """One or two inserts into a table, or an advance."""
        random = self._random
        if silent or random.random() < 0.12:
            now[table.name] += random.randint(0, 5)
            return [Advance(table.name, now[table.name] * table.unit)]
        rows = []
        for _ in range(random.choice([0, 1, 2, 4, 7, 10])):
            now[table.name] += random.choice([0, 0, 0, 1, 1, 2, random.choice([3, 8])])
            back = random.randint(1, 5) if random.random() < 0.15 else 0
            tick = (now[table.name] - back) * table.unit
            if table.unit > 1 and random.random() < 0.3:
                tick += random.choice([1, 500_000, 999_999])
            rows.append(self._row(table, tick))
        middle = random.randint(0, len(rows))
        parts = [rows[:middle], rows[middle:]] if random.random() < 0.4 else [rows]
        return [Insert(table.name, tuple(part)) for part in parts if part]

    def _gap(self, tables: tuple[Table, ...], now: dict[str, int]) -> list[Action]:
        """A silence of very many chunks, and a row after it."""
        end = max(now.values()) + GAP_UNITS
        found: list[Action] = []
        for table in tables:
            now[table.name] = end
            found.append(Advance(table.name, end * table.unit, settled=True))
        return [*found, Insert(tables[0].name, (self._row(tables[0], end * tables[0].unit + 1),))]
