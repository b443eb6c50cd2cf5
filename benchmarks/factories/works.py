"""Work to be done with some number of factories: what is made, what goes in, and the answers at the end.

A work has its tables and views or queries in an open database, and numbers its batches. It never knows how
many factories there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import headwater
from benchmarks import reports
from benchmarks.aim import data as calls
from benchmarks.aim.queries import ALL, query

STATISTICS = (
    "SELECT xway, dir, seg, count(*) AS cars, avg(speed) AS speed FROM ("
    "SELECT xway, dir, seg, vid, avg(spd) AS speed FROM reports [INTERVAL 60 SECONDS BEFORE] "
    "GROUP BY xway, dir, seg, vid) GROUP BY xway, dir, seg SAMPLE INTERVAL 60 SECONDS"
)
PER_SECOND = 1_000
KEYS = 1_000


@dataclass(frozen=True)
class Work:
    """One piece of work."""

    table: str
    make: Callable[[headwater.Database], None]
    batch: Callable[[int, int], pa.Table]  # the rows from a number on, so many
    answers: tuple[str, ...]  # selects, asked when everything has been processed


def work(name: str, customers: int, cars: int) -> Work:
    """The work of a name: aim, statistics, or a number of queries."""
    if name == "aim":
        return _aim(customers)
    return _statistics(cars) if name == "statistics" else _queries(int(name.split()[0]))


def _aim(customers: int) -> Work:
    week = calls.current_week()

    def make(db: headwater.Database) -> None:
        db.sql(f"CREATE TABLE customers ({calls.ddl(calls.CUSTOMERS)})")
        db.insert("customers", calls.customers(customers))
        db.sql(f"CREATE STREAM events ({calls.ddl(calls.EVENTS)})")
        for name in ALL:
            db.sql(f"CREATE VIEW {name} AS {query(name, str(week))}")

    def batch(first: int, count: int) -> pa.Table:
        return calls.events(first, count, customers, week)

    return Work("events", make, batch, tuple(f"SELECT * FROM {name}" for name in ALL))


def _statistics(cars: int) -> Work:
    def make(db: headwater.Database) -> None:
        db.sql(f"CREATE STREAMING TABLE reports ({reports.DDL}) TIMESTAMP BY t")
        db.sql(f"CREATE CONTINUOUS QUERY statistics AS {STATISTICS}")

    def batch(first: int, count: int) -> pa.Table:
        return reports.batch(first, count, per_second=PER_SECOND, cars=cars)

    return Work("reports", make, batch, ("SELECT * FROM statistics",))


def _queries(count: int) -> Work:
    """Views with other filters and other keys, so that none shares its fold with another."""
    views = [
        f"SELECT (k + {n}) % {KEYS} AS key, count(*) AS n, sum(v) AS total, max(v) AS most FROM s "
        f"WHERE v % {count + 1} <> {n} GROUP BY (k + {n}) % {KEYS}"
        for n in range(count)
    ]

    def make(db: headwater.Database) -> None:
        db.sql("CREATE STREAMING TABLE s (k BIGINT, v BIGINT)")
        for number, text in enumerate(views):
            db.sql(f"CREATE VIEW v{number} AS {text}")

    def batch(first: int, count: int) -> pa.Table:
        number = pa.array(range(first, first + count), pa.int64()).to_numpy()
        return pa.table({"k": number * 48_271 % 100_003, "v": number * 69_621 % 9_973})

    return Work("s", make, batch, tuple(f"SELECT * FROM v{n}" for n in range(count)))
