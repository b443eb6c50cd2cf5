"""What operators of a circuit have on disk: runs of one file each, merged a step at a time.

Owns: which runs of a state are merged, and how far. Four runs of one level become one of the next; a merge
goes on a bounded number of rows after each commit, so that none pays for a large one, and the runs that it
reads serve until it has ended. Must never: know what the rows are, or merge runs that are not neighbours.
Callers hold the circuit's lock unless it says otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.run_files import Lock, Run, RunFiles, removed_unless_done
from headwater.engine.state_runs import FAN_IN
from headwater.fold.columns import Vector
from headwater.fold.spill import HASH
from headwater.kernel.run_parts import PartWriter, RunPart, write_part
from headwater.operators.spilled_keys import united
from headwater.storage.disk import sync_folder

LEAST_MERGED = 1 << 14  # rows that a merge may read after a commit, however small it was …
MERGED_EACH = 4  # … and so many for each of its rows: there are hardly more levels

Record = list[dict[str, Any]]  # the runs of one state, as a snapshot names them


class ArrangementRuns(RunFiles):
    """The runs of one state of an operator."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, part_count=1)
        self._merges: dict[int, _Merge] = {}  # under way, by level

    def write(self, rows: pa.Table) -> None:
        """The newest run, in the order of hashes."""
        self._make_folder()
        number = self._number()
        with removed_unless_done(self._prefix(number), 1):
            made = self._made(number, 0, [write_part(rows, self._prefix(number), 0)])
        self._runs = (*self._runs, made)

    def find(self, hashes: Vector) -> pa.Table | None:
        """What all runs have of some keys; None for nothing."""
        tables = [self._file(run).read(hashes) for run in self._runs]
        return united(tables, oldest=True) if tables else None

    def pieces(self) -> Iterator[pa.Table]:
        """What all runs have, piece by piece in the order of hashes."""
        return _united_pieces([self._file(run) for run in self._runs], oldest=True)

    def _file(self, run: Run) -> RunPart:
        file = self._part(run, 0)
        assert file is not None
        return file

    # Merging

    def merge_some(self, row_count: int) -> None:
        """Goes on merging, so many rows or a piece more; small runs first."""
        while row_count > 0:
            self._begin_merges()
            if not self._merges:
                return
            level = min(self._merges)
            row_count -= self._merges[level].step(row_count)
            if self._merges[level].has_ended:
                self._put_in_place(self._merges.pop(level))

    def _begin_merges(self) -> None:
        """Of each level the oldest runs are merged, once they are enough."""
        for level in {run.level for run in self._runs} - set(self._merges):
            same = [run for run in self._runs if run.level == level][:FAN_IN]
            if len(same) == FAN_IN:
                oldest, number = same[0] is self._runs[0], self._number()
                files = [self._file(run) for run in same]
                self._merges[level] = _Merge(same, files, oldest, number, self._prefix(number))

    def _put_in_place(self, merge: _Merge) -> None:
        first = self._runs.index(merge.runs[0])
        made = merge.end()
        new = [] if made is None else [self._made(merge.number, merge.runs[0].level + 1, [made])]
        self._runs = (*self._runs[:first], *new, *self._runs[first + len(merge.runs) :])
        self._sweep()

    def give_up_merges(self) -> None:
        """Merges that are under way leave nothing behind."""
        for merge in self._merges.values():
            merge.give_up()
        self._merges = {}

    def drop(self) -> None:
        self.give_up_merges()
        super().drop()

    def remove(self) -> None:
        self.give_up_merges()
        super().remove()


class _Merge:
    """Neighbouring runs on their way into one."""

    def __init__(
        self, runs: Sequence[Run], files: Sequence[RunPart], oldest: bool, number: int, prefix: str
    ) -> None:
        self.runs, self.number, self.has_ended = tuple(runs), number, False
        self._pieces, self._prefix = _united_pieces(files, oldest), prefix
        self._writer: PartWriter | None = None  # made with the first rows

    def step(self, row_count: int) -> int:
        """Merges until so many rows were written or it has ended; how many were."""
        done = 0
        try:
            while done < row_count:
                rows = next(self._pieces, None)
                if rows is None:
                    self.has_ended = True
                    break
                done += max(rows.num_rows, 1)
                if self._writer is None:
                    self._writer = PartWriter(self._prefix, 0, rows.schema)
                self._writer.write(rows)
        except BaseException:
            self.give_up()
            raise
        return done

    def end(self) -> Any:
        """What was written, None if no row is left."""
        return None if self._writer is None else self._writer.end()

    def give_up(self) -> None:
        """Nothing is left of it."""
        if self._writer is not None:
            self._writer.give_up()


