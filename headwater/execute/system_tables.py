"""The tables under `headwater.`: what the database knows of itself, as ordinary rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headwater.execute.context import Context

PREFIX = "headwater."

STRING, BIGINT = pa.string(), pa.int64()


def columns(**types: pa.DataType) -> pa.Schema:
    """A schema from names and types."""
    return pa.schema([pa.field(name, type_) for name, type_ in types.items()])


TABLES = columns(
    name=STRING,
    kind=STRING,
    row_count=BIGINT,
    file_count=BIGINT,
    version=BIGINT,
    location=STRING,
    created_at=STRING,
)
SETTINGS = columns(name=STRING, value=STRING, meaning=STRING)
FUNCTIONS = columns(name=STRING, kind=STRING, language=STRING, returns=STRING)


def find(context: Context, name: str) -> pa.Table | None:
    """The rows of a system table, or None if there is none of that name."""
    lower = name.lower()
    if not lower.startswith(PREFIX):
        return None
    make = NAMES.get(lower.removeprefix(PREFIX))
    return None if make is None else make(context)


def _rows(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)


def tables(context: Context) -> pa.Table:
    """All tables."""
    rows = []
    for item in context.catalog.all("table"):
        table = context.tables[item.id]
        snapshot = table.snapshot
        rows.append(
            {
                "name": item.name,
                "kind": item.kind,
                "row_count": snapshot.row_count,
                "file_count": len(snapshot.files),
                "version": snapshot.version,
                "location": str(table.folder),
                "created_at": item.created_at,
            }
        )
    return _rows(rows, TABLES)


def settings(context: Context) -> pa.Table:
    """All settings with their values."""
    rows = [
        {
            "name": s.name,
            "value": str(v).lower() if isinstance(v, bool) else str(v),
            "meaning": s.meaning,
        }
        for s, v in context.settings
    ]
    rows += [
        {"name": name, "value": value, "meaning": "a setting of Spark"}
        for name, value in sorted(context.settings.spark.items())
    ]
    return _rows(rows, SETTINGS)


def functions(context: Context) -> pa.Table:
    """All user functions."""
    rows = []
    for name, function in sorted(context.functions.items()):
        rows.append(
            {
                "name": name,
                "kind": getattr(function, "kind", "scalar"),
                "language": "python" if hasattr(function, "function") else "sql",
                "returns": function.returns,
            }
        )
    return _rows(rows, FUNCTIONS)


NAMES: dict[str, Callable[[Context], pa.Table]] = {
    "functions": functions,
    "settings": settings,
    "tables": tables,
}
