"""The results of a query: positions, durability, bounds, reading back, and failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.engine import results, stored_results
from headwater.engine.results import NewResult, ResultLog, ResultSet, definition
from headwater.errors import Error, OverloadError, StorageError
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.read import Selected
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import Opened

SCHEMA = pa.schema([pa.field("v", pa.int64()), pa.field("x", pa.float64()), ("_t", pa.int64())])
MANY = 1 << 40


def rows(instant: int, count: int = 1) -> pa.Table:
    """The result of an instant: `count` rows."""
    numbers = list(range(instant, instant + count))
    return pa.table(
        {"v": numbers, "x": [n / 2 for n in numbers], "_t": [instant] * count}, schema=SCHEMA
    )


def new(instant: int, count: int = 1) -> NewResult:
    """A result with an epoch and a note that tell the instant."""
    return NewResult(instant, rows(instant, count), instant * 2, {"read": [instant]})


def expected(position: int, instant: int, count: int = 1) -> ResultSet:
    """What `new` is once it has a position."""
    return ResultSet(position, instant, rows(instant, count), instant * 2, {"read": [instant]})


def create(opened: Opened, name: str = "q") -> StreamingTable:
    """The hidden table of a query, under a kind that the store opens again."""
    made = definition(0, name, f"{name}-1")
    fields = {f: getattr(made, f) for f in Definition.__dataclass_fields__}
    return opened.create(**{**fields, "kind": "streaming table"})


def log_of(table: StreamingTable | None, keep: int = 1000, keep_bytes: int = MANY) -> ResultLog:
    """A log with fixed bounds."""
    return ResultLog(table, SCHEMA, keep=lambda: keep, keep_bytes=lambda: keep_bytes)


@contextmanager
def process(folder: Path, crash: bool = False) -> Iterator[Opened]:
    """The life of a process, to a clean end or to one that seals nothing."""
    found = Opened(folder)
    try:
        yield found
    finally:
        if crash:
            found.drop()
        else:
            found.close()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """An open folder of tables."""
    with process(tmp_path / "data") as found:
        yield found


def positions(log: ResultLog) -> range:
    """The positions of kept results."""
    return range(log.first, log.next)


@pytest.mark.parametrize("stored", [True, False])
def test_results_come_back_as_they_were(opened: Opened, stored: bool) -> None:
    """Positions count from 0; instant, rows, epoch and note are kept, empty results are shared."""
    log = log_of(create(opened) if stored else None)
    assert (log.first, log.next, log.last(), log.read(0)) == (0, 0, None, None)
    assert log.append([]) == []
    made = log.append([new(10, 3), new(20, 0)])
    assert made == [expected(0, 10, 3), expected(1, 20, 0)]
    assert log.append([NewResult(20, rows(20, 0))]) == [ResultSet(2, 20, rows(20, 0))]
    assert [log.read(p) for p in range(2)] == made
    assert log.read(1).rows is log.read(2).rows  # type: ignore[union-attr]
    assert (log.last(), log.first, log.next) == (log.read(2), 0, 3)


@pytest.mark.parametrize("crash", [True, False])
def test_a_restart_goes_on_where_it_was(tmp_path: Path, crash: bool) -> None:
    """After a clean end and after a crash all acknowledged results are there, and counted on."""
    with process(tmp_path / "data", crash) as first:
        log = log_of(create(first))
        for instant in range(5):
            log.append([new(instant), new(instant, 0)])
    with process(tmp_path / "data") as second:
        again = log_of(second.table("q"))
        assert (again.first, again.next) == (0, 10)
        assert again.last() == expected(9, 4, 0)
        assert again.append([new(99)]) == [expected(10, 99)]
        found = [again.read(p) for p in range(11)]
        assert found[:10] == [expected(p, p // 2, 1 - p % 2) for p in range(10)]


def test_positions_are_sequences(opened: Opened) -> None:
    """The position is the hidden table's own `_seq`."""
    table = create(opened)
    log = log_of(table)
    log.append([new(1), new(2)])
    log.append([new(2)])
    with table.reading() as snapshot:
        found = stored_results.select(snapshot, stored_results.Wanted(("position", "_seq"))).rows
    assert found.column("position").to_pylist() == found.column("_seq").to_pylist() == [0, 1, 2]


