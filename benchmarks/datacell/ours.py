"""Headwater in these experiments, as a user gets it: tables, a query, inserts, a subscription."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

import headwater
from benchmarks.datacell.data import DDL
from benchmarks.datacell.series import Answers, Reader, Series
from headwater.engine.subscription import Out, Subscription

PATIENCE_S = 300.0
FILL_ROWS = 100_000

Feed = Sequence[tuple[str, pa.Table]]  # what is inserted for one slide, table by table


@contextlib.contextmanager
def database(**settings: object) -> Iterator[headwater.Database]:
    """A database in a folder of its own; Spark has started."""
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        headwater.connect(f"{folder}/db", settings=settings) as db,
    ):
        db.sql("SELECT 1")
        yield db


def make_tables(db: headwater.Database, *names: str, kind: str = "STREAMING TABLE") -> None:
    """Tables or streams of the experiments' columns."""
    for name in names:
        db.sql(f"CREATE {kind} {name} ({DDL}) TIMESTAMP BY t")


def make_query(db: headwater.Database, select: str, mode: str = "auto", name: str = "q") -> None:
    """A continuous query."""
    db.sql(f"CREATE CONTINUOUS QUERY {name} WITH (mode = '{mode}') AS {select}")


def reader(db: headwater.Database, name: str = "q") -> Subscription:
    """The results that come from now on."""
    found = db.subscribe(name, timeout=PATIENCE_S)
    assert isinstance(found, Subscription)
    return found


def kept(db: headwater.Database, answer: Reader, name: str = "q") -> Answers:
    """The answers of all results that are kept."""
    found = db.subscribe(name, after="earliest", timeout=0.2)
    assert isinstance(found, Subscription)
    with found:
        return {instant(out): answer(out.arrow()) for out in found}


def instant(out: Out) -> int:
    """The instant of a result; T is an integer in all experiments."""
    assert isinstance(out.time, int)
    return out.time


def follow(
    db: headwater.Database, feeds: Iterable[Feed], answer: Reader, warm_up: int, name: str = "q"
) -> Series:
    """Feeds slide by slide and takes each result; slides of the warm-up are not counted."""
    series = Series()
    with reader(db, name) as results:
        for number, feed in enumerate(feeds):
            started = time.perf_counter()
            for table, rows in feed:
                db.insert(table, rows)
            acknowledged = time.perf_counter()
            out = next(results)
            found = out.arrow()
            ended = time.perf_counter()
            series.answers[instant(out)] = answer(found)
            if number >= warm_up:
                series.add(ended - acknowledged, ended - started)
    series.notes["engine"] = engine_notes(db, name)
    return series


def engine_notes(db: headwater.Database, name: str = "q") -> str:
    """What the engine says about the query's mode."""
    query = db._context.engine.find(name)
    return "" if query is None else query.chooser.explain()
