"""Peers and tools that stand in virtualenvs of their own, made on demand under the cache folder.

Their pins conflict with ours, or they are large; they are never needed to run or test Headwater.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

INSTALL_TIMEOUT_S = 1800


class Missing(Exception):
    """Why a peer is not there."""


def cache_folder() -> Path:
    """Where benchmarks keep what they install and generate."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headwater" / "benchmarks"


def python_of(package: str, *extra: str, install: bool, size: str) -> Path:
    """The Python of a package's virtualenv; Missing if it is not there and may or can not be made."""
    folder = cache_folder() / package.replace("==", "-")
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return python
    if not install:
        raise Missing(f"{package} is installed by a run without --quick")
    print(f"installing {package} into {folder} (once, about {size}) …", flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    _run([str(python), "-m", "pip", "install", "--quiet", package, *extra])
    (folder / "ready").touch()
    return python


def answer_of(command: list[str], environment: dict[str, str], timeout_s: float) -> Any:
    """What a peer in a process of its own prints last, as JSON; Missing with the reason if it fails."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(f"it took longer than {timeout_s:g} s") from error
    if done.returncode:
        raise Missing((done.stderr.strip().splitlines() or ["it failed"])[-1][:300])
    return json.loads(done.stdout.strip().splitlines()[-1])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(str(error)) from error
    if done.returncode:
        raise Missing((done.stderr.strip().splitlines() or ["it cannot be installed"])[-1])
