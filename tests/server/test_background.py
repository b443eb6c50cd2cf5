"""A listener in a thread of its own: it listens, it stops, and a port that is taken leaves nothing."""

from __future__ import annotations

import http.client
import threading

import pytest

import headwater
from headwater.server.background import Background
from headwater.server.http.server import HttpOptions, HttpServer
from tests.harness.patience import PATIENCE_S


def test_it_listens_while_inside() -> None:
    """Requests are answered inside; a second listener on its port fails; no thread stays."""
    before = threading.active_count()
    with headwater.connect(settings={"eager_spark": False}) as database:
        with Background(HttpServer(database, HttpOptions(port=0))) as first:
            connection = http.client.HTTPConnection(first.host, first.port, timeout=PATIENCE_S)
            connection.request("GET", "/health")
            assert connection.getresponse().status == 200
            connection.close()
            second = Background(HttpServer(database, HttpOptions(port=first.port)))
            with pytest.raises(OSError, match="address already in use"), second:
                pass
        assert not [t for t in threading.enumerate() if t.name.startswith("headwater-listens")]
    assert threading.active_count() <= before
