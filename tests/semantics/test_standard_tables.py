"""Random changes to a standard table give what a plain Python model gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import headwater
from tests.harness.rows import check_same

Row = tuple[int | None, int, str | None]
NAMES = [None, "x", "y", "水"]


class Driver:
    """Applies each change to the database and to a list of rows, and compares."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.rows: list[Row] = []
        self.db = headwater.connect(folder)
        self.db.sql("CREATE TABLE t (k INT, v INT NOT NULL, s STRING)")
        self.log: list[str] = []

    def changes(self) -> list[Callable[[], None]]:
        """The changes to choose from; the cheap ones stand there more often."""
        cheap = [self.insert_literals, self.insert_rows, self.reopen]
        return [
            *cheap,
            *cheap,
            self.insert_select,
            self.update,
            self.delete,
            self.merge,
            self.truncate,
        ]

    def step(self) -> None:
        self.random.choice(self.changes())()
        check_same(self.db.sql("SELECT * FROM t").rows(), self.rows)

    def some_rows(self) -> list[Row]:
        r = self.random
        return [
            (r.choice([None, *range(8)]), r.randrange(-50, 50), r.choice(NAMES))
            for _ in range(r.randrange(1, 6))
        ]

    def say(self, sql: str, count: int) -> None:
        self.log.append(sql)
        assert self.db.sql(sql).row_count == count, self.log

    def insert_literals(self) -> None:
        new = self.some_rows()
        self.say(f"INSERT INTO t VALUES {', '.join(map(_literal, new))}", len(new))
        self.rows += new

    def insert_rows(self) -> None:
        new = self.some_rows()
        assert self.db.insert("t", new) == len(new)
        self.rows += new

    def reopen(self) -> None:
        self.db.close()
        self.db = headwater.connect(self.folder)

    def insert_select(self) -> None:
        n = self.random.randrange(-40, 10)
        new = [(k, v + 1, "copy") for k, v, _ in self.rows if v < n and len(self.rows) < 60]
        where = f"v < {n}" if len(self.rows) < 60 else "v < -1000"
        self.say(f"INSERT INTO t SELECT k, v + 1, 'copy' FROM t WHERE {where}", len(new))
        self.rows += new

    def update(self) -> None:
        n = self.random.randrange(2, 5)
        hit = [row[0] is not None and row[0] % n == 1 for row in self.rows]
        self.say(f"UPDATE t SET v = v * 2, s = upper(s) WHERE k % {n} = 1", sum(hit))
        self.rows = [
            (k, v * 2, s.upper() if s else s) if h else (k, v, s)
            for h, (k, v, s) in zip(hit, self.rows, strict=True)
        ]

    def delete(self) -> None:
        n = self.random.randrange(-20, 40)
        kept = [row for row in self.rows if not (row[1] > n or row[2] == "x")]
        self.say(f"DELETE FROM t WHERE v > {n} OR s = 'x'", len(self.rows) - len(kept))
        self.rows = kept

    def merge(self) -> None:
        source = {k: self.random.randrange(50) for k in self.random.sample(range(10), 3)}
        values = " UNION ALL ".join(f"SELECT {k} AS k, {v} AS v" for k, v in source.items())
        known = {row[0] for row in self.rows}
        new: list[Row] = []
        count = 0
        for k, v, s in self.rows:
            if k in source and source[k] % 5 == 0:
                count += 1
                continue
            if k in source:
                count += 1
                new.append((k, v + source[k], s))
            else:
                new.append((k, v, s))
        added: list[Row] = [(k, v, "new") for k, v in source.items() if k not in known]
        self.say(
            f"MERGE INTO t USING ({values}) AS s ON t.k = s.k"
            " WHEN MATCHED AND s.v % 5 = 0 THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET v = t.v + s.v"
            " WHEN NOT MATCHED THEN INSERT (k, v, s) VALUES (s.k, s.v, 'new')",
            count + len(added),
        )
        self.rows = new + added

    def truncate(self) -> None:
        self.say("TRUNCATE TABLE t", len(self.rows))
        self.rows = []

    def finish(self) -> None:
        """Spark and other readers of the folder see the same rows."""
        found = self.db.sql("SELECT k, v, s FROM (SELECT * FROM t)").rows()
        check_same(found, self.rows)
        location = self.db.sql("SELECT location FROM headwater.tables").rows()[0][0]
        self.db.close()
        table = DeltaTable(location)
        check_same(_tuples(pa.table(table.to_pyarrow_table())), self.rows)
        if self.rows:
            with duckdb.connect() as connection:
                sql = "SELECT k, v, s FROM read_parquet(?)"
                check_same(connection.execute(sql, [table.file_uris()]).fetchall(), self.rows)


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def _literal(row: Row) -> str:
    k, v, s = row
    return f"({'NULL' if k is None else k}, {v}, {'NULL' if s is None else repr(s)})"


def play(folder: Path, seed: int, steps: int) -> None:
    driver = Driver(folder, seed)
    try:
        for change in random.Random(seed).sample(driver.changes(), len(driver.changes())):
            change()  # each of them at least once
            check_same(driver.db.sql("SELECT * FROM t").rows(), driver.rows)
        for _ in range(steps):
            driver.step()
        driver.finish()
    finally:
        driver.db.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_changes(folder: Path, seed: int) -> None:
    play(folder, seed, steps=8)


@pytest.mark.large
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_changes(folder: Path, seed: int) -> None:
    play(folder, seed, steps=60)
