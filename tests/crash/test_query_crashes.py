"""Continuous queries across restarts and kills: the same results, each once, in order (ST6, EQ3)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import headwater
from tests.crash import query_child, window_child
from tests.harness.actions import Advance, Insert, Kill, Restart, Sql, run
from tests.harness.patience import PATIENCE_S, until

QUERIES = {
    "sums": "SELECT k, count(*) n, sum(v) s, max(v) m FROM s [INTERVAL 5 SECONDS] GROUP BY k "
    "SAMPLE INTERVAL 2 SECONDS",
    "last_of_each": "SELECT k, v, PREV(v) p FROM s [k ROWS 2] WHERE v > 1 SAMPLE INTERVAL 2 SECONDS",
    "since": "SELECT k, count(*) n FROM s [LANDMARK] GROUP BY k SAMPLE INTERVAL 2 SECONDS",
    "by_rows": "SELECT k, count(*) n, max(v) m FROM s [ROWS 7] GROUP BY k SAMPLE 3 ROWS",
    "at_once": "SELECT k, v FROM s [ROWS 3] SAMPLE REALTIME",
    "joined": "SELECT x.k, count(*) n, max(y.v) m FROM s [INTERVAL 5 SECONDS] x, s [INTERVAL 3 "
    "SECONDS] y WHERE x.k = y.k GROUP BY x.k SAMPLE INTERVAL 2 SECONDS",
}
SETTINGS = {"snapshot_s": 0.1, "eager_spark": False}
MORE = 10  # results that a process could write beyond those that it is killed after


def _rows(seed: int, first: int, last: int) -> list[tuple[int, str, int]]:
    choose = random.Random(seed)
    return [
        (second, choose.choice("abc"), choose.randint(0, 9))
        for second in range(first, last)
        for _ in range(choose.randint(0, 3))
    ]


def _results(folder: Path, names: list[str]) -> dict[str, list[Any]]:
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.flush()
        return {
            name: [
                (out.time, sorted(map(str, out.rows())))
                for out in db.subscribe(name, after="earliest", timeout=0.01)
            ]
            for name in names
        }


@pytest.mark.parametrize(
    "kind", ["STREAM", pytest.param("STREAMING TABLE", marks=pytest.mark.large)]
)
@pytest.mark.parametrize("end", [Kill, pytest.param(Restart, marks=pytest.mark.large)])
def test_queries_go_on_after_a_restart_or_a_kill(kind: str, end: Any, tmp_path: Path) -> None:
    """Every kind of window gives the results of a run that nobody stopped, snapshots or not."""
    create = [Sql(f"CREATE {kind} s (ts INT, k STRING, v INT) TIMESTAMP BY ts")]
    create += [Sql(f"CREATE CONTINUOUS QUERY {n} AS {q}") for n, q in QUERIES.items()]
    parts = [Insert("s", _rows(n, 7 * n, 7 * n + 7)) for n in range(3)]
    quiet = [*create, *parts, Advance("s", 30)]
    run(quiet, tmp_path / "quiet", SETTINGS)
    stopped = [*create]
    for number, part in enumerate(parts):
        stopped.append(part)
        if number < 2:
            stopped.append(end())
    run([*stopped, Advance("s", 30)], tmp_path / "stopped", SETTINGS)
    expected = _results(tmp_path / "quiet", list(QUERIES))
    assert all(expected.values())
    assert _results(tmp_path / "stopped", list(QUERIES)) == expected


def test_a_reader_that_resumes_by_token_gets_each_result_once(tmp_path: Path) -> None:
    """Killed at random moments, a reader with its last token gets exactly the results that follow;
    a query over a materialized view sees every row of the view once."""
    lines = through_kills("query_child", tmp_path)
    assert [line["time"] for line in lines] == list(range(3, query_child.LAST_SECOND + 1, 3))
    for line in lines:
        assert line["rows"] == _expected(int(str(line["time"]))), line["time"]
    assert len({line["token"] for line in lines}) == len(lines)


STEPS = ("after put", "after keep_from", "drop")
RARE = ("prepare", "put", "keep_from", "after drop")


@pytest.mark.parametrize(
    "step", [*STEPS, *(pytest.param(step, marks=pytest.mark.large) for step in RARE)]
)
def test_a_folded_stream_lets_rows_go_and_loses_nothing(step: str, tmp_path: Path) -> None:
    """Killed between a snapshot and the end of the rows that it stands for, at any step (DC5)."""
    command = [sys.executable, "-m", "tests.crash.window_child", str(tmp_path / "db"), step]
    root = Path(__file__).parents[2]
    for count in (2, 5):
        child = subprocess.run([*command, str(count)], cwd=root, timeout=PATIENCE_S, check=False)
        assert child.returncode == -signal.SIGKILL, "it did not come to that step"
    with window_child.open_database(tmp_path / "db") as db:
        window_child.feed(db)
        found = {
            out.time: sorted(map(list, out.rows()))
            for out in db.subscribe("q", after="earliest", timeout=0.01)
        }
    seconds = range(window_child.LAST_SECOND)
    rows = [row for second in seconds for row in window_child.rows_at(second)]
    for instant in range(20, window_child.LAST_SECOND + 1, 20):
        groups: dict[str, list[int]] = {}
        for second, key, value in rows:
            if instant - window_child.WINDOW <= second <= instant:
                groups.setdefault(key, []).append(value)
        wanted = [[k, len(v), sum(v), max(v), instant] for k, v in sorted(groups.items())]
        assert found[instant] == wanted, instant


def kept_rows(folder: Path, query: str, wanted: int) -> int:
    """How many of 800 rows a stream keeps under a query, once their results are there.

    No more than `wanted` are waited for.
    """
    with headwater.connect(folder, settings=window_child.SETTINGS) as db:
        for name in ("s", "other"):
            db.sql(f"CREATE STREAM {name} (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        db.sql("CREATE TABLE names (k STRING)")
        db.sql(f"CREATE CONTINUOUS QUERY q {query}")
        for name in ("other", "s"):
            db.insert(name, [(n // 2, "abc"[n % 3], n) for n in range(800)])
        db.flush()
        table = db._context.stream("s")
        assert table is not None

        def few() -> bool:
            window_child.let_go(db)
            return table.rows_since(0) <= wanted

        until(few, "the stream keeps more rows")
        return table.rows_since(0)


LONG = "FROM s [INTERVAL 300 SECONDS]"
BY_KEY = "GROUP BY k SAMPLE INTERVAL 20 SECONDS"


@pytest.mark.here
@pytest.mark.parametrize(
    ("query", "few"),
    [
        (f"AS SELECT k, sum(v) t {LONG} {BY_KEY}", True),
        (f"AS SELECT k, v {LONG} WHERE v % 7 = 0 SAMPLE INTERVAL 20 SECONDS", True),
        ("AS SELECT k, sum(v) t FROM s CUT ON ts BY INTERVAL 100 SECONDS KEEP 3 CHUNKS GROUP BY k",
         True),
        (f"WITH (mode = 'reevaluate') AS SELECT k, sum(v) t {LONG} {BY_KEY}", False),
        (f"AS SELECT k, sum(v) t {LONG} JOIN names USING (k) {BY_KEY}", False),
        (f"AS SELECT x.k, sum(x.v) t {LONG} x JOIN other [INTERVAL 9 SECONDS] y USING (k) "
         "GROUP BY x.k SAMPLE INTERVAL 20 SECONDS", False),
    ],
    ids=["groups", "rows", "epochs", "reevaluated", "table below", "joined"],
)  # fmt: skip
def test_a_stream_keeps_what_no_partial_stands_for(query: str, few: bool, tmp_path: Path) -> None:
    """Rows go once a snapshot has their partials; where rows are read again, a window of them stays (DC5)."""
    kept = kept_rows(tmp_path, query, 50 if few else 800)
    assert kept <= 50 if few else kept >= 590


@pytest.mark.here
def test_a_damaged_snapshot_of_rows_that_are_gone_is_told(tmp_path: Path) -> None:
    """A query whose rows a stream has let go does not go on from half of them."""
    kept_rows(tmp_path, f"AS SELECT k, sum(v) t {LONG} {BY_KEY}", 50)
    (snapshot,) = [path for path in (tmp_path / "snapshots").iterdir() if path.stat().st_size]
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    with headwater.connect(tmp_path, settings=window_child.SETTINGS) as db:
        db.insert("s", [(460, "a", 1)])
        with pytest.raises(headwater.Error, match="rows of stream s that the query needs are gone"):
            db.flush()
        (state,) = db.sql("SELECT state FROM headwater.queries").rows()
        assert state == ("failed",)


def test_state_of_functions_goes_on_through_kills(tmp_path: Path) -> None:
    """Killed at random moments, a query whose functions keep state goes on as in one long run (EQ8)."""
    rows = [row for second in range(query_child.LAST_SECOND) for row in query_child.rows_at(second)]
    total, per_chunk, wanted = 0, 0, {}
    for place, (second, key, value) in enumerate(rows):
        total = (total * 31 + value) % 1_000_003
        new_chunk = place == 0 or rows[place - 1][0] // 3 != second // 3
        per_chunk = 1 if new_chunk else per_chunk + 1
        wanted.setdefault(second // 3, []).append([place, key, total, per_chunk])
    lines = through_kills("function_child", tmp_path)
    assert [line["time"] for line in lines] == list(range(3, query_child.LAST_SECOND + 1, 3))
    for line in lines:
        time = int(str(line["time"]))
        kept = [*wanted.get(time // 3 - 2, []), *wanted.get(time // 3 - 1, [])]
        assert line["rows"] == [[*row, time] for row in kept], time


def through_kills(module: str, tmp_path: Path, kills: int = 4) -> list[dict[str, Any]]:
    """What a child has written that was killed at random moments, and in the end was not.

    It is given little more than it is to write: however late the kill comes, rows are left for the others.
    """
    log, choose = tmp_path / "log", random.Random(3)
    command = [sys.executable, "-m", f"tests.crash.{module}", str(tmp_path / "db"), str(log)]
    root = Path(__file__).parents[2]
    for _ in range(kills):
        wanted = len(query_child.lines_of(log)) + choose.randint(1, 20)
        last = (wanted + MORE) * query_child.EVERY
        with subprocess.Popen([*command, str(last)], cwd=root, stderr=subprocess.PIPE) as child:
            end = time.monotonic() + PATIENCE_S
            while not _written(log, wanted, last):
                assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
                assert time.monotonic() < end, "nothing was written"
                time.sleep(0.01)  # not a wait for progress of ours: the child is killed at any time
            child.send_signal(signal.SIGKILL)
            child.communicate()
    last = query_child.LAST_SECOND
    subprocess.run([*command, str(last)], cwd=root, check=True, timeout=PATIENCE_S)
    return query_child.lines_of(log)


def _written(log: Path, wanted: int, last: int) -> bool:
    """Whether so many results are there, or, where updates take the place of others, the last ones are."""
    times = [int(str(line["time"])) for line in query_child.lines_of(log)]
    return len(times) >= wanted or max(times, default=0) > last - 2 * query_child.EVERY


def _expected(instant: int) -> list[list[Any]]:
    """The query over the view over the rows, by brute force."""
    found: dict[str, list[int]] = {}
    for inner in range(0, query_child.LAST_SECOND + 1, 2):
        if not instant - 6 <= inner < instant or inner < 2:
            continue
        groups: dict[str, list[int]] = {}
        for second in range(max(inner - 4, 0), inner + 1):
            for _, key, value in query_child.rows_at(second):
                groups.setdefault(key, []).append(value)
        for key, values in groups.items():
            count, most = found.get(key, [0, -1])
            found[key] = [count + len(values), max(most, sum(values))]
    return sorted([key, count, most, instant] for key, (count, most) in found.items())
