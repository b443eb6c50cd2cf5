"""Update queries behind update queries: a view takes the results of one, and others stand on it (US9)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import update_query
from headwater.engine.update_queue import BatchSizer
from tests.harness.patience import PATIENCE_S, until

INLINE = {"eager_spark": False}
STREAM = "CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)"
WINDOW = "[INTERVAL 6 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS WITH UPDATES"
INNER = {
    "rows": "SELECT k, v * 2 AS t FROM s WHERE v % 5 <> 0 WITH UPDATES",
    "every": "SELECT k, v AS t FROM s WITH APPEND",
    "lazy": f"SELECT k, sum(v) AS t FROM s {WINDOW}",
    "eager": f"SELECT k, sum(v) AS t FROM s {WINDOW} WINDOWS EAGER",
}
WINDOWS = (
    "SELECT k, count(*) AS n, sum(t) AS t FROM {} [INTERVAL 4 SECONDS] GROUP BY k"
    " SAMPLE INTERVAL 4 SECONDS"
)
OUTER = {
    "rows": "SELECT k, t + 1 AS u FROM m WITH UPDATES SCHEDULE FIFO",
    "lazy": WINDOWS.format("m") + " WITH UPDATES",
    "eager": WINDOWS.format("m") + " WITH UPDATES WINDOWS EAGER",
    "whole": WINDOWS.format("m"),
}


def _rows(start: int, end: int) -> list[tuple[int, str, int]]:
    return [(n // 2, "abcde"[n * n % 5], n) for n in range(start, end)]


def _results(db: headwater.Database, name: str) -> list[tuple[Any, ...]]:
    found = db.subscribe(name, after="earliest", timeout=0.1)
    return [row for out in found for row in out.rows()]


def _by_key(rows: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


@pytest.mark.parametrize("calm", [True, False])
@pytest.mark.parametrize("inner", INNER)
def test_a_chain_is_as_its_queries_over_what_each_got(
    inner: str, calm: bool, tmp_path: Path
) -> None:
    """Every result of the inner one is a row; each outer one has what it gives over these, restarted too."""
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.sql(STREAM)
        db.sql(f"CREATE MATERIALIZED VIEW m AS {INNER[inner]}")
        for name, text in OUTER.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {text}")
        db.sql("CREATE MATERIALIZED VIEW m2 AS SELECT k, t FROM m WITH APPEND")
        db.sql("CREATE CONTINUOUS QUERY last AS SELECT k, t FROM m2 WITH UPDATES")
    for start in range(0, 90, 30):
        with headwater.connect(tmp_path, settings=INLINE) as db:
            for first in range(start, start + 30, 5):
                db.insert("s", _rows(first, first + 5))
                if calm:
                    db.flush()
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.advance("s", 80)
        db.flush()
        _check_inner(db, inner)
        rows = db.sql("SELECT k, t, _t FROM m ORDER BY _seq").rows()
        assert db.sql("SELECT sum(late_count) FROM headwater.late_rows").rows() == [(0,)]
        _check_outer(db, rows)


def _check_inner(db: headwater.Database, inner: str) -> None:
    """A key's results go up in time, and the last is what the query gives for its newest row or window."""
    given = _by_key(db.sql("SELECT k, t, _t FROM m ORDER BY _seq").rows())
    for key, results in given.items():
        times = [t for *_, t in results]
        assert times == sorted(times if inner == "every" else set(times)), key
        own = [(ts, v) for ts, k, v in _rows(0, 90) if k == key]
        if inner == "rows":
            ts, v = [(ts, v) for ts, v in own if v % 5][-1]
            assert results[-1] == (key, 2 * v, ts)
        elif inner == "every":
            assert results == [(key, v, ts) for ts, v in own]
        else:
            end = (own[-1][0] + 6) // 2 * 2 if inner == "lazy" else times[-1]
            assert results[-1] == (key, sum(v for ts, v in own if end - 6 <= ts <= end), end)


def _check_outer(db: headwater.Database, rows: list[tuple[Any, ...]]) -> None:
    newest = {row[0]: row for row in sorted(rows, key=lambda row: row[-1])}
    shown = {row[0]: row for row in db.sql("SELECT * FROM rows").rows()}
    assert shown == {k: (k, t + 1, at) for k, t, at in newest.values()}
    assert {row[0]: row for row in db.sql("SELECT * FROM last").rows()} == newest
    assert sorted(db.sql("SELECT k, t, _t FROM m2").rows()) == sorted(rows)
    db.sql("CREATE STREAMING TABLE plain (at INT, k STRING, t BIGINT) TIMESTAMP BY at")
    db.sql(f"CREATE CONTINUOUS QUERY plain_whole AS {WINDOWS.format('plain')}")
    db.insert("plain", sorted((at, k, t) for k, t, at in rows))
    db.advance("plain", 80)
    db.flush()
    whole = {(row[0], row[-1]): row for row in _results(db, "plain_whole")}
    assert {(row[0], row[-1]): row for row in _results(db, "whole")} == whole
    last = {key: row for (key, _), row in sorted(whole.items(), key=lambda one: one[0][1])}
    for name in ("lazy", "eager"):
        for key, results in _by_key(_results(db, name)).items():
            times = [row[-1] for row in results]
            assert times == sorted(set(times)), "no window comes twice, no key goes back"
            assert all(whole[key, row[-1]] == row for row in results)
            assert name == "eager" or results[-1] == last[key]


