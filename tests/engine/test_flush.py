"""FLUSH waits for what was there at the call, and not for a moment in which nothing comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import headwater
from headwater.engine.engine import Engine
from headwater.engine.snapshots import SnapshotKeeper
from tests.harness.patience import PATIENCE_S

MOST_BEHIND = 40  # else it would fall behind without end while nobody flushes
A = "CREATE STREAMING TABLE a (ts INT, v INT) TIMESTAMP BY ts"


class NeverDone:
    """A query for which more comes with each look, and each look needs some firings."""

    def __init__(self, name: str, firings: int) -> None:
        self.name, self._firings = name, firings
        self.tables: tuple[Any, ...] = ()
        self.parts: tuple[Any, ...] = ()
        self.priority, self.max_wait_s, self.state = 0, None, "running"
        self.error: BaseException | None = None
        self.careful, self.wall_due, self.wants_early = False, None, False
        self.elsewhere: Any = None
        self.all_counters: list[Any] = []
        self.writes, self.once, self.keeper = None, False, SnapshotKeeper(None)
        self.came = self.seen = self.answered = 0
        self.failing = 0

    def attach(self) -> None: ...

    def share(self, sharing: object) -> None: ...

    def leave(self) -> None: ...

    def pull(self, since: float | None = None) -> bool:
        if self.came - self.answered < MOST_BEHIND:
            self.came += self._firings
        self.seen = self.came
        return True

    def due_until(self) -> float:
        return self.seen

    @property
    def answered_until(self) -> float:
        return self.answered

    def fire(self) -> int:
        if self.failing:
            self.failing -= 1
            raise ValueError("not now")
        self.answered += 1
        return 1

    def put_away(self) -> None: ...

    def put_away_if_due(self, period_s: float) -> None: ...


@pytest.fixture
def engine() -> Iterator[Engine]:
    """With two threads."""
    made = Engine(2)
    made.open(())
    yield made
    made.close()


@pytest.mark.parametrize("firings", [1, 7])
def test_flush_ends_while_more_comes_all_the_time(engine: Engine, firings: int) -> None:
    queries = [NeverDone(f"q{number}", firings) for number in range(3)]
    for query in queries:
        engine.add(query)  # type: ignore[arg-type]
    for _ in range(20):
        came = [query.came for query in queries]
        assert engine.flush(PATIENCE_S)
        for query, before in zip(queries, came, strict=True):
            assert query.answered >= before
    assert engine.flush(PATIENCE_S)


def test_flushes_at_the_same_time_end(engine: Engine) -> None:
    engine.add(NeverDone("q", 5))  # type: ignore[arg-type]
    done: list[bool] = []

    def flush() -> None:
        done.extend(engine.flush(PATIENCE_S) for _ in range(10))

    threads = [threading.Thread(target=flush) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert done == [True] * 40


def test_a_firing_that_is_tried_again_is_waited_for(engine: Engine) -> None:
    query = NeverDone("q", 3)
    engine.add(query)  # type: ignore[arg-type]
    assert engine.flush(PATIENCE_S)
    came, query.failing = query.came, 1
    assert engine.flush(PATIENCE_S)
    assert (query.state, query.answered > came) == ("running", True)


def test_a_query_that_is_gone_paused_or_failed_is_not_waited_for(engine: Engine) -> None:
    gone, paused, failed = (NeverDone(name, 2) for name in ("gone", "paused", "failed"))
    for query in (gone, paused, failed):
        engine.add(query)  # type: ignore[arg-type]
    engine.remove("gone")
    engine.pause(paused)  # type: ignore[arg-type]
    failed.failing = 1 << 30
    assert engine.flush(PATIENCE_S)
    assert failed.state == "failed"


def test_what_another_host_has_is_waited_for_there(engine: Engine) -> None:
    """A query that moves between the hosts while somebody flushes is answered in one of them."""
    query = NeverDone("q", 2)
    query.elsewhere = object()
    engine.add(query)  # type: ignore[arg-type]
    asked: list[set[str]] = []

    def elsewhere(names: Any, _until: float | None) -> set[str]:
        asked.append(set(names))
        if len(asked) < 3:  # its host is gone
            return set()
        if len(asked) == 3:
            query.elsewhere = None
            return set()
        return set(names)

    engine.flush_elsewhere = elsewhere
    assert engine.flush(PATIENCE_S)
    assert asked == [{"q"}, {"q"}, {"q"}, set()]
    assert query.answered >= 2


def test_time_runs_out_for_what_is_not_answered(engine: Engine) -> None:
    query = NeverDone("q", 2)
    query.elsewhere = object()
    engine.add(query)  # type: ignore[arg-type]
    assert not engine.flush(0.05)


def test_flush_under_steady_inserts(db: headwater.Database) -> None:
    """Rows come faster than queries answer; results of results are there too."""
    db.sql(A)
    window = "[INTERVAL 9 SECONDS] SAMPLE INTERVAL 1 SECONDS"
    db.sql(f"CREATE MATERIALIZED VIEW m AS SELECT count(*) n FROM a {window}")
    db.sql(f"CREATE CONTINUOUS QUERY q AS SELECT sum(n) n FROM m {window}")
    db.sql("CREATE VIEW v AS SELECT count(*) n FROM a")
    stop, second = threading.Event(), 0

    def insert() -> None:
        nonlocal second
        while not stop.is_set():
            db.insert("a", [(second, n) for n in range(50)])
            second += 1

    writer = threading.Thread(target=insert)
    writer.start()
    try:
        for _ in range(10):
            wanted = second - 2  # closed by the next second, and that one was inserted before
            assert db._context.engine.flush(PATIENCE_S)
            outs = [out.time for out in db.subscribe("q", after="earliest", timeout=0.0)]
            assert not outs or outs[-1] >= wanted - 1
    finally:
        stop.set()
        writer.join(PATIENCE_S)
    db.advance("a", second)
    db.flush()
    assert [out.time for out in db.subscribe("q", after="earliest", timeout=0.0)][-1] >= second - 1
