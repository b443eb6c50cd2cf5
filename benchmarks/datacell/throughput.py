"""B2: Q1 as fast as possible from a stream, in 100 000-row Arrow batches, beside HOP and `window()`.

The window is `[INTERVAL i BEFORE]` with a slide of one second, which is what HOP computes. Our rate
counts everything from the first insert until the last result is readable; the log is written, as
always. Flink and Structured Streaming get fewer rows, so their start is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.datacell import data, duck, ours, outside
from benchmarks.datacell.outside import Rate
from benchmarks.datacell.series import Answers, checksum, difference
from benchmarks.installed import Missing

BATCH = 100_000
GROUPS = 1000
BOUND = 799
Figures = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """How much each system gets; the slow ones fewer rows."""

    seconds: int  # |W| in slides
    per_second: int
    rows: int
    spark_rows: int
    duck_rows: int
    flink_rows: int
    plain_rows: int
    repetitions: int

    def continuous(self) -> str:
        """The query as we take it."""
        return (
            f"SELECT x1, sum(x2) AS total FROM s [INTERVAL {self.seconds} SECONDS BEFORE] "
            f"WHERE x1 > {BOUND} GROUP BY x1 SAMPLE INTERVAL 1 SECOND"
        )


def measure(work: Work, quick: bool) -> dict[str, Figures]:
    """All systems; those that are not there say why."""
    mine = [headwater(work, work.rows) for _ in range(work.repetitions)]
    found = {"Headwater": _figures(mine, work.rows)}
    for name, (rows, run) in _others(work, quick).items():
        try:
            rates = [run(rows)]
        except Missing as error:
            found[name] = {"missing": str(error)}
            continue
        last = rows // work.per_second  # the first instant that sees all rows of the peer
        answers = {t: answer for t, answer in mine[0].answers.items() if 0 < t <= last}
        found[name] = _figures(rates, rows)
        found[name]["void"] = difference(answers, rates[0].answers)
        found[name]["ratio"] = found["Headwater"]["rows_per_s"] / rates[0].rows_per_s
    return found


def _others(work: Work, quick: bool) -> dict[str, tuple[int, Callable[[int], Rate]]]:
    """Peers and our own other modes: how many rows they get, and what runs them."""

    def plain(rows: int) -> Rate:
        table = data.counted(0, rows, GROUPS, work.per_second)
        return outside.structured_streaming(table, BOUND, work.seconds)

    def flink(rows: int) -> Rate:
        return outside.flink(rows, work.per_second, GROUPS, BOUND, work.seconds, not quick)

    return {
        "Headwater, mode = 'fold'": (work.rows, lambda n: headwater(work, n, "fold")),
        "Headwater, all on Spark": (
            work.spark_rows,
            lambda n: headwater(work, n, "fold", spark_sql_only=True),
        ),
        "DuckDB re-evaluation": (work.duck_rows, lambda n: duck_reevaluation(work, n)),
        "Flink HOP": (work.flink_rows, flink),
        "Structured Streaming": (work.plain_rows, plain),
    }


def _figures(rates: list[Rate], rows: int) -> Figures:
    found = sorted(rate.rows_per_s for rate in rates)
    figures: Figures = {"rows_per_s": found[len(found) // 2], "least": found[0], "most": found[-1]}
    return {**figures, "rows": rows, "notes": [rate.note for rate in rates if rate.note]}


def headwater(work: Work, rows: int, mode: str = "auto", **settings: object) -> Rate:
    """Ours: inserts as fast as they are taken, until every complete instant is answered."""
    batches = [data.counted(i, BATCH, GROUPS, work.per_second) for i in range(0, rows, BATCH)]
    with ours.database(**settings) as db:
        ours.make_tables(db, "s", kind="STREAM")
        ours.make_query(db, work.continuous(), mode)
        started = time.perf_counter()
        for batch in batches:
            db.insert("s", batch)
        db.flush()
        elapsed = time.perf_counter() - started
        return Rate(rows / elapsed, ours.kept(db, checksum), ours.engine_notes(db))


def duck_reevaluation(work: Work, rows: int) -> Rate:
    """DuckDB: a batch in, then every instant that it completes, then expired rows out."""
    answers: Answers = {}
    with duck.database() as peer:
        peer.make_tables("s")
        started = time.perf_counter()
        done = 0
        for first in range(0, rows, BATCH):
            peer.insert("s", data.counted(first, BATCH, GROUPS, work.per_second))
            newest = (first + BATCH - 1) // work.per_second
            for instant in range(done + 1, newest + 1):
                found = peer.ask(
                    "SELECT x1, sum(x2)::BIGINT AS total FROM s WHERE "
                    f"t >= {instant - work.seconds} AND t < {instant} AND x1 > {BOUND} GROUP BY x1"
                )
                answers[instant] = checksum(found)
            done = newest
            peer.run(f"DELETE FROM s WHERE t <= {newest - work.seconds}")
        return Rate(rows / (time.perf_counter() - started), answers)
