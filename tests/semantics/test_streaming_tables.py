"""Random histories of streaming tables against a model in plain Python (tests/semantics/streaming_model.py).

Inserts in and out of order, rows from the far future, retries, advances, clocks set back, seals,
compactions, expiries, index builds, changes, ALTER SET RANGE, clean and unclean restarts; after each
step clocks, late counts, scans and windows of every table equal the model.
A failure names its seed: `check(seed, steps)` repeats it.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.errors import DataError
from headwater.expression.predicate import And, Comparison, IsNull, Not, Or, Predicate
from headwater.sql.duration import Duration
from headwater.sql.extensions import WindowClause
from headwater.sql.text import Name, Span
from headwater.storage.streaming import indexes
from headwater.storage.streaming.definition import DAY
from headwater.storage.streaming.read import StreamSnapshot, Wanted, select
from headwater.storage.streaming.set_clock import set_clock
from headwater.storage.streaming.stored import read_block
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.streaming.windows import window_rows
from tests.crash.stream_store import Opened
from tests.semantics.streaming_model import Model, Row, both, compared, either, negated

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPAN = Span(0, 0)
TIMES: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
}
VALUES = {"k": pa.int32(), "s": pa.string(), "f": pa.float64()}
FLOATS = (None, math.nan, 0.0, -0.0, 1.5, -2.0, math.inf, -math.inf)


def value_of(kind: str, tick: int) -> Any:
    """A tick as a value of the column."""
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=tick // DAY)
    if kind.startswith("timestamp"):
        at = EPOCH + timedelta(microseconds=tick)
        return at if kind == "timestamp" else at.replace(tzinfo=None)
    return tick


class Subject:
    """One table with its model."""

    def __init__(self, random: Random, opened: Opened, number: int) -> None:
        self.random = random
        self.name = f"t{number}"
        self.kind = random.choice(list(TIMES))
        self.unit = {"date": DAY, "timestamp": random.choice((1, 1_000_000))}.get(self.kind, 1)
        # Ticks that a duration in SQL can say: whole seconds for integers.
        self.microseconds = 1 if self.kind in ("date", "timestamp", "timestamp_ntz") else 1_000_000
        self.model = Model(
            watermark=random.choice((0, 0, 3, 20)) * self.unit,
            late=random.choice(("keep", "keep", "drop", "reject")),
            range=random.choice((None, None, 10 * self.unit, 60 * self.unit + self.unit // 2)),
        )
        time_type = TIMES[self.kind]
        fields = [pa.field("t", time_type), pa.field("id", pa.int64())]
        fields += [pa.field(name, type_) for name, type_ in VALUES.items()]
        opened.create(
            self.name,
            pa.schema(fields),
            watermark_ticks=self.model.watermark,
            late=self.model.late,
            range_ticks=self.model.range,
            compartments=random.choice((1, 3, 8)),
        )
        self.now = random.choice((0, -50, 1000)) * self.unit
        self.next_id = 0
        self.batches: list[tuple[str, list[tuple[int, dict[str, Any]]]]] = []

    def row(self) -> tuple[int, dict[str, Any]]:
        random = self.random
        if random.random() < 0.5:
            self.now += random.choice((0, 0, 1, 2, 5)) * self.unit
            t = self.now
        else:
            t = self.now + random.choice((-80, -20, -5, -2, -1, 0, 0, 1, 4)) * self.unit
        self.next_id += 1
        values = {
            "id": self.next_id,
            "k": random.choice((None, 1, 2, 3, 4, 5, 6, 7, 8, 9)),
            "s": random.choice((None, "", "a", "b", "ü€", "zz" * 20)),
            "f": random.choice(FLOATS),
        }
        return t, values

    def arrow(self, rows: list[tuple[int, dict[str, Any]]]) -> pa.Table:
        columns: dict[str, Any] = {
            "t": pa.array([value_of(self.kind, t) for t, _ in rows], TIMES[self.kind]),
            "id": pa.array([v["id"] for _, v in rows], pa.int64()),
        }
        for name, type_ in VALUES.items():
            columns[name] = pa.array([v[name] for _, v in rows], type_, from_pandas=False)
        table = pa.table(columns)
        if len(rows) > 2 and self.random.random() < 0.3:  # several chunks
            cut = self.random.randrange(1, len(rows))
            table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
        return table


class History:
    """A random history of a folder."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.folder = folder
        self.kept_s = self.random.choice((0, 600))
        self.opened = self._open()
        self.subjects = [Subject(self.random, self.opened, n) for n in range(2)]
        self._tune()
        self.steps: list[str] = []
        self.indexes = 0
        self.choices: list[tuple[int, Callable[[], None]]] = [
            (40, self.insert),
            (4, self.retry),
            (6, self.advance),
            (2, self.leap),
            (3, self.set_clock),
            (9, self.seal),
            (5, self.compact),
            (3, self.expire),
            (4, self.build_indexes),
            (3, self.create_index),
            (3, self.delete),
            (3, self.update),
            (2, self.alter_range),
            (3, self.restart),
            (3, self.crash),
            (1, self.read_as_delta),
        ]

    def _open(self) -> Opened:
        return Opened(self.folder, removed_files_kept_s=self.kept_s)

    def _tune(self) -> None:
        """Small blocks, and memory for all, some or none of them."""
        for table in self.opened.store.all():
            table.bounds = partial(
                replace,
                table.limits,
                block_rows=self.random.choice((3, 10, 40)),
                compact_files=self.random.choice((2, 3)),
                recent_bytes=self.random.choice((0, 2000, 1 << 20)),
            )

    def run(self, steps: int) -> None:
        weights = [weight for weight, _ in self.choices]
        actions = [action for _, action in self.choices]
        for _ in range(steps):
            action = self.random.choices(actions, weights)[0]
            self.steps.append(action.__name__)
            action()
            self.check()

    def pick(self) -> tuple[Subject, StreamingTable]:
        subject = self.random.choice(self.subjects)
        return subject, self.opened.table(subject.name)

    # Steps

    def insert(self) -> None:
        subject, table = self.pick()
        rows = [subject.row() for _ in range(self.random.choice((0, 1, 1, 2, 5, 12)))]
        batch_id = None
        if self.random.random() < 0.4:
            batch_id = f"{subject.name}-{subject.next_id}-{len(subject.batches)}"
            subject.batches.append((batch_id, rows))
        self._insert(subject, table, rows, batch_id)

    def _insert(self, subject: Subject, table: StreamingTable, rows: Any, batch_id: Any) -> None:
        expected = subject.model.insert(rows, batch_id)
        try:
            added: Any = table.insert(subject.arrow(rows), batch_id)
        except DataError as error:
            added = "refused" if error.sqlstate == "22023" else error
        assert added == expected

    def retry(self) -> None:
        subject, table = self.pick()
        if subject.batches:
            batch_id, rows = self.random.choice(subject.batches)
            self._insert(subject, table, rows, batch_id)

    def advance(self) -> None:
        subject, table = self.pick()
        tick = subject.now + self.random.choice((-3, -1, 0, 1, 3, 9)) * subject.unit
        subject.model.advance(tick)
        table.advance(value_of(subject.kind, tick))

    def leap(self) -> None:
        """One row from the far future."""
        subject, table = self.pick()
        _, values = subject.row()
        far = subject.now + self.random.choice((300, 3000)) * subject.unit
        if subject.kind != "smallint":
            self._insert(subject, table, [(far, values)], None)

    def set_clock(self) -> None:
        """ALTER TABLE … SET CLOCK TO …: nothing that RANGE hid is gone, if files are kept."""
        subject, table = self.pick()
        model = subject.model
        tick = subject.now + self.random.choice((-90, -20, -3, -1, 0, 0, 0, 2)) * subject.unit
        if not model.set_clock(tick):
            with pytest.raises(DataError, match="cannot be set back"):
                set_clock(table, tick)
            return
        set_clock(table, tick)
        gone = self._gone(subject)
        assert not gone or not self.kept_s, "a row is gone that only a clock had hidden"
        model.remove(gone)
        model.wait_again()
        subject.now = tick

    def _gone(self, subject: Subject) -> list[Row]:
        """Rows that are in range and have been dropped, since they were not once."""
        with self.opened.table(subject.name).reading() as snapshot:
            found = set(select(snapshot, Wanted(("id",))).rows.column("id").to_pylist())
        shown = subject.model.visible()
        return [r for r in shown if r.was_hidden and r.values["id"] not in found]

    def seal(self) -> None:
        if self.random.random() < 0.3:
            self.opened.store.seal_all()
        else:
            self.opened.store.seal(self.pick()[1])

    def compact(self) -> None:
        _, table = self.pick()
        while table.compact() and self.random.random() < 0.5:
            pass

    def expire(self) -> None:
        self.pick()[1].expire()

    def build_indexes(self) -> None:
        self.pick()[1].build_indexes(self.random.randrange(1, 6))

    def create_index(self) -> None:
        _, table = self.pick()
        if self.indexes < 5:
            self.indexes += 1
            column = self.random.choice(("k", "s", "f", "t"))
            method = self.random.choice(("btree", "hash"))
            self.opened.create_index(f"i{self.indexes}", table, column, method)

    def delete(self) -> None:
        self._change(lambda _: None)

    def update(self) -> None:
        self._change(lambda values: {**values, "k": 77, "s": None})

    def _change(self, changed: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        """As UPDATE and DELETE do it: seal, then rewrite the blocks that hold such rows."""
        subject, table = self.pick()
        model = subject.model
        key = self.random.choice((1, 2, 3))
        with table.upkeep:
            self.opened.store.seal(table)
            with table.reading() as snapshot:
                held = {b.path: (b, read_block(snapshot, b)) for b in snapshot.blocks}
            # Rows that wait for the watermark stay: see the decision about them in GUARANTEES.
            touched = []
            kept = []
            for block, rows in held.values():
                t = table.definition.ticks(rows.column("t"))
                hit = [
                    k == key and model.clock is not None and int(tick) <= model.clock
                    for k, tick in zip(rows.column("k").to_pylist(), t, strict=True)
                ]
                if not any(hit):
                    continue
                touched.append(block)
                for row, is_hit in zip(rows.to_pylist(), hit, strict=True):
                    new = changed(row) if is_hit else row
                    if new is not None:
                        kept.append(new)
            if touched:
                schema = table.definition.stored_schema
                rows = pa.Table.from_pylist(kept, schema) if kept else None
                table.replace(touched, rows)
        gone = []
        for row in model.rows:
            if row.values["k"] == key and model.clock is not None and row.t <= model.clock:
                new = changed(row.values)
                if new is None:
                    gone.append(row)
                else:
                    row.values = new
        model.remove(gone)

    def alter_range(self) -> None:
        subject, table = self.pick()
        model = subject.model
        ticks = self.random.choice((None, 7, 10, 60, 61, 200))
        ticks = None if ticks is None else ticks * subject.unit
        if self.random.random() < 0.3:  # the process dies before the blocks are moved
            self.opened.set_range(table, ticks, whole=False)
            self.crash()
        else:
            self.opened.set_range(table, ticks)
        model.set_range(ticks)
        # Rows that RANGE had hidden may be back or gone for good.
        model.remove(self._gone(subject))

    def restart(self) -> None:
        self.opened.close()
        self.opened = self._open()
        self._tune()

    def crash(self) -> None:
        self.opened.drop()
        self.opened = self._open()
        self._tune()

    def read_as_delta(self) -> None:
        """Any Delta reader sees the sealed rows; blocks that RANGE hides may still be there."""
        subject, table = self.pick()
        with table.upkeep:  # removed_files_kept_s may be 0: no file may go meanwhile
            self.opened.store.seal(table)
            found = DeltaTable(table.folder).to_pyarrow_table(columns=["id", "_seq"])
        numbers = found.column("id").to_pylist()
        assert len(set(numbers)) == len(numbers), "a row is in two blocks"
        visible = {row.values["id"] for row in subject.model.visible()}
        assert visible <= set(numbers) <= {row.values["id"] for row in subject.model.rows}

    # Checks

    def check(self) -> None:
        for subject in self.subjects:
            table = self.opened.table(subject.name)
            state = table.state
            model = subject.model
            assert state.time.clock == model.clock, "the clock"
            assert state.time.closed == model.closed, "the closed mark"
            assert state.late_total == model.late_total, "late rows"
            table._clock.validate()
            with table.reading() as snapshot:
                self._check_all(subject, snapshot)
                for _ in range(3):
                    self._check_scan(subject, snapshot)
                self._check_window(subject, snapshot)

    def _check_all(self, subject: Subject, snapshot: StreamSnapshot) -> None:
        """Every row with every value, and its lateness."""
        rows = select(snapshot, Wanted(("t", "id", "k", "s", "f", "_late"))).rows.to_pylist()
        visible = subject.model.visible()
        assert [r["id"] for r in rows] == [r.values["id"] for r in visible], "the rows"
        for found, row in zip(rows, visible, strict=True):
            assert found["t"] == value_of(subject.kind, row.t)
            assert found["_late"] == row.late
            assert repr([found[n] for n in VALUES]) == repr([row.values[n] for n in VALUES])

    def _check_scan(self, subject: Subject, snapshot: StreamSnapshot) -> None:
        random = self.random
        predicate, test = self._predicate(subject, 2) if random.random() < 0.8 else (None, _all)
        low, high = (
            None
            if random.random() < 0.6
            else subject.now + random.randrange(-60, 10) * subject.unit + random.choice((0, 1, -1))
            for _ in range(2)
        )
        limit = random.choice((None, None, 0, 1, 2, 7, 1000))
        descending = random.random() < 0.5
        wanted = Wanted(("id",), predicate, low, high, descending, limit)
        found = select(snapshot, wanted).rows.column("id").to_pylist()
        expected = subject.model.scan(test, low, high, descending, limit)
        assert found == [row.values["id"] for row in expected], f"scan {wanted}"

    def _predicate(
        self, subject: Subject, depth: int
    ) -> tuple[Predicate, Callable[[Row], bool | None]]:
        random = self.random
        kind = random.random()
        if depth and kind < 0.5:
            parts = [self._predicate(subject, depth - 1) for _ in range(random.randrange(1, 4))]
            predicates = tuple(p for p, _ in parts)
            tests = [t for _, t in parts]
            if kind < 0.25:
                return And(predicates), lambda row: both(t(row) for t in tests)
            return Or(predicates), lambda row: either(t(row) for t in tests)
        if depth and kind < 0.6:
            part, test = self._predicate(subject, depth - 1)
            return Not(part), lambda row: negated(test(row))
        return self._comparison(subject)

    def _comparison(self, subject: Subject) -> tuple[Predicate, Callable[[Row], bool | None]]:
        random = self.random
        column = random.choice(("t", "k", "k", "s", "f"))
        if column != "t" and random.random() < 0.15:
            return IsNull(column), lambda row: row.values[column] is None
        op = random.choice(("=", "=", "!=", "<", "<=", ">", ">="))
        if column == "t":
            tick = subject.now + random.randrange(-30, 5) * subject.unit
            value = value_of(subject.kind, tick)
            return (
                Comparison("t", op, value, TIMES[subject.kind]),
                lambda row: compared(op, row.t, tick),
            )
        value = {
            "k": random.choice((1, 2, 3, 5, 77, 100)),
            "s": random.choice(("", "a", "b", "ü€", "nothing")),
            "f": random.choice((0.0, -0.0, 1.5, -2.0, 7.0)),
        }[column]
        return (
            Comparison(column, op, value, VALUES[column]),
            lambda row: compared(op, row.values[column], value),
        )

    def _check_window(self, subject: Subject, snapshot: StreamSnapshot) -> None:
        model, random = subject.model, self.random
        at = model.clock
        if at is not None and random.random() < 0.3:  # the clock of another table may be smaller
            at -= random.choice((1, 2, 10)) * subject.unit
        size = random.choice((0, 1, 3, 10, 59))
        windows = [
            (
                WindowClause(
                    "interval",
                    SPAN,
                    duration=Duration(size * subject.unit * subject.microseconds),
                    before=before,
                ),
                model.interval(at, size * subject.unit, before),
            )
            for before in (False, True)
        ]
        count = random.choice((1, 2, 3, 50))
        windows.append((WindowClause("rows", SPAN, rows=count), model.last(at, count, None)))
        keys = random.choice((("k",), ("S",), ("k", "s")))
        names = tuple(Name(key, SPAN) for key in keys)
        windows.append(
            (
                WindowClause("rows", SPAN, rows=count, keys=names),
                model.last(at, count, lambda row: tuple(row.values[k.lower()] for k in keys)),
            )
        )
        for window, expected in windows:
            found = window_rows(snapshot, window, at, ["id"]).column("id").to_pylist()
            assert found == [row.values["id"] for row in expected], f"{window} at {at}"


def _all(_row: Row) -> bool:
    return True


def check(seed: int, steps: int) -> None:
    """One history; a failure says which one and where."""
    # Small blocks: without this no index would be selective enough to be used.
    selective = patch.object(indexes, "SELECTIVE", 8 if seed % 4 == 3 else 1)
    with tempfile.TemporaryDirectory() as folder, selective:
        history = History(seed, Path(folder) / "data")
        try:
            history.run(steps)
        except BaseException as error:
            error.add_note(f"check(seed={seed}, steps={steps}), at step {len(history.steps)}:")
            error.add_note(" ".join(history.steps[-12:]))
            error.add_note(str([(s.name, s.kind, s.unit) for s in history.subjects]))
            raise
        finally:
            history.opened.drop()


@pytest.mark.parametrize("seed", range(3))
def test_histories_equal_the_model(seed: int) -> None:
    check(seed, 60)


@pytest.mark.large
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_histories_equal_the_model_many(seed: int) -> None:
    for number in range(25):
        check(seed * 100 + number, 120)


ROWS = st.lists(st.lists(st.integers(-6, 6), max_size=4), max_size=8)


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    batches=ROWS,
    watermark=st.sampled_from((0, 2)),
    range_=st.sampled_from((None, 3)),
    late=st.sampled_from(("keep", "drop", "reject")),
    seals=st.sets(st.integers(0, 7)),
    restart=st.integers(0, 8),
)
def test_small_histories(
    batches: list[list[int]],
    watermark: int,
    range_: int | None,
    late: str,
    seals: set[int],
    restart: int,
) -> None:
    """Short histories over few ticks, which hypothesis makes smaller when one fails."""
    with tempfile.TemporaryDirectory() as folder:
        opened = Opened(Path(folder) / "data")
        model = Model(watermark, late, range_)
        table = opened.create("a", watermark_ticks=watermark, late=late, range_ticks=range_)
        number = 0
        for step, times in enumerate(batches):
            rows = [(t, {"id": number + place}) for place, t in enumerate(times)]
            number += len(rows)
            expected = model.insert(rows)
            try:
                added: Any = table.insert([{"t": t, **values} for t, values in rows])
            except DataError:
                added = "refused"
            assert added == expected
            if step in seals:
                opened.store.seal(table)
                table.expire()
            if step == restart:
                opened.drop()
                opened = Opened(Path(folder) / "data")
                table = opened.table("a")
            with table.reading() as snapshot:
                found = select(snapshot, Wanted(("id", "_late"))).rows
            assert found.column("id").to_pylist() == [r.values["id"] for r in model.visible()]
            assert found.column("_late").to_pylist() == [r.late for r in model.visible()]
            state = table.state
            assert (state.time.clock, state.time.closed) == (model.clock, model.closed)
            assert state.late_total == model.late_total
        opened.drop()


