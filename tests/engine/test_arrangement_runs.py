"""Runs in files: whatever is merged, and however far, what is found of a key is what was last put there."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.engine import arrangement_runs
from headwater.engine.arrangement_runs import ArrangementRuns, CircuitRuns
from headwater.fold.hashing import hashes_of
from headwater.fold.spill import HASH
from headwater.kernel import run_parts
from headwater.operators.changes import come, go
from headwater.operators.join import join_rows
from headwater.operators.spilled_keys import ALL, MORE, NOTHING, ordered

KEYS = 40


def run_of(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Rows (key, value, kind) as a run."""
    keys, values, kinds = zip(*rows, strict=True)
    table = pa.table({"0": pa.array(keys, pa.int64()), "1": pa.array(values, pa.int64())})
    return ordered(table, hash_of(list(keys)), np.array(kinds, np.int8))


def hash_of(keys: list[int]) -> np.ndarray:
    return hashes_of([pa.array(keys, pa.int64())], len(keys))


def rows_by_key(tables: list[pa.Table]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for table in tables:
        for row in table.to_pylist():
            found[row["0"]].append(row["1"])
    return dict(found)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.large) for n in range(2, 40))]
)
def test_merges_in_steps_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(run_parts, "ROWS_TOGETHER", 3)
    chance = random.Random(seed)
    runs, model = ArrangementRuns(tmp_path / "runs"), dict[int, list[int]]()
    for step in range(60):
        rows = []
        for key in chance.sample(range(KEYS), chance.randint(1, 9)):
            kind = chance.choice([MORE, ALL, NOTHING])
            values = (
                [] if kind == NOTHING else [100 * step + n for n in range(chance.randint(1, 8))]
            )
            model[key] = (model.get(key, []) if kind == MORE else []) + values
            rows += [(key, value, kind) for value in values or [0]]
        runs.write(run_of(rows))
        runs.merge_some(chance.choice([0, 1, 5, 50]))
        there = {key: values for key, values in model.items() if values}
        assert rows_by_key(list(runs.pieces())) == there
        asked = chance.sample(range(KEYS + 5), 7)
        found = runs.find(np.unique(hash_of(asked)))
        assert found is not None
        assert rows_by_key([found]) == {key: there[key] for key in asked if key in there}
    assert len(runs) < 60
    runs.merge_some(10_000)
    assert len(runs) < 4 * 4


def test_a_merge_takes_no_more_than_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit pays for a large merge."""
    runs, read = ArrangementRuns(tmp_path / "runs"), list[int]()
    for step in range(4):
        runs.write(run_of([(key, step, MORE) for key in range(50_000)]))
    pieces = run_parts.RunPart.pieces

    def noted(part: run_parts.RunPart, places: list[int], names: object = None) -> pa.Table:
        found = pieces(part, places)
        read.append(found.num_rows)
        return found

    monkeypatch.setattr(run_parts.RunPart, "pieces", noted)
    steps = 0
    while len(runs) > 1:
        read.clear()
        runs.merge_some(arrangement_runs.LEAST_MERGED)
        assert sum(read) <= 4 * arrangement_runs.LEAST_MERGED
        steps += 1
    assert steps >= 200_000 // (4 * arrangement_runs.LEAST_MERGED)


def test_one_piece_is_read_for_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = ArrangementRuns(tmp_path / "runs")
    runs.write(run_of([(key, key, MORE) for key in range(100_000)]))
    runs.write(run_of([(key, -key, MORE) for key in range(100_000)]))
    read, pieces = list[int](), run_parts.RunPart.pieces

    def noted(part: run_parts.RunPart, places: list[int], names: object = None) -> pa.Table:
        found = pieces(part, places)
        read.append(found.num_rows)
        return found

    monkeypatch.setattr(run_parts.RunPart, "pieces", noted)
    found = runs.find(hash_of([77]))
    assert found is not None
    assert rows_by_key([found]) == {77: [77, -77]}
    assert read == [run_parts.ROWS_TOGETHER] * 2


def test_what_a_snapshot_names_stays(tmp_path: Path) -> None:
    """A merge that ended after the snapshot leaves the files that it names; one under way leaves nothing."""
    runs = CircuitRuns(tmp_path / "c.runs")
    part = runs.part(1)
    import threading

    lock = threading.RLock()
    for step in range(4):
        part.write(run_of([(key, step, MORE) for key in range(100)]))
    with runs.held(lock) as records:
        runs.sync(records)
    runs.name(records)
    runs.merge_some(1000)
    assert len(part) == 1
    for step in range(4):
        part.write(run_of([(key, step, MORE) for key in range(100_000)]))
    part.merge_some(1)  # begun, not ended
    again = CircuitRuns(tmp_path / "c.runs")  # after a kill
    assert again.take_up(records)
    again.clean()
    assert len(again.part(1)) == 4
    assert len(list((tmp_path / "c.runs").glob("*/*"))) == 4
    assert rows_by_key(list(again.part(1).pieces()))[7] == [0, 1, 2, 3]
    runs.anew()


def test_a_join_on_disk_equals_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_parts, "ROWS_TOGETHER", 64)
    left = pa.schema([("a", pa.int64()), ("x", pa.string())])
    right = pa.schema([("b", pa.int64()), ("y", pa.list_(pa.float64()))])
    chance, runs = random.Random(5), CircuitRuns(tmp_path / "c.runs")

    def made():  # type: ignore[no-untyped-def]
        return join_rows("full", left, right, ["a"], ["b"], None, [True], (True, True))

    here, there = made(), made()
    for number, part in enumerate(there.spilled):
        part.runs = runs.part(number)
    rows: list[pa.Table] = []
    for _ in range(25):
        keys = [chance.choice([None, *range(300)]) for _ in range(200)]
        mine = pa.table({"a": pa.array(keys, pa.int64()), "x": [str(chance.random())] * 200})
        ys = [[chance.random()] for _ in range(200)]
        other = pa.table({"b": pa.array(keys[::-1], pa.int64()), "y": ys})
        gone = (
            go(rows.pop(chance.randrange(len(rows)))) if len(rows) > 5 else come(mine.slice(0, 0))
        )
        for changes in ((come(mine), come(other)), (gone, come(other.slice(0, 0)))):
            one, two = here.apply(*changes), there.apply(*changes)
            signed = [
                sorted(map(repr, zip(out.rows.to_pylist(), out.signs.tolist(), strict=True)))
                for out in (one, two)
            ]
            assert signed[0] == signed[1]
        rows.append(mine)
        there.spill()
        runs.merge_some(100)
    assert runs.count > 2
    assert there.nbytes < here.nbytes / 10
    schema = pq.read_schema(next((tmp_path / "c.runs").glob("*/*")))
    assert schema.names[-1] == HASH
