"""Results stored as changes with an image now and then: the log against the results themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine import results, stored_results, subscription
from headwater.engine.emit import emitted, instant_scalar
from headwater.engine.result_changes import BagChanges, find_changes
from headwater.engine.results import NewResult, ResultLog, ResultSet, definition
from headwater.engine.stored_results import RESULT_BYTES, STORED, ResultChanges
from headwater.engine.subscription import Subscription
from headwater.errors import OverloadError, StorageError
from headwater.sql.extensions import Emit
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import Opened
from tests.engine.test_results import process

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("_t", pa.int64())])
MANY = 1 << 40


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with process(tmp_path / "data") as found:
        yield found


def create(opened: Opened, schema: pa.Schema = STORED) -> StreamingTable:
    """The hidden table of a query, under a kind that the store opens again."""
    made = definition(0, "q", "q-1")
    fields = {f: getattr(made, f) for f in Definition.__dataclass_fields__}
    return opened.create(**{**fields, "schema": schema, "kind": "streaming table"})


def log_of(table: StreamingTable | None, keep: int = 10_000, keep_bytes: int = MANY) -> ResultLog:
    return ResultLog(table, SCHEMA, keep=lambda: keep, keep_bytes=lambda: keep_bytes)


@dataclass
class Groups:
    """A result that changes a bit from instant to instant."""

    count: int = 400
    seed: int = 1
    instant: int = 0
    values: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.keys = list(range(self.count))
        self.values = self.random.random(self.count).tolist()

    def change(self) -> None:
        """A row is replaced, added, deleted or moved; sometimes all of them are others."""
        what, place = self.random.integers(0, 12), int(self.random.integers(0, len(self.keys)))
        if what == 0 and len(self.keys) > 1:
            del self.keys[place], self.values[place]
        elif what == 1:
            self.keys.insert(place, int(self.random.integers(0, 50)))
            self.values.insert(place, 0.5)
        elif what == 2:
            self.keys.append(self.keys.pop(place))
            self.values.append(self.values.pop(place))
        elif what == 3:
            self.values = self.random.random(len(self.keys)).tolist()
        elif what > 5:
            self.values[place] = float(self.random.choice([np.nan, -0.0, 0.0, place]))

    def next(self) -> NewResult:
        self.change()
        self.instant += 10
        names = [f"group {key}" if key % 7 else None for key in self.keys]
        columns = [self.keys, self.values, names, [self.instant] * len(self.keys)]
        rows = pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )
        return NewResult(self.instant, rows, None, {"at": self.instant})


def text(rows: pa.Table) -> str:
    """Rows such that equal texts are equal bit for bit, as far as these values go."""
    return repr(rows.to_pylist())


def told(result: ResultSet | None) -> tuple[int, str, dict[str, Any]] | None:
    return None if result is None else (result.instant, text(result.rows), dict(result.note))


def images(table: StreamingTable) -> list[int]:
    """By position: where reading begins."""
    with table.reading() as snapshot:
        rows = stored_results.select(snapshot, stored_results.Wanted(("position", "image"))).rows
    found: list[int] = rows.column("image").to_pylist()
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("crash", [True, False])
def test_every_kept_result_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: bool, seed: int
) -> None:
    """Over restarts, seals and trims: the same rows in the same order, from memory and table."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 3)
    monkeypatch.setattr(stored_results, "MOST_CHANGES", 9)
    groups, given = Groups(seed=seed), list[NewResult]()
    for life in range(4):
        with process(tmp_path / "data", crash) as opened:
            table = opened.table("q") if life else create(opened)
            log = log_of(table, keep=25)
            assert log.next == len(given)
            assert told(log.last()) == (told_of(given[-1]) if given else None)
            for number in range(12):
                step = [groups.next() for _ in range(1 + number % 3)]
                log.append(step)
                given += step
                if number == 6:
                    opened.store.seal(table)
                    opened.store.keep_once()
            assert log.first == max(len(given) - 25, 0)
            for position in range(log.first, log.next):
                assert told(log.read(position)) == told_of(given[position])
            assert [told(r) for r in log.read_from(log.first)] == [
                told_of(r) for r in given[log.first : log.next - 3]
            ]
            with pytest.raises(OverloadError):
                log.read(log.first - 1)
            begins = images(table)
            assert 1 < len(set(begins)) < len(begins)  # some are images, some are not


