"""The basket against hand-made examples and a model that is a plain list."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine.basket import Basket
from headwater.storage.clock import TICK_MAX, TICK_MIN, Ticks

Row = tuple[int, int, str]  # T, _seq, a value
SCHEMA = pa.schema([("t", pa.timestamp("us")), ("_seq", pa.int64()), ("v", pa.string())])


def as_ticks(column: pa.ChunkedArray | pa.Array) -> Ticks:
    return column.cast(pa.int64()).to_numpy()


def new_basket() -> Basket:
    return Basket("t", as_ticks)


def table(rows: list[Row]) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], []]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def rows_at(*times: int, first: int = 0) -> pa.Table:
    """Rows with these T, numbered from `first`."""
    return table([(t, first + i, f"row {first + i}") for i, t in enumerate(times)])


def listed(rows: pa.Table) -> list[Row]:
    if rows.num_columns == 0:
        return []
    values = rows.column("v").to_pylist()
    times = as_ticks(rows.column("t")).tolist()
    return list(zip(times, rows.column("_seq").to_pylist(), values, strict=True))


def times_of(rows: pa.Table) -> list[int]:
    return [row[0] for row in listed(rows)]


# Reading


def test_rows_go_when_they_are_taken() -> None:
    basket = new_basket()
    basket.append(rows_at(1, 2, 3), 3)
    basket.append(rows_at(3, 5, first=3), 5)
    assert times_of(basket.take_until(3)) == [1, 2, 3, 3]
    assert (basket.row_count, basket.waiting, basket.position, basket.released) == (1, 1, 4, 5)
    assert times_of(basket.take_rows(99)) == [5]
    assert (basket.row_count, basket.bytes) == (0, 0)


def test_questions_move_nobody() -> None:
    """Counts, the T of a coming row, and distinct T."""
    basket = new_basket()
    basket.append(rows_at(1, 1, 2), 2)
    basket.append(rows_at(2, 7, 7, 9, first=3), 8)
    for _ in range(2):
        assert [basket.count_until(t) for t in (0, 1, 2, 6, 7, 99)] == [0, 2, 4, 4, 6, 6]
        assert [basket.last_tick(n) for n in (1, 2, 3, 6, 7)] == [1, 1, 2, 7, None]
        assert basket.distinct_ticks(2).tolist() == [1, 2]
        assert basket.distinct_ticks(100).tolist() == [1, 2, 7]
        assert basket.distinct_ticks(0).tolist() == []
        assert basket.distinct_ticks(0).dtype == np.int64
    assert basket.position == 0


def test_what_is_not_there_is_an_empty_table_with_the_columns() -> None:
    """Before the first append nothing is known of the columns."""
    basket = new_basket()
    assert basket.take_until(5).num_columns == 0
    basket.append(rows_at(7), 6)
    assert basket.take_until(9).schema == SCHEMA
    assert basket.take_rows(9).num_rows == 0


def test_nothing_is_copied_when_rows_come_in_order() -> None:
    """What is taken shares its memory with what was appended."""
    basket, appended = new_basket(), rows_at(1, 2, 3, 4)
    basket.append(appended, 4)
    assert basket.take_until(2).column("v").chunk(0).buffers()[2].address == (
        appended.column("v").chunk(0).buffers()[2].address
    )
    waiting = rows_at(8, 9, first=4)
    basket.append(waiting, 5)
    basket.append(rows_at(9, 10, first=6), 9)
    basket.take_until(5)
    taken = basket.take_until(9)
    assert times_of(taken) == [8, 9, 9]
    assert taken.column("v").num_chunks == 2
    address = waiting.column("v").chunk(0).buffers()[2].address
    assert taken.column("v").chunk(0).buffers()[2].address == address


# Order


def test_rows_are_released_by_time_and_sequence() -> None:
    """The rows of one commit in any order, ties by `_seq`."""
    basket = new_basket()
    basket.append(table([(5, 2, "c"), (3, 1, "b"), (5, 0, "a"), (3, 3, "d")]), 5)
    assert [row[2] for row in listed(basket.take_rows(9))] == ["b", "d", "a", "c"]


def test_rows_beyond_the_clock_wait() -> None:
    """Those of several commits come out together in order."""
    basket = new_basket()
    basket.append(rows_at(10, 20, 30), None)
    basket.append(rows_at(15, 20, 25, first=3), 12)
    assert (basket.released, basket.row_count) == (1, 6)
    basket.release(22)
    basket.release(None)
    basket.release(3)  # the clock does not turn back
    assert listed(basket.take_until(99)) == [
        (10, 0, "row 0"),
        (15, 3, "row 3"),
        (20, 1, "row 1"),
        (20, 4, "row 4"),
    ]
    basket.append(rows_at(), 30)
    assert times_of(basket.take_rows(9)) == [25, 30]


def test_ties_that_come_later_follow() -> None:
    """A row with the T of the clock is not late and is released at once."""
    basket = new_basket()
    basket.append(rows_at(5), 5)
    basket.append(rows_at(5, 6, first=1), 5)
    assert times_of(basket.take_rows(9)) == [5, 5]


def test_late_rows_are_refused() -> None:
    """The clock keeps them away; one that came here would break the order."""
    basket = new_basket()
    basket.append(rows_at(5), 5)
    with pytest.raises(ValueError, match="a row of time 4 comes after 5"):
        basket.append(rows_at(6, 4), 6)


def test_the_ends_of_time() -> None:
    """All int64 are times, and a tick may lie beyond them."""
    basket = new_basket()
    basket.append(rows_at(TICK_MIN, 0, TICK_MAX), TICK_MAX)
    assert basket.count_until(TICK_MIN - 1) == 0
    assert basket.count_until(TICK_MIN) == 1
    assert basket.count_until(TICK_MAX - 1) == 2
    assert basket.take_until(TICK_MAX + 1).num_rows == 3


# Holding


def test_bytes_follow_the_rows() -> None:
    """A piece counts until all of it was taken."""
    basket, rows = new_basket(), rows_at(1, 2, 3)
    basket.append(rows, 3)
    assert basket.bytes == rows.nbytes
    basket.append(rows_at(9, 8, first=3), 3)
    assert rows.nbytes < basket.bytes <= 2 * rows.nbytes
    basket.take_rows(2)
    assert basket.bytes > rows.nbytes
    basket.take_rows(1)
    assert 0 < basket.bytes < rows.nbytes
    basket.release(9)
    basket.take_rows(2)
    assert basket.bytes == 0


def test_rows_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        new_basket().last_tick(0)


# Rows set aside


def in_small_batches(rows: pa.Table) -> pa.Table:
    """Stands for a file: other rows in memory, equal to these."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.schema) as writer:
        writer.write_table(rows.combine_chunks(), max_chunksize=3)
    return pa.ipc.open_stream(buffer.getvalue()).read_all()


