"""Update queries across kills: no key goes back, and each ends with its newest row or window (US1, US4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.crash import query_child, update_child
from tests.crash.test_query_crashes import through_kills

ROWS = [row for second in range(query_child.LAST_SECOND) for row in query_child.rows_at(second)]


def _results(db: Any, name: str) -> list[tuple[Any, ...]]:
    found = db.subscribe(name, after="earliest", timeout=0.2)
    return [row for out in found for row in out.rows()]


def test_no_key_goes_back_whoever_is_killed(tmp_path: Path) -> None:
    """Killed at random moments: a row gives a result at most once, an append query has each row once, in
    order; in the end each key shows the query over its newest row, or newest whole window."""
    lines = through_kills("update_child", tmp_path, 2)
    assert len({line["token"] for line in lines}) == len(lines)
    last: dict[str, int] = {}
    for key, ts, value, time in (row for line in lines for row in line["rows"]):
        assert (ts, key, value) in ROWS
        assert time == ts
        assert ts > last.get(key, -1)  # a key has one row per time
        last[key] = ts
    with update_child.open_database(tmp_path / "db") as db:
        db.flush()
        newest = {k: (k, ts, v, ts) for ts, k, v in ROWS}
        shown = {row[0]: row for row in db.sql("SELECT * FROM q").rows()}
        assert shown == {k: row for k, row in newest.items() if row[2] > 0}
        every = _results(db, "every")
        assert [row[:3] for row in every] == [(k, ts, v) for ts, k, v in ROWS]
        assert [row[3] for row in every] == list(range(len(ROWS)))
        for key, count, total, time in db.sql("SELECT * FROM lazy").rows():
            own = [v for ts, k, v in ROWS if k == key and time - 4 <= ts <= time]
            assert (count, total) == (len(own), sum(own))
            newest_time = max(ts for ts, k, _ in ROWS if k == key)
            assert time == min((newest_time + 4) // 2 * 2, query_child.LAST_SECOND)
        eager = _results(db, "eager")
        assert eager
        assert len({(row[0], row[3]) for row in eager}) == len(eager)  # no window comes twice
        for key, count, total, time in eager:
            own = [v for ts, k, v in ROWS if k == key and time - 4 <= ts <= time]
            assert (count, total) == (len(own), sum(own))
        newest_rows = {row[0]: row for row in sorted(db.sql("SELECT * FROM m").rows(), key=_time)}
        assert {row[0]: row for row in db.sql("SELECT * FROM of_view").rows()} == newest_rows
        given = [(row[0], row[3]) for row in _results(db, "of_view")]
        assert len(set(given)) == len(given)  # a row gives a result at most once


def _time(row: tuple[Any, ...]) -> int:
    return int(row[-1])
