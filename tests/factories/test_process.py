"""The process of a task: its end is seen at once, though nobody has waited for it, and not by its number."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from headwater.factories.process import TaskProcess, peer_of
from tests.harness.patience import PATIENCE_S


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing, for as long as it takes."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_one_that_runs_is_ended(child: subprocess.Popen[bytes]) -> None:
    process = TaskProcess(child.pid)
    assert not process.has_ended(0.0)
    process.kill()
    assert process.has_ended(PATIENCE_S)  # though nobody has waited for it: it is a zombie now
    os.kill(child.pid, 0)  # which still answers to its number
    process.kill()
    process.close()


def test_one_that_was_stopped_is_ended_too(child: subprocess.Popen[bytes]) -> None:
    process = TaskProcess(child.pid)
    os.kill(child.pid, signal.SIGSTOP)
    process.kill()
    assert process.has_ended(PATIENCE_S)
    process.close()


def test_one_that_cannot_be_seen_is_left_alone() -> None:
    """On another machine, or gone before it was looked at: there is nothing to wait for, or to kill."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(PATIENCE_S)
    for process in (TaskProcess(None), TaskProcess(gone.pid)):
        began = time.monotonic()
        assert process.has_ended(PATIENCE_S)
        process.kill()
        process.close()
        assert time.monotonic() - began < PATIENCE_S / 2


def test_a_closed_one_kills_nobody(child: subprocess.Popen[bytes]) -> None:
    process = TaskProcess(child.pid)
    process.close()
    process.close()
    process.kill()
    assert child.poll() is None


def test_the_other_end_of_a_socket_on_this_machine() -> None:
    """Its number is the system's, and not what it says."""
    near, far = socket.socketpair()
    with near, far:
        assert peer_of(near, said=1) == os.getpid()
    with (
        socket.create_server(("localhost", 0)) as server,
        socket.create_connection(server.getsockname()) as remote,
    ):
        assert peer_of(remote, said=os.getpid()) is None
