"""The end of a process is noticed at once, with and without help of the system."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from headwater.kernel.watch import EndOf

LONG_S = 30.0


def refuse(_pid: int) -> int:
    raise OSError("no such call")


@pytest.mark.parametrize("helped", [True, False])
def test_the_end_is_noticed_at_once(helped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not helped:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        end = EndOf(process)
        assert not end.wait(0.01)
        process.kill()
        begin = time.monotonic()
        assert end.wait(LONG_S)
        assert time.monotonic() - begin < LONG_S / 3
        assert process.returncode == -9
        end.close()
        end.close()
