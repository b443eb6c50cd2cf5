"""Two executors of their own write the blocks; the driver writes none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.kernel.gateway import spark_home

PROGRAM = """
import json, os, sys
import headwater
from tests.sources.feeding import put, runner, wait_for_rows
from pathlib import Path

incoming = Path(sys.argv[1]) / "in"
for number in range(8):
    put(incoming, f"{number}.csv", "".join(f"{number},{i}\\n" for i in range(500)))
settings = {"spark.sql.files.openCostInBytes": str(64 << 20), "aot_cache": False}
with headwater.connect(Path(sys.argv[1]) / "data", master="local-cluster[2,1,1024]",
                       settings=settings) as db:
    db.sql("CREATE STREAMING TABLE t (n INT, ts BIGINT) TIMESTAMP BY ts")
    db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{incoming}'")
    wait_for_rows(db, "s", 4000, 240)
    reports = runner(db, "s").reports
    print(json.dumps({
        "driver": os.getpid(),
        "writers": [[r.process, r.parent, [f.path for f in r.written.files]] for r in reports],
        "blocks": [path for (path,) in db.sql("SELECT path FROM headwater.blocks").rows()],
        "rows": len(db.sql("SELECT DISTINCT n, ts FROM t WHERE NOT _late").rows()),
        "numbers": len(db.sql("SELECT DISTINCT _seq FROM t").rows()),
    }))
"""


@pytest.fixture
def worker_folder() -> Iterator[None]:
    """Removes what Spark's workers leave in their own folder, which no setting moves."""
    folder = spark_home() / "work"
    before = set(folder.glob("*"))
    yield
    for left in set(folder.glob("*")) - before:
        shutil.rmtree(left, ignore_errors=True)
    if folder.is_dir() and not before:
        folder.rmdir()


@pytest.mark.large
@pytest.mark.usefixtures("worker_folder")
def test_executors_write_the_blocks(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        # Spark looks for its own build folders to find this version; the package has none.
        env={**os.environ, "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    told = json.loads(found.stdout.splitlines()[-1])
    assert (told["rows"], told["numbers"]) == (4000, 4000)
    writers = [w for w in told["writers"] if w[2]]
    assert told["driver"] not in {
        pid for process, parent, _ in writers for pid in (process, parent)
    }
    assert len({parent for _, parent, _ in writers}) == 2  # each executor starts its own workers
    written = {path for _, _, files in writers for path in files}
    assert {path.partition("blocks/")[2] for path in told["blocks"]} == {
        path.partition("blocks/")[2] for path in written
    }
