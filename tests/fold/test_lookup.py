"""The lookup against a Python dictionary."""

from __future__ import annotations

import random
import time

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import NotSupportedError
from headwater.fold import snapshot
from headwater.fold.codes import FIRST_ROWS, MANY_ROWS, IntegerCodes
from headwater.fold.lookup import Lookup
from tests.fold.brute import ALL_TYPES, key, random_array


def check_against_dictionary(seed: int, types: list[pa.DataType]) -> None:
    rng = random.Random(seed)
    lookup, model = Lookup(types), {}
    for step in range(8):
        columns = [
            random_array(rng, t, rng.choice([0, 1, 7, 40]), rng.choice([0, 0.3, 1])) for t in types
        ]
        columns = [column.slice(0, min(map(len, columns))) for column in columns]
        rows = [key(row) for row in zip(*(c.to_pylist() for c in columns), strict=True)]
        assert lookup.find(columns).tolist() == [model.get(row, -1) for row in rows]
        for row in rows:
            model.setdefault(row, len(model))
        assert lookup.slots(columns).tolist() == [model[row] for row in rows]
        assert len(lookup) == len(model)
        if step == 4:
            restored = Lookup(types)
            snapshot.load(restored, snapshot.dump(lookup))
            lookup = restored
        if step == 5:
            live = np.array([slot for slot in range(len(model)) if rng.random() < 0.6], np.int64)
            back = list(model)
            lookup.keep(live)
            model = {back[old]: new for new, old in enumerate(live.tolist())}
    keys = lookup.keys()
    assert [column.type for column in keys] == types
    rows = zip(*(column.to_pylist() for column in keys), strict=True)
    assert [key(row) for row in rows] == list(model)


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_single_keys(type_):
    for seed in range(6):
        check_against_dictionary(seed, [type_])


def test_composite_keys():
    for seed in range(25):
        rng = random.Random(seed)
        check_against_dictionary(seed, rng.choices(ALL_TYPES, k=rng.choice([2, 2, 3, 4])))


@pytest.mark.parametrize("spread", [10, 1000, 10**6, 2**62])
def test_integers_of_any_spread(spread):
    rng = np.random.default_rng(spread)
    codes, model = IntegerCodes(), {}
    for _ in range(20):
        values = rng.integers(-spread, spread, rng.integers(1, 3000))
        for value in values.tolist():
            model.setdefault(value, len(model))
        assert codes.codes(values).tolist() == [model[value] for value in values.tolist()]
        asked = rng.integers(-2 * spread, 2 * spread, 500)
        assert codes.find(asked).tolist() == [model.get(value, -1) for value in asked.tolist()]
    assert codes.values.tolist() == list(model)


@pytest.mark.parametrize("distinct", [1, 3000, 60_000])
def test_many_rows_of_few_values(distinct: int) -> None:
    """The first rows are coded before the others; codes are in order of first appearance all the same."""
    rng = np.random.default_rng(distinct)
    codes, model = IntegerCodes(), dict[int, int]()
    for base in (0, distinct // 2):  # the second time half of them are known
        values = (base + rng.integers(0, distinct, MANY_ROWS + FIRST_ROWS)) << 32
        values[FIRST_ROWS : 2 * FIRST_ROWS] += 7  # new ones behind the first rows
        for value in values.tolist():
            model.setdefault(value, len(model))
        assert codes.codes(values).tolist() == [model[value] for value in values.tolist()]
    assert codes.values.tolist() == list(model)


def test_the_ends_of_the_integers():
    ends = np.array([-(2**63), 2**63 - 1, 0, -1, -(2**63)])
    for first in (ends, ends[:1], ends[1:2]):
        codes = IntegerCodes()
        codes.codes(first)
        assert codes.codes(ends).tolist() == codes.find(ends).tolist()
        assert len(codes) == 4
        assert codes.find(np.array([5, -(2**63) + 1])).tolist() == [-1, -1]


def test_keys_that_collide_share_no_code():
    """Multiples of a power of two fall on few places of a table that takes the low bits."""
    values = np.arange(50_000, dtype=np.int64) << 40
    codes = IntegerCodes()
    assert codes.codes(values).tolist() == list(range(len(values)))
    assert codes.codes(values[::-1].copy()).tolist() == list(range(len(values)))[::-1]


def test_no_key_columns_are_one_group():
    lookup = Lookup([])
    assert lookup.slots([], 3).tolist() == [0, 0, 0]
    assert len(lookup) == 1
    assert lookup.keys() == []


def test_dictionary_columns_with_different_dictionaries():
    lookup = Lookup([pa.dictionary(pa.int32(), pa.string())])
    assert lookup.slots([pa.array(["a", "b"]).dictionary_encode()]).tolist() == [0, 1]
    assert lookup.slots([pa.array(["b", "c", None]).dictionary_encode()]).tolist() == [1, 2, 3]
    assert lookup.keys()[0].to_pylist() == ["a", "b", "c", None]


@pytest.mark.parametrize(
    "type_", [pa.list_(pa.int64()), pa.struct([("a", pa.int8())]), pa.uint64()]
)
def test_other_types_are_refused(type_):
    with pytest.raises(NotSupportedError):
        Lookup([type_])


def seconds(work) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def test_a_probe_does_not_depend_on_the_number_of_keys():
    """Arrow's `index_in` builds its hash anew each time: a hundred times the keys, as much more."""
    rng = np.random.default_rng(0)
    times = []
    for count in (5_000, 500_000):
        keys = rng.integers(-(2**62), 2**62, count)
        lookup = Lookup([pa.int64()])
        lookup.slots([pa.array(keys)])
        probe = pa.array(keys[rng.integers(0, count, 5_000)])
        times.append(min(seconds(lambda p=probe, w=lookup: w.slots([p])) for _ in range(15)))
    assert times[1] < 10 * times[0]  # cache misses, not the size


@pytest.mark.large
def test_ten_million_keys():
    keys = np.random.default_rng(0).integers(-(2**62), 2**62, 10_000_000)
    lookup = Lookup([pa.int64()])
    for start in range(0, len(keys), 1_000_000):
        lookup.slots([pa.array(keys[start : start + 1_000_000])])
    assert len(lookup) == len(np.unique(keys))
    found = lookup.find([pa.array(keys[::1000])])
    assert lookup.keys(found)[0].to_numpy().tolist() == keys[::1000].tolist()