def test_arrival_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T is given out in commit order, never runs back, and is kept over both kinds of restart."""
    folder = tmp_path / "data"
    opened = Opened(folder)
    table = opened.create("a", pa.schema([("id", pa.int64())]), time_column=None)
    random = Random(5)
    number = 0
    known: list[tuple[datetime, int]] = []
    shift = 0
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + shift)
    for step in range(60):
        before = real() + shift
        rows = [{"id": number + place} for place in range(random.randrange(1, 4))]
        table.insert(rows)
        with table.reading() as snapshot:
            found = select(snapshot, Wanted(("_t", "id", "_late"))).rows
            clock = snapshot.clock
        pairs = list(
            zip(found.column("_t").to_pylist(), found.column("id").to_pylist(), strict=True)
        )
        assert pairs[: len(known)] == known, "stored rows have changed"
        assert [i for _, i in pairs] == list(range(number + len(rows)))
        times = [t for t, _ in pairs]
        assert times == sorted(times), "time ran backwards"
        assert len(set(times[number:])) == 1, "one insert, one time"
        assert times[-1] >= EPOCH + timedelta(microseconds=before // 1000)
        assert clock is not None
        assert EPOCH + timedelta(microseconds=clock) >= times[-1]
        assert not any(found.column("_late").to_pylist())
        number += len(rows)
        known = pairs
        if step % 10 == 3:
            opened.store.seal(table)
        if step % 10 == 6:
            table.compact()
        if step % 12 == 8:
            opened.close() if step % 24 == 8 else opened.drop()
            opened = Opened(folder)
            table = opened.table("a")
        if step == 40:
            shift = -3_600_000_000_000  # the wall clock is set back: T stands still
        if shift:
            assert table.insert([{"id": number}]) == 1
            number += 1
            with table.reading() as snapshot:
                found = select(snapshot, Wanted(("_t", "id"))).rows
            known = list(
                zip(found.column("_t").to_pylist(), found.column("id").to_pylist(), strict=True)
            )
            assert len({t for t, _ in known[-2:]}) <= 2
            assert known[-1][0] >= known[-2][0]
    opened.drop()
