"""States taken apart and merged again, against evaluating all rows anew and a state that stayed whole."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.columns import Column
from headwater.fold.hashing import hashes_of, partitions_by
from headwater.fold.spill import HASH, StateColumns
from headwater.fold.state import GroupState
from tests.fold.brute import ALL_TYPES, check, functions_for, grouped, random_array

PARTITIONS = 5


def columns_of(aggregation: Aggregation) -> StateColumns:
    """The columns under plain names."""
    parts = [f"{kind} of {argument}" for kind, argument in aggregation.parts]
    return StateColumns(aggregation, parts, [str(a) for a in aggregation.distinct])


def united(columns: StateColumns, runs: list[dict[int, pa.Table]], state: GroupState) -> pa.Table:
    """Runs and the state in memory, partition by partition; a run is merged with its neighbour first."""
    aggregation, found = columns.aggregation, []
    runs = [*runs, dict(columns.tables(state, PARTITIONS))]
    for part in range(PARTITIONS):
        tables = [run[part] for run in runs if part in run]
        if not tables and (aggregation.keys or part):
            continue
        found.append(columns.result([columns.merged(tables[:2]), *tables[2:]]))
    return pa.concat_tables([aggregation.schema.empty_table(), *found])


def check_spills_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    type_, key_types = rng.choice(ALL_TYPES), rng.choices(ALL_TYPES, k=rng.choice([0, 1, 1, 2, 3]))
    aggregates = [Aggregate(f, 0, type_, f) for f in functions_for(type_)]
    aggregation = Aggregation([pa.field(f"k{i}", t) for i, t in enumerate(key_types)], aggregates)
    columns, count = columns_of(aggregation), rng.choice([30, 150])
    keys = [random_array(rng, t, count, 0.1) for t in key_types]
    column = random_array(rng, type_, count, rng.choice([0, 0.3]))
    never, state = GroupState(aggregation), GroupState(aggregation, tracked=False)
    runs: list[dict[int, pa.Table]] = []
    start = 0
    while start < count:
        end = min(count, start + rng.choice([1, 5, 40]))
        rows, part = np.arange(start, end), [k.slice(start, end - start) for k in keys]
        values = [Column(column.slice(start, end - start))]
        for one in (never, state):
            one.fold(part, values, (rows * 0, rows))
        if rng.random() < 0.3:
            runs.append(dict(columns.tables(state, PARTITIONS)))
            state = GroupState(aggregation, tracked=False)
        start = end
    if keys:
        check_each_key(columns, runs, state, never)
    found = united(columns, runs, state)
    check(found, len(keys), grouped(aggregates, keys, list(range(count)), [column]))
    check(never.result(), len(keys), grouped(aggregates, keys, list(range(count)), [column]))


def check_each_key(
    columns: StateColumns, runs: list[dict[int, pa.Table]], state: GroupState, never: GroupState
) -> None:
    """A group that is found alone is the one that the whole state has."""
    whole = never.result()
    places = range(0, whole.num_rows, 7)
    asked = whole.select(range(len(columns.aggregation.keys)))
    for place in places:
        keys = [column.combine_chunks() for column in asked.slice(place, 1).columns]
        (part,) = partitions_by(hashes_of(keys, 1), PARTITIONS).tolist()
        tables = [run[part] for run in runs if part in run]
        found = columns.found(tables, state, keys).get(keys)
        assert rounded(found) == rounded(whole.slice(place, 1))


def rounded(rows: pa.Table) -> list[list[object]]:
    """Rows for comparison; floats are equal within rounding."""
    values = (row.values() for row in rows.to_pylist())
    return [[f"{v:.9g}" if isinstance(v, float) else v for v in row] for row in values]


def test_rows_stand_in_the_order_of_their_hashes() -> None:
    """In a run and in what runs are merged into; the hash is the key's."""
    aggregation = Aggregation([pa.field("k", pa.int64())], [Aggregate("sum", 0, pa.int64(), "s")])
    columns, runs = columns_of(aggregation), []
    for start in (0, 500):
        state, numbers = GroupState(aggregation), pa.array(np.arange(start, start + 1000))
        state.fold([numbers], [Column(numbers)])
        runs.append(dict(columns.tables(state, PARTITIONS)))
    for part in range(PARTITIONS):
        for table in (runs[0][part], runs[1][part], columns.merged([r[part] for r in runs])):
            hashes = table.column(HASH).to_numpy()
            assert (np.diff(hashes.astype(object)) > 0).all()
            keys = table.column("key 0").combine_chunks()
            assert (hashes == hashes_of([keys], len(keys))).all()


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_spills_change_nothing(first: int) -> None:
    """Random chunks, random moments of spilling, all families and types: as if nothing was spilled."""
    for seed in range(first, first + 20):
        check_spills_change_nothing(seed)


def test_sums_beyond_64_bits_come_back_exactly() -> None:
    """The two words of a sum are brought to form before they leave: an overflow is found as before."""
    aggregation = Aggregation([], [Aggregate("sum", 0, pa.int64(), "s")])
    columns, state = columns_of(aggregation), GroupState(aggregation)
    for value in (2**62, 2**62, 2**62, -(2**62), -(2**62)):
        state.fold([], [Column(pa.array([value]))])
        other = GroupState(aggregation)
        columns.merge(other, columns.table(state))
        state = other
    assert state.result()["s"].to_pylist() == [2**62]


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_equal_keys_share_a_partition(type_: pa.DataType) -> None:
    """Whatever stands beside a key, and however its column was cut out of others."""
    rng = random.Random(1)
    array = random_array(rng, type_, 60, 0.2)
    whole = partitions_by(hashes_of([array], 60), 1 << 16)
    for start in range(0, 60, 7):
        part = array.slice(start, 7)
        assert (
            partitions_by(hashes_of([part], len(part)), 1 << 16).tolist()
            == whole[start : start + 7].tolist()
        )
    places: dict[str, set[int]] = {}
    for value, place in zip(array.to_pylist(), whole.tolist(), strict=True):
        value = value + 0.0 if isinstance(value, float) else value
        places.setdefault(repr(value), set()).add(place)
    assert all(len(found) == 1 for found in places.values())


def test_partitions_are_even() -> None:
    """Neighbouring numbers and texts with a common beginning spread out."""
    numbers = pa.array(np.arange(20_000))
    for keys in ([numbers], [numbers.cast(pa.string())], [pa.repeat(1, 20_000), numbers]):
        counts = np.bincount(partitions_by(hashes_of(keys, 20_000), 32), minlength=32)
        assert counts.min() > 400
        assert counts.max() < 900


def test_memory_is_told() -> None:
    """What a state says it holds grows with its groups, and a new one holds next to nothing."""
    aggregates = [
        Aggregate("sum", 0, pa.int64(), "s"),
        Aggregate("count_distinct", 0, pa.int64(), "d"),
    ]
    for type_ in (pa.int64(), pa.string()):
        state = GroupState(Aggregation([pa.field("k", type_)], aggregates), tracked=False)
        empty = state.nbytes
        numbers = pa.array(np.arange(20_000))
        state.fold([numbers.cast(type_)], [Column(numbers)])
        assert empty < 1000
        assert 60 * 20_000 < state.nbytes < 600 * 20_000
