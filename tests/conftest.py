"""What all tests share: one Spark for the whole run, fresh databases, and a watch for leaks.

Every database of a process shares the process's Spark, so a run has one. It is started small,
without training the class cache, which would compete with the tests for the machine (`make test` has made one
before), and with Java's quick compiler alone.

After each test nothing may be left that it started: threads, open files, child processes, scratch
folders. What may stay is listed here, with the reason.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

os.environ.setdefault("HEADWATER_AOT_CACHE", "false")
os.environ["HEADWATER_DRIVER_MEMORY_MB"] = "1024"
# Runs are too short for Java's second compiler: without it the same statements take a third less time. Room
# for classes and code from the beginning: else Java collects all garbage each time that it makes more.
os.environ["JDK_JAVA_OPTIONS"] = (
    "-XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=256m"
)

import psutil
import pytest
from hypothesis import HealthCheck, settings

import headwater
from benchmarks import postgres
from headwater.kernel import spark
from headwater.kernel.cache import SCRATCH_PREFIX
from tests.harness import hosted, one_time, order, quick
from tests.harness.patience import PATIENCE_S

# The same examples every time, however slow the machine: a failure is of the change that it came with.
settings.register_profile(
    "suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
hosted.prepare()

# Threads that belong to the whole process, by the start of their names.
LASTING_THREADS = (
    "headwater-spark",  # starts Spark while the first tests run, and watches it
    "pytest_timeout",
    "headwater-job",  # of a factory: ends with its Spark task, which takes a moment
)
# Threads without names of their own, by the module that runs them: PySpark's and py4j's daemons
# (gateway connections, the accumulator server) live as long as Spark.
LASTING_MODULES = ("py4j", "pyspark", "socketserver")
# A database that a whole file shares, by the thread that it has as long as it is open; and the threads of its
# lines to factories, which come when a factory has started, or was started again.
OPEN_DATABASE = "headwater-coordinator"
LINE_THREADS = tuple(
    f"headwater-{part}" for part in ("line-", "watch-", "hello", "pulse-", "factory ")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests without Spark and servers")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A quick run does not even load the files that have no quick test."""
    if not config.getoption("quick") or collection_path.suffix != ".py":
        return None
    return None if quick.quick_tests(collection_path) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Quick: leaves the quick tests, and from here on nothing may start a process, as Java would be.

    Where several processes share the files, those that take longest come first, and those with quick tests
    fill the end, so that all end together.
    """
    only_quick, shared = config.getoption("quick"), hasattr(config, "workerinput")
    if not only_quick and not shared:
        return
    parts: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        name = item.nodeid.split("::")[1].partition("[")[0]
        parts[name in quick.quick_tests(item.path)].append(item)
    if only_quick:
        items[:] = parts[True]
        config.hook.pytest_deselected(items=parts[False])
        quick.forbid_processes()
    else:
        work = Counter(item.path for item in parts[False])
        items.sort(key=lambda item: -order.work_s(item.path, work[item.path]))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before all fixtures: some open databases for a whole file."""
    hosted.house(item)
    one_time.choose(item)


@pytest.fixture
def db() -> Iterator[headwater.Database]:
    """A fresh database in a temporary folder."""
    with headwater.connect(":memory:") as database:
        yield database


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A path for a data folder that does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def connect() -> Iterator[Callable[..., headwater.Database]]:
    """Opens databases that are closed after the test, whatever happens."""
    with contextlib.ExitStack() as stack:

        def opened(*arguments: object, **keywords: object) -> headwater.Database:
            return stack.enter_context(headwater.connect(*arguments, **keywords))  # type: ignore[arg-type]

        yield opened


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server for the whole run; tests drop the tables that they use."""
    with postgres.server() as text:
        parts = dict(part.split("=") for part in text.split())
        yield f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails a test that leaves threads, files, processes or scratch folders behind."""
    before = _Traces()
    yield
    left = before.left()
    assert not left, "left behind: " + "; ".join(left)


