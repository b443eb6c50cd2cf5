"""A Spark standalone cluster on this machine: one master and its workers, from the installed pyspark.

Owns their processes and folders. Ports are free ones of the loopback address, read from the logs. Must
never leave a process: each is ended by its own id, and the executors end with their workers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from headwater.kernel.gateway import class_path, java_flags, spark_home
from headwater.kernel.java import find_java, spark_java_home
from tests.harness.patience import PATIENCE_S

HOST = "127.0.0.1"
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # these processes live for a minute
DAEMON_MB = 128  # Java's heap of the master, and of each worker
EXECUTOR_MB = 512  # Spark wants at least 450
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Registering worker \S+ with \d+ cores")


class SparkCluster:
    """A master and workers that run while inside; `master` is the URL to connect to."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.master = ""
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self._java = find_java()

    @property
    def settings(self) -> dict[str, object]:
        """What a database is told to run on it: small executors, and an address of this machine."""
        return {
            "spark.executor.memory": f"{EXECUTOR_MB}m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": " ".join(QUICK_START),
            # No task starts before every worker's executor is there.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE_S:g}s",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.sql.shuffle.partitions": "2",
            "spark.network.timeout": "600s",  # a busy machine loses no executor
            "start_timeout_s": 300,
            "aot_cache": False,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process of the cluster, and of a driver on this machine."""
        return {
            **os.environ,
            "JAVA_HOME": str(spark_java_home(self._java)),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": HOST,
            # Spark looks for its own build folders to find this version; the package has none.
            "SPARK_SCALA_VERSION": "2.13",
            "JAVA_TOOL_OPTIONS": QUICK_START[0],  # the driver's Java too
        }

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            common = ("--host", HOST, "--port", "0", "--webui-port", "0")
            self._start("master", "org.apache.spark.deploy.master.Master", common)
            self.master = self._wait_for("master", _MASTER, 1)[0]
            for number in range(self._workers):
                room = ("--cores", "1", "--memory", f"{EXECUTOR_MB}M")
                work = ("--work-dir", str(self.folder / f"work-{number}"), self.master)
                self._start(
                    f"worker-{number}",
                    "org.apache.spark.deploy.worker.Worker",
                    (*common, *room, *work),
                )
            self._wait_for("master", _REGISTERED, self._workers)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, *arguments: str, timeout_s: float) -> Any:
        """A Python program beside the cluster, the driver: what it prints last, read as JSON."""
        found = subprocess.run(
            [sys.executable, *arguments],
            cwd=Path(__file__).parents[2],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert found.returncode == 0, found.stderr[-3000:]
        return json.loads(found.stdout.splitlines()[-1])

    def _start(self, name: str, class_name: str, arguments: Sequence[str]) -> None:
        flags = [f for f in java_flags(self._java, DAEMON_MB) if f != "-XX:+UseParallelGC"]
        command = [str(self._java.executable), *flags, *QUICK_START]
        command += ["-cp", os.pathsep.join(class_path()), class_name, *arguments]
        with open(self._log(name), "wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment
                )
            )

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _wait_for(self, name: str, pattern: re.Pattern[str], count: int) -> list[str]:
        """What a log says, as soon as it says it so many times."""
        until = time.monotonic() + PATIENCE_S
        while True:
            text = self._log(name).read_text(errors="replace")
            found = pattern.findall(text)
            if len(found) >= count:
                return found
            ended = [p.args for p in self._processes if p.poll() is not None]
            assert not ended, f"a process of the cluster ended: {text[-2000:]}"
            assert time.monotonic() < until, f"the cluster did not start: {text[-2000:]}"
            time.sleep(0.05)  # not a wait for progress: a log announces nothing

    def _end(self) -> None:
        """Ends the workers with their executors, then the master."""
        for process in reversed(self._processes):
            below = psutil.Process(process.pid).children(True) if process.poll() is None else []
            process.terminate()
            try:
                process.wait(10)  # not a wait for progress: it is killed then
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _, left = psutil.wait_procs(below, 10)
            for child in left:
                child.kill()
        self._processes.clear()
