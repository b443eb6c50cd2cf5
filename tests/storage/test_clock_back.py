"""The clock: rows too far ahead, and a clock set back."""

from __future__ import annotations

from headwater.storage.clock import TableClock
from tests.storage.test_clock import at, insert, ticks, with_sources


def test_rows_beyond_the_limit_move_no_mark_and_wait() -> None:
    clock = TableClock(watermark=5)
    found = clock.rows(ticks(10, 20, 900), "", 100)
    assert (found.seen, found.clock) == (20, 10)
    assert clock.waiting_count == 2
    found = clock.rows(ticks(800), "", 100)
    assert (found.seen, found.clock) == (20, 10)
    clock.validate()
    insert(clock, 26)
    assert at(clock) == (20, 19)
    clock.advance(1000)
    assert clock.waiting_count == 0


def test_a_clock_set_back_lets_rows_wait_again_and_holds_every_source() -> None:
    clock = with_sources("a", "b", watermark=2)
    insert(clock, 10, 4000, source="a")
    insert(clock, 12, 5000, source="b")
    clock.advance(4500)
    made, found = clock.back(12, ticks(4000, 5000))
    assert (found.clock, found.closed) == (12, 11)
    assert at(clock) == (4500, 4500)  # the other one is as it was
    assert made.waiting_count == 2
    assert {mark.seen for name, mark in made.marks.items() if name} == {12}
    assert made.state() == clock.state().back(12)
    made.validate()
    assert insert(made, 11, 12, 20, source="a").late_count == 1
    insert(made, 22, source="b")
    assert at(made) == (12, 11)
    insert(made, 30, source="a")
    assert at(made) == (20, 19)
