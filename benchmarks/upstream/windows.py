"""Fig. 13 and 14: LAZY and EAGER windows as the engine processes them; append and shedding beside them.

An update query of a database is pulled and fired by hand, one key at a time. Its clock is the trace's, and
goes on by `cost` ticks for each row that the engine says to have put through the query: which rows are
computed at which moment is the engine's doing, only what a row costs is made up. When the last row of a
time has come, the table's clock says so, as with the paper's rows of one key. `close_costs` measures what
the engine spends itself, by processor time. Append and shedding are simulated: with append every row is
processed for each window that holds it; with shedding only for windows that were kept, by chance, as many
as the operator can process (UpStream §6.3).
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import headwater
from benchmarks.upstream.traces import Trace
from headwater.engine.query_sinks import LogSink
from headwater.engine.update_query import UpdateQuery
from headwater.engine.update_queue import WindowSpec
from headwater.engine.update_queue.staleness import Staleness
from headwater.engine.update_queue.vectors import NONE
from headwater.execute.continuous import passing_object, query_of
from headwater.execute.update_queries import MadeUpdate, result_log
from headwater.sql.statements.query import make_query

SETTINGS = {"eager_spark": False, "factories": 0}
TABLE = "CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts UPDATE KEY (k)"


@contextlib.contextmanager
def windows(kind: str, size: int, slide: int) -> Iterator[tuple[headwater.Database, UpdateQuery]]:
    """A database with a table `s`, and an update query over it that nobody fires."""
    text = (
        f"SELECT k, count(*) AS n, sum(v) AS t FROM s [INTERVAL {size} SECONDS BEFORE] GROUP BY k"
    )
    text += f" SAMPLE INTERVAL {slide} SECONDS WITH UPDATES WINDOWS {kind}"
    with headwater.connect(settings=SETTINGS) as db:
        db.sql(TABLE)
        context = db._context
        made = MadeUpdate(context, make_query(text), text)
        sink = LogSink(result_log(context, made, None))
        query = query_of(context, passing_object(made), made, sink)
        assert isinstance(query, UpdateQuery)
        yield db, query


class EngineRun:
    """One query over the rows of a trace, in the trace's time."""

    def __init__(
        self, db: headwater.Database, query: UpdateQuery, trace: Trace, cost: int, stamp_ticks: int
    ) -> None:
        """`stamp_ticks`: T, in which windows are measured, goes on by one after so many ticks."""
        self._db, self._query, self._trace, self._cost = db, query, trace, cost
        self._stamp_ticks, self._stamps = stamp_ticks, (trace.times - 1) // stamp_ticks
        self._now = self._next = self._before = 0
        self._delivered: dict[int, list[tuple[int, int]]] = {}  # by key: when, and the window's end
        query.clock = self.time
        query.attach()

    def time(self) -> int:
        """Now: what was computed since the firing began has taken its time."""
        return self._now + self._cost * (self._query.computed_rows - self._before)

    def staleness(self, results: int) -> float:
        """Mean application staleness in ticks until so many windows are delivered, or nothing is left."""
        query = self._query
        while query.results < results:
            self._arrive()
            if query.pull():
                self._fire()
            elif self._next == len(self._trace):
                break
            else:
                self._now = int(self._trace.times[self._next])
        keys = np.unique(self._trace.keys[: self._next]).tolist()
        return sum(map(self._area, keys)) / (len(keys) * self._now)

    def _arrive(self) -> None:
        """Rows that have come by now; where they are the last of their time the clock says so."""
        trace, begin = self._trace, self._next
        end = self._next = int(np.searchsorted(trace.times, self._now, "right"))
        if begin == end:
            return
        stamps = self._stamps[begin:end].tolist()
        rows = zip(stamps, trace.keys[begin:end].tolist(), range(begin, end), strict=True)
        self._db.insert("s", list(rows))
        if end == len(trace) or self._stamps[end] > stamps[-1]:
            self._db.advance("s", stamps[-1])

    def _fire(self) -> None:
        query, before = self._query, self._query.results
        query.wanted = 1
        query.fire()
        self._now, self._before = self.time(), query.computed_rows
        if query.results > before:
            last = query.sink.log.last()
            assert last is not None
            (row,) = last.rows.select(["k", "_t"]).to_pylist()
            self._delivered.setdefault(row["k"], []).append((self._now, row["_t"]))

    def _area(self, key: int) -> float:
        """The integral of a key's staleness: since when a window has been closed and not delivered."""
        shape = self._query.spec.window
        assert shape is not None
        own = self._stamps[: self._next][self._trace.keys[: self._next] == key]
        firsts = (own // shape.slide + 1) * shape.slide  # ends of windows that hold the rows
        steps = np.arange(0, shape.reach, shape.slide)
        ends = np.unique(
            (firsts[:, None] + steps)[firsts[:, None] + steps <= own[:, None] + shape.reach]
        )
        closes = ends * self._stamp_ticks
        area, since, covered = 0.0, 0, -1
        for at, end in [*self._delivered.get(key, []), (self._now, -1)]:
            place = int(np.searchsorted(ends, covered, "right"))
            if place < len(ends) and closes[place] < at:
                begin = max(since, closes[place])
                area += ((at - closes[place]) ** 2 - (begin - closes[place]) ** 2) / 2
            since, covered = at, end
        return area


def run_updates(
    trace: Trace, size: int, slide: int, kind: str, cost: int, results: int, stamp_ticks: int = 1
) -> float:
    """Mean application staleness in ticks under LAZY or EAGER, keys IN-PLACE."""
    with windows(kind, size, slide) as (db, query):
        return EngineRun(db, query, trace, cost, stamp_ticks).staleness(results)


def close_costs(sizes: Sequence[int], repeats: int) -> list[dict[str, Any]]:
    """Processor time in ms that the engine spends after the close of a window of so many rows."""
    found = []
    for size in sizes:
        point: dict[str, Any] = {"size": size}
        for kind in ("lazy", "eager"):
            with windows(kind, size, size) as (db, query):
                spent = [_close_cost(db, query, number * size, size) for number in range(repeats)]
            point[kind] = 1000 * statistics.median(spent)
        found.append(point)
    return found


def _close_cost(db: headwater.Database, query: UpdateQuery, first: int, size: int) -> float:
    """The rows of a window come in ten pieces, then it closes: seconds from there on."""
    step = max(size // 10, 1)
    for start in range(first, first + size, step):
        times = pa.array(range(start, min(start + step, first + size)), pa.int32())
        keys = pa.array(np.ones(len(times), np.int32))
        db.insert("s", pa.table([times, keys, times], names=["ts", "k", "v"]))
        while query.pull():
            query.fire()
    db.advance("s", first + size - 1)
    before, started = query.results, time.thread_time()
    while query.pull():
        query.fire()
    assert query.results == before + 1
    return time.thread_time() - started


def run_append(spec: WindowSpec, cost: int, results: int, keep: float, seed: int = 0) -> float:
    """Mean application staleness of one key with a row per tick from 1, windows from 1 on.

    `keep`: with which probability a window is not shed; 1 is the append queue.
    """
    ticks = int(2 * results * spec.slide / keep) + 2 * spec.size
    kept = np.zeros(ticks + 1, np.int64)  # by start
    starts = np.arange(1, ticks + 1, spec.slide)
    kept[starts] = np.random.default_rng(seed).random(len(starts)) < keep
    so_far = np.cumsum(kept)
    staleness, key = Staleness(0), np.array([0])
    staleness.grow(1)
    now, closes, delivered = 0, spec.size, 0  # `closes`: when the oldest pending window closed
    for t in range(1, ticks + 1):
        start = t - spec.size + 1
        open_count = so_far[t] - so_far[max(start - 1, 0)]
        now = max(now, t) + cost * int(open_count)
        if start >= 1 and kept[start]:
            staleness.pending(key, np.array([closes]))
            closes = t + spec.slide
            staleness.covered(key, now, closes if closes <= now else NONE)
            delivered += 1
            if delivered == results:
                break
    return staleness.mean(now)