def test_rows_set_aside_are_found_as_before_and_count_no_bytes() -> None:
    """Released and waiting ones, in all questions; new rows count again."""
    basket = new_basket()
    basket.append(rows_at(*range(10)), 7)
    basket.take_rows(2)
    basket.set_aside(in_small_batches)
    basket.validate()
    assert (basket.bytes, basket.waiting, basket.row_count) == (0, 6, 8)
    assert (basket.last_tick(3), basket.count_until(6)) == (4, 5)
    basket.append(rows_at(8, 11, first=10), 9)
    assert basket.bytes > 0
    assert times_of(basket.take_until(20)) == [2, 3, 4, 5, 6, 7, 8, 8, 9]
    basket.release(11)
    assert times_of(basket.take_until(20)) == [11]


def test_rows_that_cannot_be_set_aside_stay() -> None:
    """A full disk changes nothing in the basket."""

    def refuse(_rows: pa.Table) -> pa.Table:
        raise OSError("the disk is full")

    basket = new_basket()
    basket.append(rows_at(1, 2, 9), 2)
    held = basket.bytes
    with pytest.raises(OSError, match="full"):
        basket.set_aside(refuse)
    basket.validate()
    assert basket.bytes == held
    basket.release(9)
    assert times_of(basket.take_rows(9)) == [1, 2, 9]


def test_rows_held_in_parts_come_out_in_order() -> None:
    """Parts of one commit may come in any order, with ties of the clock among them."""
    basket = new_basket()
    basket.append(rows_at(5), 5)
    basket.hold(table([(5, 4, "e"), (7, 2, "c")]))
    basket.hold(table([(5, 1, "b"), (6, 3, "d")]))
    assert basket.waiting == 1
    basket.release(7)
    assert [row[:2] for row in listed(basket.take_rows(9))] == [
        (5, 0),
        (5, 1),
        (5, 4),
        (6, 3),
        (7, 2),
    ]


# The model


@dataclass
class ListModel:
    """All rows in a list, each question answered by looking at all of them."""

    rows: list[Row] = field(default_factory=list)  # released ones, forgotten ones too
    waiting: list[Row] = field(default_factory=list)
    place: int = 0
    clock: int | None = None

    def append(self, rows: list[Row], clock: int | None) -> None:
        if clock is not None and (self.clock is None or clock > self.clock):
            self.clock = clock
        every = sorted(self.waiting + rows)
        out = [row for row in every if self.clock is not None and row[0] <= self.clock]
        self.waiting = every[len(out) :]
        self.rows += out

    def until(self, tick: int) -> list[Row]:
        return [row for row in self.rows[self.place :] if row[0] <= tick]


