"""COPY between tables and files: CSV and Parquet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from headwater.errors import DataError, NotSupportedError, StorageError
from headwater.execute.context import Running, column_of
from headwater.execute.insert import add_rows
from headwater.execute.query import run_query
from headwater.result import Result
from headwater.sql.statements.copy import Copy
from headwater.sql.statements.query import make_query
from headwater.sql.statements.subscribe import Subscribe
from headwater.sql.types import quoted
from headwater.storage.disk import storage_error
from headwater.storage.door import names_far_year
from headwater.storage.local_path import local_path

COPY_HINT = {
    "from": "copy the file here first; CREATE SOURCE reads folders of other file systems",
    "to": "write it here, and copy it there with a tool of that file system",
}


def copy(running: Running, statement: Copy) -> Result:
    """COPY t FROM 'file' and COPY t | (query) TO 'file'."""
    if statement.path is None:
        raise NotSupportedError(
            "COPY with STDIN or STDOUT needs a connection over the wire",
            hint="COPY t FROM 'file' CSV reads a file; headwater serve takes connections",
        )
    path = local_path(statement.path, "a file of COPY", COPY_HINT[statement.direction])
    if statement.direction == "from":
        return _copy_from(running, statement, path)
    return _copy_to(running, statement, path)


def _copy_from(running: Running, statement: Copy, path: Path) -> Result:
    assert statement.table is not None
    table = running.context.writable(statement.table, statement.text)
    fields = list(table.schema)
    if statement.columns is not None:
        fields = [column_of(name, table.schema, statement.text) for name in statement.columns]
    rows = read_file(statement, path, fields)
    return Result("COPY", row_count=add_rows(table, rows))


def read_file(statement: Copy, path: Path, fields: list[pa.Field[pa.DataType]]) -> pa.Table:
    """The rows of a file; DataError with file and line for a line that does not parse."""
    if not path.exists():
        raise StorageError(f"the file {path} does not exist", sqlstate="58P01")
    try:
        if statement.format == "parquet":
            return pq.read_table(path)
        _refuse_nested(fields)
        return _read_csv(statement, path, fields)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise storage_error("read", str(path), error) from error
        raise _bad_line(path, _with_line(statement, path, fields, str(error))) from error


def _refuse_nested(fields: list[pa.Field[pa.DataType]]) -> None:
    for field in fields:
        if pa.types.is_nested(field.type):
            raise NotSupportedError(
                f"column {field.name} cannot be read from CSV: arrays, maps and structs have no form there",
                hint="use COPY … FROM 'file' PARQUET, or name the other columns",
            )


def _read_csv(
    statement: Copy, path: Path, fields: list[pa.Field[pa.DataType]], *, threads: bool = True
) -> pa.Table:
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(
            column_names=[f.name for f in fields],
            skip_rows=1 if statement.header else 0,
            use_threads=threads,
        ),
        parse_options=_parse_options(statement),
        convert_options=csv.ConvertOptions(
            column_types={f.name: f.type for f in fields},
            null_values=[statement.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _with_line(
    statement: Copy, path: Path, fields: list[pa.Field[pa.DataType]], message: str
) -> str:
    """The message again, from a reading by one thread: only that one knows the line."""
    if statement.format == "parquet":
        return message
    try:
        _read_csv(statement, path, fields, threads=False)
    except (pa.ArrowException, OSError) as error:
        return str(error)
    return message


def _parse_options(statement: Copy) -> csv.ParseOptions:
    quote: Any = statement.quote if statement.format == "csv" else False
    return csv.ParseOptions(
        delimiter=statement.delimiter,
        quote_char=quote,
        double_quote=True,
        newlines_in_values=statement.format == "csv",
    )


def _bad_line(path: Path, message: str) -> DataError:
    found = re.search(r"[Rr]ow #(\d+)", message)
    line = f", line {found.group(1)}" if found else ""
    reason = re.sub(r"^.*?[Rr]ow #\d+:\s*", "", message.splitlines()[0])
    return DataError(
        f"{path}{line} cannot be read: {reason}",
        sqlstate="22008" if names_far_year(message) else "22P04",
        hint="nothing was inserted; check the delimiter, HEADER and the columns' types",
    )


def _copy_to(running: Running, statement: Copy, path: Path) -> Result:
    if isinstance(statement.query, Subscribe):
        raise NotSupportedError("COPY (SUBSCRIBE …) is not supported yet")
    if statement.query is not None:
        query = statement.query
    else:
        assert statement.table is not None
        columns = ", ".join(quoted(c) for c in statement.columns) if statement.columns else "*"
        query = make_query(f"SELECT {columns} FROM {quoted(statement.table)}")
    table = run_query(running, query).arrow()
    nested = [f.name for f in table.schema if pa.types.is_nested(f.type)]
    if nested and statement.format != "parquet":
        raise NotSupportedError(
            f"column {nested[0]} cannot be written as {statement.format.upper()}",
            hint="use to_json(column), or COPY … TO 'file' PARQUET",
        )
    try:
        if statement.format == "parquet":
            pq.write_table(table, path)
        else:
            options = csv.WriteOptions(
                include_header=statement.header, delimiter=statement.delimiter
            )
            csv.write_csv(table, path, options)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:
            raise storage_error("write", str(path), error) from error
        raise StorageError(f"the file {path} cannot be written", detail=str(error)) from error
    return Result("COPY", row_count=table.num_rows)
