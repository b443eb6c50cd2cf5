"""Simulations with windows: LAZY and EAGER with the engine's queue, append and shedding beside them.

An operator takes `cost` ticks for a row of a window. With append every row is processed for each
window that holds it; with shedding only for windows that were kept, by chance, as many as the
operator can process (UpStream §6.3).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.upstream.simulator import SCHEMA
from benchmarks.upstream.traces import Trace
from headwater.engine.update_queue import WindowQueue, WindowSpec
from headwater.engine.update_queue.staleness import Staleness
from headwater.engine.update_queue.vectors import NONE


def run_updates(
    trace: Trace, spec: WindowSpec, kind: str, cost: int, results: int, stamp_ticks: int = 1
) -> float:
    """Mean application staleness in ticks under LAZY or EAGER, keys IN-PLACE.

    `stamp_ticks`: T, in which windows are measured, goes on by one after so many ticks.
    """
    stamps = (trace.times - 1) // stamp_ticks + 1
    queue = WindowQueue(SCHEMA, ["key"], spec, kind, page_rows=32)
    now, position, delivered = 0, 0, 0

    def arrive(until: int) -> None:
        nonlocal position
        end = int(np.searchsorted(trace.times, until, "right"))
        part = slice(position, end)
        if end > position:
            rows = pa.Table.from_arrays([pa.array(trace.keys[part])], schema=SCHEMA)
            queue.enqueue(rows, stamps[part], trace.times[part])
            position = end

    while delivered < results:
        arrive(now)
        batch = queue.dequeue(1, now)
        if not len(batch):
            if position == len(trace):
                break
            now = int(trace.times[position])
            continue
        now += cost * batch.row_count
        arrive(now)
        queue.deliver(batch, now)
        delivered += int(batch.complete.sum())
    return queue.application_staleness.mean(now)


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
