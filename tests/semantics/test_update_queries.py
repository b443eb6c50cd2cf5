"""Update queries against plain Python: newest results, per-key order, the row equation, windows (US1–US8)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import update_query
from tests.harness.patience import PATIENCE_S

INLINE = {"eager_spark": False}
Row = tuple[int, str | None, int]  # ts, k, v; v is the number of the row

COUNTS = "rows_in, processed, superseded, shed, waiting, in_process"
ROW_BY_ROW = {
    "fifo": "WITH UPDATES SCHEDULE FIFO",
    "inplace": "WITH UPDATES",
    "linecutting": "WITH UPDATES SCHEDULE LINECUTTING",
    "refreshed": "WITH UPDATES REFRESH EVERY INTERVAL '1' HOUR FOR k IN ('a', 'b')",
    "behind": "WITH UPDATES WHEN BEHIND INTERVAL '0.000001' SECOND",
    "every": "WITH APPEND",
    "some": "WITH SHEDDING 0.5",
}


def rows_of(seed: int, count: int) -> list[Row]:
    """Rows in order of time, several at one time; a key may be NULL."""
    choose, now, found = random.Random(seed), 0, []
    for number in range(count):
        now += choose.choice((0, 0, 1, 3))
        found.append((now, choose.choice(["a", "a", "a", "b", "c", None]), number))
    return found


def pieces(rows: list[Row], seed: int) -> Iterator[list[Row]]:
    """The rows in inserts of different sizes."""
    choose, first = random.Random(seed), 0
    while first < len(rows):
        size = choose.choice((1, 2, 5, 40))
        yield rows[first : first + size]
        first += size


def results(db: headwater.Database, name: str) -> list[tuple[Any, ...]]:
    """All rows of all results, in the order in which they were delivered."""
    found = db.subscribe(name, after="earliest", timeout=0.1)
    return [row for out in found for row in out.rows()]


def counts(db: headwater.Database, name: str) -> dict[str, int]:
    """Where the rows of a query are."""
    text = f"SELECT {COUNTS} FROM headwater.staleness WHERE key IS NULL AND query_name = '{name}'"
    (row,) = db.sql(text).rows()
    return dict(zip(COUNTS.split(", "), row, strict=True))


def newest(rows: list[Row]) -> dict[str | None, Row]:
    """The newest row of each key."""
    return {row[1]: row for row in rows}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.large)])
def test_every_policy_keeps_the_newest_result_and_counts_every_row(seed: int) -> None:
    """Results are the query over processed rows, in order per key; drained, each key shows its newest row."""
    rows = rows_of(seed, 400)
    with headwater.connect(settings=INLINE) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        for name, clause in ROW_BY_ROW.items():
            select = "SELECT k, v, v * 10 AS w FROM s WHERE v % 7 <> 3"
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {select} {clause}")
        for piece in pieces(rows, seed):
            db.insert("s", piece)
        db.flush()
        assert sorted(db.sql("SELECT v FROM s").rows()) == [(v,) for _, _, v in rows]
        for name in ROW_BY_ROW:
            given = results(db, name)
            check_results(rows, given)
            found = counts(db, name)
            assert found["rows_in"] == len(rows)
            assert found["waiting"] == found["in_process"] == 0
            assert found["processed"] + found["superseded"] + found["shed"] == len(rows)
            passing = [row for row in rows if row[2] % 7 != 3]
            if name == "every":
                assert [r[1] for r in given] == [v for _, _, v in passing]
                assert found["processed"] == len(rows)
            elif name == "some":
                assert 0 < found["shed"] < len(rows)
            else:
                shown = {row[0]: row for row in db.sql(f"SELECT * FROM {name}").rows()}
                last = [r for r in newest(rows).values() if r[2] % 7 != 3]
                assert shown == {k: (k, v, v * 10, ts) for ts, k, v in last}
                assert len(given) <= found["processed"]
        assert counts(db, "fifo")["superseded"] > 0


def check_results(rows: list[Row], given: list[tuple[Any, ...]]) -> None:
    """Each result is that of one row, and a key's results come in the order of its rows."""
    known = {v: (k, v, v * 10, ts) for ts, k, v in rows}
    last: dict[str | None, int] = {}
    for row in given:
        assert row == known[row[1]]
        assert row[1] > last.get(row[0], -1), "an older result after a newer one, or one twice"
        last[row[0]] = row[1]


