"""A PostgreSQL server for a benchmark: made, started and removed here, on a socket of its own.

None where its programs or psycopg are not installed; the benchmark then says so.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any


def programs() -> str | None:
    """The folder of PostgreSQL's programs."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if found:
        return os.path.dirname(found[-1])
    program = shutil.which("initdb")
    return os.path.dirname(program) if program else None


def why_missing() -> str | None:
    """Why PostgreSQL cannot be measured; None if it can."""
    if programs() is None:
        return "PostgreSQL is not installed"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (pip install 'headwater[bench]')"
    return None


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Starts a server with its fair defaults (synchronous_commit on); the connection text."""
    folder = tempfile.mkdtemp(prefix="headwater-pg-", dir="/tmp")
    prefix = _as_other_user(folder)
    data, bin_ = os.path.join(folder, "data"), programs()
    assert bin_ is not None

    def run(*command: str) -> None:
        subprocess.run([*prefix, *command], check=True, capture_output=True, cwd=folder)

    try:
        run(f"{bin_}/initdb", "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "-N")
        options = (
            f"-c listen_addresses='' -c unix_socket_directories={folder} -c shared_buffers=1GB"
        )
        options += " -c max_wal_size=8GB"
        run(f"{bin_}/pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        yield f"host={folder} user=bench dbname=postgres"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run(f"{bin_}/pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _as_other_user(folder: str) -> list[str]:
    """PostgreSQL refuses to run as root; then it runs as nobody."""
    if os.getuid():
        return []
    shutil.chown(folder, 65534, 65534)
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def connect(text: str) -> Any:
    """A connection that commits every statement."""
    import psycopg

    return psycopg.connect(text, autocommit=True)
