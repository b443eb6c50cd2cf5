"""The life of tasks without Spark: who is welcome at the door, who hangs, and what an end leaves behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.engine.elsewhere import HostGone
from headwater.factories import jobs
from headwater.factories.coordinator import Factories
from headwater.factories.frames import Frame, encoded, received
from headwater.factories.jobs import FactoryJobs
from headwater.factories.task import versions
from tests.harness.patience import PATIENCE_S, until

NEVER_S = 1e9


class Door:
    """Jobs of one factory that Spark never runs: tests say hello in its place."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.submitted, self.cancelled = threading.Event(), threading.Event()
        monkeypatch.setattr(jobs, "run_factory", self._run)
        monkeypatch.setattr(jobs, "cancel_factory", lambda *_job: self.cancelled.set())
        monkeypatch.setattr(jobs, "PULSE_S", 0.05)
        monkeypatch.setattr(jobs, "CLOSE_PATIENCE_S", 4.0)
        self.peer = 0  # who says hello here is this process, which nobody shall end
        peer_of = jobs.peer_of
        monkeypatch.setattr(jobs, "peer_of", lambda *who: self._not_me(peer_of(*who)))
        self.timeout_s = NEVER_S
        kernel = SimpleNamespace(
            take_seats=lambda count: count,
            return_seats=lambda _count: None,
            stream_session=lambda _settings: (None, None),
            ready=True,
            is_local=True,
        )
        settings = SimpleNamespace(
            explicit=(), number=lambda _name: self.timeout_s, integer=lambda _name: 1
        )
        context: Any = SimpleNamespace(
            kernel=kernel,
            settings=settings,
            streams=SimpleNamespace(durable_lsn=7),
            folder=SimpleNamespace(path=folder),
        )
        self.jobs = FactoryJobs(context, 1)
        assert self.jobs.take_room()
        self.jobs.begin()
        assert self.submitted.wait(PATIENCE_S)
        (self.seat,) = self.jobs.seats
        self._open: list[socket.socket] = []

    def _not_me(self, pid: int | None) -> int | None:
        self.peer = pid or 0
        return None if pid == os.getpid() else pid

    def _run(self, *_job: object) -> None:
        self.submitted.set()
        assert self.cancelled.wait(PATIENCE_S)

    def knock(self) -> socket.socket:
        """Somebody is at the door."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(cast(str, self.jobs._address.path))
        self._open.append(connection)
        return connection

    def hello(self, **other: Any) -> socket.socket:
        """A task says who it is."""
        connection = self.knock()
        said = {"kind": "hello", "number": 1, "incarnation": self.seat.incarnation}
        said |= {"secret": self.jobs._address.secret, "pid": 1, "versions": versions(), **other}
        send(connection, Frame(said))
        return connection

    def close(self) -> None:
        """The database is closed."""
        self.jobs.end()
        if self.seat.line is not None:
            self.seat.line.close()  # whose other end is a test
        self.jobs.stop()
        self.seat.forget_all()
        self.cancelled.set()
        self.jobs.close()
        for connection in self._open:
            connection.close()


def send(connection: socket.socket, frame: Frame) -> None:
    for part in encoded(frame):
        connection.sendall(part)


def is_refused(connection: socket.socket) -> bool:
    connection.settimeout(PATIENCE_S)
    try:
        return received(connection) is None
    except ConnectionResetError:
        return True


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Door]:
    """Open."""
    made = Door(monkeypatch, tmp_path)
    yield made
    made.close()


def test_a_task_takes_its_seat(door: Door) -> None:
    task = door.hello()
    welcome = received(task)
    assert welcome is not None
    assert (welcome.kind, welcome.head["lsn"]) == ("welcome", 7)
    until(lambda: door.seat.is_there)
    assert door.peer == os.getpid()  # the system's word, not the task's
    assert door.jobs.there() == [door.seat]


@pytest.mark.parametrize(
    "other",
    [{"secret": "guess"}, {"number": 2}, {"incarnation": 99}, {"versions": ["0", "0", "0"]}],
    ids=lambda other: next(iter(other)),
)
def test_who_is_not_the_task_that_was_started_is_refused(door: Door, other: Any) -> None:
    assert is_refused(door.hello(**other))
    assert not door.seat.is_there


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 64, b"\x02\0\0\0" + bytes(8) + b"[]"]
)
def test_who_says_something_else_is_refused(door: Door, said: bytes) -> None:
    connection = door.knock()
    connection.sendall(said)
    assert is_refused(connection)


def test_of_two_lives_the_first_has_the_seat_until_it_ends(door: Door) -> None:
    """Spark starts a task again by itself, with the same hello."""
    ended: list[object] = []

    def bury(seat: Any) -> None:
        if seat.line is not None and not seat.is_there:
            ended.append(seat.line)
            seat.forget_all()

    door.jobs.on_end = bury
    first = door.hello()
    assert received(first) is not None
    until(lambda: door.seat.is_there)
    assert is_refused(door.hello())
    line = door.seat.line
    first.close()
    until(lambda: not door.seat.is_there)
    assert received(door.hello()) is not None  # the first one is buried before
    until(lambda: door.seat.is_there)
    assert ended == [line]


def test_a_task_that_comes_while_the_database_closes_gets_no_seat(door: Door) -> None:
    with door.jobs.moving:  # somebody moves queries, as at the end
        task = door.hello()
        until(lambda: any(t.name == "headwater-hello" for t in threading.enumerate()))
        door.jobs.end()
    assert is_refused(task)
    assert door.seat.line is None


def test_a_close_does_not_wait_for_who_says_nothing(door: Door) -> None:
    silent = door.knock()
    until(lambda: len(door.jobs._greeting) == 1)
    began = time.monotonic()
    door.jobs.end()
    door.jobs.close()
    assert is_refused(silent)
    until(lambda: not any(t.name == "headwater-hello" for t in threading.enumerate()))
    assert time.monotonic() - began < jobs.HELLO_S / 2


def test_a_close_cancels_a_task_that_has_not_come(door: Door) -> None:
    door.jobs.end()
    door.jobs.close()
    assert door.cancelled.is_set()


HANGS = """
import socket, struct, sys, json
from headwater.factories.frames import Frame, encoded, received
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
for part in encoded(Frame(json.loads(sys.argv[2]))):
    connection.sendall(part)
