"""Two hundred continuous queries on one table: what one more costs."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.datacell import duck, ours
from benchmarks.datacell.q1 import Q1
from benchmarks.datacell.series import Series, checksum, compared

CHECKED = 5  # queries whose answers are compared


def measure(count: int, panes: int, step: int, slides: int) -> dict[str, dict[str, Any]]:
    """Slides with one query and with all; a slide ends when every result is readable."""
    works = [Q1(panes, step, 1000, 0.05 + 0.9 * n / count) for n in range(count)]
    systems = {
        "one query": _headwater(works[:1], slides),
        f"{count} queries": _headwater(works, slides),
    }
    found = compared(systems, "one query")
    checked = _duck(works, slides)
    series = systems[f"{count} queries"]
    void = compared({"ours": series, "duckdb": checked}, "ours")["duckdb"]["void"]
    found[f"{count} queries"] |= {
        "void": void,
        "ms_per_query": found[f"{count} queries"]["median_ms"] / count,
        "create_s": series.notes["create_s"],
    }
    return found


def _key(instant: int, query: int) -> int:
    return instant * 1000 + query


def _headwater(works: list[Q1], slides: int) -> Series:
    series = Series()
    with ours.database() as db:
        ours.make_tables(db, "s")
        started = time.perf_counter()
        for number, work in enumerate(works):
            ours.make_query(db, work.continuous("rows"), name=f"q{number}")
        series.notes["create_s"] = time.perf_counter() - started
        readers = [ours.reader(db, f"q{n}") for n in range(len(works))]
        for slide in range(works[0].panes + slides):
            began = time.perf_counter()
            db.insert("s", works[0].feed(slide)[0][1])
            acknowledged = time.perf_counter()
            outs = [next(reader) for reader in readers]
            ended = time.perf_counter()
            if slide >= works[0].panes:
                series.add(ended - acknowledged, ended - began)
            for number in range(0, len(works), max(len(works) // CHECKED, 1)):
                out = outs[number]
                series.answers[_key(ours.instant(out), number)] = checksum(out.arrow())
        for reader in readers:
            reader.close()
    return series


def _duck(works: list[Q1], slides: int) -> Series:
    """The same answers by DuckDB, for some of the queries at the last instants."""
    series = Series([0.0], [0.0])
    with duck.database() as peer:
        peer.make_tables("s")
        for slide in range(works[0].panes + slides):
            peer.insert("s", works[0].feed(slide)[0][1])
        last = works[0].panes + slides
        for number in range(0, len(works), max(len(works) // CHECKED, 1)):
            for instant in (last * works[0].step, (last - 1) * works[0].step):
                found = checksum(peer.ask(works[number].one_time(instant)))
                series.answers[_key(instant, number)] = found
    return series
