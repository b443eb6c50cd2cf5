"""Value indexes against brute force in plain Python, with damage, threads and every key type."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import NotSupportedError, StorageError
from headwater.expression.predicate import And, Comparison, Constant, IsNull, Not, Or
from headwater.storage.value_index import (
    BTREE,
    HASH,
    DamagedIndex,
    ValueIndex,
    answers,
    build,
    count,
    estimate,
    indexable,
    load,
    lookup,
    rows_for,
    write,
)

NAN = math.nan
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "whole": (pa.int64(), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    "natural": (pa.uint64(), st.integers(0, 3) | st.integers(0, 2**64 - 1)),
    "float": (pa.float64(), st.sampled_from([NAN, -0.0, 0.0, 1.5, -1.5, math.inf, -math.inf])),
    "any_float": (pa.float64(), st.floats()),
    "single": (pa.float32(), st.floats(width=32)),
    "text": (pa.string(), st.sampled_from(["", "a", "ab", "é", "z", "￿", "𐀀"]) | st.text()),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(1960, 1, 1), date(2030, 1, 1))),
    "moment": (
        pa.timestamp("us", "UTC"),
        st.integers(-5, 5).map(lambda n: EPOCH + n * MICROSECOND)
        | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    ),
    "price": (pa.decimal128(30, 2), st.decimals(-(10**27), 10**27, places=2)),
    "small_price": (pa.decimal128(5, 1), st.decimals(-9, 9, places=1)),
}
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def rank(value: Any) -> Any:
    """What stands for a value in plain comparisons: NaN is the largest, text goes by its bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def holds(predicate: Any, row: dict[str, Any]) -> bool | None:
    """A predicate on one row, three-valued."""
    if isinstance(predicate, Constant):
        return predicate.value
    if isinstance(predicate, IsNull):
        return row[predicate.column] is None
    if isinstance(predicate, Comparison):
        value = row[predicate.column]
        return None if value is None else TESTS[predicate.op](rank(value), rank(predicate.value))
    if isinstance(predicate, Not):
        part = holds(predicate.part, row)
        return None if part is None else not part
    parts = {holds(part, row) for part in predicate.parts}
    decisive = isinstance(predicate, Or)
    return decisive if decisive in parts else None if None in parts else not decisive


def matching(predicate: Any, table: pa.Table) -> list[int]:
    return [n for n, row in enumerate(table.to_pylist()) if holds(predicate, row) is True]


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 30) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3, unique=True))
    count = draw(st.integers(0, max_rows))
    arrays = {}
    for name in names:
        type_, values = COLUMNS[name]
        few = st.sampled_from([None, *draw(st.lists(values, min_size=1, max_size=4))])
        column = draw(st.lists(few | values, min_size=count, max_size=count))
        cut = draw(st.integers(0, count))
        arrays[name] = pa.chunked_array([column[:cut], column[cut:]], type_)
    return pa.table(arrays)


@st.composite
def comparisons(draw: st.DrawFn, table: pa.Table, ops: str = "= != < <= > >=") -> Comparison:
    name = draw(st.sampled_from(table.column_names))
    type_, values = COLUMNS[name]
    present = [value for value in table.column(name).to_pylist() if value is not None]
    value = draw(st.sampled_from(present) | values if present else values)
    return Comparison(name, draw(st.sampled_from(ops.split())), value, type_)


def predicates(table: pa.Table) -> st.SearchStrategy[Any]:
    leaves = (
        comparisons(table)
        | st.sampled_from([Constant(True), Constant(False), Constant(None)])
        | st.sampled_from(table.column_names).map(IsNull)
    )
    equal = comparisons(table, "=")
    pairs = st.tuples(equal, leaves).flatmap(lambda two: st.sampled_from([Or(two), And(two)]))
    return pairs | st.recursive(
        leaves,
        lambda part: (
            part.map(Not)
            | st.lists(part, min_size=1, max_size=3).map(lambda parts: And(tuple(parts)))
            | st.lists(part, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts)))
        ),
        max_leaves=6,
    )


@settings(deadline=None)
@given(st.data())
def test_a_lookup_is_exact(data):
    table = data.draw(tables())
    comparison = data.draw(comparisons(table, "= < <= > >="))
    keys = build(table.column(comparison.column), comparison.column)
    found = lookup(keys, comparison)
    assert found.dtype == np.int64
    assert found.tolist() == matching(comparison, table)
    assert count(keys, comparison) == len(found)
    equal = Comparison(comparison.column, "=", comparison.value, comparison.type)
    assert keys.frequency(comparison.value) == len(matching(equal, table))


