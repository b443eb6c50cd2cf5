"""The last k rows, of each key and of all, against plain lists."""

from __future__ import annotations

import random
from collections import defaultdict

import pyarrow as pa
import pytest

from headwater.fold import snapshot
from headwater.fold.last_k import LastRows, LastRowsPerKey
from tests.fold.brute import ALL_TYPES, key, random_array


def rows_of(table: pa.Table) -> list[tuple]:
    return [key(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def check_rings_hold_the_last_rows_of_each_key(seed: int) -> None:
    rng = random.Random(seed)
    types = rng.choices(ALL_TYPES, k=rng.choice([2, 4]))
    schema = pa.schema([pa.field(f"c{i}", t) for i, t in enumerate(types)])
    names = schema.names[: rng.choice([1, 1, 2])]
    k = rng.choice([1, 2, 4, 9])
    ring, model, touched = LastRowsPerKey(names, schema, k), defaultdict(list), set()
    for _ in range(12):
        count = rng.choice([0, 1, 10, 80])
        chunk = pa.table(
            [random_array(rng, t, count, rng.choice([0, 0.3])) for t in types], schema=schema
        )
        ring.fold(chunk)
        for row in rows_of(chunk):
            group = row[: len(names)]
            model[group] = [*model[group], row][-k:]
            touched.add(group)
        if rng.random() < 0.2:
            restored = LastRowsPerKey(names, schema, k)
            snapshot.load(restored, snapshot.dump(ring))
            ring = restored
        assert ring.result().schema.types == types
        assert rows_of(ring.result()) == [row for rows in model.values() for row in rows]
        if rng.random() < 0.5:
            found = defaultdict(list)
            for row in rows_of(ring.changed()):
                found[row[: len(names)]].append(row)
            assert found == {group: model[group] for group in touched}
            assert ring.changed().num_rows == 0
            touched = set()
    asked = [chunk.column(name).combine_chunks() for name in names]
    assert {row[: len(names)] for row in rows_of(ring.get(asked))} == {
        row[: len(names)] for row in rows_of(chunk)
    }


@pytest.mark.parametrize("first", range(0, 40, 5))
def test_rings_hold_the_last_rows_of_each_key(first):
    for seed in range(first, first + 5):
        check_rings_hold_the_last_rows_of_each_key(seed)


def test_a_hot_key_keeps_its_newest():
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    ring = LastRowsPerKey(["k"], schema, 3)
    ring.fold(pa.table({"k": [1] * 1000 + [2], "v": list(range(1001))}))
    assert ring.result()["v"].to_pylist() == [997, 998, 999, 1000]
    assert len(ring) == 2


def check_the_last_rows_of_all(seed: int) -> None:
    rng = random.Random(seed)
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    k = rng.choice([1, 7, 50])
    last, model = LastRows(schema, k), []
    for step in range(300 if seed == 0 else 25):
        count = rng.choice([0, 1, 5, 120]) if seed else 1
        rows = [(step, rng.choice(["x", None])) for _ in range(count)]
        last.fold(
            pa.table(
                [
                    pa.array(c, t)
                    for c, t in zip(zip(*rows, strict=True), schema.types, strict=True)
                ],
                schema=schema,
            )
            if rows
            else schema.empty_table()
        )
        model = (model + rows)[-k:]
        if rng.random() < 0.2:
            restored = LastRows(schema, k)
            snapshot.load(restored, snapshot.dump(last))
            last = restored
        assert [tuple(row.values()) for row in last.result().to_pylist()] == model
        assert last._held < 2 * k + 120


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_the_last_rows_of_all(first):
    for seed in range(first, first + 5):
        check_the_last_rows_of_all(seed)


def test_none_is_refused():
    schema = pa.schema([("k", pa.int64())])
    with pytest.raises(ValueError, match="at least one"):
        LastRowsPerKey(["k"], schema, 0)
    with pytest.raises(ValueError, match="at least one"):
        LastRows(schema, 0)


def check_fresh_rows(seed: int) -> None:
    rng = random.Random(seed)
    schema = pa.schema([("k", pa.int32()), ("t", pa.int64()), ("v", rng.choice(ALL_TYPES))])
    k, steps, oldest = rng.choice([1, 2, 3, 5]), rng.choice([1, 2]), rng.choice([None, 3])
    ring, model, now = LastRowsPerKey(["k"], schema, k), defaultdict(list), 0
    for _ in range(20):
        now += 1
        count = rng.choice([0, 1, 30])
        times = sorted(rng.choices([now, now, now - 1], k=count))
        values = random_array(rng, schema.field("v").type, count, 0.2)
        keys = pa.array(rng.choices(range(9), k=count), pa.int32())
        chunk = pa.table([keys, pa.array(times, pa.int64()), values], schema=schema)
        chunk = chunk.filter(
            pa.array([model_fits(model, row) for row in rows_of(chunk)], pa.bool_())
        )
        ring.fold(chunk)
        for row in rows_of(chunk):
            model[row[0]] = [*model[row[0]], row][-k:]
        if rng.random() < 0.2:
            continue  # keys of several chunks are asked for together
        least = None if oldest is None else now - oldest
        expected = []
        for rows in model.values():
            for place, row in enumerate(rows):
                earlier = rows[place - steps] if place >= steps else None
                if earlier is not None and least is not None and earlier[1] < least:
                    earlier = None
                if row[1] == now:
                    expected.append((*row, None if earlier is None else earlier[2]))
        found = ring.fresh("t", now, [("v", steps)], least)
        assert sorted(map(repr, rows_of(found))) == sorted(repr(key(row)) for row in expected)
        assert ring.fresh("t", now, [], least).num_rows == 0


def model_fits(model, row) -> bool:
    """Whether a row's time does not fall behind that of its key."""
    return not model[row[0]] or model[row[0]][-1][1] <= row[1]


def test_fresh_rows_are_those_of_now_with_earlier_values():
    """Only keys that were touched are looked at, ties included; values beyond `oldest` are not seen."""
    for seed in range(30):
        check_fresh_rows(seed)
