"""The data folder: whose it is, which format, and that one process has it open.

Layout: `HEADWATER` (the mark and format), `LOCK`, `catalog/` and `batches/` (logs of objects and of
batch ids), `wal/` (the log of rows), `tables/` (one Delta table per folder), `login.secret`, `staging/`,
`aside/` (what no object needs and no DROP gave up). The mark is written before anything else, the lock
taken before that.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

from headwater.errors import StorageError
from headwater.storage.disk import sync_folder
from headwater.storage.local_path import local_path
from headwater.storage.modes import FILE, make_folder, tighten

FORMAT = 2
MARK = "HEADWATER"
LOCK = "LOCK"
LOCAL_HINT = (
    "give the path of a local folder; sources of files may read other file systems, and a server is asked "
    "with psql, another client of PostgreSQL or over HTTP"
)


class DataFolder:
    """An open data folder; one process at a time."""

    def __init__(self, path: str | Path) -> None:
        self.temporary = str(path) == ":memory:"
        given = tempfile.mkdtemp(prefix="headwater-") if self.temporary else path
        # Absolute: Spark has a working directory of its own.
        self.path = local_path(given, "a data folder", LOCAL_HINT).absolute()
        self._make()
        self._lock = self._take_lock()
        try:
            self._check_mark()
            for name in ("tables", "wal"):
                make_folder(self.path / name)
            tighten(self.path)
        except BaseException:
            self.close()
            raise

    @property
    def catalog(self) -> Path:
        """The folder of the catalog's log."""
        return self.path / "catalog"

    @property
    def tables(self) -> Path:
        """The folder of all tables."""
        return self.path / "tables"

    @property
    def staging(self) -> Path:
        """Where rows are staged that shared memory has no room for."""
        return self.path / "staging"

    def close(self) -> None:
        """Lets other processes in; a temporary folder is removed."""
        os.close(self._lock)
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)

    def _make(self) -> None:
        try:
            make_folder(self.path)
        except FileExistsError as error:
            raise StorageError(
                f"{self.path} is a file, not a folder", hint="give the path of a folder"
            ) from error
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _take_lock(self) -> int:
        try:
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, FILE)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            os.close(lock)
            raise _in_use(self.path, holder) from error
        except OSError as error:
            os.close(lock)
            raise StorageError(
                f"{self.path} does not support file locks",
                detail=str(error),
                hint="use a local file system",
            ) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return lock

    def _check_mark(self) -> None:
        mark = self.path / MARK
        if not mark.exists():
            others = sorted(
                p.name for p in self.path.iterdir() if p.name not in (LOCK, f"{MARK}.new")
            )
            if others:
                (self.path / LOCK).unlink()
                raise StorageError(
                    f"{self.path} is not a Headwater folder",
                    sqlstate="58P01",
                    detail=f"it holds {', '.join(others[:3])}{' …' if len(others) > 3 else ''}",
                    hint="give an empty or new folder"
                    if "catalog" not in others
                    else f"its file {MARK} is missing: put it back from a copy",
                )
            self._write_mark(mark)
            return
        try:
            found = int(json.loads(mark.read_text())["format"])
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise StorageError(
                f"the file {mark} is damaged",
                sqlstate="XX001",
                detail=f"it cannot be read as a format: {type(error).__name__}: {error}",
                hint=f"put it back from a copy; it holds nothing but {json.dumps({'format': FORMAT})}",
            ) from error
        if found < FORMAT:
            raise StorageError(
                f"{self.path} was written by an older Headwater, before its first release",
                detail=f"its format is {found}, this version reads {FORMAT}",
                hint="use the older version, or read its tables, which are Delta tables, into a new folder",
            )
        if found > FORMAT:
            raise StorageError(
                f"{self.path} was written by a newer Headwater",
                detail=f"its format is {found}, this version reads {FORMAT}",
                hint="use the newer version",
            )

    def _write_mark(self, mark: Path) -> None:
        fresh = mark.with_suffix(".new")
        try:
            with open(fresh, "w", opener=partial(os.open, mode=FILE)) as file:
                json.dump({"format": FORMAT}, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(mark)
            sync_folder(self.path)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def check_catalog(self) -> None:
        """XX001 if there are tables or rows and no catalog at all: an empty one would disown them."""
        if self.catalog.is_dir() and any(self.catalog.iterdir()):
            return
        owned = [*self.tables.iterdir(), *(self.path / "wal").glob("*.wal")]
        if owned:
            raise StorageError(
                f"the catalog {self.catalog} is missing",
                sqlstate="XX001",
                detail=f"{owned[0]} belongs to objects that it would name",
                hint="put the folder back from a copy; nothing has been changed",
            )

    def put_aside(self, path: Path) -> Path:
        """Moves what nobody needs out of the way, where `headwater doctor` finds it; its new place."""
        aside = self.path / "aside"
        aside.mkdir(mode=0o700, exist_ok=True)
        for number in itertools.count():
            target = aside / (f"{path.name}.{number}" if number else path.name)
            if not target.exists():
                path.rename(target)
                sync_folder(path.parent)
                sync_folder(aside)
                return target
        raise AssertionError("unreachable")


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"the folder {path} cannot be written",
        sqlstate="42501" if isinstance(error, PermissionError) else "58030",
        detail=str(error),
        hint="check its owner and rights, or choose another folder",
    )


def _in_use(path: Path, holder: str) -> StorageError:
    who = f"process {holder}" if holder else "another process"
    if holder == str(os.getpid()):
        who = f"this process ({holder})"
    elif holder.isdigit():
        try:
            command = Path(f"/proc/{holder}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            who = f"process {holder} ({command.strip()[:120]})"
        except OSError:
            pass
    return StorageError(
        f"{path} is open in {who}",
        sqlstate="55006",
        hint="close it there first; one process at a time can have a folder open",
    )
