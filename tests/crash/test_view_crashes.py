"""Views across kills: nothing is counted twice or lost, on streaming tables and on streams (CV8)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crash import view_child
from tests.harness.patience import PATIENCE_S


def run_until_done(folder: Path, seed: int, kills: int) -> None:
    """Child after child, each killed at some moment, the last one left alone; each checks the views."""
    choose, root = random.Random(seed), Path(__file__).parents[2]
    command = [
        sys.executable,
        "-m",
        "tests.crash.view_child",
        str(folder / "db"),
        str(folder / "log"),
    ]
    for _ in range(kills):
        child = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE)
        before, until = _length(folder), time.monotonic() + PATIENCE_S
        wanted = before + choose.randint(1, 2 * 3 * view_child.LAST // (kills + 1))
        while _length(folder) < wanted and child.poll() is None and time.monotonic() < until:
            time.sleep(0.002)  # not a wait for progress of ours: the child is killed at any moment
        time.sleep(choose.random() * 0.05)  # not a wait for progress: so is this
        child.send_signal(signal.SIGKILL)
        said = child.communicate()[1].decode()
        assert child.returncode in (-signal.SIGKILL, 0), said
    done = subprocess.run(command, cwd=root, check=False, timeout=300, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()


def _length(folder: Path) -> int:
    log = folder / "log"
    return log.read_text().count("\n") if log.exists() else 0


def test_views_equal_their_queries_after_kills(tmp_path: Path) -> None:
    """Killed while rows are inserted, folded, deleted, sealed and let go, snapshots written, views made,
    replaced, seeded and given their static tables again."""
    run_until_done(tmp_path, 1, kills=4)


@pytest.mark.large
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(100, 130))
def test_views_equal_their_queries_after_many_kills(seed: int, tmp_path: Path) -> None:
    """The same, with many kills."""
    run_until_done(tmp_path, seed, kills=12)
