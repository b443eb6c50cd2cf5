"""Checks of `headwater doctor`: the data folder, its disk and its locks.

Whatever is written for a test is removed again, and nothing is made in a folder that does not
exist yet: its nearest parent is looked at instead.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headwater.cli.finding import Finding, ok, problem, size, warning

CATALOG = "catalog"
LEAST_FREE = 200 << 20
GOOD_FREE = 2 << 30
PROBE_BYTES = 4 << 20
READ_BYTES = 256 << 20
"""Data files of no more than this are read whole, to find damage."""
SMALL_SYNCS = 5
SLOW_SYNC_S = 0.05
GOOD_JUMP_S = 60.0
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "glusterfs", "afs"}
)


def nearest(path: Path) -> Path:
    """The folder, or the nearest parent that exists."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def ownership(path: Path) -> Finding:
    """The folder is ours, empty, or not there yet."""
    name = "data folder"
    try:
        if not path.exists():
            return ok(name, f"{path} does not exist yet and will be made")
        if not path.is_dir():
            return problem(name, f"{path} is a file", "name a folder")
        entries = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        return problem(name, f"{path} cannot be read: {error.strerror}", "check its permissions")
    if CATALOG in entries:
        return _catalog(path / CATALOG)
    if entries:
        few = ", ".join(entries[:3]) + (", …" if len(entries) > 3 else "")
        return problem(name, f"{path} holds other files ({few})", "choose an empty or new folder")
    return ok(name, f"{path} is empty")


def _catalog(folder: Path) -> Finding:
    from headwater.errors import Error
    from headwater.storage.catalog import read_catalog

    wrong = _format(folder.parent)
    if wrong is not None:
        return wrong
    try:
        objects = read_catalog(folder)
    except Error as error:
        return problem("data folder", error.message, error.hint or "restore it from a backup")
    text = f"{folder.parent} is a Headwater database with {_counted(len(objects), 'object')}"
    return ok("data folder", text)


def files(path: Path, read_all: bool = False) -> Finding:
    """Logs and data files are what was written; `read_all`: every row, however many there are."""
    from headwater.storage.soundness import soundness

    name = "files"
    if not (path / CATALOG).is_dir():
        return ok(name, "none yet")
    if any(pid != os.getpid() for pid in lock_holders(path)):
        return ok(name, "not looked at while another process has them open")
    found = soundness(path, None if read_all else READ_BYTES)
    if found.damage:
        first, *others = found.damage
        more = f"; and {len(others)} more" if others else ""
        return problem(name, f"{first.message}{more}", first.hint or "restore it from a backup")
    parts = "all rows" if found.read_all else "the footers"
    shown = f"{_counted(found.logs, 'log')} and {parts} of {_counted(found.files, 'file')} are as written"
    return ok(name, shown if found.read_all else f"{shown}; --read-all reads all rows")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def put_aside(path: Path) -> Finding:
    """Nothing lies aside that no object of the catalog needs."""
    from headwater.errors import Error
    from headwater.storage.catalog import read_catalog

    name, aside = "put aside", path / "aside"
    try:
        known = {f"{o.name}-{o.id}" for o in read_catalog(path / CATALOG) if o.kind == "source"}
    except (Error, OSError):
        return ok(name, "the catalog does not say")
    found = sorted(aside.iterdir()) if aside.is_dir() else []
    sources = path / "sources"
    found += [
        p
        for p in (sources.iterdir() if sources.is_dir() else ())
        if p.name.removesuffix(".sums") not in known
    ]
    found += sorted((path / "tables").glob("*/_delta_log/*.damaged"))
    if not found:
        return ok(name, "nothing")
    shown = ", ".join(str(p.relative_to(path)) for p in found[:3]) + (" …" if found[3:] else "")
    return warning(
        name,
        f"{shown}: no object of the catalog needs it",
        "tables in aside/ can be opened as Delta tables; what is not needed can be deleted",
    )


def _format(path: Path) -> Finding | None:
    """A finding if the folder's format cannot be read by this version."""
    from headwater.storage.folder import FORMAT, MARK

    mark = path / MARK
    try:
        found = int(json.loads(mark.read_text())["format"])
    except FileNotFoundError:
        return problem("data folder", f"{mark} is missing", "restore the folder from a backup")
    except (OSError, ValueError, KeyError, TypeError):
        advice = f"put it back from a copy; it holds nothing but {json.dumps({'format': FORMAT})}"
        return problem("data folder", f"{mark} is damaged", advice)
    if found != FORMAT:
        text = f"{path} has format {found}, this version reads {FORMAT}"
        return problem("data folder", text, "use the Headwater that wrote it")
    return None


