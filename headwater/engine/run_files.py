"""The files of runs: which there are, which the snapshot on disk names, and when they go.

Owns: the runs, from the oldest to the newest, and their files. Runs are immutable; those that the snapshot on
disk names stay until the next one has taken its place, so a kill at any moment leaves what it names. Must
never: look into a file, or remove one that a snapshot, a reader or a writer of a snapshot needs. Callers hold
the lock of whoever has the runs unless it says otherwise.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwater.errors import StorageError
from headwater.kernel.run_parts import RunPart, WrittenPart, part_path
from headwater.storage.disk import storage_error, sync_file, sync_folder
from headwater.storage.modes import make_folder

Lock = AbstractContextManager[Any]  # of whoever has the runs


@dataclass(frozen=True)
class Run:
    """One spilled state."""

    number: int
    level: int
    rows: tuple[int, ...]  # by partition; no rows, no file
    sizes: tuple[int, ...]

    @property
    def parts(self) -> list[int]:
        """The partitions that have a file."""
        return [part for part, count in enumerate(self.rows) if count]

    @property
    def row_count(self) -> int:
        """Groups in it."""
        return sum(self.rows)

    @property
    def byte_count(self) -> int:
        """Bytes on disk."""
        return sum(self.sizes)


class RunFiles:
    """Runs of files in one folder, each of so many parts at most."""

    def __init__(self, folder: Path, part_count: int) -> None:
        self._folder, self._part_count = folder, part_count
        self._runs: tuple[Run, ...] = ()
        self._named: tuple[Run, ...] = ()  # by the snapshot on disk
        self._held: list[Run] = []  # by a snapshot that is being written
        self._known: dict[int, Run] = {}  # whose files are there
        self._synced: set[int] = set()
        self._parts: dict[tuple[int, int], RunPart | None] = {}  # that keys were looked up in
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def row_count(self) -> int:
        """Groups on disk; one that is in several runs counts in each."""
        return sum(run.row_count for run in self._runs)

    @property
    def byte_count(self) -> int:
        """Bytes on disk."""
        return sum(run.byte_count for run in self._runs)

    def _made(self, number: int, level: int, files: Sequence[WrittenPart]) -> Run:
        rows, sizes = [0] * self._part_count, [0] * self._part_count
        for file in files:
            rows[file.part], sizes[file.part] = file.rows, file.size
        self._known[number] = Run(number, level, tuple(rows), tuple(sizes))
        return self._known[number]

    def _part(self, run: Run, part: int) -> RunPart | None:
        known = (run.number, part)
        if known not in self._parts:
            self._parts[known] = RunPart.opened(part_path(self._prefix(run.number), part))
        return self._parts[known]

    # Snapshots

    @contextlib.contextmanager
    def _held_runs(self, lock: Lock) -> Iterator[tuple[Run, ...]]:
        """The present runs, whose files stay while inside, without the lock too."""
        mine = self._runs
        self._held += mine
        try:
            yield mine
        finally:
            with lock:
                for run in mine:
                    self._held.remove(run)
                self._sweep()

    @contextlib.contextmanager
    def held(self, lock: Lock) -> Iterator[list[dict[str, Any]]]:
        """The runs as a snapshot names them; their files stay while inside."""
        with self._held_runs(lock) as mine:
            yield [asdict(run) for run in mine]

    def sync(self, record: Sequence[dict[str, Any]]) -> None:
        """Makes the files of a record durable; needs no lock."""
        new = [run for run in map(_run, record) if run.number not in self._synced]
        for run in new:
            for part in run.parts:
                sync_file(Path(part_path(self._prefix(run.number), part)))
        if new:
            sync_folder(self._folder)
            sync_folder(self._folder.parent)
        self._synced |= {run.number for run in new}

    @property
    def are_named(self) -> bool:
        """Whether the snapshot on disk has the present runs."""
        return self._named == self._runs

    def name(self, record: Sequence[dict[str, Any]]) -> None:
        """The snapshot on disk has these runs now."""
        self._named = tuple(map(_run, record))
        self._sweep()

    def take_up(self, record: Sequence[dict[str, Any]]) -> bool:
        """The runs that the snapshot on disk names; False, and none, if a file is not whole."""
        runs = tuple(map(_run, record))
        self._named = runs
        self._known |= {run.number: run for run in runs}
        self._synced |= {run.number for run in runs}
        self._next = max([self._next, *(run.number + 1 for run in runs)])
        files = [
            (part_path(self._prefix(run.number), part), run.sizes[part])
            for run in runs
            for part in run.parts
        ]
        whole = all(_has_size(path, size) for path, size in files)
        self._runs = runs if whole else ()
        return whole

    def clean(self) -> None:
        """At the start: files that the snapshot does not name go."""
        named = {
            Path(part_path(self._prefix(run.number), part))
            for run in self._named
            for part in run.parts
        }
        for path in self._folder.glob("*"):
            if path not in named:
                path.unlink(missing_ok=True)

    # Ends

    def drop(self) -> None:
        """No run is in use; files that the snapshot names stay."""
        self._runs = ()
        self._sweep()

    def remove(self) -> None:
        """Nothing is left on disk."""
        self._runs = self._named = ()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Removes files that nobody needs."""
        needed = {run.number for run in (*self._runs, *self._named, *self._held)}
        for number in [n for n in self._known if n not in needed]:
            remove_run(self._prefix(number), self._part_count)
            del self._known[number]
            self._parts = {known: part for known, part in self._parts.items() if known[0] != number}

    def _number(self) -> int:
        """One that no run had."""
        self._next += 1
        return self._next - 1

    def _prefix(self, number: int) -> str:
        return str(self._folder / f"run-{number}")

    def _make_folder(self) -> None:
        try:
            make_folder(self._folder)
        except OSError as error:
            raise storage_error("make folder", str(self._folder), error) from error


@contextlib.contextmanager
def removed_unless_done(prefix: str, part_count: int) -> Iterator[None]:
    """The files of a run go if it does not come to an end."""
    try:
        yield
    except BaseException:
        remove_run(prefix, part_count)
        raise


def _run(record: dict[str, Any]) -> Run:
    try:
        rows, sizes = tuple(record["rows"]), tuple(record["sizes"])
        return Run(int(record["number"]), int(record["level"]), rows, sizes)
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError("damaged snapshot", sqlstate="XX001", detail=str(error)) from error


def _has_size(path: str, size: int) -> bool:
    try:
        return Path(path).stat().st_size == size
    except OSError:
        return False


def remove_run(prefix: str, part_count: int) -> None:
    """The files of a run go."""
    for part in range(part_count):
        Path(part_path(prefix, part)).unlink(missing_ok=True)
