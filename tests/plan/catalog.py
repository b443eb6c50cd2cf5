"""The tables that the pairs of queries and plans know: a small fixed catalog, no database behind it."""

from __future__ import annotations

import pyarrow as pa

from headwater.plan.blocks import StateFunction
from headwater.plan.folds import StreamColumns
from headwater.sql.type_parser import parse_type

HIDDEN = "_seq BIGINT, _late BOOLEAN"
STREAMS = {
    "s": "ts TIMESTAMP, k STRING, v INT, w DOUBLE, p STRUCT<x: INT, y: STRING>",
    "r": "ts TIMESTAMP, k STRING, b BIGINT",
    "n": "at BIGINT, k STRING, v INT",
    "short": "ts TIMESTAMP, k STRING, v INT",
    "nested": "ts TIMESTAMP, k STRING, a ARRAY<INT>, m MAP<STRING, INT>",
}
RANGED = "short"
STANDARD = {
    "t": "k STRING, name STRING, x INT",
    "u": "k STRING NOT NULL, id INT NOT NULL",
    "f": "p STRUCT<x: INT>, name STRING",
}


def schema(columns: str) -> pa.Schema:
    """The columns of a list as CREATE TABLE has it."""
    fields = parse_type(f"STRUCT<{columns}>")
    return pa.schema([fields.field(number) for number in range(fields.num_fields)])


class FixedTables:
    """Streams s, r, n (whose time is a number), short (RANGE), nested; tables t, u and f; two functions."""

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table."""
        columns = STREAMS.get(name.lower())
        if columns is None:
            return None
        stored = schema(f"{columns}, {HIDDEN}")
        visible = tuple(schema(columns).names)
        time = stored.field(0)
        ticks = 1_000_000 if name.lower() == RANGED else None
        return StreamColumns(name, stored, visible, time.name, time.type, "streaming table", ticks)

    def standard(self, name: str) -> pa.Schema | None:
        """The columns of a standard table."""
        columns = STANDARD.get(name.lower())
        return None if columns is None else schema(columns)

    def kind(self, name: str) -> str | None:
        """What a name means."""
        if name.lower() in STREAMS:
            return "streaming table"
        return "table" if name.lower() in STANDARD else None

    def names(self) -> list[str]:
        """All names."""
        return [*STREAMS, *STANDARD]

    def state_function(self, name: str) -> StateFunction | None:
        """The one function with state."""
        return StateFunction("query", pa.float64()) if name == "smooth" else None

    def is_aggregate(self, name: str) -> bool:
        """The one aggregate in Python."""
        return name == "geomean"
