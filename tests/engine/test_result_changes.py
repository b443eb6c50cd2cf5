"""Changes between two results: found, encoded, applied, against the results themselves bit for bit."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from headwater.engine import result_changes, sequence_diff
from headwater.engine.result_changes import (
    BagChanges,
    KnownChanges,
    PlacedChanges,
    applied,
    decode_changes,
    encode_changes,
    find_changes,
    repeated,
    spliced,
)

NAN, INF = float("nan"), float("inf")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
SCHEMA = pa.schema(
    [
        pa.field("k", pa.string()),
        pa.field("x", pa.float64()),
        pa.field("l", pa.list_(pa.float64())),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
        pa.field("s", pa.struct([("a", pa.float32()), ("b", pa.bool_())])),
        pa.field("_t", pa.timestamp("us")),
    ]
)
FLOATS = [0.0, -0.0, 1.5, NAN, INF, None]
ROW = st.tuples(
    st.sampled_from(["a", "b", "", None]),
    st.sampled_from([*FLOATS, OTHER_NAN]),
    st.sampled_from([None, [], [0.0], [-0.0], [NAN, None]]),
    st.sampled_from([None, [], [("a", 1)], [("a", 1), ("b", None)]]),
    st.sampled_from([None, {"a": 0.0, "b": True}, {"a": -0.0, "b": None}]),
)
PLAIN = st.tuples(st.integers(0, 4), st.sampled_from(FLOATS))
PLAIN_SCHEMA = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("_t", pa.int64())])

Row = tuple[Any, ...]


@pytest.fixture(scope="module", params=["as it is", "small", "by codes"], autouse=True)
def _bounds(request: pytest.FixtureRequest) -> Iterator[None]:
    """The bounds as they are, and so small that small results reach them."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            patch.setattr(sequence_diff, "BLOCK_ROWS", 3)
            patch.setattr(sequence_diff, "NEAR_ROWS", 2)
            patch.setattr(sequence_diff, "SAMPLED_ROWS", 4)
            patch.setattr(result_changes, "TIME_ROWS", 2)
            patch.setattr(result_changes, "SPLICED_ROWS", 4)
            patch.setattr(result_changes, "COMPRESSED_FROM_BYTES", 200)
        if request.param == "by codes":
            patch.setattr(sequence_diff, "MOST_STEPS", 0)
        yield


