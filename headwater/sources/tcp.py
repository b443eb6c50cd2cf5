"""`tcp://host:port`: lines of JSON or CSV from a server that sends them.

A connection that ends or fails is made again, after a pause that doubles up to a bound. A line that was sent
and not stored when a process ends is lost: TCP has no memory. Kafka has, and files have.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as csv

from headwater.connectors.runner import Pauses
from headwater.errors import (
    BindError,
    DataError,
    Error,
    OverloadError,
    SettingError,
    StorageError,
)
from headwater.sources.pulled import PulledRunner
from headwater.sources.runner import POLL_S
from headwater.storage.json_rows import moments, read_lines
from headwater.storage.rows import as_table

CONNECT_S = 10.0
CHUNK_BYTES = 1 << 18
LONGEST_LINE_BYTES = 1 << 22
LINE_SHOWN = 100
ZONE = "UTC"  # of times that name none
SILENT_S, PROBE_S, PROBES = 30, 10, 3  # a peer that is gone without a word is noticed


def parse_host(rest: str) -> tuple[str, int]:
    """The host and port of `//host:port`."""
    host, _, port = rest.removeprefix("//").rpartition(":")
    if not rest.startswith("//") or not host or not port.isdigit():
        raise SettingError(
            f"the address 'tcp:{rest}' is not complete", hint="write 'tcp://host:port'"
        )
    return host.strip("[]"), int(port)


def _watch(connection: socket.socket) -> None:
    """Has the system ask a silent peer whether it is there."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENT_S),
        ("TCP_KEEPINTVL", PROBE_S),
        ("TCP_KEEPCNT", PROBES),
    ):
        if hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class TcpRunner(PulledRunner):
    """One run of a source of lines."""

    def rows(self) -> Iterator[pa.Table | None]:
        """Tables of the lines that came together; connects again and again."""
        address = parse_host(self.feed.address.rest)
        pauses = Pauses()
        while not self.stopping.is_set():
            try:
                with socket.create_connection(address, CONNECT_S) as connection:
                    self.error = None
                    pauses.begin_anew()
                    yield from self._connected(connection)
                self.error = StorageError(f"{self.feed.address.rest} has ended the connection")
            except OSError as error:
                self.error = StorageError(
                    f"no connection to {self.feed.address.rest}", detail=str(error)
                )
            until = time.monotonic() + pauses.next_s()
            while time.monotonic() < until and not self.stopping.wait(POLL_S):
                yield None

    def _connected(self, connection: socket.socket) -> Iterator[pa.Table | None]:
        connection.settimeout(POLL_S)
        _watch(connection)
        left = b""
        while not self.stopping.is_set():
            try:
                data = connection.recv(CHUNK_BYTES)
            except TimeoutError:
                yield None
                continue
            if not data:
                break
            lines, _, left = (left + data).rpartition(b"\n")
            if len(left) > LONGEST_LINE_BYTES:
                raise OverloadError(f"a line is longer than {LONGEST_LINE_BYTES >> 20} MiB")
            yield from self._tables(lines)
        if not self.stopping.is_set():
            yield from self._tables(left)

    def _tables(self, lines: bytes) -> Iterator[pa.Table]:
        """The rows of whole lines; those before one that is no row come before its error."""
        if not lines.strip():
            return
        try:
            yield self._parsed(lines + b"\n")
            return
        except (DataError, BindError, pa.ArrowException):
            pass
        for line in lines.split(b"\n"):
            if line.strip():
                yield self._parsed_line(line + b"\n")

    def _parsed_line(self, line: bytes) -> pa.Table:
        try:
            return self._parsed(line)
        except (DataError, BindError, pa.ArrowException) as error:
            said = error.message if isinstance(error, Error) else str(error)
            raise DataError(
                f"a line from {self.feed.address.rest} cannot be read",
                sqlstate="22P04",
                detail=f"{said}: {line[:LINE_SHOWN].decode(errors='replace').rstrip()}",
                hint="RESUME SOURCE connects again and goes on with what is sent then",
            ) from error

    def _parsed(self, lines: bytes) -> pa.Table:
        """The rows of lines, with the table's types."""
        schema = self.feed.table.definition.schema
        if self.feed.options.format == "csv":
            return as_table(_read_csv(lines, schema), schema)
        return as_table(read_lines(lines, schema, ZONE, others=True), schema)


def _read_csv(lines: bytes, schema: pa.Schema) -> pa.Table:
    """Rows of CSV as COPY reads them: what is empty and not quoted is NULL; times without a zone are UTC."""
    is_moment = pa.types.is_timestamp
    types = {f.name: pa.string() if is_moment(f.type) else f.type for f in schema}
    found = csv.read_csv(
        io.BytesIO(lines),
        read_options=csv.ReadOptions(column_names=schema.names, block_size=len(lines) + 1),
        convert_options=csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    columns = [
        moments(c, f) if is_moment(f.type) else c
        for c, f in zip(found.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=schema.names)