WINDOWED = (
    "SELECT k, count(*) AS n, sum(v) AS t, min(v) AS m FROM s [INTERVAL {size} SECONDS{before}]"
    " GROUP BY k SAMPLE INTERVAL {slide} SECONDS"
)


@pytest.mark.parametrize(
    ("size", "slide", "before"),
    [(4, 4, " BEFORE"), (7, 3, ""), pytest.param(2, 5, "", marks=pytest.mark.large)],
)
def test_windows_are_those_of_the_append_query(size: int, slide: int, before: str) -> None:
    """Every LAZY and EAGER result is the append query's for that window; LAZY ends with its newest."""
    text = WINDOWED.format(size=size, slide=slide, before=before)
    rows = rows_of(size, 300)
    with headwater.connect(settings=INLINE) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.insert("s", rows[:20])  # windows of the first instants see them
        db.sql(f"CREATE CONTINUOUS QUERY every AS {text}")
        db.sql(f"CREATE CONTINUOUS QUERY lazy AS {text} WITH UPDATES")
        db.sql(f"CREATE CONTINUOUS QUERY eager AS {text} WITH UPDATES WINDOWS EAGER")
        for piece in pieces(rows[20:], 3):
            db.insert("s", piece)
        db.advance("s", rows[-1][0] + 2 * size)
        db.flush()
        expected = results(db, "every")
        last = {row[0]: row for row in expected}  # of each key, the newest window with a row in it
        assert set(results(db, "lazy")) <= set(expected)
        assert set(results(db, "eager")) <= set(expected)
        assert {row[0]: row for row in db.sql("SELECT * FROM lazy").rows()} == last
        assert results(db, "eager")
        for name in ("lazy", "eager"):
            times: dict[str | None, int] = {}
            for row in results(db, name):
                assert row[-1] > times.get(row[0], -1)
                times[row[0]] = row[-1]
            found = counts(db, name)
            assert found["rows_in"] == sum(v for n, v in found.items() if n != "rows_in")