def exact(value: Any) -> Any:
    """A value that equals another one only if it is the same bit for bit."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return tuple((name, exact(part)) for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(exact(part) for part in value)
    return value


def rows_of(table: pa.Table) -> list[Row]:
    return [exact(tuple(row.values())) for row in table.to_pylist()]


def table_of(rows: Sequence[Row], schema: pa.Schema, times: Sequence[int]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * (len(schema) - 1)
    return pa.table(
        [pa.array(c, f.type) for c, f in zip([*columns, times], schema, strict=True)], schema=schema
    )


def result(rows: Sequence[Row], at: int, schema: pa.Schema = PLAIN_SCHEMA) -> pa.Table:
    return table_of(rows, schema, [at] * len(rows))


def time_of(at: int, schema: pa.Schema = PLAIN_SCHEMA) -> pa.Scalar:
    return pa.scalar(at, schema.field("_t").type)


def check(before: pa.Table, after: pa.Table, at: int) -> PlacedChanges | None:
    """PlacedChanges, also as bytes, make the one of the other; rows that are gone were there."""
    time = pa.scalar(at, after.schema.field("_t").type)
    found = find_changes(before, after, time)
    if found is None:
        return None
    for changes in (found, decode_changes(encode_changes(found), after.schema, time)):
        assert isinstance(changes, PlacedChanges)
        for made in (applied(before, [changes], time), spliced(before, changes, time)):
            assert rows_of(made) == rows_of(after)
            assert made.schema == after.schema
        mine = slice(None, -1 if changes.one_time else None)
        gone = [rows_of(before)[place][mine] for place in changes.gone_at]
        assert [row[mine] for row in rows_of(changes.gone)] == gone
        assert rows_of(changes.added) == [rows_of(after)[place] for place in changes.added_at]
        assert changes.row_count == after.num_rows
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(ROW, max_size=10), st.lists(ROW, max_size=10))
def test_any_two_results(before: list[Row], after: list[Row]) -> None:
    """NULL, NaN, both zeros, nested values, rows that occur twice, in any order."""
    check(result(before, 10, SCHEMA), result(after, 20, SCHEMA), 20)


EDITS = st.lists(st.tuples(st.sampled_from("+-~>"), st.integers(0, 99), ROW), max_size=4)


def edited(rows: Sequence[Row], edits: Sequence[tuple[str, int, Row]]) -> list[Row]:
    """Rows after some were added, deleted, replaced or moved to the front."""
    rows = list(rows)
    for what, place, row in edits:
        at = place % (len(rows) + (what == "+")) if rows or what == "+" else 0
        if what == "+":
            rows.insert(at, row)
        elif rows and what == "~":
            rows[at] = row
        elif rows:
            taken = rows.pop(at)
            rows[:0] = [taken] if what == ">" else []
    return rows


@settings(max_examples=80, deadline=None)
@given(
    st.lists(ROW, min_size=20, max_size=30), st.lists(EDITS, min_size=1, max_size=4), st.booleans()
)
def test_a_few_changes_after_each_other(
    rows: list[Row], steps: list[list[tuple[str, int, Row]]], own_times: bool
) -> None:
    """Steps that follow each other are applied together, with one time or one for each row."""
    results = [result(rows, 0, SCHEMA)]
    for at, edits in enumerate(steps, 1):
        rows = edited(rows, edits)
        times = [at * (n % 2) for n in range(len(rows))] if own_times else [at] * len(rows)
        results.append(table_of(rows, SCHEMA, times))
    found = [check(results[i], results[i + 1], i + 1) for i in range(len(steps))]
    known = list[PlacedChanges]()
    for at, changes in enumerate(found, 1):
        if changes is None:
            return
        known.append(changes)
        made = applied(results[0], known, time_of(at, SCHEMA))
        assert rows_of(made) == rows_of(results[at])


@settings(max_examples=100, deadline=None)
@given(st.lists(PLAIN, max_size=12), st.lists(PLAIN, max_size=12), st.data())
def test_how_rows_lie_in_memory_does_not_matter(
    before: list[Row], after: list[Row], data: st.DataObject
) -> None:
    """Chunks of any size, arrays that begin within others, the same memory: one answer."""
    one, two = result(before, 1), result(after, 2)
    expected = find_changes(one, two, time_of(2))
    cut = data.draw(st.integers(0, len(after)))
    padded = pa.concat_tables([two.slice(0, cut), two.slice(cut)])
    shifted = pa.concat_tables([one, one]).combine_chunks().slice(len(before))
    found = find_changes(shifted, padded, time_of(2))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.gone_at.tolist() == expected.gone_at.tolist()
        assert found.added_at.tolist() == expected.added_at.tolist()


def numbered(count: int) -> list[Row]:
    return [(n, n / 2) for n in range(count)]


@pytest.mark.parametrize(
    ("edits", "gone", "added"),
    [
        ([], 0, 0),
        ([("~", 50, (7, -1.0))], 1, 1),
        ([("~", 0, (7, -1.0)), ("~", 99, (8, -1.0))], 2, 2),
        ([("+", 30, (7, -1.0))], 0, 1),
        ([("-", 30, ())], 1, 0),
        ([("-", 30, ()), ("+", 70, (7, -1.0))], 1, 1),
        ([("-", 70, ()), ("+", 30, (7, -1.0)), ("~", 80, (8, 8.0))], 2, 2),
        ([(">", 90, ())], 1, 1),
        ([("-", 0, ())] * 9 + [("+", 91, (n, -1.0)) for n in range(9)], 9, 9),
    ],
)
def test_few_changes_are_few(edits: list[tuple[str, int, Row]], gone: int, added: int) -> None:
    """In place, at the ends, a row that goes and comes elsewhere, a window that slides."""
    rows = numbered(100)
    found = check(result(rows, 1), result(edited(rows, edits), 2), 2)
    assert found is not None
    assert (len(found.gone_at), len(found.added_at)) == (gone, added)


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(6)), st.lists(st.integers(1, 9), min_size=6, max_size=6))
def test_the_heaviest_ascending_part_stays(values: list[int], weights: list[int]) -> None:
    """Of pieces that changed places those that stay are as many rows as can be."""
    chosen = sequence_diff._heaviest(values, weights)
    assert [values[place] for place in chosen] == sorted(values[place] for place in chosen)
    ascending = (
        part
        for size in range(7)
        for part in combinations(range(6), size)
        if [values[p] for p in part] == sorted(values[p] for p in part)
    )
    best = max(sum(weights[p] for p in part) for part in ascending)
    assert sum(weights[place] for place in chosen) == best


def test_floats_are_told_apart_by_their_bits() -> None:
    """The other zero, or another NaN, is another value; the same NaN is the same."""
    zeros: list[Row] = [(n, 0.0) for n in range(50)]
    found = check(result(zeros, 1), result([*zeros[:20], (20, -0.0), *zeros[21:]], 2), 2)
    assert found is not None
    assert found.added_at.tolist() == [20]
    missing: list[Row] = [(n, NAN) for n in range(50)]
    found = check(result(missing, 1), result([*missing[:20], (20, OTHER_NAN), *missing[21:]], 2), 2)
    assert found is not None
    assert found.added_at.tolist() == [20]


def test_other_results_have_no_changes() -> None:
    """Where most rows are others, or in another order, nothing is found."""
    rows = numbered(300)
    assert check(result(rows, 1), result([(n, -1.0) for n, _ in rows], 2), 2) is None
    assert check(result(rows, 1), result([], 2), 2) is None
    shuffled = [rows[n] for n in np.random.default_rng(1).permutation(300)]
    assert check(result(rows, 1), result(shuffled, 2), 2) is None
    many = check(result([], 1), result([], 2), 2)
    assert many is not None
    assert len(many) == 0


def test_a_collision_of_codes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one code that are not equal are never taken for each other."""
    monkeypatch.setattr(sequence_diff, "MIX", np.uint64(0))
    monkeypatch.setattr(sequence_diff, "MOST_STEPS", 0)
    before = [(n % 3, 0.5) for n in range(20)]
    check(result(before, 1), result([*before[7:15], *before[:7], (9, 9.0)], 2), 2)


