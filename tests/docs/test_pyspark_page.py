"""docs/guide/pyspark.md, as one program under `spark-submit`, with a server where the page names one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.kernel.java import find_java, spark_java_home
from tests.harness.pages import NOT_RUN, blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "pyspark.md"
SERVER = '"http://127.0.0.1:8080"'
SERVED = """
from headwater.server.http.server import HttpOptions, HttpServer
from tests.server.live import Live

live = Live(HttpServer(db, HttpOptions(port=0)))
live.__enter__()
"""
ENDED = """
live.__exit__(None, None, None)
"""
TIMEOUT_S = 870.0  # on a machine where much else runs


def program() -> str:
    """The page's blocks, one after the other; the server listens on a port that is free."""
    text = ""
    for block in blocks(PAGE.read_text()):
        if block.mark == NOT_RUN:
            continue
        text += SERVED if SERVER in block.text else ""
        text += ENDED if "spark.stop()" in block.text else ""
        text += block.text.replace(SERVER, 'f"http://127.0.0.1:{live.port}"') + "\n"
    return text + "print('the page has run')\n"


@pytest.mark.timeout(900)
def test_the_page_runs_under_spark_submit(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(program())
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_GATEWAY")}
    environment |= {
        "JAVA_HOME": str(spark_java_home(find_java())),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    submit = str(Path(sys.executable).parent / "spark-submit")
    confs = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]
    done = subprocess.run(
        [submit, "--master", "local[2]", *confs, str(script)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment,
        cwd=tmp_path,
    )
    assert "the page has run" in done.stdout, done.stderr[-6000:]
    assert "the Spark session of the program has ended" in done.stdout
