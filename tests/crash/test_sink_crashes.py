"""Kills while a sink writes: every result is in exactly one file (G25). No Spark needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.crash.sink_child import LAST

KILLS_AT = (5, 30, 55)  # rows that the sink has written when the process is killed
PATIENCE_S = 240.0  # a bound for what takes seconds, on a machine that is busy


def files(out: Path) -> list[Path]:
    """What readers of the folder see."""
    return sorted(out.glob("[!.]*.json"))


def test_kills_while_files_are_written(tmp_path: Path) -> None:
    """Three kills, each as soon as some more rows are written; then the process may end."""
    out, root = tmp_path / "out", Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.crash.sink_child", str(tmp_path / "data"), str(out)]
    for count in KILLS_AT:
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            told = (int(line) for line in child.stdout)
            assert next(rows for rows in told if rows >= count) < LAST
            child.kill()
    subprocess.run(command, cwd=root, check=True, timeout=PATIENCE_S, stdout=subprocess.DEVNULL)
    found = [json.loads(line) for path in files(out) for line in path.read_text().splitlines()]
    nothing_before = {"v": None, "_t": 0}
    expected = [{"v": 3 * (second - 1), "_t": second} for second in range(1, LAST + 1)]
    assert found == [nothing_before, *expected]
