"""Two executors of their own write the blocks; the driver writes none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.spark_cluster import SparkCluster

PROGRAM = """
import json, os, sys
import headwater
from tests.sources.feeding import put, runner, wait_for_rows
from pathlib import Path

incoming = Path(sys.argv[1]) / "in"
for number in range(8):
    put(incoming, f"{number}.csv", "".join(f"{number},{i}\\n" for i in range(500)))
settings = {"spark.sql.files.openCostInBytes": str(64 << 20), **json.loads(sys.argv[3])}
with headwater.connect(Path(sys.argv[1]) / "data", master=sys.argv[2], settings=settings) as db:
    db.sql("CREATE STREAMING TABLE t (n INT, ts BIGINT) TIMESTAMP BY ts")
    db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{incoming}'")
    wait_for_rows(db, "s", 4000, 480)
    reports = runner(db, "s").reports
    print(json.dumps({
        "driver": os.getpid(),
        "writers": [[r.process, r.parent, [f.path for f in r.written.files]] for r in reports],
        "blocks": [path for (path,) in db.sql("SELECT path FROM headwater.blocks").rows()],
        "rows": len(db.sql("SELECT DISTINCT n, ts FROM t WHERE NOT _late").rows()),
        "numbers": len(db.sql("SELECT DISTINCT _seq FROM t").rows()),
    }))
"""


@pytest.mark.large
@pytest.mark.timeout(900)
def test_executors_write_the_blocks(tmp_path: Path) -> None:
    """Each worker's executor writes files of its own; the driver only commits them."""
    with SparkCluster(tmp_path / "cluster") as cluster:
        settings = json.dumps(cluster.settings)
        told = cluster.run("-c", PROGRAM, str(tmp_path), cluster.master, settings, timeout_s=600)
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