class _Traces:
    """What this process holds at one moment."""

    def __init__(self) -> None:
        self.threads = set(threading.enumerate())
        self.files = _open_files()
        self.children = _children()
        self.scratch = scratch_folders()

    def _more(self) -> bool:
        new = scratch_folders() - self.scratch, _children() - self.children
        return any(new) or bool(_opened_since(self.files))

    def left(self) -> list[str]:
        """What is there now and was not before; threads and children get a moment to end."""
        lasting = LASTING_THREADS
        if any(thread.name == OPEN_DATABASE and thread.is_alive() for thread in self.threads):
            lasting += LINE_THREADS
        new = set(threading.enumerate()) - self.threads
        threads = [thread for thread in new if not _lasts(thread, lasting)]
        more = self._more()
        if not threads and not more:
            return []
        if more:
            settle_spark()  # whose start falls into whichever test is the first
        until = time.monotonic() + PATIENCE_S
        for thread in threads:
            _join(thread, until)
        children = list(_processes(_children() - self.children))
        psutil.wait_procs(children, timeout=PATIENCE_S if children else 0)
        files = _opened_since(self.files)
        if files:
            gc.collect()
            files = _opened_since(self.files)
        return [
            *(f"thread {thread.name}" for thread in threads if thread.is_alive()),
            *(f"file {path}" for path in sorted(files)),
            *(f"process {child.pid} {child.name()}" for child in children if child.is_running()),
            *(f"folder {path}" for path in sorted(scratch_folders() - self.scratch)),
        ]


def _join(thread: threading.Thread, until: float) -> None:
    """Waits for its end; one that is being started is among the threads before it can be joined."""
    while time.monotonic() < until:
        try:
            thread.join(max(0.0, until - time.monotonic()))
            return
        except RuntimeError:
            time.sleep(0.001)  # not a wait for progress of ours: nothing announces it


def settle_spark() -> None:
    """Waits for the end of a start of Spark that is under way: what it makes is not a test's."""
    process = spark._process
    if process is not None:
        process.wait_settled(PATIENCE_S)


@pytest.fixture
def spark_settled() -> None:
    """For tests that change variables which a start of Spark beside them would read."""
    settle_spark()


def _lasts(thread: threading.Thread, names: tuple[str, ...]) -> bool:
    if thread.name.startswith(names):
        return True
    run = getattr(thread, "_target", None) or type(thread).run
    module = getattr(run, "__module__", "") or ""
    return thread.daemon and module.partition(".")[0] in LASTING_MODULES


def _open_files() -> set[str]:
    """Regular files that are open here, without those of the Java process's own folder."""
    own, scratch = str(_java_folder()), (tempfile.gettempdir(), "/dev/shm")
    found = set()
    for handle in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{handle}")
            if path.startswith(scratch) and not path.startswith(own):
                found.add(path)
    return found


def _opened_since(before: set[str]) -> set[str]:
    """Files that were not open before; a log that lives longer than a test may go on in its next segment."""
    logs = {os.path.dirname(path) for path in before if path.endswith(".wal")}
    new = _open_files() - before
    return {p for p in new if not (p.endswith(".wal") and os.path.dirname(p) in logs)}


def _children() -> set[int]:
    """Child processes, without the Java process under Spark (its Python workers are its own).

    Of Linux's own list: psutil looks at every process of the machine, thousands of times in a run.
    """
    process = spark._process
    gateway = process.gateway if process is not None else None
    java = gateway.process.pid if gateway is not None else None
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        with (
            contextlib.suppress(OSError),  # the thread has ended
            open(f"/proc/self/task/{task}/children", "rb", buffering=0) as file,
        ):
            found.update(map(int, file.read().split()))
    return found - {java}


def _processes(numbers: Iterable[int]) -> Iterator[psutil.Process]:
    for number in numbers:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            yield psutil.Process(number)


def _java_folder() -> Path:
    process = spark._process
    gateway = process.gateway if process is not None else None
    return gateway.folder if gateway is not None else Path("/nonexistent")


def scratch_folders() -> set[Path]:
    """Scratch folders of this process, without the Java process's own."""
    own, found = f"{SCRATCH_PREFIX}{os.getpid()}-", set()
    for parent in ("/dev/shm", tempfile.gettempdir()):
        found.update(Path(parent, n) for n in os.listdir(parent) if n.startswith(own))
    return found - {_java_folder()}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """No scratch folder may outlive the run (kernel/test_exit.py sees to the Java process's own)."""
    left = scratch_folders()
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nscratch folders left behind: {', '.join(map(str, sorted(left)))}")