@pytest.mark.parametrize("kind", ["STREAMING TABLE", "STREAM"])
def test_a_restart_goes_on_where_each_key_stood(kind: str, tmp_path: Path) -> None:
    """After restarts a row gives a result at most once; each key ends with its newest row or window."""
    rows = rows_of(5, 240)
    settings = {**INLINE, "snapshot_s": 0.1, "results_kept": 50}
    text = WINDOWED.format(size=6, slide=2, before="")
    for part in range(4):
        with headwater.connect(tmp_path, settings=settings) as db:
            if part == 0:
                db.sql(f"CREATE {kind} s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
                select = "SELECT k, v, v * 10 AS w FROM s"
                db.sql(f"CREATE CONTINUOUS QUERY latest AS {select} WITH UPDATES")
                db.sql(f"CREATE CONTINUOUS QUERY every AS {select} WITH APPEND")
                db.sql(f"CREATE CONTINUOUS QUERY lazy AS {text} WITH UPDATES")
                db.sql(f"CREATE CONTINUOUS QUERY sums AS {text}")
            for number, piece in enumerate(pieces(rows[part * 60 : part * 60 + 60], part)):
                db.insert("s", piece)
                if number < 6:  # windows that began before the restart are whole
                    db.flush()
            db.flush()  # or results would go while they are read
            sums = results(db, "sums")
            assert {r for r in results(db, "lazy") if sums[0][-1] < r[-1] <= sums[-1][-1]} <= set(
                sums
            )
            if part == 3:
                db.advance("s", rows[-1][0] + 20)
                db.flush()
                shown = {row[0]: row for row in db.sql("SELECT * FROM latest").rows()}
                assert shown == {k: (k, v, v * 10, ts) for k, (ts, _, v) in newest(rows).items()}
                assert {row[0]: row[1] for row in db.sql("SELECT * FROM every").rows()} == {
                    k: v for k, (_, _, v) in newest(rows).items()
                }
                check_results(rows, results(db, "latest"))
                check_results(rows, results(db, "every"))
                windows = {row[0]: row for row in results(db, "sums")}
                assert {row[0]: row for row in db.sql("SELECT * FROM lazy").rows()} == windows


def test_rows_that_wait_at_a_restart_are_processed_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries that are far behind when the database is closed: no row twice, none lost, no key goes back."""
    quick = update_query.results_of_rows

    def slowly(spec: Any, batch: Any, held: Any) -> pa.Table:
        time.sleep(len(batch) * 0.002)  # not a wait for progress: it is the cost of the rows
        return quick(spec, batch, held)

    monkeypatch.setattr(update_query, "results_of_rows", slowly)
    rows = rows_of(6, 600)
    clauses = {name: ROW_BY_ROW[name] for name in ("fifo", "linecutting", "behind", "every")}
    waited = False
    for part in range(3):
        with headwater.connect(tmp_path, settings=INLINE) as db:
            if part == 0:
                db.sql("CREATE STREAM s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
                for name, clause in clauses.items():
                    text = f"SELECT k, v, v * 10 AS w FROM s {clause}"
                    db.sql(f"CREATE CONTINUOUS QUERY {name} AS {text}")
            for piece in pieces(rows[part * 200 : part * 200 + 200], part):
                db.insert("s", piece)
            waited |= counts(db, "every")["waiting"] > 0
            if part == 2:
                db.flush()
                for name in clauses:
                    check_results(rows, results(db, name))
                    shown = {row[0]: row[1] for row in db.sql(f"SELECT * FROM {name}").rows()}
                    assert shown == {k: v for k, (_, _, v) in newest(rows).items()}
                assert [row[1] for row in results(db, "every")] == list(range(600))
    assert waited


def test_what_the_rows_are_changed_to_is_processed_and_delivered_results_stay() -> None:
    """A DELETE of waiting rows takes them out of the queue; results that were delivered are not touched."""
    with headwater.connect() as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH UPDATES")
        db.insert("s", [(1, "a", 1), (1, "b", 2)])
        db.flush()
        db.sql("PAUSE QUERY q")
        db.insert("s", [(2, "a", 3), (3, "b", 4)])
        db.sql("DELETE FROM s WHERE ts IN (1, 3)")
        db.sql("RESUME QUERY q")
        db.flush()
        assert sorted(db.sql("SELECT * FROM q").rows()) == [("a", 3, 2), ("b", 2, 1)]


def test_an_error_stops_the_query_after_the_good_keys_and_a_newer_row_replaces_the_bad_one() -> (
    None
):
    """Keys before the failing one are answered; once its row is superseded, RESUME goes on."""
    with headwater.connect() as db:
        db.sql(
            "CREATE STREAMING TABLE s (ts INT, k STRING, v STRING) TIMESTAMP BY ts UPDATE KEY (k)"
        )
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, CAST(v AS INT) AS i FROM s WITH UPDATES")
        db.insert("s", [(1, "a", "1"), (2, "b", "x"), (3, "c", "3")])
        with pytest.raises(headwater.Error, match="query q has failed"):
            db.flush()
        assert db.sql("SELECT state FROM headwater.queries").rows() == [("failed",)]
        assert db.sql("SELECT * FROM q").rows() == [("a", 1, 1)]
        db.insert("s", [(4, "b", "2")])
        db.sql("RESUME QUERY q")
        db.flush()
        assert sorted(db.sql("SELECT * FROM q").rows()) == [("a", 1, 1), ("b", 2, 4), ("c", 3, 3)]


def test_rows_that_wait_for_the_watermark_come_in_order_and_late_ones_never() -> None:
    """Keys follow T, not arrival; a late row changes nothing."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(
            "CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts"
            " WATERMARK INTERVAL '5' SECOND UPDATE KEY (k)"
        )
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH APPEND")
        db.insert("s", [(10, "a", 1)])
        db.insert("s", [(7, "a", 2), (12, "b", 3)])
        db.insert("s", [(20, "b", 4)])  # releases all but itself
        db.insert("s", [(3, "a", 5)])  # late
        db.flush()
        assert results(db, "q") == [("a", 2, 7), ("a", 1, 10), ("b", 3, 12)]
        assert counts(db, "q")["rows_in"] == 3


