"""Runs in memory, for tests of states that go to disk."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Vector
from headwater.fold.spill import HASH
from headwater.operators.operator import Operator
from headwater.operators.spilled_keys import SpilledKeys, united


class MemoryRuns:
    """Tables instead of files; neighbours are merged now and then."""

    def __init__(self, chance: random.Random, tables: Sequence[pa.Table] = ()) -> None:
        self.tables, self._chance = list(tables), chance

    def write(self, rows: pa.Table) -> None:
        hashes = rows.column(HASH).to_numpy()
        assert rows.num_rows
        assert (hashes[1:] >= hashes[:-1]).all()
        self.tables.append(rows)
        if len(self.tables) > 1 and self._chance.random() < 0.4:
            first = self._chance.randrange(len(self.tables) - 1)
            last = self._chance.randint(first + 2, len(self.tables))
            merged = united(self.tables[first:last], oldest=first == 0)
            self.tables[first:last] = [merged] if merged.num_rows else []

    def find(self, hashes: Vector) -> pa.Table | None:
        found = [table.filter(pa.array(np.isin(table[HASH], hashes))) for table in self.tables]
        return united(found, oldest=True) if found else None

    def pieces(self) -> Iterator[pa.Table]:
        if self.tables:
            yield united(self.tables, oldest=True)


def with_runs(parts: Sequence[SpilledKeys], chance: random.Random) -> None:
    """Gives runs to the parts of a state."""
    for part in parts:
        part.runs = MemoryRuns(chance)


def taken_up(parts: Sequence[SpilledKeys], before: Sequence[SpilledKeys]) -> None:
    """Parts of a state that was taken up have the runs that the state had."""
    for part, old in zip(parts, before, strict=True):
        runs = old.runs
        assert isinstance(runs, MemoryRuns)
        part.runs = MemoryRuns(runs._chance, runs.tables)


class Spilling:
    """Sends an operator's state to disk after some batches, or never."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._spills = chance, chance.random() < 0.6

    def begin(self, operator: Operator) -> None:
        with_runs(operator.spilled, self._chance)

    def after(self, operator: Operator) -> None:
        if self._spills and operator.spilled and self._chance.random() < 0.7:
            operator.spill()
