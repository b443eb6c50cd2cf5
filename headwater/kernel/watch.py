"""Waits for the end of a process without asking it anything, and without taking its exit code from others."""

from __future__ import annotations

import os
import select
import subprocess
import time

POLL_S = 0.1  # where the system cannot wake us


class EndOf:
    """The end of a child process, to wait for in slices; `close` when done."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._handle: int | None = None
        try:
            self._handle = os.pidfd_open(process.pid)
        except (AttributeError, OSError):  # not Linux, an old kernel, or the process is gone
            return
        self._poll = select.poll()
        self._poll.register(self._handle, select.POLLIN)

    def wait(self, timeout_s: float) -> bool:
        """Whether the process has ended; waits so long at most, and wakes at once when it does."""
        if self._handle is not None:
            self._poll.poll(timeout_s * 1000)
            return self._process.poll() is not None
        until = time.monotonic() + timeout_s
        while self._process.poll() is None and time.monotonic() < until:
            time.sleep(POLL_S)
        return self._process.poll() is not None

    def close(self) -> None:
        """Gives the handle back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
