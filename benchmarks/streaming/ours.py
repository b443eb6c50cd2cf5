"""Run as a process of its own: the windows in Headwater over the same files. Prints one line of JSON.

`operators`: as it is by default. `spark`: `spark_sql_only`, so that each slide is a Spark SQL job. `asked`:
the same question asked again as a query of Spark's over the stored rows.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headwater
from benchmarks.streaming.work import SLIDE_S, Answers, measured, put

PATIENCE_S = 120.0
SHOWN = "SELECT k, count(*) AS n, sum(v) AS total FROM"


def main(folder: Path, way: str, overlaps: int, rows: int, slides: int, warm: int) -> None:
    """Files come in by a source; a slide is over when its result is read."""
    (folder / "rows").mkdir()
    settings = {"spark_sql_only": way == "spark", "driver_memory_mb": 2048}
    if way == "asked":
        settings["select_rows"] = 0  # operators would answer it otherwise
    with headwater.connect(folder / "db", settings=settings) as db:
        db.sql("SELECT soundex('spark')")  # whose start is not part of it
        db.sql("CREATE STREAMING TABLE s (at TIMESTAMP NOT NULL, k INT, v INT) TIMESTAMP BY at")
        db.sql(f"CREATE SOURCE files INTO s FROM 'parquet:{folder}/rows' WITH (poll_s = 0.002)")
        answers: Answers = {}
        step = asked_again if way == "asked" else kept
        slide = step(db, folder, overlaps, rows, answers)
        found: dict[str, Any] = dict(measured(slides, warm, slide))
    print(json.dumps({**found, "answers": answers}))


def kept(
    db: headwater.Database, folder: Path, overlaps: int, rows: int, answers: Answers
) -> Callable[[int], None]:
    """A continuous query: each slide's result comes to a subscriber."""
    db.sql(f"""CREATE CONTINUOUS QUERY q AS {SHOWN} s [INTERVAL '{SLIDE_S * overlaps}' SECONDS BEFORE]
               GROUP BY k SAMPLE INTERVAL '{SLIDE_S}' SECONDS""")
    results: Any = db.subscribe("q", after="earliest", timeout=PATIENCE_S)

    def step(slide: int) -> None:
        put(folder / "rows", slide, rows)
        while (
            SLIDE_S * slide not in answers
        ):  # the end of a window is known when later rows are there
            result = next(results)
            found = result.table
            sums = [sum(found.column(name).to_pylist()) for name in ("n", "total")]
            answers[int(result.time.timestamp())] = sums

    return step


def asked_again(
    db: headwater.Database, folder: Path, overlaps: int, rows: int, answers: Answers
) -> Callable[[int], None]:
    """The question is asked once its rows are there."""

    def step(slide: int) -> None:
        put(folder / "rows", slide, rows)
        while db.sql("SELECT row_count FROM headwater.sources").rows() != [((slide + 1) * rows,)]:
            time.sleep(0.002)
        end = SLIDE_S * slide
        begin = end - SLIDE_S * overlaps
        found = db.sql(
            f"{SHOWN} s WHERE at >= timestamp_seconds({begin}) AND at < timestamp_seconds({end})"
            " GROUP BY k"
        ).arrow()
        answers[end] = [sum(found.column(name).to_pylist()) for name in ("n", "total")]

    return step


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
