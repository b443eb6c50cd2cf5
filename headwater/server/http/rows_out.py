"""Rows → JSON, JSON lines and Arrow, a part at a time.

Owns the formats of answers. A part is of a bounded size; whoever sends it waits for the client
before the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater import values
from headwater.result import Result
from headwater.server.wire.copying import slices
from headwater.sql.types import name_of

JSON = "application/json"
LINES = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
MOMENTS = (pa.timestamp("us", "UTC"), pa.timestamp("us"))  # Arrow writes them almost as we do
PART_BYTES = 256 << 10  # of Arrow, which are encoded and sent together


def encoded(result: Result, kind: str) -> Iterator[bytes]:
    """A result in one of the three formats."""
    if kind == ARROW:
        return _arrow(result.arrow())
    return _lines(result.arrow()) if kind == LINES else _json(result)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def compact(value: Any) -> str:
    """JSON without blanks."""
    return _ENCODER.encode(value)


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """The names and types of columns."""
    return [{"name": f.name, "type": _type_name(f.type)} for f in schema]


def _type_name(type_: pa.DataType) -> str:
    try:
        return name_of(type_)
    except Exception:  # a type that no column of a table can have, such as NULL
        return str(type_).upper()


def rows_as_json(table: pa.Table) -> Iterator[str]:
    """The rows as arrays, parts of them joined with commas."""
    for part in slices(table, PART_BYTES):
        yield compact(list(plain_rows(part)))[1:-1]


def plain_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows of what JSON can hold."""
    columns = []
    for column in table.columns:
        columns.append(_plain_values(column))
    return zip(*columns, strict=True) if columns else iter([()] * table.num_rows)


def _plain_values(column: Any) -> list[Any]:
    """The values of a column as JSON can hold them; the common types by short ways."""
    types, type_ = pa.types, column.type
    if types.is_integer(type_) or types.is_string(type_) or types.is_boolean(type_):
        return list(column.to_pylist())
    if types.is_float64(type_) and pc.all(pc.is_finite(column)).as_py() is not False:
        return list(column.to_pylist())
    if type_ in MOMENTS and not values.has_far_times(column):
        texts = column.cast(pa.string()).to_pylist()
        return [None if text is None else _iso(text) for text in texts]
    convert = values.json_of(type_)
    return [convert(value) for value in values.python_values(column)]


def _iso(text: str) -> str:
    """`2026-01-02 03:04:05.500000Z` as `headwater.values` writes it: no more digits than needed."""
    fraction = text[19:26]
    if fraction.endswith("000"):
        fraction = "" if fraction == ".000000" else fraction[:4]
    return f"{text[:10]}T{text[11:19]}{fraction}{text[26:]}"


def _json(result: Result) -> Iterator[bytes]:
    head: dict[str, Any] = {"kind": result.kind}
    if result.notice:
        head["notice"] = result.notice
    if not result.has_rows:
        yield compact(head | {"row_count": result.row_count}).encode()
        return
    head["columns"] = columns_of(result.schema)
    yield compact(head)[:-1].encode() + b',"rows":['
    between = ""
    for part in rows_as_json(result.arrow()):
        yield (between + part).encode()
        between = ","
    yield f'],"row_count":{result.row_count}}}'.encode()


def _lines(table: pa.Table) -> Iterator[bytes]:
    names = table.schema.names
    for part in slices(table, PART_BYTES):
        lines = (compact(dict(zip(names, row, strict=True))) for row in plain_rows(part))
        yield ("\n".join(lines) + "\n").encode()


def _arrow(table: pa.Table) -> Iterator[bytes]:
    sink = _Taken()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), table.schema) as writer:
        yield sink.take()
        for part in slices(table, PART_BYTES):
            writer.write_table(part)
            yield sink.take()
    yield sink.take()


class _Taken:
    """A file that gives away what was written to it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> int:
        """Keeps the bytes until they are taken."""
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def take(self) -> bytes:
        """What was written since the last call."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data

    def flush(self) -> None:
        """Nothing to do: nothing is held back."""

    def close(self) -> None:
        """Nothing to do: there is no file."""
