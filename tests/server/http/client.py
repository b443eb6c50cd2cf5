"""A small HTTP client for the tests: one connection, answers as they came."""

from __future__ import annotations

import base64
import http.client
import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.harness.patience import PATIENCE_S
from tests.server.live import Live


@dataclass(frozen=True)
class Answer:
    """An answer that has come whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def sqlstate(self) -> str:
        """The SQLSTATE of an error."""
        return str(self.json["error"]["sqlstate"])


class Client:
    """One connection to a live server."""

    def __init__(self, live: Live, authorization: str | None = None) -> None:
        self.connection = http.client.HTTPConnection(live.host, live.port, timeout=PATIENCE_S)
        self._own = {} if authorization is None else {"Authorization": authorization}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request; `Content_Type` is the header Content-Type."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, self._own | named)
        found = self.connection.getresponse()
        return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def sql(self, text: str, *parameters: Any, **headers: str) -> Answer:
        """POST /sql"""
        body = json.dumps({"sql": text, "parameters": list(parameters)})
        return self.ask("POST", "/sql", body, Content_Type="application/json", **headers)

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def basic(user: str, password: str) -> str:
    """The Authorization header of a user."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
