"""A Spark standalone cluster: the whole of a database on two workers gives what one process gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness import whole
from tests.harness.spark_cluster import SparkCluster

PATIENCE_S = 800.0  # on a machine that is busy with other things


@pytest.mark.large
@pytest.mark.timeout(1500)
def test_whole_on_a_standalone_cluster(tmp_path: Path) -> None:
    """A streaming table, queries, a view and a join run on the workers, and go on after a restart.

    Every chunk goes to Spark there; here, by operators. Results, their instants and what a subscriber
    gets after its token are the same.
    """
    with SparkCluster(tmp_path / "cluster") as cluster:
        settings = {
            **cluster.settings,
            "spark_sql_only": True,
            "spark_ui": True,
            "spark.ui.port": "0",
        }
        told = cluster.run(
            "-m",
            "tests.harness.whole",
            str(tmp_path / "shared"),
            cluster.master,
            json.dumps(settings),
            timeout_s=PATIENCE_S,
        )
    assert set(told["tiers"]) == {"sums", "rooms", "totals"}
    assert all("Spark" in tier for tier in told["tiers"].values())
    assert told["tasks"].pop("driver") == 0
    assert len(told["tasks"]) == 2
    assert all(count > 0 for count in told["tasks"].values())
    local = json.loads(json.dumps(whole.run(tmp_path / "local")))
    assert told["seen"] == local
