"""Fig. 13: rows that wait before a single view, told after every 100 inserts, by threads that insert.

One stream of six integers between 1 and 10 000; the view groups by one and sums another. Threads insert
as fast as they are acknowledged, and one more reads the view a hundred times a second. In the middle tenth
inserts are ten times as large: the queue may grow and must empty again, and nothing waits at the end.
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headwater
from benchmarks import report
from benchmarks.pictures import label, picture

COLUMNS = ("a", "b", "c", "d", "e", "f")
LARGEST = 10_000
EVERY = 100  # inserts between two looks at the queue
LENGTH = "SELECT value FROM headwater.metrics WHERE name = 'view.v.waiting_rows'"
READ_EVERY_S = 0.01
NEAR_ZERO = 0.02  # of all rows: a queue shorter than this counts as empty


@dataclass(frozen=True)
class Sizes:
    """How much is inserted."""

    threads: tuple[int, ...]
    inserts: int
    rows: int  # of one insert outside the spike

    def of(self, number: int) -> int:
        """The rows of an insert."""
        middle = 0.45 <= number / self.inserts < 0.55
        return self.rows * (SPIKE if middle else 1)


QUICK = Sizes((1, 5), 3_000, 500)
FULL = Sizes((1, 2, 5, 10), 5_000, 1_000)
SPIKE = 10  # how much larger inserts are in the spike


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if rows were lost or left waiting."""
    sizes = QUICK if quick else FULL
    runs = {str(threads): measure(threads, sizes) for threads in sizes.threads}
    rows = [
        (
            threads,
            f"{run['rows_per_s']:,.0f}",
            f"{run['longest']:,}",
            f"{run['median']:,.0f}",
            f"{run['empty_share']:.0%}",
            f"{run['last']:,}",
            f"{run['reads']:,}",
        )
        for threads, run in runs.items()
    ]
    columns = ("threads", "rows/s", "longest", "median", "near empty", "at the end", "reads")
    report.table("Fig. 13: rows waiting before one view", columns, rows)
    found = {"quick": quick, "rows": sizes.rows, "inserts": sizes.inserts, "runs": runs}
    path = report.keep("queue", found)
    drawn = draw(found, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {drawn or '(matplotlib is not installed)'}")
    return 0 if all(run["right"] and run["last"] == 0 for run in runs.values()) else 1


def measure(threads: int, sizes: Sizes) -> dict[str, Any]:
    """The queue's length over one run."""
    batches = [_batch(number, sizes.of(number)) for number in range(sizes.inserts)]
    columns = ", ".join(f"{name} INT" for name in COLUMNS)
    with tempfile.TemporaryDirectory(dir=".") as folder, headwater.connect(f"{folder}/db") as db:
        db.sql("SELECT 1")  # Spark's start is not part of it
        db.sql(f"CREATE STREAM s ({columns})")
        db.sql("CREATE VIEW v AS SELECT a, sum(b) AS total FROM s GROUP BY a")
        run = Run(db, batches, threads)
        seconds = run.all()
        db.flush()
        last = int(db.sql(LENGTH).rows()[0][0])
        total = sum(row[1] for row in db.sql("SELECT * FROM v").rows())
    expected = sum(int(np.sum(batch.column("b").to_numpy())) for batch in batches)
    count = sum(batch.num_rows for batch in batches)
    lengths = [length for _, length in run.lengths]
    return {
        "lengths": run.lengths,
        "longest": max(lengths),
        "median": float(np.median(lengths)),
        "empty_share": float(np.mean(np.array(lengths) <= NEAR_ZERO * count)),
        "last": last,
        "reads": run.reads,
        "rows_per_s": count / seconds,
        "right": total == expected,
    }


def _batch(number: int, rows: int) -> pa.Table:
    values = np.random.default_rng(number).integers(1, LARGEST + 1, (len(COLUMNS), rows))
    return pa.table({n: pa.array(v.astype(np.int32)) for n, v in zip(COLUMNS, values, strict=True)})


class Run:
    """Threads that insert, and one that reads."""

    def __init__(self, db: headwater.Database, batches: list[pa.Table], threads: int) -> None:
        self._db, self._batches, self._threads = db, batches, threads
        self._lock = threading.Lock()
        self._done = 0
        self.lengths: list[tuple[int, int]] = []  # after so many inserts, so many rows wait
        self.reads = 0

    def all(self) -> float:
        """Seconds of all inserts."""
        ended = threading.Event()
        reader = threading.Thread(target=self._read, args=(ended,))
        inserters = [
            threading.Thread(target=self._insert, args=(self._batches[n :: self._threads],))
            for n in range(self._threads)
        ]
        started = time.perf_counter()
        for thread in (reader, *inserters):
            thread.start()
        for thread in inserters:
            thread.join()
        seconds = time.perf_counter() - started
        ended.set()
        reader.join()
        return seconds

    def _insert(self, batches: list[pa.Table]) -> None:
        for batch in batches:
            self._db.insert("s", batch)
            with self._lock:
                self._done += 1
                number = self._done
            if number % EVERY == 0:
                length = int(self._db.sql(LENGTH).rows()[0][0])
                with self._lock:
                    self.lengths.append((number, length))

    def _read(self, ended: threading.Event) -> None:
        while not ended.wait(READ_EVERY_S):
            self._db.sql("SELECT * FROM v").arrow()
            self.reads += 1


def draw(figures: dict[str, Any], path: Path) -> Path | None:
    """The length of the queue over the inserts, one line for each number of threads."""

    def panel(axes: Any, _: Any) -> None:
        for threads, run in figures["runs"].items():
            points = sorted(run["lengths"])
            axes.plot(*zip(*points, strict=True), linewidth=0.9, label=f"{threads} inserting")
        axes.set_yscale("symlog")
        axes.set_ylim(bottom=0)
        count = figures["inserts"]
        axes.axvspan(
            0.45 * count, 0.55 * count, color="#f3f3f3", label="inserts ten times as large"
        )
        axes.legend(fontsize=8, frameon=False)
        words = f"inserts of {figures['rows']:,} rows"
        label(axes, "Fig. 13: queue of one view", words, "rows waiting")

    return picture(path, (1, 1), (panel,), figures, size=(8, 4.5))
