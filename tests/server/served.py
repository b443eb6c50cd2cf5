"""`headwater serve` in a process of its own, whose memory can be looked at and which can be killed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.serve.loader import Client
from tests.harness.patience import PATIENCE_S

_WIRE = re.compile(r"psql -h (\S+) -p (\d+)")
_HTTP = re.compile(r"http://(\S+):(\d+)/openapi.json")


class Served:
    """A server of a folder; killed at the end, as when the power goes."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self._command = [sys.executable, "-m", "headwater.cli", "serve", str(folder)]
        self._command += ["--port", "0", "--http-port", "0", "--socket", "none"]
        for name, value in ({"eager_spark": "false"} | settings).items():
            self._command += ["--set", f"{name}={value}"]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        self.address = self._said(_WIRE)
        self.http_address = self._said(_HTTP)
        return self

    def _said(self, pattern: re.Pattern[str]) -> tuple[str, int]:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = pattern.search(line)
            if found is not None:
                return found.group(1), int(found.group(2))
        raise AssertionError("headwater serve did not start")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_S)

    @property
    def is_running(self) -> bool:
        """Whether the process is there still."""
        return self._process.poll() is None

    def ask_to_stop(self) -> None:
        """SIGTERM; returns when the server has begun to stop."""
        self._process.terminate()
        assert self._process.stderr is not None
        assert any("stopping" in line for line in self._process.stderr)

    def exit_code(self) -> int:
        """How the process ended, once it has."""
        self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def line_with(self, words: str) -> str:
        """The next line that the server prints with these words."""
        assert self._process.stderr is not None
        return next(line for line in self._process.stderr if words in line)

    def client(self) -> Client:
        """A new connection."""
        return Client(self.address, "tester", "headwater")

    def memory_mb(self, which: str = "VmRSS") -> float:
        """What the process holds in memory; `VmHWM`: the most that it ever held."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(rf"{which}:\s+(\d+) kB", status)
        assert found is not None
        return int(found.group(1)) / 1024
