"""The life of Spark with a stand-in for its Java process: states, waiting, starting again."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import CancelledError, KernelError, SparkEndedError
from headwater.kernel.gateway import Gateway
from headwater.kernel.kernel import Kernel, Work, without_waiting
from headwater.kernel.spark import SparkProcess
from headwater.settings import Settings

PATIENCE_S = 30.0


class StandIn(SparkProcess):
    """A Spark whose Java process is `cat`."""

    def _session(self) -> Any:
        folder = Path(self.settings.text("master"))
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        self.gateway = Gateway(process, folder / f"java-{process.pid}")
        if getattr(self, "broken", False):
            raise RuntimeError("no luck")
        return SimpleNamespace(sparkContext=SimpleNamespace(_jsc=object(), _gateway=None))


@contextlib.contextmanager
def living(tmp_path: Path, **settings: object) -> Iterator[tuple[StandIn, Callable[..., None]]]:
    """A Spark that runs, and what waits until a condition holds."""
    changed = threading.Condition()

    def tell() -> None:
        with changed:
            changed.notify_all()

    process = StandIn(Settings({"master": str(tmp_path), **settings}), None, tell)

    def wait(condition: Callable[[], bool]) -> None:
        with changed:
            assert changed.wait_for(condition, PATIENCE_S), process.status

    try:
        process.wait(PATIENCE_S)
        yield process, wait
    finally:
        process.stopping = True
        process._tell()
        if process.gateway is not None:
            process.gateway.stop()
        thread = next((t for t in threading.enumerate() if _is_of(t, process)), None)
        if thread is not None:
            thread.join(PATIENCE_S)


def _is_of(thread: threading.Thread, process: SparkProcess) -> bool:
    return getattr(getattr(thread, "_target", None), "__self__", None) is process


def kill(process: SparkProcess) -> None:
    assert process.gateway is not None
    process.gateway.process.kill()


def test_it_is_started_again_with_another_life(tmp_path: Path) -> None:
    with living(tmp_path) as (process, wait):
        session, life = process.wait(PATIENCE_S)
        assert process.status.state == "running"
        kill(process)
        wait(lambda: process.status.state == "restarting")
        assert process.status.last_end == "exit code -9"
        assert process.not_running() is not None
        wait(lambda: process.status.state == "running")
        again, other = process.wait(PATIENCE_S)
        assert again is not session
        assert other != life
        assert process.status.restarts == 1
        assert process.ended_since(life, RuntimeError())
        assert not process.ended_since(other, RuntimeError())


def test_a_context_that_somebody_stopped_is_an_end(tmp_path: Path) -> None:
    with living(tmp_path) as (process, wait):
        session, _ = process.wait(PATIENCE_S)
        session.sparkContext._jsc = None
        wait(lambda: process.status.restarts == 1)
        assert process.status.last_end == "its context was stopped"


def test_without_a_database_it_is_not_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with living(tmp_path) as (process, _):
        session, life = process.wait(PATIENCE_S)
        thread = next(t for t in threading.enumerate() if _is_of(t, process))
        process.remove_listener(process._listeners[0])  # as closing a database does
        session.sparkContext._jsc = None  # spark.stop(), at the end of a program
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert (process.gateway, process.life, process.status.restarts) == (None, life, 0)
        assert caplog.text == ""


def test_without_restarts_it_is_gone(tmp_path: Path) -> None:
    with living(tmp_path, spark_restarts=0) as (process, wait):
        kill(process)
        wait(lambda: process.error is not None)
        assert process.status.state == "ended"
        assert process.not_running() is None  # there is nothing to wait for
        with pytest.raises(KernelError, match="Spark has ended"):
            process.wait(PATIENCE_S)


def test_after_the_bound_statements_are_told_at_once(tmp_path: Path) -> None:
    with living(tmp_path, spark_restarts=1) as (process, wait):
        kill(process)
        wait(lambda: process.status.restarts == 1)
        kill(process)
        wait(lambda: process.status.state == "restarting")
        with pytest.raises(SparkEndedError, match=r"is started again in 3\d\d\d s"):
            process.wait(120.0)
        with pytest.raises(SparkEndedError, match="is restarting"), without_waiting():
            _kernel(process)._started(SimpleNamespace(check=lambda: None))  # type: ignore[arg-type]


def test_a_start_that_fails_is_tried_again(tmp_path: Path) -> None:
    with living(tmp_path) as (process, wait):
        process.broken = True  # type: ignore[attr-defined]
        kill(process)
        wait(lambda: "could not be started again" in (process.status.last_end or ""))
        process.broken = False  # type: ignore[attr-defined]
        wait(lambda: process.status.state == "running")


def test_waiting_for_it_can_be_cancelled(tmp_path: Path) -> None:
    with living(tmp_path, spark_restarts=1) as (process, wait):
        kill(process)
        wait(lambda: process.status.state == "restarting")

        def check() -> None:
            raise CancelledError("no more")

        with contextlib.suppress(CancelledError):  # it may run again already
            process.wait(PATIENCE_S, check)


def _kernel(process: SparkProcess) -> Kernel:
    kernel = Kernel.__new__(Kernel)
    kernel._process, kernel._lock, kernel._given = process, threading.Lock(), None
    kernel._settings = process.settings
    return kernel


@pytest.mark.parametrize(("ends", "result"), [(0, "rows"), (1, "rows"), (2, None)])
def test_a_run_that_it_took_along_is_run_once_more(
    ends: int, result: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, runs = Kernel.__new__(Kernel), []

    @contextlib.contextmanager
    def frame(*_: object) -> Iterator[str]:
        runs.append(len(runs))
        if len(runs) <= ends:
            raise SparkEndedError("gone")
        yield "frame"

    monkeypatch.setattr(kernel, "_frame", frame, raising=False)
    act: Callable[[Any], str] = lambda _: "rows"  # noqa: E731
    if result is None:
        with pytest.raises(SparkEndedError):
            kernel._on_frame(Work("SELECT 1"), None, act)
    else:
        assert kernel._on_frame(Work("SELECT 1"), None, act) == result
    assert len(runs) == min(ends + 1, 2)
    runs.clear()
    if ends:
        with pytest.raises(SparkEndedError), without_waiting():  # the engine parks its query
            kernel._on_frame(Work("SELECT 1"), None, act)
        assert len(runs) == 1


def test_the_programs_session_is_never_started_again() -> None:
    session: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=object(), _gateway=None, master="local[7]")
    )
    told = threading.Semaphore(0)
    process = StandIn(Settings({}), session, told.release)
    assert (process.owned, process.master) == (False, "local[7]")
    assert process.wait(PATIENCE_S)[0] is session
    session.sparkContext._jsc = None
    while process.status.state != "ended":
        assert told.acquire(timeout=PATIENCE_S)
    assert process.gateway is None  # none was started
    with pytest.raises(KernelError, match="the Spark session of the program has ended"):
        process.wait(PATIENCE_S)
