"""The driver is killed with its factories at work: every result is there once, for every reader (EQ3)."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.factories.test_kills import LARGE, ROOT

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=LARGE)])
def test_results_come_once_when_the_driver_is_killed(kills: int, tmp_path: Path) -> None:
    """The next one goes on, and each reader by its token; nothing is left of those that were killed."""
    log, choose = tmp_path / "log", random.Random(7)
    command = [sys.executable, "-m", "tests.factories.driver_child", str(tmp_path / "db"), str(log)]
    for _ in range(kills):
        with subprocess.Popen([*command, "feed"], cwd=ROOT, stderr=subprocess.PIPE) as child:
            wanted = _lines(log) + choose.randint(1, 60)
            while _lines(log) < wanted:  # pytest ends a test that hangs
                assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
                time.sleep(0.005)  # not a wait for progress of ours
            child.send_signal(signal.SIGKILL)
    done = subprocess.run([*command, "compare"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1])["kills"] == kills


def _lines(log: Path) -> int:
    return log.read_text().count("\n") if log.exists() else 0
