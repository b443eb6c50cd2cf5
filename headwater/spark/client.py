"""A client of a server's HTTP, for the driver and for executors: statements, rows, results as they come.

Owns nothing between two calls; it can be pickled. An error of the server is one of ours, with its SQLSTATE.
"""

from __future__ import annotations

import base64
import http
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pyarrow as pa

from headwater.errors import DataError, Error, KernelError, SettingError
from headwater.storage.json_rows import ExactFloat, typed
from headwater.storage.rows import as_table

ARROW = "application/vnd.apache.arrow.stream"
TIMEOUT_S = 600.0
ATTEMPTS = 4  # of what may be sent again: reads, and rows with a batch id
FIRST_PAUSE_S = 0.25
WAIT_S = 0.001  # a reader takes what is there: the server waits no longer for more


@dataclass(frozen=True)
class ServedResult:
    """One result of a query."""

    token: str
    columns: tuple[str, ...]
    rows: list[list[Any]]

    def table(self, schema: pa.Schema) -> pa.Table:
        """Its rows in the types of their columns."""
        named = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return as_table(typed(named, schema, "UTC"), schema)


@dataclass(frozen=True)
class Client:
    """Where the server is, and who asks."""

    url: str
    authorization: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Client:
        """The client that the options of a data source name."""
        host, port = options.get("host", "127.0.0.1"), options.get("port", "8080")
        url = options.get("url") or f"http://{host}:{port}"
        if not url.startswith(("http://", "https://")):
            raise SettingError(
                f"{url} is no address of a server",
                hint='option("url", "http://127.0.0.1:8080"): the HTTP address of headwater serve',
            )
        if options.get("token"):
            return cls(url.rstrip("/"), f"Bearer {options['token']}")
        if options.get("user"):
            pair = f"{options['user']}:{options.get('password', '')}".encode()
            return cls(url.rstrip("/"), f"Basic {base64.b64encode(pair).decode()}")
        return cls(url.rstrip("/"))

    def query(self, text: str) -> pa.RecordBatchReader:
        """The rows of a query, as they come."""
        head = {"Content-Type": "text/plain; charset=utf-8", "Accept": ARROW}
        return pa.ipc.open_stream(self._patiently("/sql", text.encode(), head))

    def insert(self, table: str, rows: pa.Table, batch_id: str | None) -> None:
        """Adds rows; durable when it returns. With a batch id it is tried again, else not."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        head = {"Content-Type": ARROW}
        if batch_id is not None:
            head["Batch-Id"] = batch_id
        path, body = f"/tables/{quote(table, safe='')}", sink.getvalue().to_pybytes()
        with self._patiently(path, body, head) if batch_id else self._opened(path, body, head):
            pass

    def results(self, query: str, after: str, emit: str) -> Iterator[ServedResult]:
        """The results after a token that are there by now."""
        asked = urlencode({"after": after, "emit": emit, "timeout_s": WAIT_S})
        path = f"/subscribe/{quote(query, safe='')}?{asked}"
        with closing(self._connected()) as connection:
            lines: list[str] = []
            for line in self._lines(connection, path):
                text = line.decode().rstrip("\n")
                if text:
                    lines.append(text)
                    continue
                found, lines = _event(lines), []
                if found is not None:
                    yield found

    def _connected(self) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        if address.scheme == "https":
            return http.client.HTTPSConnection(address.netloc, timeout=TIMEOUT_S)
        return http.client.HTTPConnection(address.netloc, timeout=TIMEOUT_S)

    def _lines(self, connection: http.client.HTTPConnection, path: str) -> Iterator[bytes]:
        """The lines of an answer, as they come."""
        try:
            connection.request("GET", urlsplit(self.url).path + path, headers=self._login)
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.OK:
                raise _told(answer.status, answer.read())
            yield from answer
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error

    @property
    def _login(self) -> dict[str, str]:
        return {"Authorization": self.authorization} if self.authorization else {}

    def _unreachable(self, error: Exception) -> KernelError:
        return KernelError(
            f"the server at {self.url} does not answer",
            sqlstate="08001",
            detail=str(error),
            hint="headwater serve FOLDER starts one; its HTTP port is 8080",
        )

    def _patiently(self, path: str, body: bytes, head: Mapping[str, str]) -> Any:
        """The answer; a server that cannot be reached is tried again after pauses."""
        for attempt in range(ATTEMPTS):
            try:
                return self._opened(path, body, head)
            except KernelError:
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(FIRST_PAUSE_S * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _opened(self, path: str, body: bytes, head: Mapping[str, str]) -> Any:
        request = urllib.request.Request(self.url + path, body, {**head, **self._login})
        try:
            return urllib.request.urlopen(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                raise _told(error.code, error.read()) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error


def _event(lines: list[str]) -> ServedResult | None:
    """A result of server-sent events; None for a comment."""
    data = "".join(line[len("data: ") :] for line in lines if line.startswith("data: "))
    if not data:
        return None
    found = json.loads(data, parse_float=ExactFloat)
    if "event: error" in lines:
        raise _error(found)
    columns = tuple(column["name"] for column in found["columns"])
    return ServedResult(found["token"], columns, found["rows"])


def _told(status: int, body: bytes) -> Error:
    try:
        return _error(json.loads(body))
    except (ValueError, KeyError):
        return KernelError(
            f"the server answered {status}", detail=body[:200].decode(errors="replace")
        )


def _error(body: Mapping[str, Any]) -> Error:
    told = body["error"]
    return DataError(
        told["message"],
        sqlstate=told["sqlstate"],
        detail=told.get("detail"),
        hint=told.get("hint"),
    )