def test_memory_is_bounded_and_the_rest_is_read_from_the_table(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the newest are in memory, in count and bytes; older ones come from tail and blocks."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 8)
    table = create(opened)
    log = log_of(table)
    for instant in range(30):
        log.append([new(instant)])
        if instant == 15:
            opened.store.seal(table)
    assert [e.result.position for e in log._recent] == list(range(22, 30))
    assert [log.read(p) for p in range(30)] == [expected(p, p) for p in range(30)]
    ahead = log.read_from(0)
    assert ahead == [expected(p, p) for p in range(22)]
    monkeypatch.setattr(results, "RECENT_BYTES", 1)
    log.append([new(30, 500)])
    assert [e.result.position for e in log._recent] == [30]
    assert log.last() == expected(30, 30, 500)


def test_read_ahead_is_bounded_in_bytes(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large results are read a few at a time, at least one."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 1)
    monkeypatch.setattr(stored_results, "AHEAD_BYTES", 3 * results.RESULT_BYTES)
    log = log_of(create(opened))
    log.append([new(p, 0) for p in range(20)])
    assert [r.position for r in log.read_from(5)] == [5, 6, 7, 8]
    monkeypatch.setattr(stored_results, "AHEAD_BYTES", 0)
    assert [r.position for r in log.read_from(5)] == [5]


@pytest.mark.parametrize("stored", [True, False])
def test_the_newest_are_kept(opened: Opened, stored: bool) -> None:
    """At the bound the oldest go; reading them is an error that names the setting."""
    log = log_of(create(opened) if stored else None, keep=3)
    log.append([new(p) for p in range(3)])
    assert positions(log) == range(3)
    log.append([new(3)])
    assert positions(log) == range(1, 4)
    log.append([new(p) for p in range(4, 14)])
    assert positions(log) == range(11, 14)
    assert [log.read(p) for p in positions(log)] == [expected(p, p) for p in range(11, 14)]
    with pytest.raises(OverloadError, match="dropped") as caught:
        log.read(10)
    assert caught.value.sqlstate == "55000"
    assert "results_kept" in str(caught.value.hint)


@pytest.mark.parametrize("stored", [True, False])
def test_bytes_are_bounded(opened: Opened, stored: bool) -> None:
    """The kept results stay within `keep_bytes`, not far below it; one always stays."""
    limit = 40 * results.RESULT_BYTES
    log = log_of(create(opened) if stored else None, keep_bytes=limit)
    for position in range(200):
        log.append([new(position, 0)])
        kept = len(positions(log))
        assert kept <= 40
        assert kept >= min(position + 1, 37)
    log.append([new(200, 20_000)])
    assert len(positions(log)) >= 1
    assert log.last() == expected(200, 200, 20_000)


def test_bounds_hold_after_a_restart(tmp_path: Path) -> None:
    """What was dropped stays dropped, by count and by bytes."""
    with process(tmp_path / "data") as first:
        log = log_of(create(first), keep=50)
        log.append([new(p, 0) for p in range(100)])
        assert positions(log) == range(50, 100)
    with process(tmp_path / "data") as second:
        assert positions(log_of(second.table("q"), keep=50)) == range(50, 100)
        limit = 16 * results.RESULT_BYTES
        assert positions(log_of(second.table("q"), keep=50, keep_bytes=limit)) == range(85, 100)


def test_the_table_is_trimmed(tmp_path: Path) -> None:
    """The table drops what is not kept, block by block, and forgets nothing that is."""
    with process(tmp_path / "data") as first:
        table = create(first)
        log = log_of(table, keep=8)
        for position in range(40):
            log.append([new(position)])
            if position % 4 == 3:
                first.store.seal(table)
                first.store.keep_once()
        assert [log.read(p) for p in range(32, 40)] == [expected(p, p) for p in range(32, 40)]
        assert sum(block.row_count for block in table.blocks) <= 12
    with process(tmp_path / "data") as second:
        again = log_of(second.table("q"), keep=8)
        assert positions(again) == range(32, 40)
        assert again.read(32) == expected(32, 32)
        more = positions(log_of(second.table("q"), keep=1000))  # what is gone stays so
        assert (more.start > 0, more.stop) == (True, 40)


def test_large_appends_are_split(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Very large results go to the table in several inserts, in order."""
    monkeypatch.setattr(results, "INSERT_BYTES", 2500)
    table = create(opened)
    sizes: list[int] = []
    insert = table.insert

    def counted(given: pa.Table, *more: Any) -> int:
        sizes.append(given.num_rows)
        return insert(given, *more)

    monkeypatch.setattr(table, "insert", counted)
    log = log_of(table)
    log.append([new(p, 0) for p in range(5)])
    assert sizes == [2, 2, 1]
    assert [r.position for r in (log.read(p) for p in range(5)) if r] == list(range(5))


def test_a_result_that_is_too_large_is_refused(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is stored; the query can go on."""
    monkeypatch.setattr(stored_results, "LARGEST_RESULT_BYTES", 1000)
    log = log_of(create(opened))
    with pytest.raises(OverloadError) as caught:
        log.append([new(1, 5000)])
    assert caught.value.sqlstate == "54000"
    assert log.append([new(2)]) == [expected(0, 2)]


@pytest.mark.parametrize("durable", [0, 1, 3])
def test_after_a_failed_insert_positions_are_right(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, durable: int
) -> None:
    """An insert that raised may have been stored all the same: the table decides, not memory."""
    table = create(opened)
    log = log_of(table)
    log.append([new(0)])
    insert = table.insert

    def failing(given: pa.Table, *more: Any) -> int:
        if durable:
            insert(given.slice(0, durable), *more)
        raise StorageError("the disk is full", sqlstate="53100")

    monkeypatch.setattr(table, "insert", failing)
    with pytest.raises(StorageError):
        log.append([new(1), new(2), new(3)])
    assert log.next == 1
    monkeypatch.setattr(table, "insert", insert)
    assert log.append([new(9)]) == [expected(1 + durable, 9)]
    found = [log.read(p) for p in range(2 + durable)]
    assert found == [expected(p, p) for p in range(1 + durable)] + [expected(1 + durable, 9)]


def test_a_missing_row_is_damage(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept result that the table does not have is an error, not the end of the results."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 1)
    log = log_of(create(opened))
    log.append([new(0), new(1)])
    nothing = Selected(stored_results.STORED.empty_table())
    monkeypatch.setattr(stored_results, "select", lambda *_: nothing)
    with pytest.raises(StorageError) as caught:
        log.read(0)
    assert caught.value.sqlstate == "XX001"


def test_waiting(opened: Opened) -> None:
    """A wait ends with the result, with the time, with the end of the query, when stopped."""
    log = log_of(create(opened))
    assert not log.wait(0, 0.0)
    log.append([new(0)])
    assert log.wait(0, None)
    assert not log.wait(1, None, lambda: True)
    seen: list[bool] = []
    waiting = threading.Thread(target=lambda: seen.append(log.wait(1, None)))
    waiting.start()
    log.append([new(1)])
    waiting.join()
    ended = threading.Thread(target=lambda: seen.append(log.wait(2, None)))
    ended.start()
    log.close()
    ended.join()
    assert seen == [True, False]
    with pytest.raises(Error, match="dropped"):
        log.append([new(2)])
    assert log.read(1) == expected(1, 1)


def test_a_failed_query_wakes_its_readers(opened: Opened) -> None:
    """The error is there for readers; results before it can be read."""
    log = log_of(create(opened))
    log.append([new(0)])
    error = StorageError("no more")
    seen: list[bool] = []
    waiting = threading.Thread(target=lambda: seen.append(log.wait(1, None)))
    waiting.start()
    log.fail(error)
    waiting.join()
    assert seen == [False]
    assert log.error is error
    assert log.read(0) == expected(0, 0)


def test_rows_of_another_type_are_converted(opened: Opened) -> None:
    """A result is stored in the query's own schema, whatever engine made it."""
    narrow = pa.table({"v": pa.array([1], pa.int32()), "x": [0.5], "_t": [7]})
    log = log_of(create(opened))
    made = log.append([NewResult(7, narrow)])
    assert made[0].rows.schema == SCHEMA
    with pytest.raises(ValueError, match="schema"):
        log.append([NewResult(8, narrow.rename_columns(["w", "x", "_t"]))])


def test_results_of_every_kind_of_column(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nested, long and compressed results come back from the table bit for bit."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 1)
    stamp = pa.timestamp("us", "UTC")
    table = pa.table(
        {
            "l": pa.array([[1, None], None] * 3000, pa.list_(pa.int32())),
            "m": pa.array([[("a", 1.5)], []] * 3000, pa.map_(pa.string(), pa.float64())),
            "_t": pa.array([5] * 6000, stamp),
        }
    )
    log = ResultLog(create(opened), table.schema, keep=lambda: 9, keep_bytes=lambda: MANY)
    few = table.slice(17, 3)
    log.append([NewResult(5, table), NewResult(5, few), NewResult(6, table.slice(0, 0))])
    found = [log.read(p) for p in range(3)]
    assert [f.rows for f in found if f] == [table, few, table.slice(0, 0)]
    data = stored_results.encoded(table)
    assert data is not None
    assert len(data) < table.nbytes


def test_the_definition_is_a_table_of_results() -> None:
    """It survives the catalog."""
    made = definition(7, "q", "q-7")
    assert (made.kind, made.time, made.range_ticks) == ("results", "position", None)
    again = Definition.from_json(7, "q", "results", made.as_json())
    assert again == replace(made, schema=again.schema)
    assert again.schema.equals(made.schema)
