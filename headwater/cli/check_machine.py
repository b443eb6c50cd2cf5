"""Checks of `headwater doctor`: memory, shared memory, limits, network, clock.

What can fail is a parameter, so that tests can make it fail. No check may take longer than a
few seconds, whatever is wrong with the machine.
"""

from __future__ import annotations

import os
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from headwater.cli.finding import Finding, ok, problem, size, warning

GIB = 1 << 30
MIB = 1 << 20
LEAST_MEMORY = 2 * GIB
GOOD_AVAILABLE = 3 * GIB // 2
GOOD_SHARED = 512 * MIB  # the default of staging_mb
GOOD_DESCRIPTORS = 1024
GOOD_THREADS = 1024
LEAST_TEMPORARY = 200 * MIB
RESOLVE_WAIT_S = 3.0
BUILT = 1_767_225_600.0  # 2026-01-01: no clock can be before the code was written
FAR_FUTURE = 4_102_444_800.0  # 2100-01-01


def memory(read: Callable[[str], str] | None = None) -> Finding:
    """There is memory for the Java process and for us, within the container's limit."""
    total, available = memory_bytes(read or _read)
    if total is None:
        return ok("memory", "cannot be told on this system")
    free = total if available is None else available
    shown = f"{size(total)}, {size(free)} available"
    if total < LEAST_MEMORY:
        return problem(
            "memory", shown, f"Spark needs a machine or container of {size(LEAST_MEMORY)}"
        )
    if free < GOOD_AVAILABLE:
        return warning("memory", shown, "close other programs, or lower driver_memory_mb")
    return ok("memory", shown)


def memory_bytes(read: Callable[[str], str]) -> tuple[int | None, int | None]:
    """Total and available bytes: the machine's, or the container's if that has less."""
    try:
        lines = (line.split() for line in read("/proc/meminfo").splitlines())
        facts = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) > 1}
        total, available = facts["MemTotal"], facts["MemAvailable"]
    except (OSError, KeyError, ValueError):
        return _total_memory(), None
    try:
        limit = int(read("/sys/fs/cgroup/memory.max"))
        used = int(read("/sys/fs/cgroup/memory.current"))
    except (OSError, ValueError):  # no container, or "max"
        return total, available
    return min(total, limit), max(min(available, limit - used), 0)


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _read(path: str) -> str:
    return Path(path).read_text()


def shared_memory(path: str = "/dev/shm", room: tuple[int, int] | None = None) -> Finding:
    """Rows for Spark can be staged in shared memory."""
    name = "shared memory"
    if room is None:
        if not os.path.isdir(path):
            return ok(name, "none here: rows for Spark are staged on disk")
        facts = os.statvfs(path)
        room = facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize
    shown = f"{size(room[0])} at {path}, {size(room[1])} free"
    if room[1] < GOOD_SHARED:
        return warning(name, shown, "in a container: docker run --shm-size=1g …")
    if not os.access(path, os.W_OK):
        return warning(name, f"{path} cannot be written", f"chmod 1777 {path}")
    return ok(name, shown)


def temporary_folder(folder: str | None = None) -> Finding:
    """Spark can write its temporary files."""
    name = "temporary folder"
    try:
        where = folder or tempfile.gettempdir()
        with tempfile.TemporaryFile(dir=where):
            pass
        facts = os.statvfs(where)
    except OSError as error:
        return problem(name, f"cannot be written: {error}", "set TMPDIR to a folder that can be")
    free = facts.f_bavail * facts.f_frsize
    if free < LEAST_TEMPORARY:
        return warning(name, f"{size(free)} free at {where}", "make room, or set TMPDIR")
    return ok(name, f"{where}, {size(free)} free")


def descriptors(limit: int | None = None) -> Finding:
    """The process may open enough files."""
    if limit is None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return ok("open files", "no limit")
    if limit < GOOD_DESCRIPTORS:
        return warning("open files", f"at most {limit}", "ulimit -n 4096 before starting")
    return ok("open files", f"at most {limit}")


def threads(limit: int | None = None) -> Finding:
    """Java and Python may start their threads."""
    if limit is None:
        limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit == resource.RLIM_INFINITY:
        return ok("threads", "no limit")
    if limit < GOOD_THREADS:
        return warning("threads", f"at most {limit}", f"ulimit -u {GOOD_THREADS} before starting")
    return ok("threads", f"at most {limit}")


def loopback(connect: Callable[[], None] | None = None) -> Finding:
    """Python can talk to the Java process on this machine."""
    try:
        (connect or _talk_to_self)()
    except OSError as error:
        return problem("loopback", f"127.0.0.1 does not work: {error}", "bring up the interface lo")
    return ok("loopback", "127.0.0.1 works")


def _talk_to_self() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        with socket.create_connection(server.getsockname(), timeout=RESOLVE_WAIT_S):
            pass


def hostname(
    resolve: Callable[[str], str] = socket.gethostbyname, wait_s: float = RESOLVE_WAIT_S
) -> Finding:
    """The machine's name has an address, which Spark asks for."""
    name = socket.gethostname()
    advice = f"add '127.0.0.1 {name}' to /etc/hosts, or set SPARK_LOCAL_IP=127.0.0.1"
    answer: list[str] = []
    errors: list[OSError] = []

    def ask() -> None:
        try:
            answer.append(resolve(name))
        except OSError as error:
            errors.append(error)

    asking = threading.Thread(target=ask, name="headwater-resolve", daemon=True)
    asking.start()
    asking.join(wait_s)
    if answer:
        return ok("host name", f"{name} is {answer[0]}")
    why = f"does not resolve: {errors[0]}" if errors else f"takes over {wait_s:g} s to resolve"
    return warning("host name", f"{name} {why}", advice)


def clock(now: float | None = None) -> Finding:
    """The clock shows a time that can be."""
    now = time.time() if now is None else now
    shown = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(now))
    if not BUILT < now < FAR_FUTURE:
        return problem("clock", f"{shown} cannot be right", "set the clock, for instance by NTP")
    return ok("clock", shown)
