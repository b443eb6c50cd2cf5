"""The spilled groups of a pipeline: immutable runs on disk, merged geometrically (CV10).

Owns: which runs there are, from the oldest to the newest, and their files. A run is a state at the moment
when memory had no more room for it, in partitions of the key. Four runs of one level become one of the next,
so that a group is written about log₄ of the number of spills times. Runs that the snapshot on disk
names stay until the next one has taken its place. Must never: fold rows, or remove a file that a
snapshot, a reader or a writer of a snapshot needs. Callers hold the pipeline's lock unless it says otherwise.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.world import World
from headwater.errors import StorageError
from headwater.fold.hashing import hashes_of, partitions_by
from headwater.fold.state import GroupState
from headwater.kernel.relation import Relation
from headwater.kernel.state_merge import (
    Merged,
    MergeJob,
    StatePart,
    StateShape,
    WrittenPart,
    merge_here,
    merge_on_spark,
    part_path,
    unite_here,
    write_part,
)
from headwater.storage.disk import storage_error, sync_file, sync_folder
from headwater.storage.modes import make_folder

Lock = AbstractContextManager[Any]  # the pipeline's

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
        self._parts: dict[tuple[int, int], StatePart | None] = {}  # that keys were looked up in
        self._next = 0

    def anew(self) -> StateRuns:
        """The same place, with nothing known of what is there: another host may change it."""
        return StateRuns(self._folder, self._world)

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
        with _removed_unless_done(prefix):
            tables = shape.columns().tables(state, PARTITIONS)
            files = [write_part(table, prefix, part) for part, table in tables]
        return self._made(number, 0, files)

    def _merge(self, shape: StateShape, runs: Sequence[Run], level: int) -> Run:
        number = self._number()
        job = MergeJob(shape, self._sources(runs), kept=self._prefix(number))
        with _removed_unless_done(self._prefix(number)):
            if self._is_large(runs, 0):
                made = merge_on_spark(self._world.kernel, job)
            else:
                made = merge_here(job)
        return self._made(number, level, made.kept)

    def _is_large(self, runs: Sequence[Run], rest: int) -> bool:
        """Whether Spark merges."""
        count = sum(run.row_count for run in runs) + rest
        return count > self._world.settings.rows_at_once

    def _sources(self, runs: Sequence[Run]) -> tuple[tuple[str, ...], ...]:
        return tuple(
            tuple(part_path(self._prefix(run.number), part) for run in runs if run.rows[part])
            for part in range(PARTITIONS)
        )

    def _made(self, number: int, level: int, files: Sequence[WrittenPart]) -> Run:
        rows, sizes = [0] * PARTITIONS, [0] * PARTITIONS
        for file in files:
            rows[file.part], sizes[file.part] = file.rows, file.size
        self._known[number] = Run(number, level, tuple(rows), tuple(sizes))
        return self._known[number]

    # Reading

    @contextlib.contextmanager
    def reading(
        self, shape: StateShape, state: GroupState, lock: Lock
    ) -> Iterator[Callable[[], pa.Table | Relation]]:
        """The groups of all runs and of the state in memory, as they are now.

        What is given makes the result, once and without the lock; a result in files goes at the end.
        """
        mark = uuid.uuid4().hex[:12]  # Spark may remember files by their names
        result, rest = (str(self._folder / f"{name}-{mark}") for name in ("result", "rest"))
        tables = dict(shape.columns().tables(state, PARTITIONS))
        large = self._is_large(self._runs, len(state))
        with self._held_runs(lock) as mine:
            number = self._number()
            kept = self._prefix(number) if len(mine) > 1 else None
            job = MergeJob(shape, self._sources(mine), kept=kept)

            def make() -> pa.Table | Relation:
                with _removed_unless_done(self._prefix(number)):
                    if large:
                        made, found = self._united_on_spark(job, tables, rest, result)
                    else:
                        made, found = unite_here(job, tables)
                if kept is not None:
                    with lock:
                        self._put_in_place(mine, number, made)
                return found

            try:
                yield make
            finally:
                _remove(rest)
                _remove(result)

    def find(
        self, shape: StateShape, state: GroupState, keys: Sequence[pa.Array]
    ) -> GroupState | None:
        """The groups of some keys, of all runs and the state in memory; None if they are not ordered."""
        hashes = hashes_of(keys, len(keys[0]))
        parts = partitions_by(hashes, PARTITIONS)
        columns, tables = shape.columns(), []
        for run in self._runs:
            for part in np.unique(parts).tolist():
                if run.rows[part]:
                    file = self._part(run, part)
                    if file is None:
                        return None
                    tables.append(file.read(columns, hashes[parts == part]))
        return columns.found(tables, state, keys)

    def _part(self, run: Run, part: int) -> StatePart | None:
        known = (run.number, part)
        if known not in self._parts:
            self._parts[known] = StatePart.opened(part_path(self._prefix(run.number), part))
        return self._parts[known]

    def _united_on_spark(
        self, job: MergeJob, tables: Mapping[int, pa.Table], rest: str, result: str
    ) -> tuple[Merged, Relation]:
        for part, table in tables.items():
            write_part(table, rest, part)
        files = [part_path(rest, n) if n in tables else None for n in range(PARTITIONS)]
        job = replace(job, rest=tuple(files), result=result)
        made = merge_on_spark(self._world.kernel, job)
        paths = tuple(part_path(result, file.part) for file in made.results)
        return made, Relation(job.shape.result, paths)

    def _put_in_place(self, old: tuple[Run, ...], number: int, made: Merged) -> None:
        """One run instead of several, unless these were merged or dropped meanwhile."""
        run = self._made(number, max(run.level for run in old), made.kept)
        if self._runs[: len(old)] == old:
            self._runs = (run, *self._runs[len(old) :])
        self._sweep()

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
            _remove(self._prefix(number))
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
def _removed_unless_done(prefix: str) -> Iterator[None]:
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