def test_a_time_of_its_own_is_a_change() -> None:
    """Rows that do not all have the instant as their time keep their own."""
    before = table_of(numbered(9), PLAIN_SCHEMA, [1] * 8 + [2])
    after = table_of(numbered(9), PLAIN_SCHEMA, [1] * 7 + [3, 2])
    found = check(before, after, 3)
    assert found is not None
    assert (found.one_time, found.gone_at.tolist()) == (False, [7])
    missing = table_of(numbered(9), PLAIN_SCHEMA, [3] * 8 + [None])  # type: ignore[list-item]
    assert find_changes(before, missing, time_of(3)) is None


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_one_value_again_and_again(count: int) -> None:
    column = repeated(time_of(7), count)
    assert column.to_pylist() == [7] * count
    assert column.type == pa.int64()


def test_bytes_of_a_later_version_are_refused() -> None:
    found = check(result(numbered(9), 1), result(numbered(10), 2), 2)
    assert found is not None
    data = b"\xff" + encode_changes(found)[1:]
    with pytest.raises(ValueError, match="layout 255"):
        decode_changes(data, PLAIN_SCHEMA, time_of(2))


def test_same_memory_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns, or chunks, that two results share cost nothing."""
    big = result(numbered(100), 2)
    more = pa.concat_tables([big, result([(7, 7.0)], 2)])
    looked: list[int] = []
    equal = sequence_diff._is_equal
    monkeypatch.setattr(
        sequence_diff, "_is_equal", lambda a, b: bool(looked.append(len(a))) or equal(a, b)
    )
    found = find_changes(big, more, time_of(2))
    assert found is not None
    assert found.added_at.tolist() == [100]
    assert looked == []


def test_results_of_many_pieces_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Step by step in place: rows are shared, but never in too many pieces."""
    monkeypatch.setattr(result_changes, "MOST_CHUNKS", 9)
    rows = numbered(100)
    last = result(rows, 0)
    pieces = list[int]()
    for at in range(1, 30):
        rows[at * 3] = (at, -1.0)
        now = result(rows, at)
        changes = find_changes(last, now, time_of(at))
        assert changes is not None
        last = spliced(last, changes, time_of(at))
        assert rows_of(last) == rows_of(now)
        pieces.append(last.column(0).num_chunks)
    assert 3 <= max(pieces) <= 9


@settings(max_examples=100, deadline=None)
@given(st.lists(ROW, max_size=8), st.lists(st.tuples(st.lists(ROW, max_size=3), st.randoms())))
def test_changes_of_a_bag(rows: list[Row], steps: list[tuple[list[Row], Any]]) -> None:
    """The same rows in the same order, one after the other and all at once, also as bytes."""
    first = now = result(rows, 0, SCHEMA)
    made, time = list[KnownChanges](), time_of(0, SCHEMA)
    for at, (added, random) in enumerate(steps, 1):
        time = time_of(at, SCHEMA)
        places = random.sample(range(now.num_rows), random.randint(0, min(now.num_rows, 3)))
        gone = now.take(pa.array(places, pa.int64()))
        kept = [row for place, row in enumerate(rows_of(now)) if place not in places]
        step = BagChanges(gone, result(added, at, SCHEMA), len(kept) + len(added))
        made.append(decode_changes(encode_changes(step), SCHEMA, time))
        now = applied(now, [step], time)
        wanted = [row[:-1] for row in [*kept, *rows_of(step.added)]]
        assert sorted(map(repr, (row[:-1] for row in rows_of(now)))) == sorted(map(repr, wanted))
    assert rows_of(applied(first, made, time)) == rows_of(now)


def test_changes_of_another_bag_are_refused() -> None:
    step = BagChanges(result([(2, 0.0)], 2), result([], 2), 0)
    with pytest.raises(ValueError, match="not of this result"):
        applied(result([(1, 0.0)], 1), [step], time_of(2))
