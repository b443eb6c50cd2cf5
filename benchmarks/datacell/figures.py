"""The paper's sweeps, Fig. 5 to 9: one small experiment per point, ours beside re-evaluation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.csv as csv

from benchmarks.datacell import duck, ours, parts, q1, q2
from benchmarks.datacell.data import Keys
from benchmarks.datacell.q1 import Q1
from benchmarks.datacell.q2 import Q2
from benchmarks.datacell.series import Series, checksum, difference, values

Point = dict[str, Any]
GROUPS = 1000
CSV_WINDOWS = 100


def _pair(x: float, mine: Series, peer: Series) -> Point:
    """One point: medians of both, and whether they agree."""
    ours_ms, peer_ms = mine.figures()["median_ms"], peer.figures()["median_ms"]
    void = difference(mine.answers, peer.answers)
    return {"x": x, "ours_ms": ours_ms, "duckdb_ms": peer_ms, "void": void}


def fig5_selectivity(panes: int, step: int, percents: Sequence[int], slides: int) -> list[Point]:
    """Fig. 5(a): Q1, more and more rows pass."""
    points = []
    for percent in percents:
        work = Q1(panes, step, GROUPS, percent / 100)
        peer, _ = q1.duck_reevaluation(work, slides)
        points.append(_pair(percent, q1.incremental(work, "rows", slides), peer))
    return points


def fig5_join(step: int, keys: Sequence[int], slides: int) -> list[Point]:
    """Fig. 5(b): Q2, more and more pairs match; x is the part of all pairs in per cent."""
    points = []
    for count in keys:
        work = Q2(64, step, Keys(count))
        peer = q2.duck_reevaluation(work, "interval", slides)
        points.append(_pair(100 / count, q2.headwater(work, "interval", slides), peer))
    return points


def fig6_window(panes: int, steps: Sequence[int], slides: int) -> list[Point]:
    """Fig. 6(a): Q1, windows grow and so do their panes, whose number stays."""
    points = []
    for step in steps:
        work = Q1(panes, step, GROUPS)
        peer, _ = q1.duck_reevaluation(work, slides)
        points.append(_pair(work.window, q1.incremental(work, "rows", slides), peer))
    return points


def fig7_step(window: int, panes: Sequence[int], slides: int) -> list[Point]:
    """Fig. 7(a): Q1, one window in more and more panes; processing and merging apart."""
    points = []
    for count in panes:
        work = Q1(count, window // count, GROUPS)
        with parts.measured() as spent:
            mine = q1.incremental(work, "rows", slides)
        peer, _ = q1.duck_reevaluation(work, slides)
        each = {f"{part}_ms": spent.per_slide_ms(part, count + slides) for part in parts.PARTS}
        points.append({**_pair(count, mine, peer), **each})
    return points


def fig8_early(step: int, inserts: int, slides: int) -> list[Point]:
    """Fig. 8: m chunks of the newest pane are folded early; the response by slide."""
    work = Q1(8, step, 100_000)
    points: list[Point] = []
    with ours.database() as db:
        ours.make_tables(db, "s")
        ours.make_query(db, work.continuous("interval"), "fold")
        query = db._context.engine.find("q")
        assert query is not None
        with ours.reader(db) as results:
            for number in range(slides):
                rows = work.feed(number)[0][1]
                size = -(-step // inserts)
                m = query.early.m
                for first in range(0, step, size):
                    db.insert("s", rows.slice(first, size))
                acknowledged = time.perf_counter()
                out = next(results)
                checksum(out.arrow())
                points.append({"x": number, "ours_ms": _ms_since(acknowledged), "m": m})
    return points


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def fig9_csv(steps: Sequence[int]) -> list[Point]:
    """Fig. 9: Q2 over two CSV files, 100 windows in all; loading and query cost apart."""
    points = []
    with TemporaryDirectory(dir=".") as folder:
        for step in steps:
            work = Q2(64, step, Keys(64 * step))
            files = _write_files(Path(folder), work)
            points.append({"x": work.window, **_csv_ours(work, files), **_csv_duck(work, files)})
    for point in points:
        mine, theirs = point.pop("answers"), point.pop("duckdb_answers")
        point["void"] = difference(mine, theirs)
    return points


def _write_files(folder: Path, work: Q2) -> dict[str, Path]:
    files = {}
    for name, rows in work.feed(0, work.panes + CSV_WINDOWS):
        files[name] = (folder / f"{name}-{work.step}.csv").resolve()
        csv.write_csv(rows, files[name], csv.WriteOptions(include_header=False))
    return files


def _csv_ours(work: Q2, files: dict[str, Path]) -> Point:
    """COPY both files into tables without a query, and into tables with one."""
    with ours.database() as db:
        seconds = {}
        for what in ("loading", "total"):
            ours.make_tables(db, *q2.STREAMS)
            if what == "total":
                ours.make_query(db, work.continuous("interval"))
            started = time.perf_counter()
            for name, path in files.items():
                db.sql(f"COPY {name} FROM '{path}' CSV")
            db.flush()
            seconds[what] = time.perf_counter() - started
            if what == "loading":
                for name in files:
                    db.sql(f"DROP TABLE {name}")
        answers = ours.kept(db, values)
    return {"ours_s": seconds["total"], "loading_s": seconds["loading"], "answers": answers}


def _csv_duck(work: Q2, files: dict[str, Path]) -> Point:
    """DuckDB reads both files, then answers instant by instant."""
    with duck.database() as peer:
        peer.make_tables(*q2.STREAMS)
        started = time.perf_counter()
        for name, path in files.items():
            peer.run(f"COPY {name} FROM '{path}' (HEADER false)")
        answers = {}
        for number in range(1, work.panes + CSV_WINDOWS + 1):
            instant = number * work.step
            answers[instant] = values(peer.ask(work.one_time(instant, "interval")))
        return {"duckdb_s": time.perf_counter() - started, "duckdb_answers": answers}
