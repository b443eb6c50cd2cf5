"""A source whose Spark ended begins again from its checkpoint; other errors stop it. No Spark needed."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import DataError
from headwater.sources.stream import StreamRunner


def runner_of(ends: list[Exception | None]) -> tuple[StreamRunner, list[int]]:
    """A runner whose streams end so, one after the other; which of them began."""
    runner: Any = StreamRunner.__new__(StreamRunner)
    begun: list[int] = []
    kernel = SimpleNamespace(ended_since=lambda _life, error: isinstance(error, ConnectionError))
    runner.around, runner.stopping = SimpleNamespace(kernel=kernel), threading.Event()
    runner.error, runner._life = None, 0

    def stream() -> None:
        begun.append(len(begun))
        error = ends[len(begun) - 1]
        if error is not None:
            runner.error = DataError("what a micro-batch made of it")
            raise error

    runner._stream, runner.patiently = stream, lambda act: act()
    return runner, begun


def test_it_begins_again_as_often_as_spark_ends() -> None:
    runner, begun = runner_of([ConnectionError("gone"), ConnectionError("gone"), None])
    runner.run()
    assert begun == [0, 1, 2]
    assert runner.error is None


def test_another_error_stops_it() -> None:
    runner, begun = runner_of([DataError("bad row"), None])
    with pytest.raises(DataError, match="bad row"):
        runner.run()
    assert begun == [0]


def test_a_python_worker_that_starts_too_late_ends_no_source() -> None:
    """Of a Python data source such as Kafka's: the stream begins again after a pause."""
    late = RuntimeError("Caused by: SparkException: Python worker failed to connect back.")
    runner, begun = runner_of([late, late, None])
    runner.__dict__.pop("patiently")
    runner.around.tell_changed = lambda: None
    runner._last_row_at, runner.moved_at, runner.attempts, runner.state = None, None, 0, "running"
    runner.feed = SimpleNamespace(options=SimpleNamespace(idle_timeout_s=None))
    runner.run()
    assert begun == [0, 1, 2]
    assert (runner.state, runner.error) == ("running", None)
