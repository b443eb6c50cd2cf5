"""The pipeline runs on Spark: shown from Spark's own event log, with default settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.factories.spark_child import QUERIES

PAGE = Path("docs/internals/spark.md")
NAMES = {
    re.search(r"(?:QUERY|VIEW) (\w+)", text)[1]: what  # type: ignore[index]
    for what, text in QUERIES.items()
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the program said, and the events of its Spark."""
    folder = tmp_path_factory.mktemp("events")
    environment = {k: v for k, v in os.environ.items() if k != "HEADWATER_FACTORIES"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.factories.spark_child", str(folder)],
        env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    events = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return json.loads(done.stdout.splitlines()[-1]), events


def test_every_kind_of_query_lives_in_a_spark_task(ran: Any) -> None:
    said, events = ran
    assert set(said["hosts"]) == set(NAMES), said["hosts"]
    assert all(re.fullmatch(r"factory \d+", host) for host in said["hosts"].values()), said
    jobs = {
        event["Properties"]["spark.job.description"]: event["Stage IDs"]
        for event in events
        if event["Event"] == "SparkListenerJobStart"
        and "spark.job.description" in event.get("Properties", {})
    }
    assert "headwater: SELECT sum(id) FROM range(10)" in jobs  # what a job of Spark SQL is for
    started = {e["Stage ID"] for e in events if e["Event"] == "SparkListenerTaskStart"}
    for host in set(said["hosts"].values()):
        stages = jobs[f"Headwater {host}"]
        assert set(stages) & started, host


def test_what_users_see_first_lives_in_spark_tasks(ran: Any) -> None:
    found = ran[0]["scripts"]
    assert set(found["README"]) == {"warmth", "extremes"}
    assert {"statistics", "toll_notifications", "accounts", "balances"} <= set(found["demo"])
    for hosts in found.values():
        assert all(re.fullmatch(r"factory \d+", host) for host in hosts.values()), hosts


def test_after_the_move_the_driver_takes_in_no_row(ran: Any) -> None:
    said, _ = ran
    before, after = said["before"], said["after"]
    assert after["here.rows"] == before["here.rows"]
    rows = [name for name in after if re.fullmatch(r"factory\.\d+\.rows", name)]
    grown = {name: after[name] - before.get(name, 0) for name in rows}  # the second starts later
    assert sum(grown.values()) >= 4 * 100, grown  # five queries, a hundred rows; some wait
    assert said["rounds"] == [[1, 50], [2, 50]]
    assert (said["pace"], said["asked"]) == (10, 9)
    assert said["newest"] == [[1, 8], [2, 9]]


def test_the_page_says_where_everything_runs(ran: Any) -> None:
    """docs/internals/spark.md: `HEADWATER_WRITE=1` writes the table anew."""
    said, events = ran
    began, ended = said["fed"]
    others = [  # while rows came for all of them, so a job for one of them would be here
        event["Properties"].get("spark.job.description")
        for event in events
        if event["Event"] == "SparkListenerJobStart" and began <= event["Submission Time"] <= ended
    ]
    rows = ["| what | lives in | Spark's job | Spark SQL jobs for it |", "|---|---|---|---|"]
    for name, what in NAMES.items():
        assert said["hosts"][name].startswith("factory")
        job = "*Headwater factory n*, one running task"
        rows.append(f"| {what} | a factory | {job} | {len(others)} |")
    table, text = "\n".join(rows), PAGE.read_text()
    head, _, rest = text.partition("<!-- table -->\n")
    _, _, tail = rest.partition("\n<!-- end -->")
    wanted = f"{head}<!-- table -->\n{table}\n<!-- end -->{tail}"
    if os.environ.get("HEADWATER_WRITE"):
        PAGE.write_text(wanted)
    assert text == wanted
