"""The join of rows against pairing the rows of both windows anew, and in pieces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.fold.columns import Column
from headwater.fold.join import LEFT, RIGHT
from headwater.fold.row_join import RowJoin

Key = tuple[Any, ...]
TYPES = (pa.int64(), pa.string())


@dataclass(frozen=True)
class Push:
    """Rows of one side, in their window for so many instants from the one at which they come."""

    side: int
    keys: list[Key]


@dataclass(frozen=True)
class Case:
    """Instants one after the other, each with its pushes; rows stay for `keep` instants by side."""

    key_count: int
    keep: tuple[int, int]
    instants: list[list[Push]]
    piece: int
    newest: bool
    early: bool  # expire before the pushes of an instant, or after them


def cases() -> st.SearchStrategy[Case]:
    """Few keys, so that most rows match; some keys hold a NULL."""
    values = st.tuples(
        st.one_of(st.none(), st.integers(0, 3)), st.sampled_from([None, "a", "b", ""])
    )
    push = st.builds(Push, st.sampled_from([LEFT, RIGHT]), st.lists(values, max_size=6))
    return st.builds(
        Case,
        st.integers(0, 2),
        st.tuples(st.integers(1, 4), st.integers(1, 4)),
        st.lists(st.lists(push, max_size=4), max_size=12),
        st.sampled_from([3, 1000]),
        st.booleans(),
        st.booleans(),
    )


def pushed(join: RowJoin, side: int, expiry: int, keys: list[Key], first: int) -> Counter[Any]:
    """The new pairs of row numbers with their expiries."""
    count = range(len(TYPES))
    arrays = [pa.array([key[place] for key in keys], TYPES[place]) for place in count]
    numbers = pa.array(range(first, first + len(keys)), pa.int64())
    rows = pa.table({"lr"[side]: numbers, f"{'lr'[side]}2": numbers.cast(pa.string())})
    given_keys = [Column(array) for array in arrays[: len(join._keys.types)]]
    found: Counter[Any] = Counter()
    for piece in join.push(side, expiry, given_keys, rows):
        assert piece.rows.column_names == ["l", "l2", "r", "r2"]
        assert 0 < piece.rows.num_rows <= join._piece
        for row, until in zip(piece.rows.to_pylist(), piece.expiries.tolist(), strict=True):
            assert (row["l2"], row["r2"]) == (str(row["l"]), str(row["r"]))
            found[row["l"], row["r"], until] += 1
    return found


def run(case: Case) -> None:
    """At every instant the live pairs are those of the rows in both windows."""
    aging = (case.keep[0] - 1, case.keep[1] - 1) if case.newest else None
    join = RowJoin(TYPES[: case.key_count], aging, case.piece)
    rows: tuple[list[tuple[int, Key]], ...] = ([], [])  # the instant at which each row came
    pairs: Counter[Any] = Counter()
    for instant, pushes in enumerate(case.instants):
        if case.early:
            join.expire(instant)
        for push in pushes:
            expiry, first = instant + case.keep[push.side], len(rows[push.side])
            rows[push.side].extend((instant, key[: case.key_count]) for key in push.keys)
            pairs += pushed(join, push.side, expiry, push.keys, first)
        join.expire(instant)
        live = Counter({(a, b): n for (a, b, until), n in pairs.items() if until > instant})
        assert live == brute(case, rows, instant)
        kept = [sum(instant < came + case.keep[side] for came, _ in rows[side]) for side in (0, 1)]
        assert join.row_count <= sum(kept)


def brute(case: Case, rows: tuple[list[tuple[int, Key]], ...], instant: int) -> Counter[Any]:
    """All pairs of rows with equal keys in both windows."""
    return Counter(
        (left, right)
        for left, (came, key) in enumerate(rows[0])
        for right, (other_came, other) in enumerate(rows[1])
        if key == other and None not in key
        if instant < came + case.keep[0] and instant < other_came + case.keep[1]
        if not case.newest or instant in (came, other_came)
    )


@settings(max_examples=300, deadline=None)
@given(cases())
def test_live_pairs_are_those_of_the_windows(case: Case) -> None:
    """Any keys, windows, pieces and pairings."""
    run(case)


def test_tidying_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with keys and nodes cleaned up all the time."""
    for place in ("join.WORTH_CLEANING", "join_nodes.SMALLEST"):
        monkeypatch.setattr(f"headwater.fold.{place}", 0)
    monkeypatch.setattr("headwater.fold.join.KEYS_PER_NODE", 0)
    settings(max_examples=100, deadline=None)(given(cases())(run))()


def integers(values: list[int]) -> list[Column]:
    return [Column(pa.array(values, pa.int64()))]


def test_a_hot_key_takes_as_many_rounds_as_pushes() -> None:
    """3000 rows of one key on either side: few pieces, each within its bound."""
    join = RowJoin([pa.int64()], piece=1 << 20)
    list(join.push(LEFT, 9, integers([7] * 3000), pa.table({"a": np.arange(3000)})))
    found = list(join.push(RIGHT, 9, integers([7] * 3000), pa.table({"b": np.arange(3000)})))
    assert len(list(join._nodes[LEFT].matches(np.zeros(1, np.int64)))) == 1
    assert [piece.rows.num_rows for piece in found] == [1 << 20] * 8 + [9_000_000 - (8 << 20)]
    sums = [(p.rows["a"].to_numpy() * p.rows["b"].to_numpy()).sum() for p in found]
    assert sum(sums) == sum(range(3000)) ** 2


def test_few_tables_hold_the_rows_and_the_dead_go() -> None:
    """A long window of short pushes: the number of tables grows as a logarithm; rows leave in turn."""
    join = RowJoin([pa.int64()])
    for instant in range(2000):
        join.expire(instant)
        rows = pa.table({"a": pa.array([instant] * 3)})
        list(join.push(LEFT, instant + 500, integers([instant] * 3), rows))
    held = join._rows[LEFT]
    assert len(held) == 1500
    assert len(held._tables) < 12
    assert sum(table.num_rows for table in held._tables) <= 2 * 1500
    found = list(join.push(RIGHT, 9999, integers([1500, 1999, 10]), pa.table({"b": [1, 2, 3]})))
    rows = [row for piece in found for row in piece.rows.to_pylist()]
    assert sorted((r["a"], r["b"]) for r in rows) == [(1500, 1)] * 3 + [(1999, 2)] * 3