def test_windows_over_arrival_times_close_with_the_wall_clock() -> None:
    """One row is enough: its window closes without another commit."""
    with headwater.connect(settings=INLINE) as db:
        db.sql("CREATE STREAMING TABLE s (k STRING, v INT) UPDATE KEY (k)")
        db.sql(
            "CREATE CONTINUOUS QUERY q AS SELECT k, count(*) AS n FROM s [INTERVAL '0.2' SECOND BEFORE]"
            " GROUP BY k SAMPLE INTERVAL '0.2' SECOND WITH UPDATES"
        )
        with db.subscribe("q", timeout=PATIENCE_S) as found:
            db.insert("s", [("a", 1)])
            assert [row[:2] for row in next(found).rows()] == [("a", 1)]


def test_a_select_with_updates_can_be_subscribed_to() -> None:
    """It lives as long as its reader, and gives one result per key and firing."""
    with headwater.connect(settings=INLINE) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        with db.subscribe("SELECT k, v FROM s WITH UPDATES", timeout=PATIENCE_S) as found:
            db.insert("s", [(1, "a", 1), (2, "a", 2)])
            assert next(found).rows() == [("a", 2, 2)]


def test_a_union_delivers_the_youngest_row_of_each_key(tmp_path: Path) -> None:
    """Per key T only rises, also through a restart; drained, a key shows a row of its newest time."""
    rows = rows_of(8, 240)
    halves = {"a": [r for r in rows if r[2] % 2], "b": [r for r in rows if not r[2] % 2]}
    given: list[tuple[Any, ...]] = []
    for part in range(2):
        with headwater.connect(tmp_path, settings=INLINE) as db:
            if part == 0:
                for name in halves:
                    columns = "(ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)"
                    db.sql(f"CREATE STREAMING TABLE {name} {columns}")
                text = "SELECT k, v FROM a UNION ALL SELECT k, v FROM b WHERE v % 3 <> 1"
                db.sql(f"CREATE CONTINUOUS QUERY u AS {text} WITH UPDATES")
            for number in range(6 * part, 6 * part + 6):
                for name, own in halves.items():
                    db.insert(name, own[10 * number : 10 * number + 10])
            db.flush()
            found = counts(db, "u")
            assert found["rows_in"] == found["processed"] + found["superseded"] > 0
            if part == 1:
                given = results(db, "u")
                shown = {row[0]: row for row in db.sql("SELECT * FROM u").rows()}
    last: dict[str | None, int] = {}
    for key, value, ts in given:
        assert (ts, key, value) in rows
        assert ts > last.get(key, -1)
        last[key] = ts
    for key, row in shown.items():
        assert row[2] == max(ts for ts, k, _ in rows if k == key)


def test_a_join_shows_the_latest_match_in_the_windows_of_the_newest_row() -> None:
    """Drained, each key has the newest pair whose rows lie in the windows; a key without one is gone."""
    choose = random.Random(4)
    trades = sorted((choose.randint(0, 60), choose.choice("abcd"), n) for n in range(40))
    quotes = sorted((choose.randint(0, 60), choose.choice("abc"), n) for n in range(25))
    with headwater.connect() as db:
        for name in ("trades", "quotes"):
            columns = "(ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)"
            db.sql(f"CREATE STREAMING TABLE {name} {columns}")
        db.sql(
            "CREATE CONTINUOUS QUERY j AS SELECT t.k, t.v, q.v AS w FROM trades [INTERVAL 9 SECONDS] t"
            " JOIN quotes [INTERVAL 15 SECONDS BEFORE] q ON t.k = q.k AND (t.v + q.v) % 3 <> 0"
            " WITH UPDATES"
        )
        for part in range(2):
            db.insert("trades", trades[20 * part : 20 * part + 20])
            db.insert("quotes", quotes[13 * part : 13 * part + 13])
        db.flush()
        expected = {}
        for key in "abcd":
            own = [row for row in trades if row[1] == key]
            its = [row for row in quotes if row[1] == key]
            now = max(ts for ts, _, _ in own + its)
            pairs = [
                ((max(a[0], b[0]), min(a[0], b[0])), (key, a[2], b[2], now))
                for a in own
                for b in its
                if now - 9 <= a[0] <= now and now - 15 <= b[0] < now and (a[2] + b[2]) % 3
            ]
            if pairs:
                newest_times = max(times for times, _ in pairs)
                expected[key] = [row for times, row in pairs if times == newest_times]
        shown = {row[0]: row for row in db.sql("SELECT * FROM j").rows()}
        assert shown.keys() == expected.keys()
        assert all(row in expected[key] for key, row in shown.items())
