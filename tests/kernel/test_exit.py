"""Whole processes: starts that fail, and ends that leave nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRY = """
import time, headwater
begin = time.monotonic()
db = headwater.connect(":memory:", settings={settings!r})
db.sql("CREATE TABLE t (a INT)")
db.sql("INSERT INTO t VALUES (1)")
print(db.sql("SELECT a FROM t").rows())
try:
    db.sql("SELECT count(*) FROM t")
except headwater.Error as error:
    print(error.sqlstate, error.message, "|", error.hint)
print(db.sql("SELECT a FROM t").rows())
db.close()
print("seconds", time.monotonic() - begin)
"""


TIMEOUT_S = 270.0  # on a machine where much else runs


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
    assert not list(Path("/dev/shm").glob(f"headwater-scratch-{process.pid}-*"))
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.parametrize(
    ("settings", "sqlstate", "message"),
    [
        ({"master": "spark://127.0.0.1:1"}, "08001", "cannot be reached"),
        ({"driver_memory_mb": 100_000_000}, "53200", "not enough memory to start Spark"),
    ],
)
def test_without_spark_the_rest_works(
    settings: dict[str, object], sqlstate: str, message: str, tmp_path: Path
) -> None:
    done = run(TRY.format(settings=settings), TMPDIR=str(tmp_path))
    lines = done.stdout.splitlines()
    assert lines[0] == lines[2] == "[(1,)]", done.stderr
    assert lines[1].startswith(sqlstate)
    assert message in lines[1]
    assert "None" not in lines[1]  # there is a hint
    assert float(lines[3].split()[1]) < TIMEOUT_S / 2  # it gave up by itself
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


BUSY = """
import headwater, pyarrow.compute as pc
db = headwater.connect(":memory:")
db.create_function("plus", lambda a: pc.add(a, 1), returns="BIGINT")
db.sql("CREATE TABLE t AS SELECT plus(id) AS a FROM range(10)")
db.sql("UPDATE t SET a = a + 1 WHERE a > 5")
print(db.sql("SELECT sum(plus(a)) FROM t").rows())
{end}
"""


@pytest.mark.parametrize(
    "end", ["db.close()", pytest.param("pass", marks=pytest.mark.large, id="left open")]
)
def test_nothing_is_left_and_nothing_is_printed(end: str, tmp_path: Path) -> None:
    done = run(BUSY.format(end=end), TMPDIR=str(tmp_path))
    assert done.stdout == "[(70,)]\n", done.stderr
    assert done.stderr == ""
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_ends_while_spark_starts(tmp_path: Path) -> None:
    program = "import headwater; db = headwater.connect(':memory:'); raise SystemExit(7)"
    done = run(program, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (7, "")
    assert list(tmp_path.iterdir()) == []
