"""Bodies of `POST /tables/{t}` → rows: JSON, JSON lines, CSV, Arrow.

Whatever does not fit is refused with the row's number before anything is written.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from headwater.errors import DataError
from headwater.server.http.failure import HttpError
from headwater.server.http.request import json_of_body
from headwater.server.http.rows_out import ARROW, JSON, LINES
from headwater.server.wire.copying import IncomingRows
from headwater.sql import parser
from headwater.sql.statements.copy import Copy
from headwater.sql.types import quoted
from headwater.storage.json_rows import ExactFloat, read_lines, typed

CSV = "text/csv"
LINE_TYPES = (LINES, "application/jsonl", "application/x-jsonlines", "application/json-lines")


def read_rows(
    kind: str, data: bytes, schema: pa.Schema, table: str, *, header: bool = True, zone: str = "UTC"
) -> pa.Table | list[dict[str, Any]]:
    """The rows of a body; DataError if they do not fit the table."""
    if kind == ARROW:
        return _arrow(data)
    if kind == CSV:
        return _csv(data, schema, table, header)
    if kind in LINE_TYPES:
        return read_lines(data, schema, zone)
    if kind == JSON:
        found = json_of_body(data, ExactFloat)
        return typed(found if isinstance(found, list) else [found], schema, zone)
    raise HttpError(
        415,
        f"rows cannot be of type {kind or 'unknown'}",
        sqlstate="22023",
        hint="Content-Type: " + ", ".join((LINES, JSON, CSV, ARROW)),
    )


def _arrow(data: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            "the body is no Arrow stream", sqlstate="22P04", detail=str(error)[:200]
        ) from error


def _csv(data: bytes, schema: pa.Schema, table: str, header: bool) -> pa.Table:
    """CSV as COPY FROM STDIN reads it; the header says which columns come, in which order."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if header:
        schema = _named(data, schema)
    text = f"COPY {quoted(table)} FROM STDIN CSV{' HEADER' if header else ''}"
    statement = parser.parse(text)
    assert isinstance(statement, Copy)
    incoming = IncomingRows(statement, schema, len(data) * 64 + (1 << 20))
    incoming.take(data)
    return incoming.rows()


def _named(data: bytes, schema: pa.Schema) -> pa.Schema:
    import csv

    try:
        first = io.StringIO(data.partition(b"\n")[0].decode())
    except UnicodeDecodeError as error:
        raise DataError("the body is not UTF-8", sqlstate="22021") from error
    names = [name.strip() for name in next(csv.reader(first), [])]
    known = {f.name.casefold(): f for f in schema}
    fields = []
    for name in names:
        found = known.pop(name.casefold(), None)
        if found is None:
            raise DataError(
                f"the table has no column {name!r}, or it occurs twice",
                sqlstate="42703",
                hint="the first line names the columns; ?header=false if it does not",
            )
        fields.append(found)
    return pa.schema(fields)
