"""ClickHouse (chdb) with materialized views into AggregatingMergeTree tables; run in its own virtualenv.

Calls go into a table that keeps nothing, customers are a Join table in memory. Synced: every part is
synced before an insert returns, as ours is; the default is not to. Must never: import Headwater.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.aim.systems import Rows

SYNC = "fsync_after_insert = 1, fsync_part_directory = 1"
TYPES = {"int64": "Int64", "int32": "Int32", "bool": "Bool"}
WEEK = "toISOWeek(today())"
JOINED = "FROM events e INNER JOIN customers c ON e.entity_id = c.id WHERE"

# By view: its key, its columns with their aggregates, the rest of its query, and the view's reader.
FOLDS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "q1": (
        "entity_id",
        {"t_duration": "sum(duration)", "calls": "sum(local_calls IS NOT NULL)"},
        "FROM events WHERE week = {week}",
        "SELECT avgOrNull(d) FROM (SELECT sum(t_duration) AS d FROM q1_state GROUP BY entity_id "
        "HAVING sum(calls) > 2)",
    ),
    "q2": (
        "entity_id",
        {"m_cost": "max(cost)", "calls": "sum(1)"},
        "FROM events WHERE week = {week}",
        "SELECT maxOrNull(m) FROM (SELECT max(m_cost) AS m FROM q2_state GROUP BY entity_id "
        "HAVING sum(calls) > 2)",
    ),
    "q3": (
        "entity_id",
        {"t_cost": "sum(cost)", "t_duration": "sum(duration)", "calls": "sum(1)"},
        "FROM events WHERE week = {week}",
        "SELECT sum(c) / sum(d) FROM (SELECT sum(t_cost) AS c, sum(t_duration) AS d, "
        "sum(calls) AS n FROM q3_state GROUP BY entity_id) GROUP BY n LIMIT 100",
    ),
    "q4": (
        "entity_id",
        {"calls": "sum(1)", "t_duration": "sum(duration)"},
        "FROM events WHERE NOT long_distance AND week = {week}",
        "SELECT city_zip, avg(n), sum(d) FROM (SELECT entity_id, sum(calls) AS n, "
        "sum(t_duration) AS d FROM q4_state GROUP BY entity_id HAVING n > 4 AND d > 25) e "
        "INNER JOIN customers c ON e.entity_id = c.id GROUP BY city_zip",
    ),
    "q5": (
        "region_id",
        {"t_long": "sum(long_distance_cost)", "t_local": "sum(local_cost)"},
        JOINED + " week = {week} AND c.type = 2 AND c.category = 1",
        "SELECT region_id, sum(t_long), sum(t_local) FROM q5_state GROUP BY region_id",
    ),
    "q7": (
        "value_type",
        {"t_cost": "sum(cost)", "t_duration": "sum(duration)"},
        JOINED + " week = {week} AND c.value_type = 2",
        "SELECT if(sum(t_duration) = 0, NULL, sum(t_cost) / sum(t_duration)) FROM q7_state",
    ),
}


class ClickHouse:
    """A session in a folder; it serves one thread."""

    two_threads = False

    def __init__(self, folder: str, sync: bool) -> None:
        from chdb import session  # type: ignore[import-not-found]

        self._session = session.Session(folder)
        self._settings = f" SETTINGS {SYNC}" if sync else ""
        self.run("CREATE DATABASE aim ENGINE = Atomic")
        self.run("USE aim")

    def run(self, text: str) -> str:
        """One statement; lines of JSON."""
        return str(self._session.query(text, "JSONCompactEachRow"))

    def customers(self, rows: pa.Table) -> None:  # chdb finds `rows` by its name
        """The table of customers, indexed by id."""
        columns = ", ".join(f"{f.name} {TYPES[str(f.type)]}" for f in rows.schema)
        self.run(f"CREATE TABLE customers ({columns}) ENGINE = Join(ALL, INNER, id)")
        self.run("INSERT INTO customers SELECT * FROM Python(rows)")

    def views(self, views: Sequence[str], events: pa.Schema) -> None:
        """The stream and its views."""
        columns = ", ".join(f"{f.name} {_nullable(f)}" for f in events)
        self.run(f"CREATE TABLE events ({columns}) ENGINE = Null")
        for view in views:
            key, aggregates, rest, _ = FOLDS[view]
            kept = ", ".join(
                f"{name} SimpleAggregateFunction({text.partition('(')[0]}, Int64)"
                for name, text in aggregates.items()
            )
            self.run(
                f"CREATE TABLE {view}_state ({key} Int64, {kept}) "
                f"ENGINE = AggregatingMergeTree ORDER BY {key}{self._settings}"
            )
            made = ", ".join(f"{text} AS {name}" for name, text in aggregates.items())
            self.run(
                f"CREATE MATERIALIZED VIEW {view} TO {view}_state AS SELECT {key}, {made} "
                f"{rest.format(week=WEEK)} GROUP BY {key}"
            )

    def prepare(self, events: pa.Table) -> pa.Table:
        """Arrow goes in as it is."""
        return events

    def insert(self, batch: pa.Table) -> None:  # noqa: ARG002 (chdb finds `batch` by its name)
        """One block."""
        self.run("INSERT INTO events SELECT * FROM Python(batch)")

    def settle(self) -> None:
        """Inserts have done it."""

    def read(self, view: str) -> Rows:
        """The parts of the aggregates, merged."""
        lines = self.run(FOLDS[view][3]).splitlines()
        return [tuple(json.loads(line)) for line in lines]

    def close(self) -> None:
        """Ends the session."""
        self._session.close()


def _nullable(field: Any) -> str:
    type_ = TYPES[str(field.type)]
    return f"Nullable({type_})" if field.name == "local_calls" else type_


@contextlib.contextmanager
def _opened(customers: pa.Table, views: Sequence[str], sync: bool) -> Iterator[ClickHouse]:
    from benchmarks.aim import data

    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.closing(ClickHouse(f"{folder}/db", sync)) as system,
    ):
        system.customers(customers)
        system.views(views, data.events(0, 1, 1, 1).schema)
        yield system


def synced(
    customers: pa.Table, views: Sequence[str]
) -> contextlib.AbstractContextManager[ClickHouse]:
    """As durable as we are."""
    return _opened(customers, views, True)


def unsynced(
    customers: pa.Table, views: Sequence[str]
) -> contextlib.AbstractContextManager[ClickHouse]:
    """As it comes: nothing is synced."""
    return _opened(customers, views, False)