@pytest.mark.parametrize("crash", [True, False])
def test_changes_of_a_bag_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: bool
) -> None:
    """Results given as changes alone: each is read whole, in one order however it is read."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 5)
    monkeypatch.setattr(results, "LEAST_STEPS", 30)
    monkeypatch.setattr(stored_results, "MOST_CHANGES", 9)
    bag, given = Bag(), list[tuple[int, str]]()
    for life in range(4):
        with process(tmp_path / "data", crash) as opened:
            log = log_of(opened.table("q") if life else create(opened), keep=25)
            for _ in range(20):
                log.append([bag.next()])
                given.append((bag.instant, text(bag.whole())))
                last = log.last()
                assert last is not None
                assert (last.instant, text(last.rows)) == given[-1]
            for position in range(log.first, log.next):
                one = log.read(position)
                assert one is not None
                assert (one.instant, text(one.rows)) == given[position]
            changed = [told for p in range(log.first, log.next) for told in log.read_changes(p)[:1]]
            assert all(isinstance(told, ResultChanges) for told in changed[1:])


class Bag:
    """A bag of rows; what comes stands last, and of equal rows the first one goes."""

    def __init__(self) -> None:
        self.random, self.rows, self.instant = np.random.default_rng(3), list[Any](), 0

    def next(self) -> NewResult:
        """Whole the first time, then changes alone; one in which most changed now and then."""
        first, many = not self.rows, self.random.random() < 0.1
        self.instant += 10
        gone = []
        for _ in range(0 if first else int(self.random.integers(0, 30 if many else 3))):
            if self.rows:
                row = self.rows[int(self.random.integers(0, len(self.rows)))]
                self.rows.remove(row)  # the first that is equal
                gone.append(row)
        count = 300 if first else int(self.random.integers(0, 3)) + (len(gone) if many else 0)
        added = [self.row() for _ in range(count)]
        self.rows += added
        changes = BagChanges(self.table(gone), self.table(added), len(self.rows))
        return NewResult(self.instant, self.whole() if first else None, changes=changes)

    def row(self) -> tuple[int, float, str | None]:
        key = int(self.random.integers(0, 9))
        return key, float(self.random.choice([-0.5, 0.0, 1.5])), f"g{key}" if key % 3 else None

    def whole(self) -> pa.Table:
        return self.table(self.rows)

    def table(self, rows: list[Any]) -> pa.Table:
        columns = [*(zip(*rows, strict=True) if rows else [[]] * 3), [self.instant] * len(rows)]
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        return pa.Table.from_arrays(arrays, schema=SCHEMA)


def test_rows_whose_image_is_gone_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that stays may begin with changes of an image that went: nothing is made of them."""
    monkeypatch.setattr(stored_results, "MOST_CHANGES", 7)
    groups, given = Groups(count=2000), list[NewResult]()
    groups.change = lambda: groups.values.__setitem__(7, float(groups.instant))  # type: ignore[method-assign]
    with process(tmp_path / "data") as opened:
        log = log_of(table := create(opened), keep=8)
        for number in range(60):
            given.append(groups.next())
            log.append(given[-1:])
            if number % 5 == 4:
                opened.store.seal(table)
                opened.store.keep_once()
    with process(tmp_path / "data") as opened:
        table = opened.table("q")
        log = log_of(table, keep=1000)
        kept = range(log.first, log.next)
        assert images(table)[:5] == [42, 42, 42, 42, 49]  # of 45 to 49
        assert kept == range(49, 60)
        assert [told(log.read(p)) for p in kept] == [told_of(given[p]) for p in kept]


def told_of(new: NewResult) -> tuple[int, str, dict[str, Any]]:
    return new.instant, text(new.rows), dict(new.note)


def test_one_changed_row_costs_little(opened: Opened) -> None:
    """PlacedChanges are stored, not results; an image comes when they add up to one."""
    table = create(opened)
    log = log_of(table)
    groups = Groups(count=5000)
    first = groups.next()
    groups.change = lambda: groups.values.__setitem__(2500, float(groups.instant))  # type: ignore[method-assign]
    log.append([first])
    whole = log._total - RESULT_BYTES
    for _ in range(100):
        log.append([groups.next()])
    assert log._total < 4 * whole
    begins = images(table)
    assert set(begins) == {p for p, image in enumerate(begins) if image == p}
    assert 2 <= len(set(begins)) <= 5


