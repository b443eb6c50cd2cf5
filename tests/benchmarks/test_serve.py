"""The benchmark of the wire server: its loader compares answers, and the targets are of its figures."""

from __future__ import annotations

import socket

import pytest

import headwater
from benchmarks.serve.loader import Waiting, load
from benchmarks.serve.run import targets
from benchmarks.serve.systems import ASKED, System
from tests.server.live import LiveServer


def test_the_loader_asks_and_compares() -> None:
    """Simple and prepared, one at a time and several under way; an answer that changes is an error."""
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db, LiveServer(db) as live:
        address = (live.host, live.port)
        system = System("x", address, "a", "b", "STREAMING TABLE", "TIMESTAMP BY t", "VIEW")
        system.prepare()
        for kind in ("simple", "prepared"):
            with system.client() as one, system.client() as two:
                assert load([one, two], ASKED, kind, 3, 0.05) > 0
        with system.client() as client:
            client.copy("p", b"1,2,3,4,5,6,7,8\n" * 3)
            assert client.cell("SELECT pos FROM p") == "7"
            with pytest.raises(RuntimeError, match="nowhere"):
                client.run("SELECT * FROM nowhere")


def test_an_answer_that_differs_is_an_error() -> None:
    """The loader does not count what it did not expect."""
    near, far = socket.socketpair()
    with near, far:
        waiting = Waiting(near, b"again", b"abc", bytearray())
        far.sendall(b"ab")
        assert not waiting.took()
        far.sendall(b"c")
        assert waiting.took()
        assert far.recv(10) == b"again"
        far.sendall(b"abd")
        with pytest.raises(RuntimeError, match="differs"):
            waiting.took()


def test_targets() -> None:
    """Each way to ask has the same bound; COPY is a ratio, void without PostgreSQL."""
    ours = {"queries": {"simple": {"median": 9_000.0}}, "copies": {"10 rows": 50.0}}
    theirs = {"queries": {}, "copies": {"10 rows": 25.0}}
    assert [t.met for t in targets({"Headwater": ours})] == ["missed", "void or missing"]
    assert [t.met for t in targets({"Headwater": ours, "PostgreSQL": theirs})] == ["missed", "met"]
