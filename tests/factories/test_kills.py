"""Factories and Spark are killed while rows come: every result is there, once (EQ3, ST6)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
    "blows",
    [
        {"kill": 20, "stop": 2, "java": 3},
        pytest.param({"kill": 300}, marks=LARGE),
        pytest.param({"stop": 50}, marks=LARGE),
        pytest.param({"java": 50}, marks=LARGE),
    ],
    ids=lambda blows: "-".join(f"{how}-{count}" for how, count in blows.items()),
)
def test_results_come_once_whatever_is_killed(blows: dict[str, int]) -> None:
    """A factory's process is killed, or stopped so that it hangs, or Spark ends, at any moment: all results
    are there once, views are what their rows say, also while that happens, FLUSH ends, and neither threads
    nor files are left."""
    found = run("campaign", 1, *(word for blow in blows.items() for word in blow))
    assert found["struck"] == blows
    assert found["reads"] > 0
