"""Statements in a worker thread: Ctrl-C, the progress line."""

from __future__ import annotations

import io
import os
import signal
import threading
from typing import Any

import pytest

from headwater.cli.progress import CLEAR, ShellProgress, line
from headwater.cli.running import Interrupted, Leave, StatementRunner
from tests.harness.patience import PATIENCE_S


def quiet(database: Any) -> StatementRunner:
    return StatementRunner(database, ShellProgress(io.StringIO()))


def interrupt_when_started(database: Any) -> threading.Thread:
    def press() -> None:
        database.started.wait(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


def test_values_and_errors_come_back(database: Any) -> None:
    assert quiet(database).run(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        quiet(database).run(lambda: 1 // 0)


def test_ctrl_c_cancels(database: Any) -> None:
    before = signal.getsignal(signal.SIGINT)
    pressing = interrupt_when_started(database)
    with pytest.raises(Interrupted):
        quiet(database).run(lambda: list(database.script("wait")))
    pressing.join()
    assert database.cancelled.is_set()
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_twice_leaves_when_nothing_reacts(database: Any) -> None:
    database.deaf = True
    runner = quiet(database)

    def press_twice() -> None:
        database.started.wait(PATIENCE_S)
        runner.press()
        runner.press()

    pressing = threading.Thread(target=press_twice)
    pressing.start()
    with pytest.raises(Leave):
        runner.run(lambda: list(database.script("wait")))
    pressing.join()


def test_a_late_second_ctrl_c_only_cancels_again(database: Any) -> None:
    times = iter([0.0, 5.0])
    runner = StatementRunner(database, ShellProgress(io.StringIO()), clock=lambda: 100.0)
    runner._clock = lambda: next(times)  # type: ignore[method-assign]
    runner.press()
    runner.press()
    runner._clock = lambda: 100.0  # type: ignore[method-assign]
    runner._cancel()
    assert database.cancelled.wait(PATIENCE_S)


def test_progress_line() -> None:
    assert "starting Spark" in line(0.7, spark_ready=False, cancelling=False)
    assert "running … 1.2 s" in line(1.2, spark_ready=True, cancelling=False)
    assert "cancelling" in line(1.2, spark_ready=True, cancelling=True)


def test_progress_appears_late_and_goes_away() -> None:
    stream = io.StringIO()
    progress = ShellProgress(stream, enabled=True)
    progress.tick(0.4, spark_ready=True)
    progress.clear()
    assert stream.getvalue() == ""
    progress.tick(0.6, spark_ready=True)
    progress.clear()
    assert stream.getvalue().endswith(CLEAR)
    assert stream.getvalue().isascii()  # a StringIO has no encoding that could take more


def test_no_progress_without_a_terminal() -> None:
    stream = io.StringIO()
    ShellProgress(stream).tick(9.0, spark_ready=False)
    assert stream.getvalue() == ""
