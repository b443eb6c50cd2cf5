"""A source of thousands of micro-batches, with kills: every row once, and it never stops by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headwater

LAST = 2000  # files, one in each micro-batch
KILLS_AT = (130, 450, 1100, 1700)  # rows that the source has delivered when the process is killed
PATIENCE_S = 3000.0


@pytest.mark.large
@pytest.mark.timeout(6000)
def test_two_thousand_micro_batches_with_kills(tmp_path: Path) -> None:
    data, incoming = tmp_path / "data", tmp_path / "in"
    incoming.mkdir()
    for number in range(LAST):
        (incoming / f"{number:05d}.csv").write_text(f"{number},{number}\n")
    module = [sys.executable, "-m", "tests.crash.source_child"]
    command, root = [*module, str(data), str(incoming), str(LAST)], Path(__file__).parents[2]
    for count in KILLS_AT:
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            told = (int(line) for line in child.stdout)
            assert next(rows for rows in told if rows >= count) < LAST
            child.kill()
    subprocess.run(command, cwd=root, check=True, timeout=PATIENCE_S, stdout=subprocess.DEVNULL)
    with headwater.connect(data) as db:
        found = db.sql("SELECT n, _late FROM t").rows()
        assert sorted(n for n, _ in found) == list(range(LAST))
        ((batches,),) = db.sql("SELECT last_batch FROM headwater.sources").rows()
        # A kill between Spark's notes of a file and of its batch makes the next batch hold two files.
        assert batches >= LAST - 1 - len(KILLS_AT)
