"""A database without Spark, a live server over it, and a client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headwater
from headwater.server.http.server import HttpOptions, HttpServer
from tests.server.http.client import Client
from tests.server.live import Live


@pytest.fixture
def plain() -> Iterator[headwater.Database]:
    """A database that starts no Spark by itself."""
    with headwater.connect(settings={"eager_spark": False}) as database:
        yield database


@pytest.fixture
def live(plain: headwater.Database) -> Iterator[Live]:
    """A server on a free port."""
    with Live(HttpServer(plain, HttpOptions(port=0))) as server:
        yield server


@pytest.fixture
def client(live: Live) -> Iterator[Client]:
    """A client of that server."""
    with Client(live) as found:
        yield found