def test_reading_costs_twice_the_result_at_most(opened: Opened) -> None:
    """From its image on, no result has more bytes before it than it would have itself, about."""
    table = create(opened)
    log = log_of(table)
    groups = Groups(count=3000)
    for _ in range(120):
        log.append([groups.next()])
    with table.reading() as snapshot:
        names = ("position", "image", "bytes_before", "row_count")
        rows = stored_results.select(snapshot, stored_results.Wanted(names)).rows.to_pylist()
    ends = [row["bytes_before"] for row in rows[1:]] + [log._total]
    assert any(row["image"] < row["position"] for row in rows)
    for row, end in zip(rows, ends, strict=True):
        image = rows[row["image"]]
        size = (ends[row["image"]] - image["bytes_before"]) / image["row_count"]
        read = end - image["bytes_before"]
        if row["image"] < row["position"]:
            assert read <= 2.01 * size * row["row_count"]


def test_a_growing_result_costs_its_size_not_its_square(opened: Opened) -> None:
    """Rows that are added at the end are stored about twice."""
    log = log_of(create(opened))
    groups = Groups(count=1000)
    log.append([groups.next()])

    def grow() -> None:
        start = len(groups.keys)
        groups.keys += range(start, start + 100)
        groups.values += [float(n) for n in range(start, start + 100)]

    groups.change = grow  # type: ignore[method-assign]
    for _ in range(100):
        log.append([groups.next()])
    last = log.last()
    assert last is not None
    assert last.rows.num_rows == 11_000
    assert log._total < 3 * last.rows.nbytes