@settings(deadline=None)
@given(st.data())
def test_candidates_and_filter_equal_a_filter_of_all_rows(data):
    table = data.draw(tables())
    predicate = data.draw(predicates(table))
    indexed = data.draw(st.sets(st.sampled_from(table.column_names), min_size=1))
    method = data.draw(st.sampled_from([BTREE, HASH]))
    indexes = {name: build(table.column(name), name, method) for name in indexed}
    rows = rows_for(predicate, indexes, table.num_rows)
    candidates = list(range(table.num_rows)) if rows is None else rows.tolist()
    assert candidates == sorted(set(candidates))
    assert set(matching(predicate, table)) <= set(candidates)
    assert len(candidates) <= estimate(predicate, indexes, table.num_rows)
    taken = table.take(pa.array(candidates, pa.int64()))
    found = [candidates[n] for n in matching(predicate, taken)]
    assert found == matching(predicate, table)


@settings(deadline=None)
@given(st.data())
def test_no_row_that_arrow_finds_is_missed(data):
    table = data.draw(tables())
    predicate = data.draw(
        comparisons(table, "= < <= > >=").filter(lambda c: rank(c.value) != rank(NAN))
    )
    indexes = {name: build(table.column(name), name) for name in table.column_names}
    numbered = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    rows = rows_for(predicate, indexes, table.num_rows)
    assert rows is not None
    assert rows.tolist() == numbered.filter(predicate.arrow()).column("row").to_pylist()


@settings(deadline=None)
@given(st.data())
def test_files_answer_as_their_blocks(tmp_path_factory, data):
    table = data.draw(tables())
    name = table.column_names[0]
    comparison = data.draw(comparisons(table.select([name]), "= < <= > >="))
    folder = tmp_path_factory.mktemp("keys")
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=4)))
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
        block = table.slice(start, end - start)
        write(f"{folder}/{number}", build(block.column(name), name), f"block {number}")
        keys = load(f"{folder}/{number}")
        assert (keys.column, keys.type, keys.row_count) == (name, COLUMNS[name][0], end - start)
        found = matching(comparison, block)
        assert lookup(keys, comparison).tolist() == found


@settings(deadline=None)
@given(st.data(), st.sampled_from(["whole", "text"]))
def test_damage_is_found_out(tmp_path_factory, data, name):
    folder = tmp_path_factory.mktemp("damage")
    type_, values = COLUMNS[name]
    column = data.draw(st.lists(values | st.none(), min_size=1, max_size=8))
    table = pa.table({name: pa.array(column, type_)})
    index = ValueIndex(folder, name)
    index.add("a", table)
    (path,) = folder.iterdir()
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="truncate"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(DamagedIndex):
        load(str(path))
    comparison = Comparison(name, ">=", data.draw(values), type_)
    assert index.lookup("a", comparison) is None
    assert index.missing(["a"]) == ["a"]
    assert index.damaged_count == 1
    assert not path.exists()
    index.add("a", table)
    assert index.lookup("a", comparison).tolist() == matching(comparison, table)


def test_bytes_after_the_end_are_damage(tmp_path):
    path = str(tmp_path / "keys")
    write(path, build(pa.chunked_array([[1, 2]])))
    with open(path, "ab") as file:
        file.write(bytes(64))
    with pytest.raises(DamagedIndex) as caught:
        load(path)
    assert caught.value.sqlstate == "XX001"
    with pytest.raises(StorageError, match="no such file"):
        load(path + "none")


def test_the_edges_of_floats():
    column = pa.chunked_array([[NAN, 0.0, None, -0.0, -math.inf, 1.0, NAN]], pa.float64())
    keys = build(column, "x")
    expected = [
        ("=", 0.0, [1, 3]),
        ("=", -0.0, [1, 3]),
        ("<", 0.0, [4]),
        ("<=", -0.0, [1, 3, 4]),
        (">", 0.0, [0, 5, 6]),
        ("=", NAN, [0, 6]),
        ("<", NAN, [1, 3, 4, 5]),
        (">", NAN, []),
    ]
    for op, value, rows in expected:
        assert lookup(keys, Comparison("x", op, value, pa.float64())).tolist() == rows
    assert keys.frequency(NAN) == keys.frequency(0.0) == 2
    negative = np.array([0xFFF8000000000001, 0x7FF8000000000000], np.uint64).view(np.float64)
    both = build(pa.chunked_array([negative, [3.0, -3.0]]))
    assert both.frequency(NAN) == 2
    assert both.rows.tolist() == [3, 2, 0, 1]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("bits", [3, 16, 17, 33, 63])
