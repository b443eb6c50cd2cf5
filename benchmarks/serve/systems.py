"""Who is measured: `headwater serve` in a process of its own, and PostgreSQL."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import postgres, reports
from benchmarks.serve.loader import Address, Client

GROUPS = 10
VIEW = "SELECT k, count(*) AS n, sum(x) AS total FROM s GROUP BY k"
ASKED = "SELECT k, n, total FROM v"
STOP_PATIENCE_S = 30.0
_LISTENS = re.compile(r"psql -h (\S+) -p (\d+)")


@dataclass(frozen=True)
class System:
    """A server that listens, and how its tables are made."""

    name: str
    address: Address
    user: str
    database: str
    stream: str  # what a table is called that rows come into
    time: str  # how its time is named
    view: str  # what a view is called that is not computed anew when it is asked

    def client(self) -> Client:
        """A new connection."""
        return Client(self.address, self.user, self.database)

    def prepare(self) -> None:
        """Makes the view that is asked for, and the table that rows are copied into."""
        with self.client() as client:
            client.run(f"CREATE {self.stream} s (k INT, x INT)")
            rows = ", ".join(f"({n % GROUPS}, {n})" for n in range(100 * GROUPS))
            client.run(f"INSERT INTO s VALUES {rows}")
            client.run(f"CREATE {self.view} v AS {VIEW}")
            client.run(f"CREATE {self.stream} p ({reports.DDL}) {self.time}")


@contextlib.contextmanager
def headwater() -> Iterator[System]:
    """Our server with its defaults; Spark is not needed for any of this, and is not started."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        command = [sys.executable, "-m", "headwater.cli", "serve", f"{folder}/db", "--port", "0"]
        command += ["--http-port", "0", "--socket", "none", "--set", "eager_spark=false"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            host, port = _listening(process)
            yield System(
                "Headwater", (host, port), "headwater", "headwater",
                "STREAMING TABLE", "TIMESTAMP BY t", "VIEW",
            )  # fmt: skip
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=STOP_PATIENCE_S)


def _listening(process: subprocess.Popen[str]) -> tuple[str, int]:
    assert process.stderr is not None
    for line in process.stderr:
        found = _LISTENS.search(line)
        if found is not None:
            return found.group(1), int(found.group(2))
    raise RuntimeError("headwater serve did not start")


@contextlib.contextmanager
def postgresql() -> Iterator[System]:
    """PostgreSQL on a socket of its own; a materialized view stands for ours."""
    with postgres.server() as text:
        found = dict(part.split("=", 1) for part in text.split())
        path = str(Path(found["host"]) / ".s.PGSQL.5432")
        yield System(
            "PostgreSQL", path, found["user"], found["dbname"], "TABLE", "", "MATERIALIZED VIEW"
        )


def pgbench(
    system: System, connections: int, kind: str, depth: int, seconds: int, folder: Path
) -> float | None:
    """Queries per second that pgbench reaches; None where it is not installed."""
    program = shutil.which("pgbench")
    if program is None or isinstance(system.address, str):
        return None
    lines = [f"{ASKED};"] * depth
    if depth > 1:
        lines = ["\\startpipeline", *lines, "\\endpipeline"]
    script = folder / "asked.sql"
    script.write_text("\n".join(lines) + "\n")
    host, port = system.address
    command = [program, "-n", "-h", host, "-p", str(port), "-U", system.user, "-M", kind]
    command += ["-c", str(connections), "-j", "1", "-T", str(seconds), "-f", str(script)]
    done = subprocess.run([*command, system.database], capture_output=True, text=True, check=True)
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    return None if found is None else float(found.group(1)) * depth
