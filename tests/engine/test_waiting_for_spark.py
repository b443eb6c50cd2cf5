"""A query that needs Spark while there is none is parked; others go on, and it goes on when Spark runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.engine.engine import Engine
from headwater.errors import KernelError, SparkEndedError

PATIENCE_S = 30.0


class Hosted:
    """One firing to do; it needs Spark or not."""

    def __init__(self, name: str, spark: threading.Event | None, error: Exception) -> None:
        self.name, self._spark, self._error = name, spark, error
        self.tables: tuple[Any, ...] = ()
        self.parts: tuple[Any, ...] = ()
        self.priority, self.max_wait_s, self.state = 0, None, "running"
        self.error: BaseException | None = None
        self.once, self.careful, self.wall_due, self.wants_early = False, False, None, False
        self.writes = None
        self.elsewhere = None
        self.all_counters: list[Any] = []
        self.tried, self.attached, self.waiting = 0, 0, True
        self.fired = threading.Event()

    def attach(self) -> None:
        self.attached += 1

    def share(self, sharing: object) -> None: ...

    def leave(self) -> None: ...

    def pull(self, since: float | None = None) -> bool:
        return self.waiting

    def due_until(self) -> float:
        return 1

    @property
    def answered_until(self) -> float:
        return 0 if self.waiting else 1

    def fire(self) -> int:
        self.tried += 1
        if self._spark is not None and not self._spark.is_set():
            raise self._error
        self.waiting = False
        self.fired.set()
        return 1

    def put_away(self) -> None: ...

    def put_away_if_due(self, period_s: float) -> None: ...


@pytest.fixture
def engine() -> Iterator[Engine]:
    """With one thread: whoever waits in it holds up all others."""
    made = Engine(1)
    made.open(())
    yield made
    made.close()


def add(engine: Engine, factory: Hosted) -> None:
    engine.add(factory)  # type: ignore[arg-type]


def test_a_query_is_parked_until_spark_runs(engine: Engine) -> None:
    runs = threading.Event()
    engine.spark_settled = runs.is_set
    needs = Hosted("needs", runs, SparkEndedError("gone"))
    add(engine, needs)
    other = Hosted("other", None, SparkEndedError("gone"))
    add(engine, other)
    assert other.fired.wait(PATIENCE_S)
    assert not engine.flush(0.1)  # what waits for Spark is not done
    assert (needs.tried, needs.attached, needs.state, needs.careful) == (1, 1, "running", False)
    runs.set()
    engine.spark_changed()
    assert needs.fired.wait(PATIENCE_S)
    assert engine.flush(PATIENCE_S)
    assert needs.tried == 2


def test_when_there_is_no_spark_to_come_the_query_fails(engine: Engine) -> None:
    settled = threading.Event()
    engine.spark_settled = settled.is_set
    error: Exception = SparkEndedError("gone")
    needs = Hosted("needs", threading.Event(), error)
    add(engine, needs)
    assert not engine.flush(0.1)
    needs._error = KernelError("Spark has ended")
    settled.set()
    engine.spark_changed()
    assert engine.flush(PATIENCE_S)
    assert needs.state == "failed"
    assert isinstance(needs.error, KernelError)