def test_wide_and_narrow_spreads_are_sorted_stably(dtype, bits):
    information = np.iinfo(dtype)
    chance = np.random.default_rng(bits)
    low, high = max(information.min, -(1 << bits)), min(information.max, 1 << bits)
    values = chance.integers(low, high, 3000, dtype=dtype, endpoint=True)
    keys = build(pa.chunked_array([values]))
    assert keys.rows.tolist() == np.argsort(values, kind="stable").tolist()
    assert keys.keys.tolist() == np.unique(values).tolist()
    assert np.diff(keys.starts).tolist() == np.unique(values, return_counts=True)[1].tolist()


def test_other_forms_of_text_and_numbers():
    words = ["b", None, "a", "b"]
    forms = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    for form in forms:
        keys = build(pa.chunked_array([pa.array(words).cast(form)]))
        assert lookup(keys, Comparison("c", "=", "b", pa.string())).tolist() == [0, 3]
    for type_ in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal256(60, 2)):
        prices = pa.array([Decimal("-1.25"), Decimal("3.00"), None], pa.decimal128(5, 2))
        keys = build(pa.chunked_array([prices.cast(type_)]))
        assert lookup(keys, Comparison("c", "<", Decimal(0), type_)).tolist() == [0]
    halves = build(pa.chunked_array([pa.array([1.5, -2.0], pa.float16())]))
    assert halves.rows.tolist() == [1, 0]
    assert not indexable(pa.list_(pa.int8()))
    with pytest.raises(NotSupportedError):
        build(pa.chunked_array([[[1]]]))


def test_the_two_instants_of_an_hour_that_comes_twice():
    zone = ZoneInfo("Europe/Berlin")
    twice = [datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=fold) for fold in (0, 1)]
    type_ = pa.timestamp("us", "UTC")
    keys = build(pa.chunked_array([pa.array(twice, type_)]))
    for row, moment in enumerate(twice):
        assert lookup(keys, Comparison("t", "=", moment, type_)).tolist() == [row]


def test_what_an_index_does_not_answer():
    column = pa.chunked_array([[3, 1, None]])
    tree, table = build(column, "x"), build(column, "x", HASH)
    above = Comparison("x", ">", 1, pa.int64())
    assert answers(tree, above)
    assert not answers(table, above)
    assert not answers(tree, Comparison("x", "!=", 1, pa.int64()))
    assert not answers(tree, Comparison("x", "=", 1, pa.int32()))
    with pytest.raises(ValueError, match="HASH"):
        lookup(table, above)
    assert rows_for(above, {"x": table}, 3) is None
    assert rows_for(above, {"x": tree}, 4) is None  # an index of other rows
    assert rows_for(above, {"x": tree}, 3).tolist() == [0]
    assert rows_for(Not(above), {"x": tree}, 3) is None
    assert rows_for(IsNull("x"), {"x": tree}, 3) is None
    other = Comparison("y", "=", 1, pa.int64())
    for beside in (IsNull("x"), other, Constant(True), Not(above)):
        assert rows_for(Or((above, beside)), {"x": tree}, 3) is None
        assert rows_for(And((above, beside)), {"x": tree}, 3).tolist() == [0]
    assert rows_for(Or((above, Constant(None))), {"x": tree}, 3).tolist() == [0]
    assert rows_for(And((above, Constant(None))), {"x": tree}, 3).tolist() == []


def test_a_part_that_filters_little_is_not_read():
    rows = 10_000
    table = pa.table({"key": np.arange(rows), "speed": np.arange(rows) % 100})
    indexes = {name: build(table.column(name), name) for name in table.column_names}
    one = Comparison("key", "=", 500, pa.int64())
    most = Comparison("speed", ">", 3, pa.int64())
    some = Comparison("speed", "=", 0, pa.int64())
    below = Comparison("key", "<", 1000, pa.int64())
    assert rows_for(And((most, one)), indexes, rows).tolist() == [500]
    assert rows_for(And((some, below)), indexes, rows).tolist() == list(range(0, 1000, 100))
    assert estimate(And((most, one)), indexes, rows) == 1
    assert estimate(Or((some, below)), indexes, rows) == 1100
    assert len(rows_for(Or((some, below)), indexes, rows)) == 1090


