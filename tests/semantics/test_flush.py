"""FLUSH waits for what was acknowledged and complete at the call, whatever comes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater.database import Database
from headwater.engine.query import ContinuousQuery
from headwater.engine.view import ContinuousView
from tests.harness.patience import PATIENCE_S

OFFLINE = {"eager_spark": False, "factories": 0}


@pytest.fixture
def db(folder: Path) -> Iterator[Database]:
    with headwater.connect(folder, settings=OFFLINE) as db:
        db.sql("CREATE STREAMING TABLE t (v INT, ts BIGINT NOT NULL) TIMESTAMP BY ts")
        yield db


def seconds(count: int, first: int = 0) -> list[dict[str, int]]:
    return [{"v": n, "ts": n * 1_000_000} for n in range(first, first + count)]


def test_flush_ends_although_every_firing_brings_more_to_answer(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come faster than they are answered; what was there is answered all the same."""
    db.sql(
        "CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n "
        "FROM t [INTERVAL '2' SECONDS BEFORE] SAMPLE INTERVAL '1' SECOND"
    )
    db.sql("CREATE VIEW w AS SELECT count(*) AS n FROM t")
    clock, going = iter(range(20, 1_000_000)), threading.Event()
    going.set()

    def and_more(fire: object) -> object:
        def fired(self: object) -> int:
            found = fire(self)  # type: ignore[operator]
            if going.is_set():
                db.insert("t", seconds(1, next(clock)))
            return int(found)

        return fired

    for kind in (ContinuousQuery, ContinuousView):
        monkeypatch.setattr(kind, "fire", and_more(kind.fire))
    db.insert("t", seconds(20))
    ended = threading.Event()
    answered: dict[str, int] = {}

    def flushed() -> None:
        db.sql("FLUSH")
        query, view = db._context.engine.find("q"), db._context.engine.find_view("w")
        assert query is not None
        assert view is not None
        answered["q"] = query.sampling.after or 0
        answered["w"] = view.pipelines[0].sequence
        ended.set()

    flush = threading.Thread(target=flushed)
    flush.start()
    in_time = ended.wait(PATIENCE_S)
    going.clear()
    flush.join()
    assert in_time
    assert answered["q"] >= 18_000_000  # the last instant that the first rows had closed
    assert answered["w"] >= 20


def test_flush_follows_results_through_views_to_their_readers(db: Database) -> None:
    """A query over a materialized view over another one has answered what began with a row of today."""
    db.sql(
        "CREATE MATERIALIZED VIEW one AS SELECT count(*) AS n "
        "FROM t [INTERVAL '1' SECOND BEFORE] SAMPLE INTERVAL '1' SECOND"
    )
    db.sql(
        "CREATE MATERIALIZED VIEW two AS SELECT sum(n) AS n "
        "FROM one [INTERVAL '1' SECOND BEFORE] SAMPLE INTERVAL '1' SECOND"
    )
    db.sql("CREATE CONTINUOUS QUERY a AS SELECT n FROM two [ROWS 1] SAMPLE 1 ROWS")
    for last in range(10, 60, 10):
        db.insert("t", seconds(10, last - 10))
        db.sql("FLUSH")
        query, reader = db._context.engine.find("_two"), db._context.engine.find("a")
        assert query is not None
        assert query.writes is not None
        assert reader is not None
        assert query.writes.state.next_sequence == reader.results
        assert reader.results >= last - 4
