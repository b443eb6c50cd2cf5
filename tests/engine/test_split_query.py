"""Groups of parts become results: each instant once, of the same stored rows, when all have passed it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headwater
from headwater.engine import split_query
from headwater.engine.query_parts import Evaluated
from headwater.engine.sampling import Instant
from headwater.engine.split_query import GENERATIONS, PartSink, QueryPart, SplitQuery
from headwater.errors import BindError, StorageError
from headwater.storage.disk import may_pass

pytestmark = pytest.mark.here

TEXT = "SELECT k, sum(v) s FROM {} [INTERVAL 20 SECONDS] GROUP BY k SAMPLE INTERVAL 1 SECONDS"


def split(db: headwater.Database, kind: str = "STREAMING TABLE") -> SplitQuery:
    """A query in two parts."""
    db.sql(f"CREATE {kind} a (ts INT, k INT, v INT) TIMESTAMP BY ts")
    db.sql(f"CREATE CONTINUOUS QUERY q WITH (parts = 2) AS {TEXT.format('a')}")
    found = db._context.engine.find("q")
    assert isinstance(found, SplitQuery)
    return found


def given(query: SplitQuery, tick: int, *sums: tuple[int, int], generation: int = 0) -> Evaluated:
    """The groups of a part at an instant."""
    columns = zip(*sums, strict=True) if sums else ([], [])
    schema = query.specs[0].schema
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    return Evaluated(Instant(tick, tick), rows, {"count": tick, GENERATIONS: [generation]})


def results(query: SplitQuery) -> list[tuple[int, list[int], int]]:
    """The keys of each result, and which one it is."""
    found, position = [], query.sink.log.first
    while (one := query.sink.log.read(position)) is not None:
        found.append((one.instant, one.rows.column("k").to_pylist(), one.note["count"]))
        position += 1
    return found


def test_a_result_comes_when_all_parts_have_passed_its_instant(db: headwater.Database) -> None:
    """Of a gap one part may have told more instants than another: it has no groups there."""
    query = split(db)
    query.give(0, [given(query, tick, (1, tick)) for tick in (1, 2, 3)])
    assert results(query) == []
    query.give(1, [given(query, 1, (2, 5)), given(query, 3)])
    assert results(query) == [(1, [1, 2], 1), (2, [1], 2), (3, [1], 3)]
    query.give(1, [given(query, 4, (2, 1)), given(query, 5, (2, 1))])
    query.give(0, [given(query, 4)])
    assert results(query)[3:] == [(4, [2], 4)]


def test_a_part_that_begins_anew_gives_again(db: headwater.Database) -> None:
    query = split(db)
    query.give(0, [given(query, 1, (1, 1)), given(query, 2, (1, 1))])
    query.begins(0)
    query.give(1, [given(query, 1, (2, 1)), given(query, 2, (2, 1))])
    assert results(query) == []
    query.give(0, [given(query, 1, (3, 1))])
    assert results(query) == [(1, [3, 2], 1)]
    query.give(0, [given(query, 2, (3, 1))])
    assert results(query)[1:] == [(2, [3, 2], 2)]


def test_groups_of_different_stored_rows_are_never_united(db: headwater.Database) -> None:
    """The part that has not seen that rows were deleted answers again."""
    query = split(db)
    query.give(0, [given(query, 1, (1, 1)), given(query, 2, (1, 1))])
    query.give(1, [given(query, 1, (2, 1)), given(query, 2, (2, 1), generation=1)])
    assert results(query) == [(1, [1, 2], 1)]
    query.give(0, [given(query, 3, (1, 1))])  # it was at work meanwhile
    assert results(query) == [(1, [1, 2], 1)]
    query.begins(0)
    query.give(0, [given(query, 2, (3, 1), generation=1)])
    assert results(query)[1:] == [(2, [3, 2], 2)]


def test_an_instant_whose_rows_were_deleted_is_not_half_a_result(db: headwater.Database) -> None:
    """The part that passes it without a word has groups then; it has no such instant any more."""
    query = split(db)
    query.give(0, [given(query, 1, (1, 1)), given(query, 2, (1, 1))])
    query.give(1, [given(query, 1, (2, 1)), given(query, 3, (2, 1), generation=1)])
    query.begins(0)
    query.give(0, [given(query, 3, (1, 1), generation=1)])
    assert results(query) == [(1, [1, 2], 1), (3, [1, 2], 2)]


def test_what_became_durable_in_spite_of_an_error_is_not_told_again(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = split(db)
    query.give(0, [given(query, 1, (1, 1)), given(query, 2, (1, 1))])
    append = query.sink.append

    def fails_afterwards(groups: list[Evaluated]) -> None:
        append(groups)
        raise StorageError("the disk is full", sqlstate="53100")

    with monkeypatch.context() as inner:
        inner.setattr(query.sink, "append", fails_afterwards)
        with pytest.raises(StorageError):
            query.give(1, [given(query, 1, (2, 1))])
    query.begins(1)
    query.give(1, [given(query, 2, (2, 1))])
    assert results(query) == [(1, [1, 2], 1), (2, [1, 2], 2)]


def test_a_clock_is_not_set_back_behind_results_of_parts(db: headwater.Database) -> None:
    split(db)
    db.insert("a", [(second, second % 3, 1) for second in range(10)])
    db.flush()
    with pytest.raises(BindError, match="behind results of q"):
        db.sql("ALTER TABLE a SET CLOCK TO 5")


def test_a_part_that_is_far_ahead_waits(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_query, "MOST_AHEAD", 2)
    monkeypatch.setattr(split_query, "AHEAD_S", 0.01)
    query = split(db)
    query.give(0, [given(query, 1), given(query, 2)])
    with pytest.raises(StorageError, match="far ahead") as refused:
        query.give(0, [given(query, 3)])
    assert may_pass(refused.value)
    query.give(1, [given(query, 1)])
    query.give(0, [given(query, 3)])
    assert [tick for tick, _, _ in results(query)] == [1]


def test_a_snapshot_ahead_of_the_results_is_not_kept_yet(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart a part could not go back from it: a stream has let the rows go."""
    query, append = split(db, "STREAM"), PartSink.append
    ahead, behind = query.parts
    assert isinstance(ahead, QueryPart)

    def not_of_the_second(sink: PartSink, groups: list[Evaluated]) -> None:
        if sink._place == 1:
            raise StorageError("not now", sqlstate="53000")
        append(sink, groups)

    with monkeypatch.context() as inner:
        inner.setattr(PartSink, "append", not_of_the_second)
        db.insert("a", [(second, key, 1) for second in range(5) for key in range(4)])
        db._context.engine.flush()
        assert ahead.sampling.after == 3
        ahead.put_away()
        assert ahead.keeper.kept is None
    db.flush()
    assert behind.sink.last() is not None
    ahead.put_away()
    assert ahead.keeper.kept is not None
    assert ahead.keeper.kept["after"] == 3