received(connection)
print("welcome", flush=True)
while True:
    frame = received(connection)
    if frame is None or frame.kind != "pulse":
        continue
    for part in encoded(Frame({"answers": frame.head["asks"], "spent": {"q": 0.5}})):
        connection.sendall(part)
"""


@pytest.fixture
def task(door: Door) -> Iterator[subprocess.Popen[str]]:
    """A process that answers its pulse, and nothing else."""
    hello = {"kind": "hello", "number": 1, "incarnation": door.seat.incarnation, "pid": 1}
    hello |= {"secret": door.jobs._address.secret, "versions": versions()}
    command = [sys.executable, "-c", HANGS, str(door.jobs._address.path), json.dumps(hello)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "welcome\n"
        until(lambda: door.seat.is_there)
        yield process
        process.kill()


def test_a_task_that_answers_its_pulse_lives_and_says_what_it_costs(
    door: Door, task: subprocess.Popen[str]
) -> None:
    told: list[tuple[Any, float]] = []
    door.jobs.on_pulse = lambda _seat, spent, seconds: told.append((spent, seconds))
    until(lambda: len(told) > 2 and told[-1][1] > 0)
    assert told[-1][0] == {"q": 0.5}
    assert task.poll() is None


def test_a_task_that_hangs_is_ended(door: Door, task: subprocess.Popen[str]) -> None:
    door.timeout_s = 0.2
    os.kill(task.pid, signal.SIGSTOP)
    until(lambda: not door.seat.is_there)
    assert task.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_task_that_hangs_holds_no_close_up(door: Door, task: subprocess.Popen[str]) -> None:
    """It is asked to stop and does not; the pulse is felt until every line has ended."""
    os.kill(task.pid, signal.SIGSTOP)
    line = door.seat.line
    assert line is not None
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(line.ask, "open")  # as a move does, holding what the close waits for
        door.jobs.end()
        door.timeout_s = 0.2
        with pytest.raises(HostGone):
            asked.result(PATIENCE_S)
    assert task.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_task_that_does_not_put_its_state_away_is_ended(
    door: Door, task: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might write into the folder when another program has it open."""
    monkeypatch.setattr(jobs, "CLOSE_PATIENCE_S", 0.1)
    door.jobs.end()
    door.jobs.stop()
    assert task.wait(PATIENCE_S) == -signal.SIGKILL


def test_nothing_was_started_nothing_is_left(tmp_path: Path) -> None:
    """A database that is closed before Spark runs."""
    context: Any = SimpleNamespace(kernel=SimpleNamespace(on_spark=[], ready=False))
    context.engine = SimpleNamespace(all_hosted=list, take_spent=dict)
    factories = Factories(context, 2)
    factories.start()
    factories.close()
    assert not any(t.name.startswith("headwater-coord") for t in threading.enumerate())
