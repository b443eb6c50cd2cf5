"""Headwater in these experiments: one long-lived query over cut streams, and one-time queries.

The streams are fed as fast as they take rows (the paper's stress mode), a chunk in several inserts,
and an ADVANCE of each stream ends the chunk. *Post-cut* is from the last acknowledgement to the rows
of the result in the subscriber's hands.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

import headwater
from benchmarks.datacell.ours import database, engine_notes, instant, reader
from benchmarks.datacell.series import Series
from benchmarks.ecq.data import DDL, HOSTS_DDL, chunk, end_of, hosts
from benchmarks.ecq.queries import Query

INSERTS = 10  # of a chunk and stream


@dataclass(frozen=True)
class Work:
    """How much one system does: chunks of a size, the first of them not counted."""

    query: Query
    size: int
    chunks: int
    warm_up: int

    def numbers(self) -> range:
        """The chunks, those of the warm-up too."""
        return range(self.warm_up + self.chunks)


def epochs(work: Work, **settings: object) -> Series:
    """The long-lived query."""
    series, cuts = Series(), []
    streams = work.query.streams
    with database(**settings) as db:
        _make_hosts(db)
        for name in streams:
            db.sql(f"CREATE STREAM {name} ({DDL}) TIMESTAMP BY ts")
        db.sql(f"CREATE CONTINUOUS QUERY q AS {work.query.continuous()}")
        with reader(db) as results:
            for number in work.numbers():
                parts = _parts(chunk(number, work.size), streams)
                started = time.perf_counter()
                for name, rows in parts:
                    db.insert(name, rows)
                cut = time.perf_counter()
                for name in streams:
                    db.advance(name, end_of(number))
                acknowledged = time.perf_counter()
                out = next(results)
                found = out.arrow()
                ended = time.perf_counter()
                series.answers[instant(out)] = work.query.answer(found)
                if number >= work.warm_up:
                    series.add(ended - acknowledged, ended - started)
                    cuts.append((ended - cut) * 1000)
        series.notes = {"with_cut_ms": statistics.median(cuts), **_notes(db)}
    return series


def _parts(rows: dict[str, pa.Table], streams: Sequence[str]) -> list[tuple[str, pa.Table]]:
    """A chunk in small inserts, the streams in turn."""
    size = -(-rows[streams[0]].num_rows // INSERTS)
    return [
        (name, rows[name].slice(place * size, size)) for place in range(INSERTS) for name in streams
    ]


def _notes(db: headwater.Database) -> dict[str, object]:
    """What the engine did with the query at the end."""
    query = db._context.engine.find("q")
    assert query is not None
    tiers = ", ".join(sorted({fold.tier for fold in query.folds}))
    return {"engine": engine_notes(db), "tier": tiers, "early_chunks": query.early.m}


def iterated(work: Work, kind: str) -> Series:
    """For each chunk a fresh table, one insert, the query once; then the table goes.

    The response is everything up to the result; `query_ms` is the query alone.
    """
    series, queries = Series(), []
    streams, text = work.query.streams, work.query.one_time()
    time_of = "" if kind == "TABLE" else " TIMESTAMP BY ts"
    with database() as db:
        _make_hosts(db)
        for number in work.numbers():
            rows = chunk(number, work.size)
            started = time.perf_counter()
            for name in streams:
                db.sql(f"CREATE {kind} {name} ({DDL}){time_of}")
                db.insert(name, rows[name])
            loaded = time.perf_counter()
            found = db.sql(text).arrow()
            answered = time.perf_counter()
            for name in streams:
                db.sql(f"DROP TABLE {name}")
            dropped = time.perf_counter()
            series.answers[end_of(number)] = work.query.answer(found)
            if number >= work.warm_up:
                series.add(answered - started, dropped - started)
                queries.append((answered - loaded) * 1000)
    series.notes = {"query_ms": statistics.median(queries)}
    return series


def _make_hosts(db: headwater.Database) -> None:
    db.sql(f"CREATE TABLE hosts ({HOSTS_DDL})")
    db.insert("hosts", hosts())
