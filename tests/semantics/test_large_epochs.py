"""Epochs larger than memory should be: rows are folded early, set aside, or read by Spark (EQ7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.engine import feed, windows
from headwater.engine.query import ContinuousQuery
from tests.harness import large_epoch
from tests.harness.large_epoch import EPOCHS, PAD, QUERIES, ROWS, memory_bytes
from tests.harness.patience import PATIENCE_S, until

INLINE = {"eager_spark": False, "basket_mb": 1}
MEBIBYTE = 1 << 20
SAMPLE_S = 0.01


# Folding before the end of an epoch

FOLDED = {
    "CUT ON ts BY INTERVAL '1000' SECOND": "a time cut",
    "CUT BY 4000 ROWS": "a row cut",
    "CUT ON g": "a cut by values",
}


def query_of(db: headwater.Database, name: str) -> ContinuousQuery:
    found = db._context.engine.find(name)
    assert found is not None
    return found


def is_aside(db: headwater.Database, name: str) -> bool:
    """Whether rows that wait for a query are on disk."""
    return any(reader.feed.basket.is_aside for reader in query_of(db, name).readers)


@pytest.mark.parametrize("cut", FOLDED, ids=FOLDED.values())
@pytest.mark.parametrize("joined", [False, True], ids=["alone", "joined"])
def test_a_full_basket_is_folded_before_the_epoch_ends(cut: str, joined: bool) -> None:
    """Also in the first epoch: 4 MB go through a basket of 1 MB, and none of it is set aside."""
    join = f" JOIN t {cut} AS u USING (k)" if joined else ""
    with headwater.connect(settings=INLINE) as db:
        for stream in ("s", "t"):
            db.sql(f"CREATE STREAM {stream} (ts INT, g INT, k INT, pad STRING) TIMESTAMP BY ts")
        db.sql(
            f"CREATE CONTINUOUS QUERY q WITH (mode = 'fold') AS SELECT count(*) AS n, "
            f"sum(s.k) AS t, max(s.pad) AS p FROM s {cut}{join}"
        )
        assert query_of(db, "q").specs, "the query has no fold"
        aside = []
        for number in range(40):
            rows = [(number, 1, 100 * number + n, "x" * 1000) for n in range(100)]
            for stream in ("s", "t"):
                db.insert(stream, rows)
            db.flush()
            aside.append(is_aside(db, "q"))
        assert query_of(db, "q").counters.last_rows < 2000, "the epoch was folded in one go"
        for stream in ("s", "t"):
            db.insert(stream, [(1001, 2, 0, "y")])
            db.advance(stream, 1001)
        db.flush()
        assert not any(aside)
        first = next(iter(db.subscribe("q", after="earliest", timeout=PATIENCE_S)))
        assert first.rows()[0][:3] == (4000, 4000 * 3999 // 2, "x" * 1000)


FIRST = {
    "FROM s CUT ON ts BY INTERVAL '1000' SECOND": "a time cut",
    "FROM s CUT BY 40000 ROWS": "a row cut",
    "FROM s CUT ON g": "a cut by values",
    "FROM s [INTERVAL '1000' SECOND BEFORE] SAMPLE INTERVAL '1000' SECOND": "a tumbling window",
}


@pytest.mark.here
@pytest.mark.parametrize("cut", FIRST, ids=FIRST.values())
def test_the_first_epoch_is_folded_before_it_ends(cut: str, tmp_path: Path) -> None:
    """Also the first after a restart: an eighth of its rows waits for the cut at most (EQ7)."""
    select = f"SELECT count(*) AS n, sum(k) AS t {cut}"
    with headwater.connect(tmp_path, settings={"eager_spark": False}) as db:
        db.sql("CREATE STREAM s (ts INT, g INT, k INT) TIMESTAMP BY ts")
        db.sql(f"CREATE CONTINUOUS QUERY q WITH (mode = 'fold') AS {select}")
        for number in range(20):
            db.insert("s", [(1 + number, 1, 1000 * number + n) for n in range(1000)])
            db.flush()
        until(lambda: query_of(db, "q").readers[0].untaken <= 20_000 / 8)
    with headwater.connect(tmp_path, settings={"eager_spark": False}) as db:
        for number in range(20, 40):
            db.insert("s", [(1 + number, 1, 1000 * number + n) for n in range(1000)])
            db.flush()
        until(lambda: query_of(db, "q").readers[0].untaken <= 40_000 / 8)
        db.insert("s", [(1001, 2, 0)])
        db.advance("s", 1001)
        db.flush()
        first = next(iter(db.subscribe("q", after="earliest", timeout=PATIENCE_S)))
        assert first.rows()[0][:2] == (40_000, 40_000 * 39_999 // 2)


def test_rows_that_cannot_be_folded_are_set_aside() -> None:
    """A stream far ahead of the one that it is joined with by number waits on disk, and is not lost."""
    with headwater.connect(settings=INLINE) as db:
        for stream in ("s", "t"):
            db.sql(f"CREATE STREAM {stream} (ts INT, k INT, pad STRING) TIMESTAMP BY ts")
        db.sql("""CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n, sum(length(s.pad)) AS p
                  FROM s CUT BY 1000 ROWS JOIN t CUT BY 1000 ROWS USING (k)""")
        for number in range(30):
            db.insert("s", [(number, 100 * number + n, "x" * 1000) for n in range(100)])
            db.flush()
        assert is_aside(db, "q")
        db.insert("t", [(0, k, "y") for k in range(3000)])
        db.flush()
        found = [out.rows()[0][:2] for out in db.subscribe("q", after="earliest", timeout=0.01)]
        assert found == [(1000, 1_000_000)] * 3


# Evaluation over files


ROWS_OF_S = [
    [(1, 1, 10), (2, 2, 20), (4, 1, 30), (5, 3, None)],
    [(9, 1, 40), (3, 2, 90), (11, 2, 50), (12, 3, 60), (12, 1, 70)],  # 3 is late
    [(21, 1, 10), (22, 2, 15), (29, 3, 25), (31, 4, 5), (41, 1, 1)],
]
CHECKED = {
    "outer": """SELECT s.k, count(t.v) AS n, sum(s.v) AS a FROM s CUT ON ts BY INTERVAL '10' SECOND
                KEEP 2 CHUNKS LEFT JOIN t CUT ON ts BY INTERVAL '10' SECOND KEEP 2 CHUNKS
                ON s.k = t.k GROUP BY s.k""",
    "median": "SELECT k, percentile(v, 0.5) AS m FROM s CUT ON ts BY INTERVAL '10' SECOND GROUP BY k",
    "inside": """SELECT percentile(w, 0.5) AS m FROM (SELECT v + 1 AS w FROM s
                 CUT BY 3 ROWS WHERE v > 10) x""",
    "newest": """SELECT s.k, s.v, t.v AS w FROM s CUT ON ts BY INTERVAL '10' SECOND KEEP 2 CHUNKS,
                 t CUT ON ts BY INTERVAL '10' SECOND KEEP 2 CHUNKS WHERE s.k = t.k PAIR NEWEST""",
    "newest_rows": """SELECT s.*, t.v AS w FROM s CUT BY 2 ROWS KEEP 2 CHUNKS FULL JOIN
                 t CUT BY 2 ROWS KEEP 2 CHUNKS ON s.k = t.k PAIR NEWEST""",
    "newest_values": """SELECT s.k, s.v, t.v AS w FROM s CUT ON v BY 30 KEEP 2 CHUNKS LEFT JOIN
                 t CUT ON v BY 30 KEEP 2 CHUNKS ON s.k = t.k PAIR NEWEST""",
    "ordered": "SELECT k, v FROM s CUT ON ts BY INTERVAL '10' SECOND WHERE v > 10",
    "landmark": "SELECT percentile(v, 0.25) AS m FROM t [LANDMARK] SAMPLE INTERVAL 10 SECONDS",
    "ring": "SELECT percentile(v, 0.5) AS m FROM s [ROWS 4] SAMPLE INTERVAL 10 SECONDS",
    "per_key": "SELECT percentile(v, 0.5) AS m FROM s [k ROWS 2] SAMPLE INTERVAL 10 SECONDS",
    "closed": "SELECT median(v) AS m FROM s [INTERVAL 11 SECONDS] SAMPLE INTERVAL 10 SECONDS",
}  # fmt: skip
AS_ROWS = {"ordered", "per_key"}  # their order counts, or which rows there are


def evaluated(time_type: str, names: Iterable[str], only_spark: bool) -> dict[str, Any]:
    """The results of every query, re-evaluated."""
    with headwater.connect(settings={"spark_sql_only": only_spark}) as db:
        db.sql("SET time_zone = 'Europe/Berlin'")
        for stream, kept in (("s", "INTERVAL 35 SECONDS"), ("t", "FOREVER")):
            db.sql(f"""CREATE STREAMING TABLE {stream} (ts {time_type} NOT NULL, k INT, v INT)
                       TIMESTAMP BY ts RANGE {kept}""")
        for name in names:
            text = f"CREATE CONTINUOUS QUERY {name} WITH (mode = 'reevaluate') AS {CHECKED[name]}"
            db.sql(text)
        for rows in ROWS_OF_S:
            for stream in ("s", "t"):
                db.insert(stream, [(moment(time_type, ts), k, v) for ts, k, v in rows])
                table = db._context.stream(stream)
                assert table is not None
                if rows is not ROWS_OF_S[-1]:
                    table.seal()
            db.flush()
        found = {}
        for name in names:
            results = db.subscribe(name, after="earliest", timeout=0.01)
            found[name] = [(out.time, ordered(name, out.rows())) for out in results]
        return found


def moment(time_type: str, second: int) -> Any:
    return second if time_type == "INT" else datetime(2026, 3, 29, 0, 59, second)


def ordered(name: str, rows: list[Any]) -> list[Any]:
    return rows if name == "ordered" else sorted(rows, key=repr)


@pytest.mark.here
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("time_type", "names"),
    [
        ("INT", {"newest_rows", "median"}),
        ("TIMESTAMP_NTZ", {"newest_rows", "median"}),
        pytest.param("INT", set(CHECKED), marks=pytest.mark.large),
    ],
    ids=["INT", "TIMESTAMP_NTZ", "every query"],
)
def test_windows_in_files_give_what_windows_in_memory_give(
    time_type: str, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts of all kinds, KEEP, PAIR NEWEST, late rows, RANGE, blocks and tail; nothing else is read."""
    read = {"files": 0}
    original = windows._as_files

    def counted(*arguments: Any) -> Any:
        read["files"] += 1
        return original(*arguments)

    monkeypatch.setattr(windows, "_as_files", counted)
    in_memory = evaluated(time_type, names, only_spark=False)
    assert read["files"] == 0
    in_files = evaluated(time_type, names, only_spark=True)
    assert in_files == in_memory
    assert all(len(results) >= 2 for results in in_memory.values())
    assert read["files"] >= 2 * len(names - AS_ROWS)