def times(path: Path, now: float | None = None) -> Finding:
    """No file of the folder is of the future: the clock was not set back."""
    now = time.time() if now is None else now
    try:
        newest = max((entry.stat().st_mtime for entry in os.scandir(path)), default=now)
    except OSError:
        return ok("times", "no files yet")
    if newest > now + GOOD_JUMP_S:
        text = f"files were written {newest - now:.0f} s in the future: the clock was set back"
        return warning("times", text, "set the clock; times of arrival wait until it is there")
    return ok("times", "no file is of the future")


def opened_by(path: Path, locks: str | None = None) -> Finding:
    """No other process has the folder open."""
    name = "in use"
    holders = [pid for pid in lock_holders(path, locks) if pid != os.getpid()]
    if not holders:
        return ok(name, "no process has it open")
    shown = ", ".join(f"{_process_name(pid)} (process {pid})" for pid in holders)
    return problem(name, f"open in {shown}", "close it there, or work with it there")


def lock_holders(path: Path, locks: str | None = None) -> list[int]:
    """Processes that hold a lock on a file of the folder, from the kernel's own list."""
    try:
        text = Path("/proc/locks").read_text() if locks is None else locks
        inodes = {entry.stat(follow_symlinks=False).st_ino for entry in os.scandir(path)}
    except OSError:
        return []
    found = re.finditer(r"(?:FLOCK|POSIX|OFDLCK)\s+\S+\s+\S+\s+(-?\d+)\s+\w+:\w+:(\d+)", text)
    return sorted({int(m.group(1)) for m in found if int(m.group(2)) in inodes})


def _process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "another program"


def disk_space(path: Path, free: int | None = None) -> Finding:
    """There is room for data."""
    where = nearest(path)
    if free is None:
        facts = os.statvfs(where)
        free = facts.f_bavail * facts.f_frsize
    shown = f"{size(free)} free at {where}"
    if free < LEAST_FREE:
        return problem("disk space", shown, "make room, or choose another folder")
    if free < GOOD_FREE:
        return warning("disk space", shown, "make room soon")
    return ok("disk space", shown)


def disk_speed(path: Path, clock: Callable[[], float] = time.perf_counter) -> Finding:
    """Files can be written and synced at a useful speed."""
    where = nearest(path)
    try:
        with tempfile.TemporaryFile(dir=where) as file:
            file.write(b"\0" * PROBE_BYTES)
            file.flush()
            os.fsync(file.fileno())
            started = clock()
            for _ in range(SMALL_SYNCS):
                file.write(b"\0" * 512)
                file.flush()
                os.fsync(file.fileno())
            each = (clock() - started) / SMALL_SYNCS
    except OSError as error:
        return _unwritable(where, error)
    shown = f"a small write is on disk after {each * 1000:.1f} ms"
    if each > SLOW_SYNC_S:
        return warning("disk speed", shown, "a local SSD answers inserts faster")
    return ok("disk speed", shown)


def _unwritable(where: Path, error: OSError) -> Finding:
    if error.errno == errno.ENOSPC:
        return problem("disk speed", f"{where} is full", "make room, or choose another folder")
    return problem(
        "disk speed",
        f"{where} cannot be written: {error.strerror}",
        "change its permissions, or choose another folder",
    )


def file_locks(path: Path) -> Finding:
    """Locks keep two processes from opening the folder at once."""
    where = nearest(path)
    try:
        excluded = _lock_excludes(where)
    except OSError as error:
        return problem(
            "file locks",
            f"do not work at {where}: {error.strerror}",
            "choose a folder on a local disk",
        )
    if not excluded:
        return problem("file locks", f"are ignored at {where}", "choose a folder on a local disk")
    kind = file_system(where)
    if kind in NETWORK:
        return warning(
            "file locks",
            f"work at {where}, which is a network file system ({kind})",
            "never open it from two machines; a local disk is safer",
        )
    return ok("file locks", f"work at {where}" + (f" ({kind})" if kind else ""))


def _lock_excludes(where: Path) -> bool:
    """Whether a second lock on a file is refused while the first is held."""
    import fcntl

    with tempfile.NamedTemporaryFile(dir=where, prefix=".headwater-doctor-") as first:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(first.name, "rb") as second:
            try:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def file_system(path: Path, mounts: str | None = None) -> str:
    """The kind of file system that a path is on, or nothing if that cannot be told."""
    try:
        text = Path("/proc/mounts").read_text() if mounts is None else mounts
    except OSError:
        return ""
    best, kind = "", ""
    for words in (line.split() for line in text.splitlines()):
        if len(words) < 3:
            continue
        point = words[1].replace("\\040", " ")
        inside = path.is_relative_to(point)
        if inside and len(point) >= len(best):
            best, kind = point, words[2]
    return kind
