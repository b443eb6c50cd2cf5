"""Sessions against merging all rows anew in plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import NotSupportedError
from headwater.operators import arrangement
from headwater.operators.session import SessionRows
from tests.fold.brute import key
from tests.operators.model import Row, changes_of, run, tuples

GAP = 10
SCHEMA = pa.schema([("k", pa.string()), ("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])


def at(moment: int) -> datetime:
    return datetime(2026, 1, 1) + timedelta(microseconds=moment)


def expected(rows: list[Row], partitioned: bool) -> list[Row]:
    parts: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row[1] is not None:
            parts[key(row[:1]) if partitioned else None].append(row)
    found: list[Row] = []
    gap = timedelta(microseconds=GAP)
    for part in parts.values():
        session: list[Row] = []
        for row in sorted(part, key=lambda row: row[1]):
            if session and row[1] > session[-1][1] + gap:
                found += [(*r, session[0][1], session[-1][1] + gap) for r in session]
                session = []
            session.append(row)
        found += [(*r, session[0][1], session[-1][1] + gap) for r in session]
    return found


def make(partition: list[str], takes_back: bool) -> SessionRows:
    return SessionRows(SCHEMA, partition, "t", GAP, "start", "end", takes_back)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_sessions_equal_all_rows_merged(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrangement, "LEAST_DEAD", 2)
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        span, takes_back = rng.choice([30, 200, 1000]), rng.random() < 0.7
        partition = rng.choice([[], ["k"]])

        def draw(rng: random.Random = rng, span: int = span) -> Row:
            moment = None if rng.random() < 0.1 else at(rng.randrange(span))
            return rng.choice([None, "a", "b"]), moment, rng.randrange(3)

        run(
            rng,
            lambda partition=partition, takes_back=takes_back: make(partition, takes_back),
            SCHEMA,
            lambda rows, partition=partition: expected(rows, bool(partition)),
            takes_back,
            draw,
            duplicates=True,
        )


def test_rows_just_a_gap_apart_are_one_session_as_in_spark() -> None:
    rows = [("a", at(0), 1), ("a", at(10), 2), ("a", at(21), 3)]
    out = tuples(make(["k"], True).apply(changes_of(rows, [], SCHEMA)).rows)
    assert sorted(row[2:] for row in out) == [
        (1, at(0), at(20)),
        (2, at(0), at(20)),
        (3, at(21), at(31)),
    ]


def test_only_sessions_that_a_change_meets_are_given_anew() -> None:
    sessions = make(["k"], True)
    rows = [("a", at(0), 1), ("a", at(30), 2), ("a", at(100), 3), ("b", at(15), 4)]
    sessions.apply(changes_of(rows, [], SCHEMA))
    joined = sessions.apply(
        changes_of([("a", at(15), 5), ("a", at(22), 6), ("a", at(8), 7)], [], SCHEMA)
    )
    assert {row[2] for row in tuples(joined.rows)} == {1, 2, 5, 6, 7}
    parted = sessions.apply(changes_of([], [("a", at(15), 5)], SCHEMA))
    assert {row[2] for row in tuples(parted.rows)} == {1, 2, 5, 6, 7}
    assert len(sessions.apply(changes_of([("a", None, 9)], [], SCHEMA))) == 0


def test_a_change_looks_only_at_rows_near_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = make([], True)
    sessions.apply(changes_of([("a", at(100 * n), n) for n in range(5000)], [], SCHEMA))
    looked: list[int] = []
    regrouped = SessionRows._regrouped
    monkeypatch.setattr(
        SessionRows, "_regrouped", lambda self, n: looked.append(len(n)) or regrouped(self, n)
    )
    out = sessions.apply(changes_of([("a", at(250_005), 1)], [("a", at(300), 3)], SCHEMA))
    assert len(out) == 4  # − and + of the neighbour, the one that came, the one that went
    sessions.apply(changes_of([("a", at(7), 1)], [], SCHEMA))
    assert looked[1] <= 3


def test_a_session_needs_a_time_and_a_gap() -> None:
    with pytest.raises(NotSupportedError):
        SessionRows(SCHEMA, [], "v", GAP, "start", "end", True)
    with pytest.raises(NotSupportedError):
        SessionRows(SCHEMA, [], "t", 0, "start", "end", True)
