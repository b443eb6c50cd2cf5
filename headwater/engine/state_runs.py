"""The spilled groups of a pipeline: immutable runs on disk, merged geometrically (CV10).

Owns: what is in a run, and when runs are merged. A run is a state at the moment when memory had no more room
for it, in partitions of the key. Four runs of one level become one of the next, so that a group is written
about log₄ of the number of spills times. Must never: fold rows. Callers hold the pipeline's lock unless it
says otherwise.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from headwater.engine.run_files import Lock, Run, RunFiles, remove_run, removed_unless_done
from headwater.engine.world import World
from headwater.fold.hashing import hashes_of, partitions_by
from headwater.fold.state import GroupState
from headwater.kernel.relation import Relation
from headwater.kernel.run_parts import part_path, write_part
from headwater.kernel.state_merge import (
    Merged,
    MergeJob,
    StateShape,
    merge_here,
    merge_on_spark,
    unite_here,
)

PARTITIONS = 32  # a merge holds one of them in memory
FAN_IN = 4  # runs of one level that become one of the next


class StateRuns(RunFiles):
    """The runs of one pipeline."""

    def __init__(self, folder: Path, world: World) -> None:
        super().__init__(folder, PARTITIONS)
        self._world = world

    def anew(self) -> StateRuns:
        """The same place, with nothing known of what is there: another host may change it."""
        return StateRuns(self._folder, self._world)

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
        with removed_unless_done(prefix, PARTITIONS):
            tables = shape.columns().tables(state, PARTITIONS)
            files = [write_part(table, prefix, part) for part, table in tables]
        return self._made(number, 0, files)

    def _merge(self, shape: StateShape, runs: Sequence[Run], level: int) -> Run:
        number = self._number()
        job = MergeJob(shape, self._sources(runs), kept=self._prefix(number))
        with removed_unless_done(self._prefix(number), PARTITIONS):
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
                with removed_unless_done(self._prefix(number), PARTITIONS):
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
                remove_run(rest, PARTITIONS)
                remove_run(result, PARTITIONS)

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
                    tables.append(file.read(hashes[parts == part], columns.names))
        return columns.found(tables, state, keys)

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
