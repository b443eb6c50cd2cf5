"""What waits between an iterator and the table: bounded in rows, in order, ended at any moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from headwater.errors import DataError
from headwater.sources.pulled import _Puller
from headwater.sources.runner import SourceFeed
from tests.harness.patience import PATIENCE_S

BATCH_ROWS = 50


def puller(rows: Iterator[Any]) -> _Puller:
    """One over an iterator; of a feed it needs the name and one option."""
    feed = SimpleNamespace(name="s", options=SimpleNamespace(batch_rows=BATCH_ROWS))
    return _Puller(rows, cast(SourceFeed, feed))


def table(first: int, count: int) -> pa.Table:
    return pa.table({"n": list(range(first, first + count))})


def take_all(made: _Puller, found: list[Any]) -> None:
    """The single values of all rows, until the end or the error."""
    while (part := made.take(BATCH_ROWS)) is not None:
        rows = part.to_pylist() if isinstance(part, pa.Table) else part
        found += [next(iter(row.values())) if isinstance(row, dict) else row[0] for row in rows]


def test_tables_count_by_their_rows() -> None:
    """No more than two batches wait, however few tables that is; a larger one waits alone."""
    given: list[int] = []
    second, third = threading.Event(), threading.Event()

    def rows() -> Iterator[pa.Table]:
        for number in range(10):
            given.append(number)
            if number == 2:
                second.set()
            if number == 3:
                third.set()
            yield table(40 * number, 40)
        yield table(400, 1000)

    made = puller(rows())
    assert second.wait(PATIENCE_S)
    assert not third.wait(0.1)  # two wait, the third has no room
    assert given == [0, 1, 2]
    found: list[int] = []
    sizes = []
    while (part := made.take(BATCH_ROWS)) is not None:
        if len(part):
            assert isinstance(part, pa.Table)
            found += part.column("n").to_pylist()
            sizes.append(len(part))
    made.stop()
    assert found == list(range(1400))
    assert max(sizes[:-1]) <= 2 * BATCH_ROWS
    assert sizes[-1] >= 1000


def test_rows_and_tables_of_different_shapes_come_in_order() -> None:
    """Each is inserted with its like; an error comes after what was before it."""

    def rows() -> Iterator[Any]:
        yield (1,)
        yield (2,)
        yield table(3, 2)
        yield pa.record_batch({"n": [5]})
        yield pa.table({"m": [6]})
        yield (7,)
        raise ValueError("no more")

    made = puller(rows())
    found: list[Any] = []
    with pytest.raises(DataError, match="ValueError: no more"):
        take_all(made, found)
    made.stop()
    assert found == [1, 2, 3, 4, 5, 6, 7]


def test_stopping_wakes_a_thread_that_waits_for_room() -> None:
    """And the iterator is closed."""
    closed = threading.Event()

    def rows() -> Iterator[pa.Table]:
        try:
            while True:
                yield table(0, 2 * BATCH_ROWS)
        finally:
            closed.set()

    made = puller(rows())
    made.stop()
    assert closed.wait(PATIENCE_S)
    made._thread.join(PATIENCE_S)
    assert not made._thread.is_alive()