def block(seed: int, rows: int = 300) -> pa.Table:
    return pa.table({"vid": np.random.default_rng(seed).integers(0, 20, rows), "x": [seed] * rows})


def test_all_files_of_an_index(tmp_path):
    index = ValueIndex(tmp_path / "i", "vid", open_files=2)
    blocks = [f"t/{number}.parquet" for number in range(5)]
    for number, block_id in enumerate(blocks[:4]):
        index.add(block_id, block(number))
    assert index.missing(blocks) == blocks[4:]
    assert index.lag(blocks) == 1
    equal = Comparison("vid", "=", 7, pa.int64())
    for number, block_id in enumerate(blocks[:4]):
        assert index.lookup(block_id, equal).tolist() == matching(equal, block(number))
        assert index.frequency(block_id, 7) == len(matching(equal, block(number)))
    assert len(index._handles) == 2
    assert index.lookup(blocks[4], equal) is None
    assert index.frequency(blocks[4], 7) is None
    assert index.lookup(blocks[0], Comparison("x", "=", 0, pa.int64())) is None
    held = index.keys(blocks[0])
    index.drop(blocks[0])
    assert not index.has(blocks[0])
    assert lookup(held, equal).tolist() == matching(equal, block(0))
    index.add(blocks[1], block(9))
    assert index.lookup(blocks[1], equal).tolist() == matching(equal, block(9))


def test_reopen_keeps_what_is_wanted(tmp_path):
    first = ValueIndex(tmp_path / "i", "vid")
    for number in range(3):
        first.add(str(number), block(number))
    (tmp_path / "i" / "x.keys.3.new").write_bytes(b"half")
    again = ValueIndex(tmp_path / "i", "vid")
    assert len(again) == 3
    assert len(list((tmp_path / "i").iterdir())) == 3
    assert again.keep_only(["2", "9"]) == 2
    assert again.missing(["0", "1", "2"]) == ["0", "1"]
    hashed = ValueIndex(tmp_path / "i", "vid", HASH)
    assert hashed.keys("2") is None  # of another method: to be built anew
    hashed.add("2", block(2))
    assert hashed.lookup("2", Comparison("vid", "<", 7, pa.int64())) is None
    hashed.drop_all()
    assert not (tmp_path / "i").exists()
    with pytest.raises(ValueError, match="BTREE or HASH"):
        ValueIndex(tmp_path / "i", "vid", "BRIN")


def test_a_file_of_another_block_is_not_taken(tmp_path):
    index = ValueIndex(tmp_path, "vid")
    index.add("a", block(1))
    (own,) = tmp_path.iterdir()
    index.add("b", block(2))
    (other,) = (path for path in tmp_path.iterdir() if path != own)
    own.unlink()
    other.rename(own)
    assert ValueIndex(tmp_path, "vid").keys("a") is None


def test_a_file_removed_behind_our_back_is_missing(tmp_path):
    index = ValueIndex(tmp_path, "vid")
    index.add("a", block(1))
    (own,) = tmp_path.iterdir()
    own.unlink()
    assert index.keys("a") is None
    assert index.missing(["a"]) == ["a"]


def test_one_builder_and_many_readers(tmp_path):
    index = ValueIndex(tmp_path, "vid", open_files=2)
    equal = Comparison("vid", "=", 7, pa.int64())
    expected = {str(number): matching(equal, block(number)) for number in range(5)}
    wrong: list[str] = []
    done = threading.Event()

    def read(seed: int) -> None:
        chance = np.random.default_rng(seed)
        while not done.is_set():
            block_id = str(chance.integers(5))
            rows = index.lookup(block_id, equal)
            if rows is not None and rows.tolist() != expected[block_id]:
                wrong.append(block_id)

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for reader in readers:
        reader.start()
    for step in range(200):
        number = step % 5
        index.add(str(number), block(number))
        if step % 3 == 0:
            index.drop(str((step + 2) % 5))
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert index.damaged_count == 0
