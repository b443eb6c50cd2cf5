"""Factories, Spark and the driver are killed while rows come: every result is there, once (EQ3, ST6)."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
LARGE = [pytest.mark.large, pytest.mark.timeout(7200)]
pytestmark = pytest.mark.timeout(900)


def run(module: str, *arguments: object) -> dict[str, Any]:
    """What a program says in its last line."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.factories.{module}", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("how", "count"),
    [
        pytest.param("kill", 20, marks=LARGE),
        pytest.param("stop", 3, marks=LARGE),
        pytest.param("java", 2, marks=LARGE),
        pytest.param("kill", 300, marks=LARGE),
        pytest.param("stop", 50, marks=LARGE),
        pytest.param("java", 50, marks=LARGE),
    ],
)
def test_results_come_once_whatever_is_killed(how: str, count: int) -> None:
    """A factory's process is killed, or stopped so that it hangs, or Spark ends, at any moment: all results
    are there once, views are what their rows say, and neither threads nor files are left."""
    assert run("campaign", how, count, 1)["struck"] == count


@pytest.mark.parametrize("kills", [pytest.param(3, marks=LARGE), pytest.param(50, marks=LARGE)])
def test_results_come_once_when_the_driver_is_killed(kills: int, tmp_path: Path) -> None:
    """The driver is killed with its factories at work; the next one goes on, and each reader by its token."""
    log, choose = tmp_path / "log", random.Random(7)
    command = [sys.executable, "-m", "tests.factories.driver_child", str(tmp_path / "db"), str(log)]
    for _ in range(kills):
        with subprocess.Popen([*command, "feed"], cwd=ROOT, stderr=subprocess.PIPE) as child:
            lines, until = _lines(log), time.monotonic() + PATIENCE_S
            wanted = lines + choose.randint(1, 60)
            while _lines(log) < wanted and time.monotonic() < until:
                assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
                time.sleep(0.005)  # not a wait for progress of ours
            child.send_signal(signal.SIGKILL)
    done = subprocess.run([*command, "compare"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1])["kills"] == kills


def _lines(log: Path) -> int:
    return log.read_text().count("\n") if log.exists() else 0