def test_what_was_shed_does_not_come_late_after_a_restart(tmp_path: Path) -> None:
    """The view's clock has passed it; that it would be kept now is no reason to give it."""
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.sql(STREAM)
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT k, v FROM s WITH SHEDDING 0.4")
        db.sql("PAUSE QUERY m")
        db.insert("s", [(1, "b", 1), (2, "a", 2)])
        db.advance("s", 9)
        db.sql("RESUME QUERY m")
        db.flush()
        assert db.sql("SELECT * FROM m").rows() == [("b", 1, 1)]  # by the seed
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.flush()
        assert db.sql("SELECT * FROM m").rows() == [("b", 1, 1)]
        assert db.sql("SELECT sum(late_count) FROM headwater.late_rows").rows() == [(0,)]


def test_a_join_gives_each_match_once(tmp_path: Path) -> None:
    """A row that changes nothing of its key's match gives no result, nor does a restart."""
    on = "JOIN s2 [INTERVAL 9 SECONDS] y ON x.k = y.k AND y.w > 0 WITH UPDATES"
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.sql(STREAM)
        db.sql("CREATE STREAMING TABLE s2 (ts INT, k STRING, w INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.sql(f"CREATE MATERIALIZED VIEW m AS SELECT x.k, v, w FROM s [INTERVAL 5 SECONDS] x {on}")
        text = f"SELECT x.k, v, y.w FROM m [INTERVAL 5 SECONDS] x {on}"
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
        db.sql("CREATE CONTINUOUS QUERY every AS SELECT k, w FROM m WITH APPEND")
        for table, row in (("s", (5, "a", 1)), ("s2", (5, "a", 2)), ("s2", (5, "a", -3))):
            db.insert(table, [row])
            db.flush()
        assert db.sql("SELECT * FROM m").rows() == [("a", 1, 2, 5)]
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.insert("s2", [(8, "a", 4), (8, "b", 5)])
        db.flush()
        assert db.sql("SELECT * FROM m").rows() == [("a", 1, 2, 5), ("a", 1, 4, 8)]
        assert _results(db, "every") == [("a", 2, 5), ("a", 4, 8)]
        assert db.sql("SELECT * FROM q").rows() == [("a", 1, 4, 8)]


@pytest.mark.here
def test_a_result_goes_on_at_once_though_older_ones_of_other_keys_are_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Order is kept by key: the outer query has a newer result while the inner one works at an older one."""
    gates = {"x": threading.Event(), "b": threading.Event()}
    quick = update_query.results_of_rows

    def gated(spec: Any, batch: Any, held: Any) -> pa.Table:
        if spec.branches[0].table.definition.name == "s":
            (key,) = batch.rows.column(0).to_pylist()
            assert key not in gates or gates[key].wait(PATIENCE_S)
        return quick(spec, batch, held)

    monkeypatch.setattr(update_query, "results_of_rows", gated)
    monkeypatch.setattr(BatchSizer, "count", property(lambda _: 1))
    with headwater.connect(settings={**INLINE, "engine_threads": 2}) as db:
        db.sql(STREAM)
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT k, v FROM s WITH UPDATES")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM m WITH UPDATES")
        db.insert("s", [(0, "x", 0)])
        db.insert("s", [(1, "a", 1), (2, "b", 2)])
        db.insert("s", [(5, "a", 5)])  # in the place of the older one, before b
        gates["x"].set()
        until(lambda: ("a", 5, 5) in db.sql("SELECT * FROM q").rows())
        assert db.sql("SELECT clock FROM headwater.tables WHERE name = 'm'").rows() < [("2",)]
        text = "SELECT query_name, rows_in, processed, superseded, waiting, in_process"
        counts = db.sql(f"{text} FROM headwater.staleness WHERE key IS NULL").rows()
        assert counts == [("m", 4, 2, 1, 0, 1), ("q", 2, 2, 0, 0, 0)]
        gates["b"].set()
        db.flush()
        assert db.sql("SELECT * FROM m").rows() == [("x", 0, 0), ("b", 2, 2), ("a", 5, 5)]
        assert sorted(db.sql("SELECT * FROM q").rows()) == [("a", 5, 5), ("b", 2, 2), ("x", 0, 0)]
        assert db.sql("SELECT clock FROM headwater.tables WHERE name = 'm'").rows() == [("5",)]
