"""The spilled groups of a pipeline: immutable runs on disk, merged geometrically (CV10).

Owns: which runs there are, from the oldest to the newest, and their files. A run is a state at the moment
when memory had no more room for it, in partitions of the key. Four runs of one level become one of the next,
so that a group is written about log₄ of the number of spills times. Runs that the snapshot on disk
names stay until the next one has taken its place. Must never: fold rows, or remove a file that a
snapshot, a reader or a writer of a snapshot needs. Callers hold the pipeline's lock.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.engine.world import World
from headwater.errors import StorageError
from headwater.fold.state import GroupState
from headwater.kernel.relation import Relation
from headwater.kernel.state_merge import (
    Merged,
    MergeJob,
    StateShape,
    Written,
    merge_here,
    merge_on_spark,
    part_path,
    unite_here,
    write_part,
)
from headwater.storage.disk import storage_error
from headwater.storage.folder import sync_file, sync_folder

PARTITIONS = 32  # a merge holds one of them in memory
FAN_IN = 4  # runs of one level that become one of the next


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


class StateRuns:
    """The runs of one pipeline."""

    def __init__(self, folder: Path, world: World) -> None:
        self._folder, self._world = folder, world
        self._runs: tuple[Run, ...] = ()
        self._named: tuple[Run, ...] = ()  # by the snapshot on disk
        self._held: list[Run] = []  # by a snapshot that is being written
        self._known: dict[int, Run] = {}  # whose files are there
        self._synced: set[int] = set()
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

    # Spilling

    def spill(self, shape: StateShape, state: GroupState) -> None:
        """Writes a state as the newest run, and merges runs of one level."""
        self._runs = (*self._runs, self._written(shape, state))
        while self._tier_is_full:
            last = self._runs[-FAN_IN:]
            merged = self._merge(shape, last, last[0].level + 1)
            self._runs = (*self._runs[:-FAN_IN], merged)
            self._sweep()

    @property
    def _tier_is_full(self) -> bool:
        last = self._runs[-FAN_IN:]
        return len(last) == FAN_IN and len({run.level for run in last}) == 1

    def _written(self, shape: StateShape, state: GroupState) -> Run:
        self._make_folder()
        number = self._number()
        prefix = self._prefix(number)
        with self._removed_unless_done(prefix):
            tables = shape.columns().tables(state, PARTITIONS)
            files = [write_part(table, prefix, part) for part, table in tables]
        return self._made(number, 0, files)

    def _merge(self, shape: StateShape, runs: Sequence[Run], level: int) -> Run:
        number = self._number()
        job = MergeJob(shape, self._sources(runs), kept=self._prefix(number))
        with self._removed_unless_done(self._prefix(number)):
            if self._is_large(runs, 0):
                made = merge_on_spark(self._world.kernel, job)
            else:
                made = merge_here(job)
        return self._made(number, level, made.kept)

    def _is_large(self, runs: Sequence[Run], rest: int) -> bool:
        """Whether Spark merges."""
        count = sum(run.row_count for run in runs) + rest
        return count > self._world.settings.integer("inline_rows")

    def _sources(self, runs: Sequence[Run]) -> tuple[tuple[str, ...], ...]:
        return tuple(
            tuple(part_path(self._prefix(run.number), part) for run in runs if run.rows[part])
            for part in range(PARTITIONS)
        )

    def _made(self, number: int, level: int, files: Sequence[Written]) -> Run:
        rows, sizes = [0] * PARTITIONS, [0] * PARTITIONS
        for file in files:
            rows[file.part], sizes[file.part] = file.rows, file.size
        self._known[number] = Run(number, level, tuple(rows), tuple(sizes))
        return self._known[number]

    # Reading

    def result(self, shape: StateShape, state: GroupState) -> pa.Table | Relation:
        """The groups of all runs and of the state in memory; in files, to be released, if many.

        Where several runs were read, the one that they make together takes their place.
        """
        number, level = self._number(), max(run.level for run in self._runs)
        several = len(self._runs) > 1
        kept = self._prefix(number) if several else None
        job = MergeJob(shape, self._sources(self._runs), kept=kept)
        with self._removed_unless_done(self._prefix(number)):
            if self._is_large(self._runs, len(state)):
                made, found = self._united_on_spark(job, state)
            else:
                rest = dict(shape.columns().tables(state, PARTITIONS))
                made, found = unite_here(job, rest)
        if several:
            self._runs = (self._made(number, level, made.kept),)
            self._sweep()
        return found

    def _united_on_spark(self, job: MergeJob, state: GroupState) -> tuple[Merged, Relation]:
        mark = uuid.uuid4().hex[:12]  # Spark may remember files by their names
        prefix, rest = (str(self._folder / f"{name}-{mark}") for name in ("result", "rest"))
        try:
            tables = job.shape.columns().tables(state, PARTITIONS)
            files: list[str | None] = [None] * PARTITIONS
            for part, table in tables:
                write_part(table, rest, part)
                files[part] = part_path(rest, part)
            job = MergeJob(job.shape, job.sources, job.kept, tuple(files), prefix)
            with self._removed_unless_done(prefix):
                made = merge_on_spark(self._world.kernel, job)
        finally:
            _remove(rest)
        paths = tuple(part_path(prefix, file.part) for file in made.results)
        return made, Relation(job.shape.result, paths)

    # Snapshots

    @contextlib.contextmanager
    def held(self) -> Iterator[list[dict[str, Any]]]:
        """The runs as a snapshot names them; their files stay while inside, without the lock too."""
        mine = list(self._runs)
        self._held += mine
        try:
            yield [asdict(run) for run in mine]
        finally:
            for run in mine:
                self._held.remove(run)

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
            _remove(self._prefix(number))
            del self._known[number]

    def _number(self) -> int:
        """One that no run had."""
        self._next += 1
        return self._next - 1

    def _prefix(self, number: int) -> str:
        return str(self._folder / f"run-{number}")

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error("make folder", str(self._folder), error) from error

    @contextlib.contextmanager
    def _removed_unless_done(self, prefix: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            _remove(prefix)
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


def _remove(prefix: str) -> None:
    for part in range(PARTITIONS):
        Path(part_path(prefix, part)).unlink(missing_ok=True)