# Evaluation in pieces

IN_PIECES = {
    "passing": "SELECT ts, k, v FROM s [INTERVAL 90 SECONDS] WHERE v % 7 = 0 SAMPLE INTERVAL 30 SECONDS",
    "first": "SELECT ts, v FROM s [INTERVAL 90 SECONDS] WHERE v % 5 = 0 LIMIT 9 SAMPLE INTERVAL 30 SECONDS",
    "per_key": "SELECT k, sum(v) AS v FROM s [k ROWS 2] GROUP BY k SAMPLE INTERVAL 30 SECONDS",
}  # fmt: skip


def in_pieces(rows_at_once: int) -> dict[str, Any]:
    """The results of every query, re-evaluated over blocks that are not in memory."""
    settings = {"eager_spark": False, "recent_mb": 0, "rows_at_once": rows_at_once}
    with headwater.connect(settings=settings) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT NOT NULL, k INT, v INT) TIMESTAMP BY ts")
        for name, text in IN_PIECES.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} WITH (mode = 'reevaluate') AS {text}")
        for number in range(6):
            ticks = [30 * number + 1 + n * 29 // 200 for n in range(200)]
            rows = [(ts, n % 3, 200 * number + n) for n, ts in enumerate(ticks)]
            db.insert("s", [*rows, (30 * number - 5, 1, 35)])  # late, but the first
            table = db._context.stream("s")
            assert table is not None
            table.seal()
            db.flush()
        return {
            name: [
                (out.time, out.rows() if name != "per_key" else sorted(out.rows()))
                for out in db.subscribe(name, after="earliest", timeout=0.01)
            ]
            for name in IN_PIECES
        }


@pytest.mark.here
def test_windows_whose_order_counts_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """From disk, no more than a slab of rows at a time, as are the last rows of keys (ST7)."""
    whole = in_pieces(rows_at_once=1_000_000)
    assert all(len(results) >= 4 for results in whole.values())
    read: list[int] = []
    original = feed.select

    def counted(*arguments: Any) -> Any:
        found = original(*arguments)
        read.append(found.rows.num_rows)
        return found

    monkeypatch.setattr(feed, "select", counted)
    monkeypatch.setattr(feed, "SLAB_ROWS", 100)
    assert in_pieces(rows_at_once=100) == whole
    assert max(read) <= 250, "a window of 600 rows was read at once"


# An epoch larger than memory


class Watch:
    """The most memory that a process held, between questions."""

    def __init__(self, process: int) -> None:
        self._process, self._done, self._peak = process, threading.Event(), 0
        self._thread = threading.Thread(target=self._look, name="watch")
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(SAMPLE_S):
            try:
                self._peak = max(self._peak, memory_bytes(self._process))
            except OSError:
                return  # the process has ended

    def peak(self) -> int:
        """Since the last question."""
        found, self._peak = self._peak, 0
        return found

    def close(self) -> None:
        self._done.set()
        self._thread.join()


@pytest.mark.large
@pytest.mark.timeout(600)
def test_memory_does_not_follow_the_size_of_an_epoch() -> None:
    """An outer join and a percentile over 370 MB, in a process that grows by less than a quarter of it."""
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed is given back, so memory is what is held
    }
    command = [sys.executable, "-m", large_epoch.__name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        watch = Watch(process.pid)
        try:
            found, peaks = [], []
            for line in process.stdout:
                found.append(json.loads(line))
                peaks.append(watch.peak())
        finally:
            process.kill()
            watch.close()
    for epoch, inserts in enumerate(EPOCHS):
        rows, end = inserts * ROWS, (epoch + 1) * large_epoch.LENGTH
        assert found[epoch] == {
            "joined": [[rows, rows // 2, rows // 2 * 2 * PAD, end]],
            "median": [[(rows - 1) / 2, PAD, rows, end]],
        }
    assert set(found[0]) == set(QUERIES)
    size = 2 * EPOCHS[1] * ROWS * (PAD + 12)
    growth = peaks[1] - peaks[0]
    assert growth < size / 4, f"{growth / MEBIBYTE:.0f} MiB more for {size / MEBIBYTE:.0f} MiB"
