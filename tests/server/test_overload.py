"""More than the server can take: it slows its clients down, and loses nothing that it acknowledged."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headwater
from benchmarks.serve.loader import Client, message, simple
from tests.server.served import Served

WRITERS = 4
ROWS = 500  # of one COPY
PAD = "x" * 500
QUEUE_ROWS = 20_000
IDLE_S = 1.0  # an idle connection waits less than this
LARGEST_WAITING = 20 << 20  # bytes of one client: 1 MiB read ahead, and the sockets' own buffers
LARGEST_GROWTH_MB = 200.0
READERS = 20
LARGEST_READER_MB = 4.0
LIMITS = {
    "block_mb": 4,
    "unsealed_mb": 8,
    "recent_mb": 8,
    "view_queue_rows": QUEUE_ROWS,
    "block_age_s": 1,
}
WAITING = "SELECT value FROM headwater.metrics WHERE name = 'view.v.waiting_rows'"
TAG = f"COPY {ROWS}\0".encode()


@dataclass
class Writer:
    """A connection that adds rows at a rate, whether or not it was answered."""

    number: int
    client: Client
    sent: int = 0
    acknowledged: int = 0
    _unsent: bytes = b""
    _seen: bytearray = field(default_factory=bytearray)

    def insert(self) -> bytes:
        """The next rows, as one COPY that does not wait for its turn."""
        first = self.sent * ROWS
        rows = "".join(f"{self.number},{first + n},{PAD}\n" for n in range(ROWS)).encode()
        return simple("COPY s FROM STDIN CSV") + message(b"d", rows) + message(b"c")

    def closed(self, seconds: float) -> None:
        """One COPY after the other."""
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            assert TAG in self.client.asked(self.insert())
            self.sent += 1
            self.acknowledged += 1

    def open(self, seconds: float, per_s: float) -> None:
        """Sends rows when they are due, answered or not, as far as the socket takes them."""
        began, before = time.perf_counter(), self.acknowledged
        self.client.socket.settimeout(0.01)
        while (spent := time.perf_counter() - began) < seconds:
            if self._unsent or before + int(spent * per_s) > self.sent:
                self._send()
            self._take()

    def _send(self) -> None:
        if not self._unsent:
            self._unsent = self.insert()
            self.sent += 1
        with contextlib.suppress(TimeoutError):
            self._unsent = self._unsent[self.client.socket.send(self._unsent) :]

    def _take(self) -> None:
        with contextlib.suppress(TimeoutError):
            data = self.client.socket.recv(1 << 16)
            assert data, "the server has closed the connection"
            self._seen += data
        self.acknowledged += self._seen.count(TAG)
        del self._seen[: self._seen.rfind(TAG) + len(TAG) if TAG in self._seen else 0]
        assert b"SERROR" not in self._seen


class Idle:
    """A connection that asks now and then, and how long it waited."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.slowest_s = self.longest_queue = 0.0
        self.asked = 0

    def _ask(self) -> None:
        with self._served.client() as client:
            while not self._ended.wait(0.1):
                began = time.perf_counter()
                assert client.run("SELECT 1").count(b"SELECT 1\0") == 1
                self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
                self.asked += 1
                self.longest_queue = max(self.longest_queue, float(client.cell(WAITING) or 0))

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Asks while inside."""
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()


def together(writers: list[Writer], work: str, *arguments: float) -> None:
    """Lets all writers work at once; what fails in one fails the test."""
    failures: list[BaseException] = []

    def one(writer: Writer) -> None:
        try:
            getattr(writer, work)(*arguments)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def stored(folder: Path) -> list[np.ndarray[Any, Any]]:
    """The numbers of each writer that are on disk."""
    with headwater.connect(str(folder), settings={"eager_spark": False}) as db:
        rows = db.sql("SELECT who, n FROM s").arrow()
    who, numbers = rows["who"].to_numpy(), rows["n"].to_numpy()
    return [np.unique(numbers[who == writer]) for writer in range(WRITERS)]


@pytest.mark.parametrize(
    "seconds", [3.0, pytest.param(120.0, marks=pytest.mark.large, id="two-minutes")]
)
def test_twice_the_load(tmp_path: Path, seconds: float) -> None:
    """Twice the rows that it manages: bounded memory, idle clients are answered, no row is lost."""
    folder = tmp_path / "db"
    with Served(folder, **LIMITS) as served, contextlib.ExitStack() as open_:
        first = open_.enter_context(served.client())
        first.run("CREATE STREAMING TABLE s (who INT, n INT, pad STRING)")
        first.run("CREATE VIEW v AS SELECT who, count(*) AS rows FROM s GROUP BY who")
        writers = [Writer(n, open_.enter_context(served.client())) for n in range(WRITERS)]
        together(writers, "closed", 1.0)
        capacity = sum(writer.acknowledged for writer in writers)
        began_mb, idle = served.memory_mb(), Idle(served)
        with idle.asking():
            together(writers, "open", seconds, 2 * capacity / WRITERS)
        assert served.is_running
        for writer in writers:
            waiting = (writer.sent - writer.acknowledged) * len(writer.insert())
            assert waiting < LARGEST_WAITING  # the rest was held back
        assert idle.asked > 0
        if seconds > 100:  # a short run says nothing where others use the machine too
            assert idle.asked > seconds
            assert idle.slowest_s < IDLE_S
        assert idle.longest_queue < QUEUE_ROWS + WRITERS * ROWS
        assert served.memory_mb("VmHWM") - began_mb < LARGEST_GROWTH_MB
    kept = stored(folder)
    for writer in writers:
        wanted = np.arange(writer.acknowledged * ROWS)
        assert np.array_equal(kept[writer.number][: len(wanted)], wanted)


@pytest.mark.parametrize("kind", ["TABLE", "STREAMING TABLE"])
def test_slow_readers_share_their_result(tmp_path: Path, kind: str) -> None:
    """Twenty clients that do not read a large result cost little more than one."""
    rows = "".join(f"{n},{n:0200}\n" for n in range(150_000)).encode()
    with Served(tmp_path / "db") as served, contextlib.ExitStack() as open_:
        client = open_.enter_context(served.client())
        client.run(f"CREATE {kind} t (a BIGINT, b STRING)")
        client.copy("t", rows)
        growth = []
        for _ in range(READERS):
            reader = open_.enter_context(served.client())
            reader.socket.sendall(simple("SELECT a, b FROM t"))
            assert reader.socket.recv(1)
            growth.append(served.memory_mb())
        assert (growth[-1] - growth[0]) / (READERS - 1) < LARGEST_READER_MB
        assert client.run("SELECT 1").count(b"SELECT 1\0") == 1