class Twins:
    """The basket and its model, given the same events."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.real, self.model = new_basket(), ListModel()
        self.sequence = 0
        self.disorder = self.rng.choice([0, 0, 3, 30])
        self.now = self.rng.randint(-50, 50)

    def step(self) -> None:
        """One event."""
        kind = self.rng.random()
        if kind < 0.4:
            self.append()
        elif kind < 0.46:
            self.real.set_aside(in_small_batches)
            assert self.real.bytes == 0
        elif kind < 0.5:
            clock = self.rng.choice([None, self.now - self.disorder, self.now])
            self.real.release(clock)
            self.model.append([], clock)
        else:
            self.read()
        self.compare()

    def append(self) -> None:
        """A commit: rows from the clock on, in any order, and a clock that may let some out."""
        self.now += self.rng.choice([0, 0, 1, 5])
        clock = self.model.clock
        least = self.now - self.disorder if clock is None else max(clock, self.now - self.disorder)
        count = self.rng.choice([0, 1, 1, 2, 5, 20])
        times = [self.rng.randint(least, max(least, self.now)) for _ in range(count)]
        if self.rng.random() < 0.6:
            times.sort()
        rows = [(t, self.sequence + i, self.rng.choice("xyz") * i) for i, t in enumerate(times)]
        self.sequence += count
        if self.rng.random() < 0.2:
            self.rng.shuffle(rows)
        after = None if self.rng.random() < 0.1 else self.now - self.disorder
        halves = [table(rows[: count // 2]), table(rows[count // 2 :])]
        if self.rng.random() < 0.2:
            for part in halves:
                self.real.hold(part)
            self.real.release(after)
        else:
            self.real.append(pa.concat_tables(halves), after)
        self.model.append(rows, after)

    def read(self) -> None:
        tick, count = self.now - self.rng.randint(-2, 10), self.rng.choice([0, 1, 2, 7, 100])
        until = self.model.until(tick)
        assert self.real.count_until(tick) == len(until)
        assert self.real.distinct_ticks(tick).tolist() == sorted({row[0] for row in until})
        ahead = self.model.rows[self.model.place :]
        wanted = ahead[count - 1][0] if 0 < count <= len(ahead) else None
        assert self.real.last_tick(max(count, 1)) == (
            wanted if count else (ahead[0][0] if ahead else None)
        )
        if self.rng.random() < 0.5:
            assert listed(self.real.take_until(tick)) == until
            self.model.place += len(until)
        else:
            assert listed(self.real.take_rows(count)) == ahead[:count]
            self.model.place += len(ahead[:count])

    def compare(self) -> None:
        self.real.validate()
        model, real = self.model, self.real
        assert real.released == len(model.rows)
        assert (real.position, real.waiting) == (model.place, len(model.rows) - model.place)
        assert real.row_count == len(model.waiting) + real.waiting
        assert real.bytes == 0 or real.row_count > 0


@pytest.mark.parametrize("seed", range(60))
def test_random_events_go_as_in_the_model(seed: int) -> None:
    """Appends in and out of order, clocks, rows set aside: the same rows each time."""
    twins = Twins(seed)
    for _ in range(120):
        twins.step()


# Speed


def test_rows_in_falling_order_are_merged_into_few_runs() -> None:
    """The worst order: no row follows another."""
    basket = new_basket()
    for number in range(300):
        basket.append(rows_at(1000 - number, first=number), 0)
        basket.validate()
    basket.release(1000)
    assert times_of(basket.take_rows(300)) == list(range(701, 1001))


def test_rows_in_order_cost_microseconds() -> None:
    """An append and a take, while rows that nobody takes yet make the basket long."""
    basket, ahead = new_basket(), 2000
    tables = [
        pa.table({"t": np.arange(i * 10, i * 10 + 10), "_seq": np.arange(i * 10, i * 10 + 10)})
        for i in range(5000)
    ]
    basket._ticks = lambda column: column.to_numpy()
    began = time.thread_time()  # not the time that others have the machine
    for number, rows in enumerate(tables):
        basket.append(rows, number * 10 + 9)
        if number >= ahead:
            assert basket.take_rows(10).num_rows == 10
    took = time.thread_time() - began
    assert took / len(tables) < 0.0005  # measured 0.00002
    assert basket.take_rows(10**9).num_rows == 10 * ahead


def test_rows_out_of_order_are_not_sorted_over_and_over() -> None:
    """Single rows in any order with thousands waiting: the runs stay few."""
    basket, rng = new_basket(), random.Random(1)
    tables = [rows_at(number + rng.randint(0, 3000), first=number) for number in range(6000)]
    began = time.thread_time()  # not the time that others have the machine
    for number, rows in enumerate(tables):
        basket.append(rows, number - 1)
        if number % 500 == 0:
            basket.validate()
    took = time.thread_time() - began
    assert took / len(tables) < 0.002  # measured 0.00008
    basket.release(10**6)
    times = times_of(basket.take_rows(10**6))
    assert len(times) == 6000
    assert times == sorted(times)
