"""The Python process of a factory's task, as the driver sees it: that it has ended, and how to end it.

A process on this machine is known by a handle, not by its number: the number of one that has ended may be
another's by now, and one that nobody has waited for still answers to it. Of a process on another machine
only Spark knows.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import threading

_CREDENTIALS = struct.Struct("3i")  # of a Unix socket: the number of the process, user, group


def peer_of(connection: socket.socket, said: int) -> int | None:
    """The number of the process at the other end, on this machine; None if it is on another one."""
    if connection.family != socket.AF_UNIX:
        return None
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux: what it says of itself
        return said
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    number: int = _CREDENTIALS.unpack(found)[0]
    return number or None  # 0: it cannot be seen from here


class TaskProcess:
    """The process of one life of a factory; `close` when done."""

    def __init__(self, pid: int | None) -> None:
        self.pid = pid
        self._handle: int | None = None
        self._lock = threading.Lock()
        if pid is not None:
            with contextlib.suppress(AttributeError, OSError):  # not Linux, or it is gone
                self._handle = os.pidfd_open(pid)

    def kill(self) -> None:
        """Ends it at once, if it is on this machine and has not ended."""
        with self._lock, contextlib.suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def has_ended(self, timeout_s: float) -> bool:
        """Whether it has ended; waits so long at most. One that is not on this machine is taken for gone."""
        with self._lock:
            if self._handle is None:
                return True
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            return bool(poll.poll(timeout_s * 1000))

    def close(self) -> None:
        """Gives the handle back."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
