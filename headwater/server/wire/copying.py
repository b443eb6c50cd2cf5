"""COPY over the wire: text and CSV → rows, and rows → text and CSV.

Owns the two formats as PostgreSQL defines them. Rows that come are kept as Arrow until the client says that
all are there, because a COPY adds all of its rows or none; `largest` bounds what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from headwater.errors import DataError, Error, NotSupportedError, OverloadError
from headwater.server.wire import encode, lines
from headwater.server.wire.lines import END, RowEnds
from headwater.sql.statements.copy import Copy
from headwater.storage.door import names_far_year

CHUNK = 4 << 20  # bytes of text that are read together
TRUE = ["t", "true", "TRUE", "True", "1", "on", "yes", "y"]
FALSE = ["f", "false", "FALSE", "False", "0", "off", "no", "n"]
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
LARGEST_BLOCK = (1 << 31) - 1  # bytes that Arrow reads together
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_HAS_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)$"


class IncomingRows:
    """The rows of one COPY FROM STDIN."""

    def __init__(self, statement: Copy, schema: pa.Schema, largest: int) -> None:
        if statement.format == "parquet":
            raise NotSupportedError("COPY … FROM STDIN reads text and CSV", hint="CSV or TEXT")
        if not (statement.delimiter + statement.quote + statement.escape).isascii():
            raise NotSupportedError("delimiter, quote and escape of a COPY are one byte each")
        self.statement = statement
        self.schema = schema
        self._largest = largest
        self._waiting = bytearray()
        self._tables: list[pa.Table] = []
        self._bytes = 0
        self._lines = 0
        self._row_ends = RowEnds(statement)
        self._header = statement.header
        self._ended = False
        self.failure: Error | None = None  # why the client gave up, or was wrong

    def take(self, data: bytes) -> bool:
        """More bytes have come; whether it is time to read them."""
        if not self._ended:
            self._waiting += data
        return len(self._waiting) >= CHUNK

    def read(self) -> None:
        """Reads the whole rows that wait."""
        end = self._row_ends.find(self._waiting)
        self._read(bytes(self._waiting[:end]))
        del self._waiting[:end]
        self._row_ends.taken(end)
        self._check_room(len(self._waiting))

    def rows(self) -> pa.Table:
        """All rows, once the client is done."""
        self._row_ends.find(self._waiting)
        if self._row_ends.inside and not self._ended:
            raise self._wrong("a value in quotes has no end")
        self._read(bytes(self._waiting))
        self._waiting.clear()
        if not self._tables:
            return self.schema.empty_table()
        return pa.concat_tables(self._tables)

    def _read(self, data: bytes) -> None:
        before = lines.until_end(data, self.statement)
        if before is not None:
            data, self._ended = before, True
        if self._header and data:
            data, self._header = lines.without_first(data, self.statement), False
            self._lines += 1
        if not data:
            return
        try:
            rows = read_rows(self.statement, self.schema, data)
        except (pa.ArrowException, ValueError) as error:
            raise self._wrong(str(error)) from error
        self._lines += rows.num_rows
        self._bytes += rows.nbytes
        self._check_room(0)
        self._tables.append(rows)

    def _check_room(self, waiting: int) -> None:
        """OverloadError for more rows, or for one larger row, than are kept."""
        if self._bytes + waiting > self._largest:
            raise OverloadError(
                "a COPY brings more rows than are kept in memory",
                sqlstate="53400",
                detail=f"copy_mb is {self._largest >> 20}",
                hint="copy the rows in several parts, or SET copy_mb",
            )

    def _wrong(self, message: str) -> DataError:
        found = re.search(r"[Rr]ow #(\d+)", message)
        line = self._lines + (int(found.group(1)) if found else 1)
        reason = re.sub(r"^.*?[Rr]ow #\d+:\s*", "", message.splitlines()[0])
        where = f"line {line}" if found else f"line {line} or a later one"
        return DataError(
            f"COPY {self.statement.table}, {where}: {reason}",
            sqlstate="22008" if names_far_year(message) else "22P04",
            hint="nothing was inserted; check the delimiter, HEADER and the columns' types",
        )


def read_rows(statement: Copy, schema: pa.Schema, data: bytes) -> pa.Table:
    """Rows of text or CSV; ArrowException or ValueError if they do not fit."""
    texts = pa.schema([f if _typed(f.type) else pa.field(f.name, pa.string()) for f in schema])
    plain = statement.format == "csv" or not _escaped(statement, data)
    try:
        if not plain:
            raise pa.ArrowInvalid("escapes")
        found = _read_csv(statement, texts, data)
    except pa.ArrowInvalid:
        texts = pa.schema([pa.field(f.name, pa.string()) for f in schema])
        found = (
            _read_csv(statement, texts, data) if plain else _read_escaped(statement, texts, data)
        )
    columns = [_converted(found.column(i), f.type) for i, f in enumerate(schema)]
    return pa.Table.from_arrays(columns, names=schema.names)


def _typed(type_: pa.DataType) -> bool:
    """Whether Arrow reads values of a type as PostgreSQL writes them."""
    return not (pa.types.is_binary(type_) or pa.types.is_nested(type_))


def _escaped(statement: Copy, data: bytes) -> bool:
    """Whether text has more to it than values, NULLs and line ends."""
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return True
    if b"\\" not in data:
        return False
    between = re.escape(statement.delimiter.encode())
    nulls = rb"(?<![^\n" + between + rb"])\\N(?![^\r\n" + between + rb"])"
    return statement.null != "\\N" or len(re.findall(nulls, data)) != data.count(b"\\")


def _read_csv(statement: Copy, schema: pa.Schema, data: bytes) -> pa.Table:
    quoted: Any = statement.quote if statement.format == "csv" else False
    data = lines.doubled(data, statement) if quoted else data
    return csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(
            column_names=schema.names,
            use_threads=False,
            block_size=min(len(data) + 1, LARGEST_BLOCK),  # no row may lie across two blocks
        ),
        parse_options=csv.ParseOptions(
            delimiter=statement.delimiter,
            quote_char=quoted,
            newlines_in_values=bool(quoted),
            ignore_empty_lines=len(schema) > 1,
        ),
        convert_options=csv.ConvertOptions(
            column_types={f.name: f.type for f in schema},
            null_values=[statement.null],
            true_values=TRUE,
            false_values=FALSE,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _read_escaped(statement: Copy, schema: pa.Schema, data: bytes) -> pa.Table:
    """Text with escapes, a line at a time."""
    columns: list[list[str | None]] = [[] for _ in schema]
    delimiter, null = statement.delimiter.encode(), statement.null.encode()
    rows = lines.parted(data, b"\n")
    for number, row in enumerate(rows[:-1] if rows[-1] == b"" else rows, 1):
        cells = lines.parted(row.removesuffix(b"\r"), delimiter)
        if len(cells) != len(columns):
            raise ValueError(
                f"row #{number}: {len(columns)} columns were expected, {len(cells)} came"
            )
        for column, cell in zip(columns, cells, strict=True):
            if b"\r" in cell.replace(b"\\\r", b""):
                raise ValueError(f"row #{number}: a carriage return stands there, write it as \\r")
            column.append(None if cell == null else _ESCAPE.sub(_unescaped, cell).decode())
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.Table.from_arrays(arrays, schema=schema)


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    if code[:1].isdigit() and code[0] < ord("8"):
        return bytes([int(code, 8) & 0xFF])
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    found = ESCAPES.get(code.decode("latin-1"))
    return code if found is None else found.encode()


def _converted(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """A column of texts in its own type; the error for one that does not fit names its row."""
    if column.type == type_ or not pa.types.is_string(column.type):
        return column
    try:
        return _cast(column, type_)
    except (pa.ArrowInvalid, ValueError):
        number = _first_wrong(column, type_)
        try:
            _cast(column.slice(number, 1), type_)
        except (pa.ArrowInvalid, ValueError) as error:
            raise ValueError(f"row #{number + 1}: {error}") from None
        raise


def _first_wrong(column: pa.ChunkedArray, type_: pa.DataType) -> int:
    """The first text that is no value of a type, found by halves."""
    first, count = 0, len(column)
    while count > 1:
        half = count // 2
        try:
            _cast(column.slice(first, half), type_)
            first, count = first + half, count - half
        except (pa.ArrowInvalid, ValueError):
            count = half
    return first


def _cast(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_boolean(type_):
        lower = pc.utf8_lower(column)
        known = pc.is_in(lower, pa.array([*TRUE, *FALSE]))
        if not pc.all(pc.or_kleene(known, pc.is_null(lower)), min_count=0).as_py():
            raise ValueError("a value is neither true nor false")
        return pc.if_else(pc.is_null(column), None, pc.is_in(lower, pa.array(TRUE)))
    if pa.types.is_binary(type_):
        return pa.chunked_array([pa.array([_bytes(v) for v in column.to_pylist()], type_)])
    if pa.types.is_timestamp(type_):
        return _moments(column, type_)
    if pa.types.is_nested(type_):
        raise NotSupportedError("COPY cannot read arrays, maps and structs", hint="use INSERT")
    return column.cast(type_)


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    return bytes.fromhex(text[2:]) if text.startswith("\\x") else text.encode()


def _moments(column: pa.ChunkedArray, type_: Any) -> pa.ChunkedArray:
    """Times with a zone or without; where a zone is needed and missing, it is UTC."""
    zoned = pc.match_substring_regex(column, _HAS_ZONE.replace("(Z", r"\d(Z"))
    whole = pc.match_substring_regex(column, r":\d{2}")
    zoned = pc.and_(zoned, whole)
    if type_.tz is None:
        return pc.if_else(zoned, pc.replace_substring_regex(column, _HAS_ZONE, ""), column).cast(
            type_
        )
    timed = pc.if_else(whole, column, pc.binary_join_element_wise(column, "00:00:00", " "))
    joined = pc.binary_join_element_wise(timed, "Z", "")
    return pc.if_else(zoned, column, joined).cast(type_)


# Going out


def out_header(statement: Copy, names: list[str]) -> bytes:
    """The line of names, if one is asked for."""
    if not statement.header:
        return b""
    cells = _out_cells(statement, pa.array(names, pa.string())).to_pylist()
    line = (statement.delimiter.join(cells) + "\n").encode()
    return b"d" + (len(line) + 4).to_bytes(4) + line


def out_rows(statement: Copy, rows: pa.Table) -> bytes:
    """One CopyData message for each row."""
    if not rows.num_rows:
        return b""
    cells = [_out_cells(statement, encode.as_text(encode.whole(c))) for c in rows.columns]
    lines = pc.binary_join_element_wise(*cells, statement.delimiter) if cells else None
    if lines is None:
        return b"d\0\0\0\x05\n" * rows.num_rows
    lines = pc.binary_join_element_wise(lines, "\n", "").cast(pa.binary())
    lengths = pc.binary_length(lines).to_numpy().astype(np.int64) + 4
    head = np.empty((len(lengths), 5), np.uint8)
    head[:, 0] = ord("d")
    head[:, 1:] = lengths.astype(">u4").view(np.uint8).reshape(len(lengths), 4)
    return encode.joined([encode.fixed(head), lines])


def _out_cells(statement: Copy, texts: pa.Array) -> pa.Array:
    make = _csv_cells if statement.format == "csv" else _text_cells
    cells = make(statement, texts)
    return cells.fill_null(statement.null)


def _text_cells(statement: Copy, texts: pa.Array) -> pa.Array:
    special = r"[\\\x08\f\n\r\t\v]|" + re.escape(statement.delimiter)
    if not pc.any(pc.match_substring_regex(texts, special), min_count=0).as_py():
        return texts
    found = pc.replace_substring(texts, "\\", "\\\\")
    for letter, character in ESCAPES.items():
        found = pc.replace_substring(found, character, "\\" + letter)
    if statement.delimiter != "\t":
        found = pc.replace_substring(found, statement.delimiter, "\\" + statement.delimiter)
    return found


def _csv_cells(statement: Copy, texts: pa.Array) -> pa.Array:
    special = "[" + re.escape(statement.delimiter + statement.quote) + r"\n\r]"
    needs = pc.or_(
        pc.match_substring_regex(texts, special),
        pc.is_in(texts, pa.array([statement.null, END.decode()])),
    )
    if not pc.any(needs, min_count=0).as_py():
        return texts
    quote = statement.quote
    inner = texts
    if statement.escape != quote:
        inner = pc.replace_substring(inner, statement.escape, statement.escape * 2)
    inner = pc.replace_substring(inner, quote, statement.escape + quote)
    return pc.if_else(needs, pc.binary_join_element_wise(quote, inner, quote, ""), texts)


def slices(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """Rows in parts of about so many bytes."""
    if rows.num_rows:
        step = max(1, min(rows.num_rows, size // max(rows.nbytes // rows.num_rows, 1)))
        for start in range(0, rows.num_rows, step):
            yield rows.slice(start, step)
