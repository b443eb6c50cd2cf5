"""The Spark session of this process: started in the background, shared by all databases in it.

Owns the Java process, the SparkContext and the settings Spark starts with. Only the public API of
PySpark is used. A statement that needs no Spark never waits for this module.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.errors import Error, KernelError
from headwater.kernel import aot
from headwater.kernel.gateway import Gateway, start_gateway
from headwater.kernel.java import Java, find_java
from headwater.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALLEST_MEMORY_MB = 1024
LARGEST_MEMORY_MB = 8192
TRAINING_DELAY_S = 60.0


@dataclass
class SparkProcess:
    """The one Spark of this process: a session, once it is ready, or the error that stopped it."""

    master: str
    ready: threading.Event = field(default_factory=threading.Event)
    gateway: Gateway | None = None
    session: SparkSession | None = None
    error: Error | None = None

    def wait(self, timeout_s: float) -> SparkSession:
        """The session, as soon as it is there."""
        if not self.ready.wait(timeout_s):
            raise KernelError(
                f"Spark did not start within {timeout_s:g} s",
                hint="raise start_timeout_s, or see what headwater doctor says",
            )
        if self.error is not None:
            raise self.error
        assert self.session is not None
        return self.session

    def check_alive(self) -> None:
        """KernelError if the Java process has ended."""
        gateway = self.gateway
        if gateway is not None and gateway.process.poll() is not None:
            raise KernelError(
                "the Java process under Spark has ended",
                detail=f"exit code {gateway.process.returncode}",
                hint="nothing acknowledged is lost; close the database and start the program again",
            )


_lock = threading.Lock()
_process: SparkProcess | None = None


def spark_process(settings: Settings) -> SparkProcess:
    """The Spark of this process; starts it in the background if it does not run yet."""
    global _process
    master = settings.text("master")
    with _lock:
        if _process is not None and _process.error is None:
            _check_same_master(_process, settings)
            return _process
        _process = SparkProcess(master)
        starter = threading.Thread(
            target=_start, args=(_process, settings), name="headwater-spark-start", daemon=True
        )
        starter.start()
        return _process


def _check_same_master(process: SparkProcess, settings: Settings) -> None:
    wanted = settings.text("master")
    if "master" in settings.explicit and wanted != process.master:
        raise KernelError(
            f"this process already runs Spark with master {process.master}",
            sqlstate="55006",
            hint=f"connect with master={process.master!r}, or use another process for {wanted}",
        )


def _start(process: SparkProcess, settings: Settings) -> None:
    try:
        process.session = _session(process, settings)
    except Error as error:
        process.error = error
    except Exception as error:  # PySpark raises whatever Java threw; the user gets one error
        process.error = _start_failure(process, error)
    finally:
        process.ready.set()
    if process.error is not None and process.gateway is not None:
        process.gateway.stop()


def _start_failure(process: SparkProcess, error: Exception) -> KernelError:
    gateway = process.gateway
    if gateway is not None and gateway.process.poll() is not None:
        return gateway.failure("the Java process for Spark ended while it started")
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return KernelError(
        f"Spark could not start with master {process.master}",
        detail=first,
        hint="headwater doctor checks the machine; the master may be wrong or unreachable",
    )


def _session(process: SparkProcess, settings: Settings) -> SparkSession:
    _check_master(process.master)
    java = find_java()
    memory_mb = settings.integer("driver_memory_mb") or default_memory_mb()
    confs = spark_settings(settings)
    cache = aot.flags(java, memory_mb) if settings.flag("aot_cache") else ()
    gateway = start_gateway(
        java, memory_mb=memory_mb, master=process.master, spark_settings=confs, extra_flags=cache
    )
    process.gateway = gateway
    atexit.register(_stop_at_exit, process)
    from pyspark.sql import SparkSession

    # PySpark prints every error as a JSON line on standard error; ours reach the user instead.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    gateway.wait_until_listening(settings.number("start_timeout_s"))
    with gateway.announced():
        builder = SparkSession.builder.master(process.master).appName("headwater")
        for name, value in confs.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    if settings.flag("aot_cache") and not cache:
        _train_later(java, memory_mb)
    return session


def _train_later(java: Java, memory_mb: int) -> None:
    """Makes the class cache when this process ends, or after a minute if it goes on."""
    once = threading.Lock()

    def train() -> None:
        if once.acquire(blocking=False):
            aot.train_in_background(java, memory_mb)

    later = threading.Timer(TRAINING_DELAY_S, train)
    later.daemon = True
    later.start()
    atexit.register(train)


def _check_master(master: str) -> None:
    """Fails at once where a standalone master cannot be reached; Spark itself tries for a minute."""
    if not master.startswith("spark://"):
        return
    last: OSError | None = None
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return
        except (OSError, ValueError) as error:
            last = error if isinstance(error, OSError) else OSError(str(error))
    raise KernelError(
        f"the Spark master {master} cannot be reached",
        sqlstate="08001",
        detail=str(last),
        hint="check the address and that the master runs, or leave master out to run locally",
    )


def default_memory_mb() -> int:
    """A quarter of the machine (or of its container), between 1 and 8 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError), open(path) as limit:
            total = min(total, int(limit.read()))
    return max(SMALLEST_MEMORY_MB, min(total // 4 >> 20, LARGEST_MEMORY_MB))


def core_count(master: str) -> int:
    """How many cores a local master uses; for a cluster, a guess that AQE corrects."""
    if not master.startswith("local"):
        return 200
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    cores = len(os.sched_getaffinity(0))
    return int(inside) if inside.isdigit() else 1 if inside == "" else cores


def spark_settings(settings: Settings) -> dict[str, str]:
    """What Spark is started with; the user's own `spark.` settings win."""
    master = settings.text("master")
    confs: Mapping[str, str] = {
        "spark.ui.enabled": str(settings.flag("spark_ui")).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.variable.substitute": "false",  # '${env:HOME}' is a text like any other
        "spark.sql.session.timeZone": settings.text("time_zone"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": str(core_count(master)),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        # Damage inside a page is an error, not a wrong row.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        # More paths than this start a Spark job that lists them; we know our files.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.driver.maxResultSize": "0",
        "spark.sql.legacy.parquet.nanosAsLong": "false",
    }
    if master.startswith("local"):
        confs = {**confs, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**confs, **settings.spark}


def _stop_at_exit(process: SparkProcess) -> None:
    gateway = process.gateway
    if gateway is None:
        return
    _hush()
    local = process.master.startswith("local")
    if not local and process.session is not None and gateway.process.poll() is None:
        with contextlib.suppress(Exception):  # the process is ending; the cluster frees the rest
            process.session.stop()
    gateway.stop(patience_s=0.0 if local else 5.0)
    shutil.rmtree(gateway.folder, ignore_errors=True)


def _hush() -> None:
    """Keeps PySpark and py4j from printing stack traces about the Java process that we end."""
    # The starting thread may be importing PySpark at this moment: take it only if it is there.
    server = getattr(sys.modules.get("pyspark.accumulators"), "AccumulatorTCPServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    # py4j logs through the root logger; nobody else's messages are touched.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
