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
import pyarrow.json as json

from headwater.errors import DataError, OverloadError, SettingError, StorageError
from headwater.sources.pulled import PulledRunner
from headwater.sources.runner import POLL_S

CONNECT_S = 10.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
CHUNK_BYTES = 1 << 18
LONGEST_LINE_BYTES = 1 << 22


def parse_host(rest: str) -> tuple[str, int]:
    """The host and port of `//host:port`."""
    host, _, port = rest.removeprefix("//").rpartition(":")
    if not rest.startswith("//") or not host or not port.isdigit():
        raise SettingError(
            f"the address 'tcp:{rest}' is not complete", hint="write 'tcp://host:port'"
        )
    return host.strip("[]"), int(port)


class TcpRunner(PulledRunner):
    """One run of a source of lines."""

    def rows(self) -> Iterator[pa.Table | None]:
        """Tables of the lines that came together; connects again and again."""
        address = parse_host(self.feed.address.rest)
        pause_s = FIRST_PAUSE_S
        while not self.stopping.is_set():
            try:
                with socket.create_connection(address, CONNECT_S) as connection:
                    self.error, pause_s = None, FIRST_PAUSE_S
                    yield from self._connected(connection)
                self.error = StorageError(f"{self.feed.address.rest} has ended the connection")
            except OSError as error:
                self.error = StorageError(
                    f"no connection to {self.feed.address.rest}", detail=str(error)
                )
            until = time.monotonic() + pause_s
            while time.monotonic() < until and not self.stopping.wait(POLL_S):
                yield None
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _connected(self, connection: socket.socket) -> Iterator[pa.Table | None]:
        connection.settimeout(POLL_S)
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
            if lines.strip():
                yield self._parsed(lines + b"\n")
        if left.strip() and not self.stopping.is_set():
            yield self._parsed(left + b"\n")

    def _parsed(self, lines: bytes) -> pa.Table:
        """The rows of whole lines, with the table's types."""
        schema = pa.schema([field.with_nullable(True) for field in self.feed.table.schema])
        try:
            if self.feed.options.format == "csv":
                return _read_csv(lines, schema)
            return json.read_json(
                io.BytesIO(lines),
                read_options=json.ReadOptions(block_size=len(lines) + 1),
                parse_options=json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowException as error:
            raise DataError(
                f"a line from {self.feed.address.rest} cannot be read",
                sqlstate="22P04",
                detail=str(error),
                hint="RESUME SOURCE goes on with the lines after it",
            ) from error


def _read_csv(lines: bytes, schema: pa.Schema) -> pa.Table:
    types = {field.name: field.type for field in schema}
    return csv.read_csv(
        io.BytesIO(lines),
        read_options=csv.ReadOptions(column_names=schema.names, block_size=len(lines) + 1),
        convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True),
    )
