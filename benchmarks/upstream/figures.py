"""The paper's figures as numbers; staleness in units of what one row costs."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.upstream.simulator import SCHEMA, Simulation, run_rows
from benchmarks.upstream.traces import COST, at_load, in_turn, probabilities, spaced, zipf
from benchmarks.upstream.windows import close_costs, run_append, run_updates
from headwater.engine.update_queue import Choice, UpdateQueue, WindowSpec

Points = list[dict[str, Any]]
KEYS = 10
QUEUES = ("append", "shedding", "fifo", "inplace")
KINDS = ("lazy", "eager")
PATTERNS = {"Zipf 0": 0.0, "Zipf 0.5": 0.5, "Zipf 0.9": 0.9, "in turn": None}
THETAS = (0.0, 0.3, 0.6, 0.9)
MEMORY_KEYS = 100
PAGE_ROWS = 2


@dataclass(frozen=True)
class Sizes:
    """How much is simulated."""

    results: int
    loads: tuple[float, ...]
    windows: tuple[int, ...]
    pattern_windows: tuple[int, ...]
    window_results: int
    closing_windows: tuple[int, ...]  # rows of a window of which the close is measured
    memory_loads: tuple[int, ...]  # rows per second, against ten
    seeds: int
    batches: int


FULL = Sizes(
    results=1000,
    loads=(0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10),
    windows=(2, 5, 10, 20, 30, 40),
    pattern_windows=(2, 3, 4, 6, 8, 12),
    window_results=300,
    closing_windows=(100, 1_000, 10_000, 100_000),
    memory_loads=(20, 50, 100, 200, 500, 1000),
    seeds=5,
    batches=200,
)
QUICK = Sizes(
    results=250,
    loads=(0.5, 1, 2, 5, 10),
    windows=(2, 5, 10, 20),
    pattern_windows=(2, 4, 8),
    window_results=60,
    closing_windows=(100, 1_000, 10_000, 100_000),
    memory_loads=(20, 100, 1000),
    seeds=2,
    batches=60,
)


def load_sweep(sizes: Sizes, keys: int) -> Points:
    """Fig. 5 and 7: append, shedding, FIFO and IN-PLACE under rising load."""
    points: Points = []
    for load in sizes.loads:
        trace = at_load(load, sizes.results, zipf(keys, 0), seed=1)
        point: dict[str, Any] = {"load": load}
        for policy in QUEUES:
            outcome = run_rows(trace, policy, COST, sizes.results)
            point[policy] = outcome.application_staleness / COST
            point[f"{policy}, queue"] = outcome.queue_staleness / COST
        points.append(point)
    return points


def linecutting(sizes: Sizes) -> Points:
    """Fig. 9: ten keys that update at load 5, x of them ten times slower."""
    points: Points = []
    for slow in range(KEYS + 1):
        rates = np.where(np.arange(KEYS) < slow, 0.05, 0.5)  # rows per cost of a row
        ratios = [_cutting(rates, sizes.results, seed) for seed in range(sizes.seeds)]
        guarded, literal = zip(*ratios, strict=True)
        points.append(
            {
                "slow": slow,
                "ratio": statistics.mean(guarded),
                "formula alone": statistics.mean(literal),
            }
        )
    return points


def _cutting(rates: np.ndarray, results: int, seed: int) -> tuple[float, float]:
    """Queue staleness under IN-PLACE over that under LINECUTTING, and under its formula alone."""
    trace = at_load(float(rates.sum()), results, probabilities(rates), seed)
    found = []
    for choice in (Choice("inplace"), Choice("linecutting"), Choice("linecutting", literal=True)):
        queue = UpdateQueue(SCHEMA, ["key"], choice)
        found.append(Simulation(trace, queue, COST).run(results).queue_staleness + 1)
    return found[0] / found[1], found[0] / found[2]


def window_sizes(sizes: Sizes) -> dict[str, Points]:
    """Fig. 13: one key with a row per tick that costs a tick; tumbling and sliding by one."""
    tumbling: Points = []
    sliding: Points = []
    results = sizes.window_results
    for size in sizes.windows:
        trace = in_turn(3 * results * size + 1000, 1, 1)
        for points, slide in ((tumbling, size), (sliding, 1)):
            runs = {kind: run_updates(trace, size, slide, kind, 1, results) for kind in KINDS}
            points.append({"size": size, **runs})
        spec = WindowSpec(size, 1, origin=1, first=1)
        sliding[-1]["append"] = run_append(spec, 1, results, keep=1.0)
        sliding[-1]["shedding"] = run_append(spec, 1, results, keep=1 / size)
    return {"tumbling": tumbling, "sliding": sliding}


def closes(sizes: Sizes) -> Points:
    """What is left to do when a window of one key closes: ms of processor time, nothing made up."""
    return close_costs(sizes.closing_windows, repeats=3)


def patterns(sizes: Sizes) -> dict[str, Points]:
    """Fig. 14: EAGER over LAZY, ten keys that get one row per unit of T on average."""
    found: dict[str, Points] = {}
    for name, theta in PATTERNS.items():
        found[name] = []
        for size in sizes.pattern_windows:
            count = 6 * sizes.window_results * size
            if theta is None:
                trace = in_turn(count, 1, KEYS)
            else:
                trace = spaced(count, 1, zipf(KEYS, theta), seed=3)
            lazy, eager = (
                run_updates(trace, size, 1, kind, 1, sizes.window_results, stamp_ticks=KEYS)
                for kind in KINDS
            )
            found[name].append({"size": size, "ratio": eager / lazy})
    return found


def memory(sizes: Sizes) -> Points:
    """Fig. 16 and 17: 100 keys, IN-PLACE; one point for each skew and rate."""
    points: Points = []
    for theta in THETAS:
        for rate in sizes.memory_loads:
            trace = at_load(rate / 10, sizes.results, zipf(MEMORY_KEYS, theta), seed=7)
            queue = UpdateQueue(SCHEMA, ["key"], page_rows=PAGE_ROWS)
            outcome = Simulation(trace, queue, COST).run(sizes.results)
            points.append(
                {
                    "theta": theta,
                    "rate": rate,
                    "effective": outcome.effective_use,
                    "allocated": outcome.allocated_rows,
                    "effective, naive": outcome.used_rows / MEMORY_KEYS,
                    "allocated, naive": MEMORY_KEYS,
                }
            )
    return points


def averaged(points: Points, by: str) -> Points:
    """The memory figures averaged over the other axis."""
    names = ("effective", "allocated", "effective, naive", "allocated, naive")
    values = sorted({point[by] for point in points})
    groups = [[point for point in points if point[by] == value] for value in values]
    return [
        {by: value, **{name: statistics.mean(p[name] for p in group) for name in names}}
        for value, group in zip(values, groups, strict=True)
    ]


def enqueue_rates(sizes: Sizes) -> dict[str, float]:
    """Rows per second of processor time into a queue of 100 000 keys, in batches of 10 000."""
    keys, batch = 100_000, 10_000
    random = np.random.default_rng(5)
    numbers = [random.integers(0, keys, batch) for _ in range(sizes.batches)]
    texts = np.array([f"K{n:05}" for n in range(keys)])
    kinds = {
        "integer keys": (pa.int64(), [pa.array(n) for n in numbers]),
        "text keys": (pa.string(), [pa.array(texts[n]) for n in numbers]),
    }
    found = {}
    for name, (type_, columns) in kinds.items():
        schema = pa.schema([("key", type_), ("price", pa.float64()), ("size", pa.int64())])
        values = [pa.array(random.random(batch)), pa.array(np.arange(batch))]
        tables = [pa.Table.from_arrays([c, *values], schema=schema) for c in columns]
        found[name] = max(_enqueue_rate(schema, tables) for _ in range(3))
    return found


def _enqueue_rate(schema: pa.Schema, tables: list[pa.Table]) -> float:
    queue = UpdateQueue(schema, ["key"])
    started = time.process_time()
    for number, table in enumerate(tables):
        queue.enqueue(table, number)
    return sum(len(table) for table in tables) / (time.process_time() - started)
