"""What Spark is started with, and which of it a session of somebody else's Spark is given."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from headwater.settings import Settings

SMALLEST_MEMORY_MB = 1024
LARGEST_MEMORY_MB = 8192
NEVER = "2147483647"
TASK_FAILURES = 4  # Spark's own number on clusters
FACTORY_DAEMON = "headwater.kernel.factory_daemon"  # has a factory's modules loaded


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


def factory_slots(settings: Settings) -> int:
    """How many factories are wanted: our own local Spark has slots for them, beside its cores."""
    wanted = settings.integer("factories")
    return wanted if wanted >= 0 else len(os.sched_getaffinity(0))


def local_master(master: str, extra: int) -> str:
    """A local master with slots for factories, where a task may fail and begin again."""
    if not master.startswith("local") or "cluster" in master or not extra:
        return master
    return f"local[{core_count(master) + extra},{TASK_FAILURES}]"


def session_settings(settings: Settings, master: str) -> dict[str, str]:
    """Settings of a session: all that results depend on. The user's own `spark.` settings win."""
    confs = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.variable.substitute": "false",  # '${env:HOME}' is a text like any other
        "spark.sql.session.timeZone": settings.text("time_zone"),
        "spark.sql.shuffle.partitions": str(core_count(master)),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        # Damage inside a page is an error, not a wrong row.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        # More paths than this start a Spark job that lists them; we know our files.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.hadoop.fs.permissions.umask-mode": "077",  # its files are the owner's alone
        "spark.sql.legacy.parquet.nanosAsLong": "false",
    }
    own = {n: v for n, v in settings.spark.items() if n.startswith(("spark.sql.", "spark.hadoop."))}
    return {**confs, **own}


def spark_settings(settings: Settings) -> dict[str, str]:
    """What our own Spark is started with; the user's own `spark.` settings win."""
    master = settings.text("master")
    confs: Mapping[str, str] = {
        **session_settings(settings, master),
        "spark.ui.enabled": str(settings.flag("spark_ui")).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.maxResultSize": "0",
        # A factory is a task that runs for ever: no second copy, and no end because it is idle.
        "spark.speculation": "false",
        "spark.python.worker.killOnIdleTimeout": "false",
    }
    if master.startswith("local"):
        cores = {"spark.default.parallelism": str(core_count(master))}
        daemon = {"spark.python.daemon.module": FACTORY_DAEMON} if factory_slots(settings) else {}
        confs = {**confs, **LOCAL, **cores, **daemon}
    return {**confs, **settings.spark}


# In local mode the executor lives in the driver's Java process, and still sends it heartbeats. If the machine
# stands still for spark.network.timeout, the driver removes its only executor, from then on every heartbeat
# fails to register it again, and the 60th failure ends the process, the driver too (exit code 56, ten
# minutes later). An executor cannot be lost without its driver here, so it is never given up.
LOCAL: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.heartbeat.maxFailures": NEVER,
    "spark.storage.blockManagerHeartbeatTimeoutMs": f"{NEVER}ms",
}
