"""DuckDB in these experiments: a file, all cores, rows inserted durably, results as Arrow.

Re-evaluation asks for the whole window by a range of T and removes expired rows after each slide.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from benchmarks.datacell.data import DDL
from benchmarks.datacell.ours import Feed
from benchmarks.datacell.series import Reader, Series


class Duck:
    """One DuckDB file."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def make_tables(self, *names: str) -> None:
        """Tables of the experiments' columns."""
        for name in names:
            self.connection.execute(f"CREATE TABLE {name} ({DDL})")

    def insert(self, table: str, rows: pa.Table) -> None:
        """One committed insert."""
        self.connection.register("rows_in", rows)
        self.connection.execute(f"INSERT INTO {table} SELECT * FROM rows_in")

    def ask(self, text: str) -> pa.Table:
        """A result as Arrow."""
        return self.connection.sql(text).to_arrow_table()

    def run(self, text: str) -> None:
        """A statement without a result."""
        self.connection.execute(text)


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Plan:
    """What is done at each instant; only `fold` and `ask` stand in the response time."""

    ask: Callable[[int], pa.Table]
    fold: Callable[[int, Feed], None] = _nothing
    look: Callable[[int], None] = _nothing  # not timed at all
    clean: Callable[[int], None] = _nothing  # part of the slide


@contextlib.contextmanager
def database() -> Iterator[Duck]:
    """A file of its own."""
    import duckdb

    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.closing(duckdb.connect(f"{folder}/db")) as connection,
    ):
        yield Duck(connection)


def follow(
    duck: Duck,
    feeds: Iterable[tuple[int, Feed]],
    plan: Plan,
    answer: Reader,
    warm_up: int = 2,
) -> Series:
    """Feeds slide by slide; each comes with its instant."""
    series = Series()
    for number, (instant, feed) in enumerate(feeds):
        started = time.perf_counter()
        for table, rows in feed:
            duck.insert(table, rows)
        acknowledged = time.perf_counter()
        plan.fold(instant, feed)
        found = plan.ask(instant)
        answered = time.perf_counter()
        series.answers[instant] = answer(found)
        plan.look(instant)
        cleaning = time.perf_counter()
        plan.clean(instant)
        cleaned = time.perf_counter()
        if number >= warm_up:
            series.add(answered - acknowledged, answered - started + cleaned - cleaning)
    return series