def _united_pieces(files: Sequence[RunPart], oldest: bool) -> Iterator[pa.Table]:
    """The rows of runs, the oldest first, united.

    A piece of each is in memory at a time, and all rows of one key.
    """
    waiting: list[pa.Table | None] = [None] * len(files)
    next_piece = [0] * len(files)
    while True:
        bound = None  # rows of lower hashes have all been read
        for place, file in enumerate(files):
            rows = waiting[place]
            while next_piece[place] < file.piece_count and _is_one_key(rows):
                more = file.pieces([next_piece[place]])
                next_piece[place] += 1
                rows = more if rows is None or not rows.num_rows else pa.concat_tables([rows, more])
            waiting[place] = rows
            if next_piece[place] < file.piece_count:
                assert rows is not None
                last = rows.column(HASH)[-1].as_py()
                bound = last if bound is None else min(bound, last)
        given = []
        for place, rows in enumerate(waiting):
            if rows is not None and rows.num_rows:
                hashes = rows.column(HASH).to_numpy()
                end = len(rows) if bound is None else int(np.searchsorted(hashes, np.uint64(bound)))
                given.append(rows.slice(0, end))
                waiting[place] = rows.slice(end)
        if any(rows.num_rows for rows in given):
            made = united(given, oldest)
            if made.num_rows:
                yield made
        if bound is None:
            return


def _is_one_key(rows: pa.Table | None) -> bool:
    """Whether rows are of one key at most: then more of it may follow."""
    if rows is None or not rows.num_rows:
        return True
    hashes = rows.column(HASH)
    return bool(hashes[0].as_py() == hashes[-1].as_py())


class CircuitRuns:
    """The runs of all states of one circuit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.parts: list[ArrangementRuns] = []

    def anew(self) -> CircuitRuns:
        """The same place, with nothing known of what is there: another host may change it."""
        for part in self.parts:
            part.give_up_merges()
        return CircuitRuns(self._folder)

    def part(self, number: int) -> ArrangementRuns:
        """The runs of one state, by its number in the circuit."""
        while len(self.parts) <= number:
            self.parts.append(ArrangementRuns(self._folder / str(len(self.parts))))
        return self.parts[number]

    @property
    def count(self) -> int:
        """How many runs there are."""
        return sum(map(len, self.parts))

    @property
    def byte_count(self) -> int:
        """Bytes on disk."""
        return sum(part.byte_count for part in self.parts)

    def merge_some(self, row_count: int) -> None:
        """Goes on merging after a commit of so many rows."""
        for part in self.parts:
            part.merge_some(LEAST_MERGED + MERGED_EACH * row_count)

    @contextlib.contextmanager
    def held(self, lock: Lock) -> Iterator[list[Record]]:
        """The runs as a snapshot names them; their files stay while inside."""
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(part.held(lock)) for part in self.parts]

    def sync(self, records: Sequence[Record]) -> None:
        """Makes the files of a record durable; needs no lock."""
        for part, record in zip(self.parts, records, strict=False):
            part.sync(record)
        if any(records):
            sync_folder(self._folder.parent)

    @property
    def are_named(self) -> bool:
        """Whether the snapshot on disk has the present runs."""
        return all(part.are_named for part in self.parts)

    def name(self, records: Sequence[Record]) -> None:
        """The snapshot on disk has these runs now."""
        for number, part in enumerate(self.parts):
            part.name(records[number] if number < len(records) else ())

    def take_up(self, records: Sequence[Record]) -> bool:
        """The runs that the snapshot on disk names; False if a file is not whole."""
        whole = [self.part(number).take_up(record) for number, record in enumerate(records)]
        return all(whole)

    def clean(self) -> None:
        """At the start: files that the snapshot does not name go."""
        for number, _ in enumerate(self._folder.glob("*")):
            self.part(number)
        for part in self.parts:
            part.clean()

    def drop(self) -> None:
        """No run is in use; files that the snapshot names stay."""
        for part in self.parts:
            part.drop()

    def remove(self) -> None:
        """Nothing is left on disk."""
        for part in self.parts:
            part.remove()
        with contextlib.suppress(OSError):
            self._folder.rmdir()
