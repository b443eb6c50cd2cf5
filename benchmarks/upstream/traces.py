"""Arrivals to simulate: made ones as in the paper, or one's own from a file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ticks = npt.NDArray[np.int64]
COST = 1_000  # ticks that a row takes, where nothing else is said


@dataclass(frozen=True)
class Trace:
    """When rows arrive, and of which key."""

    times: Ticks
    keys: Ticks

    def __len__(self) -> int:
        return len(self.times)


def zipf(keys: int, theta: float) -> npt.NDArray[np.float64]:
    """How often each key comes: all equally often at 0, ever less so towards 1."""
    return probabilities(1 / np.arange(1, keys + 1) ** theta)


def probabilities(rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rates as probabilities."""
    return rates / rates.sum()


def spaced(count: int, gap: float, weights: npt.NDArray[np.float64], seed: int) -> Trace:
    """Rows at equal distances, each of a key by chance."""
    random = np.random.default_rng(seed)
    times = np.round(np.arange(1, count + 1) * gap).astype(np.int64)
    return Trace(times, random.choice(len(weights), count, p=weights))


def in_turn(count: int, gap: float, keys: int) -> Trace:
    """Rows at equal distances, keys one after the other."""
    times = np.round(np.arange(1, count + 1) * gap).astype(np.int64)
    return Trace(times, np.arange(count) % keys)


def at_load(load: float, results: int, weights: npt.NDArray[np.float64], seed: int) -> Trace:
    """A trace long enough for so many results; load 2: twice as many rows as can be processed."""
    count = int(results * max(load, 1) * 1.2) + 2 * len(weights)
    return spaced(count, COST / load, weights, seed)


def from_file(path: Path) -> tuple[Trace, list[str]]:
    """A CSV file with the columns time and key, in order of time; and the keys' names."""
    with path.open(newline="") as file:
        rows = [(float(row["time"]), row["key"]) for row in csv.DictReader(file)]
    names = sorted({key for _, key in rows})
    number = {name: n for n, name in enumerate(names)}
    times = np.array([round(time * 1_000_000) for time, _ in rows], np.int64)
    return Trace(times, np.array([number[key] for _, key in rows], np.int64)), names
