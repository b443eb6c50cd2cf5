"""An update queue behind another: results are enqueued by key as they are delivered (US9).

Rows go through an inner query that passes them on, or counts them in windows, to an outer one that does the
same. What the inner one promises (no later result is older) is what closes the outer one's windows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.update_queue import Choice, UpdateQueue, WindowQueue
from headwater.engine.update_spec import WindowShape

SCHEMA = pa.schema([("key", pa.int64()), ("t", pa.int64())])
EXAMPLES = 120  # of each pair
Rows = list[tuple[int, int]]  # key, T


@dataclass
class Stage:
    """One query of the chain: its queue, what came, and what it gave, in order."""

    policy: str
    shape: WindowShape | None
    came: Rows = field(default_factory=list)
    gave: Rows = field(default_factory=list)
    closed: int = -1
    open: dict[int, list[int]] = field(default_factory=dict)  # T of what came of a key's window
    whole: list[tuple[int, int, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        choice = Choice(self.policy, random=np.random.default_rng(7))
        self.queue: UpdateQueue | WindowQueue
        if self.shape is None:
            self.queue = UpdateQueue(SCHEMA, ["key"], choice)
        else:
            spec, kind = self.shape.spec(None), self.shape.kind
            self.queue = WindowQueue(SCHEMA, ["key"], spec, kind, choice)

    def take(self, rows: Rows, closed: int, now: int) -> None:
        """Rows have come, and the clock of where they are from has gone on."""
        for _, t in rows:
            assert t > self.closed, "a row is older than was promised"
        self.came += rows
        self.closed = closed
        table = pa.table([[k for k, _ in rows], [t for _, t in rows]], schema=SCHEMA)
        if isinstance(self.queue, UpdateQueue):
            self.queue.enqueue(table, now)
        else:
            self.queue.enqueue(table, np.array([t for _, t in rows], np.int64), now)
            self.queue.advance(closed, now)
        self.queue.validate()

    def serve(self, count: int, now: int) -> tuple[Rows, int]:
        """The next results, and up to where the query has given all that it ever will."""
        given: Rows = []
        if isinstance(self.queue, UpdateQueue):
            if not self.queue.waiting_count:
                return [], self.promise(None)
            batch = self.queue.dequeue(count, now)
            given = list(zip(*(batch.rows[n].to_pylist() for n in ("key", "t")), strict=True))
            promise = self.promise(self.queue.oldest_waiting_seq)
            self.queue.deliver(batch, now)
        else:
            windows = self.queue.dequeue(count, now)
            assert self.shape is not None
            keys = self.queue.keys(windows.slots)[0].to_pylist()
            ends = np.cumsum(windows.row_counts)
            for number, (key, start) in enumerate(zip(keys, windows.starts.tolist(), strict=True)):
                begin = ends[number] - windows.row_counts[number]
                self.open.setdefault(key, []).extend(windows.stamps[begin : ends[number]].tolist())
                if windows.complete[number]:
                    self.whole.append((key, start, self.open.pop(key)))
                    given.append((key, start + self.shape.reach))
            instants = [self.shape.next_instant(self.closed)]
            oldest = self.queue.oldest_undelivered(windows)
            promise = min(instants + ([] if oldest is None else [oldest + self.shape.reach])) - 1
            self.queue.deliver(windows, now)
        self.queue.validate()
        self.gave += given
        return sorted(given, key=lambda row: row[1]), promise  # as a commit is stored

    def promise(self, oldest: int | None) -> int:
        """As `UpdateSource.oldest_to_come`, with each row a piece of its own."""
        waiting = [] if oldest is None else [t for _, t in self.came[oldest:]]
        return min([self.closed + 1, *waiting]) - 1

    def expected(self) -> dict[int, int]:
        """Of each key T of the last result, once all is served and time has come to an end."""
        found: dict[int, int] = {}
        for key, t in self.came:
            newest = t if self.shape is None else _last_instant(self.shape, t)
            if newest is not None:
                found[key] = max(newest, found.get(key, newest))
        return found


def _last_instant(shape: WindowShape, t: int) -> int | None:
    """The instant of the last window that holds a row; None if it lies between windows."""
    spec = shape.spec(None)
    start = spec.started(t)
    return start + shape.reach if start is not None and spec.holds(start, t) else None


policies = st.sampled_from(["inplace", "fifo", "linecutting", "lifo", "random"])
shapes = st.builds(
    WindowShape,
    reach=st.integers(1, 6),
    slide=st.integers(1, 5),
    before=st.booleans(),
    kind=st.sampled_from(["lazy", "eager"]),
)
rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=4)
schedules = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), rows),
        st.tuples(st.just("advance"), st.integers(0, 4)),
        st.tuples(st.just("inner"), st.integers(1, 3)),
        st.tuples(st.just("outer"), st.integers(1, 3)),
    ),
    max_size=30,
)


@pytest.mark.parametrize("inner_windows", [False, True], ids=["rows", "windows"])
@pytest.mark.parametrize("outer_windows", [False, True], ids=["of rows", "of windows"])
@given(data=st.data(), schedule=schedules, first=policies, second=policies)
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_chain_gives_the_newest_of_each_key_in_order(
    inner_windows: bool,
    outer_windows: bool,
    data: st.DataObject,
    schedule: list[tuple[str, object]],
    first: str,
    second: str,
) -> None:
    """However they are served: no key goes back, windows are whole, nothing comes that was ruled out."""
    inner = Stage(first, data.draw(shapes) if inner_windows else None)
    outer = Stage(second, data.draw(shapes) if outer_windows else None)
    stamp, moves = 0, [*schedule, ("advance", 100), *[("inner", 4), ("outer", 4)] * 12]
    for now, (what, how) in enumerate(moves):
        if what == "rows":
            given: Rows = []
            for key, later in how:  # type: ignore[attr-defined]
                stamp += later
                given.append((key, stamp))
            given = list(dict.fromkeys(given))  # a key has one row per time
            given = [row for row in given if row not in inner.came and row[1] > inner.closed]
            if given:
                inner.take(given, stamp - 1, now)
        elif what == "advance":
            stamp += how  # type: ignore[operator]
            inner.take([], max(stamp, inner.closed), now)
        elif what == "inner":
            found, promise = inner.serve(how, now)  # type: ignore[arg-type]
            outer.take(found, max(promise, outer.closed), now)
        else:
            outer.serve(how, now)  # type: ignore[arg-type]
    for stage in (inner, outer):
        last: dict[int, int] = {}
        for key, t in stage.gave:
            assert t > last.get(key, -1), "a key goes back"
            last[key] = t
        assert last == stage.expected()
        for key, start, held in stage.whole:
            own = [t for k, t in stage.came if k == key and stage.queue.spec.holds(start, t)]
            assert held == own, "the window is whole, with all that ever came"
    assert sorted(outer.came) == sorted(inner.gave), "every result is enqueued once"