def test_small_results_are_stored_whole(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not even looked at."""
    table = create(opened)
    log = log_of(table)
    looked: list[int] = []
    monkeypatch.setattr(results, "find_changes", lambda *_: looked.append(1))
    groups = Groups(count=50)
    log.append([groups.next() for _ in range(5)])
    assert (looked, images(table)) == ([], [0, 1, 2, 3, 4])


def test_looks_are_seldom_where_all_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each look in vain twice as many results pass; one that is not brings them back."""
    looks: list[int] = []
    answers: list[Any] = [None] * 7 + ["changes", None, "changes"]
    search = results.ChangeSearch()

    def look(*_: Any) -> Any:
        looks.append(number)
        return answers[len(looks) - 1]

    monkeypatch.setattr(results, "find_changes", look)
    rows = Groups().next().rows
    for number in range(194):  # noqa: B007
        search.find(rows, rows, pa.scalar(1))
    assert looks == [0, 2, 6, 14, 30, 62, 126, 190, 191, 193]


def test_bytes_count_from_the_image(opened: Opened) -> None:
    """The bound of bytes covers what reading the oldest kept result needs; one always stays."""
    table = create(opened)
    groups = Groups(count=2000)
    limit = 100_000
    log = log_of(table, keep_bytes=limit)
    given = list[NewResult]()
    for _ in range(80):
        given.append(groups.next())
        log.append(given[-1:])
        with table.reading() as snapshot:
            wanted = stored_results.Wanted(("position", "image", "bytes_before"))
            rows = stored_results.select(snapshot, wanted).rows.to_pylist()
        before = {row["position"]: row["bytes_before"] for row in rows}
        image = next(row["image"] for row in rows if row["position"] == log.first)
        assert log._total - before[image] <= limit or log.first == log.next - 1
        assert told(log.read(log.first)) == told_of(given[log.first])
    assert log.first > 0


@pytest.mark.parametrize("durable", [0, 1, 2])
def test_after_a_failed_insert_changes_are_of_what_is_there(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, durable: int
) -> None:
    """PlacedChanges are against the result that the table has, not the one that was meant to be there."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 1)
    table = create(opened)
    log = log_of(table)
    groups = Groups(seed=9)

    def replace_one() -> None:
        groups.values[groups.instant] = -1.0

    groups.change = replace_one  # type: ignore[method-assign]
    given = [groups.next() for _ in range(4)]
    log.append(given[:1])
    insert = table.insert

    def failing(rows: pa.Table, *more: Any) -> int:
        if durable:
            insert(rows.slice(0, durable), *more)
        raise StorageError("the disk is full", sqlstate="53100")

    monkeypatch.setattr(table, "insert", failing)
    with pytest.raises(StorageError):
        log.append(given[1:3])
    monkeypatch.setattr(table, "insert", insert)
    time = instant_scalar(pa.int64(), given[3].instant)
    wrong = find_changes(given[2].rows, given[3].rows, time)
    assert wrong is not None
    log.append([NewResult(given[3].instant, given[3].rows, None, given[3].note, wrong)])
    expected = [*given[: 1 + durable], given[3]]
    assert [told(log.read(p)) for p in range(log.next)] == [told_of(r) for r in expected]


def test_changes_that_the_query_knows_are_taken(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not looked for again; of another schema they are."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 1)
    log = log_of(create(opened))
    first, second = (groups := Groups(seed=2)).next(), groups.next()
    known = find_changes(first.rows, second.rows, instant_scalar(pa.int64(), second.instant))
    assert known is not None
    monkeypatch.setattr(results, "find_changes", None)
    log.append([first, NewResult(second.instant, second.rows, None, second.note, known)])
    found = log.read_changes(1)[0]
    assert isinstance(found, ResultChanges)
    assert found.changes is known
    assert told(log.last()) == told_of(second)


def test_results_of_an_earlier_version(tmp_path: Path) -> None:
    """A table that has no changes goes on with whole results, over a restart."""
    names = STORED.names[:7]
    groups, given = Groups(), list[NewResult]()
    for life in range(2):
        with process(tmp_path / "data") as opened:
            old = pa.schema([STORED.field(name) for name in names])
            log = log_of(opened.table("q") if life else create(opened, old), keep=8)
            given += (step := [groups.next() for _ in range(6)])
            log.append(step)
            kept = range(log.first, log.next)
            assert kept == range(max(len(given) - 8, 0), len(given))
            assert [told(log.read(p)) for p in kept] == [told_of(given[p]) for p in kept]
            assert all(isinstance(log.read_changes(p)[0], ResultSet) for p in kept)


def open_reader(log: ResultLog, emit: Emit, start: int) -> Subscription:
    return Subscription(
        log,
        emit=emit,
        start=start,
        time_of=lambda tick: tick,
        token_of=lambda result: str(result.position),
        timeout=0.0,
    )


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("emit", ["all", "inserts", "deletes", "changes"])
def test_readers_of_changes_get_what_the_results_say(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, emit: Emit, in_memory: bool
) -> None:
    """From anywhere, as a bag, what comparing whole results gives."""
    if not in_memory:
        monkeypatch.setattr(results, "RECENT_RESULTS", 1)
        monkeypatch.setattr(stored_results, "AHEAD_BYTES", 20_000)
    log = log_of(create(opened))
    groups = Groups(seed=3)
    given = [groups.next() for _ in range(40)]
    for at in range(0, 40, 4):
        log.append(given[at : at + 4])
    for start in (0, 1, 17):
        with open_reader(log, emit, start) as reader:
            found = list(reader)
        assert [out.token for out in found] == [str(p) for p in range(start, 40)]
        for position, out in enumerate(found, start):
            previous = given[position - 1].rows if position else None
            now = instant_scalar(pa.int64(), given[position].instant)
            expected = emitted(emit, previous, given[position].rows, now)
            assert sorted(map(str, out.table.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_readers_of_changes_look_at_changes_alone(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where changes are stored no reader compares, or even reads, whole results."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 1)
    log = log_of(create(opened))
    groups = Groups(count=3000, seed=4)
    log.append([groups.next()])
    groups.change = lambda: groups.values.__setitem__(7, float(groups.instant))  # type: ignore[method-assign]
    for _ in range(60):
        log.append([groups.next()])
    compared: list[int] = []

    def counted(emit: Emit, before: pa.Table, after: pa.Table, instant: pa.Scalar) -> pa.Table:
        compared.append(before.num_rows + after.num_rows)
        return emitted(emit, before, after, instant)

    monkeypatch.setattr(subscription, "emitted", counted)
    with open_reader(log, "changes", 1) as reader:
        monkeypatch.setattr(stored_results, "decode_rows", None)
        found = list(reader)
    assert compared == [2] * 60
    assert [out.table.num_rows for out in found] == [2] * 60
