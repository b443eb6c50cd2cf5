"""Runs steps in this process, or for ClickHouse in its virtualenv: `python -m benchmarks.aim.outside`."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import installed, postgres
from benchmarks.aim.measure import Figures, Step, Work, perform
from benchmarks.installed import Missing

CHDB = "chdb==4.4.0"
ROOT = Path(__file__).parents[2]
RUN_TIMEOUT_S = 900


def performed(work: Work, install: bool) -> list[Figures]:
    """What each step found; Missing if the system is not there."""
    if work.system.startswith("PostgreSQL"):
        why = postgres.why_missing()
        if why is not None:
            raise Missing(why)
    if not work.system.startswith("ClickHouse"):
        return perform(work)
    python = installed.python_of(CHDB, "pyarrow", install=install, size="900 MB")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [str(python), "-m", "benchmarks.aim.outside", json.dumps(asdict(work))]
    found: list[Figures] = installed.answer_of(command, environment, RUN_TIMEOUT_S)
    return found


def read_work(text: str) -> Work:
    """A work from JSON."""
    found: dict[str, Any] = json.loads(text)
    steps = tuple(Step(**step) for step in found["steps"])
    return Work(found["system"], found["customers"], tuple(found["views"]), steps)


if __name__ == "__main__":
    print(json.dumps(perform(read_work(sys.argv[1]))))
