"""Statements whose files cannot be opened, made, renamed or synced: the error is one of ours that names the
file, the database goes on, and what the statement makes is wholly there or wholly not, also at the next open.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.errors import StorageError
from tests.harness.failing_calls import CALLS, FailingCalls

INLINE = {"eager_spark": False}
SQLSTATES = {errno.EIO: "58030", errno.ENOSPC: "53100", errno.EACCES: "42501"}
MOST_CALLS = 60

STREAM = "CREATE STREAMING TABLE s (t BIGINT, k STRING, v BIGINT) TIMESTAMP BY t"
ROWS = "INSERT INTO s VALUES (1, 'a', 1), (2, 'b', 2)"
TABLE = "CREATE TABLE items (k STRING, name STRING)"
ITEMS = "INSERT INTO items VALUES ('a', 'apple')"
VIEW = "CREATE VIEW v AS SELECT k, sum(v) AS total FROM s GROUP BY k"
JOINED = (
    "CREATE VIEW j AS SELECT name, sum(v) AS total FROM s JOIN items ON s.k = items.k GROUP BY name"
)
SELECT = "SELECT count(*) AS n FROM s [INTERVAL '1' SECOND BEFORE] SAMPLE INTERVAL '1' SECOND"
QUERY = f"CREATE CONTINUOUS QUERY q AS {SELECT}"
KEPT = f"CREATE MATERIALIZED VIEW m AS {SELECT}"
INDEX = "CREATE INDEX i ON s (k)"
SINK = "CREATE SINK o FROM q INTO 'csv:{folder}/out'"
SOURCE = "CREATE SOURCE c INTO s FROM 'tcp://127.0.0.1:1'"
GENERATED = "SELECT count(*) AS n FROM STREAM(numbers(3), 'CUT BY 2 ROWS') g"


@dataclass(frozen=True)
class Case:
    """A statement, and what is there before it."""

    text: str
    before: tuple[str, ...] = ()


CASES = {
    "table": Case(TABLE),
    "replaced table": Case(f"CREATE OR REPLACE {TABLE[7:]}", (TABLE, ITEMS)),
    "streaming table": Case(STREAM),
    "stream": Case("CREATE STREAM z (k STRING, v BIGINT)"),
    "index": Case(INDEX, (STREAM, ROWS)),
    "view": Case(VIEW, (STREAM, ROWS)),
    "view with a table": Case(JOINED, (STREAM, ROWS, TABLE, ITEMS)),
    "query": Case(QUERY, (STREAM, ROWS)),
    "update query": Case(
        "CREATE CONTINUOUS QUERY u AS SELECT k, v FROM z WITH UPDATES",
        ("CREATE STREAM z (k STRING, v BIGINT) UPDATE KEY (k)",),
    ),
    "materialized view": Case(KEPT, (STREAM, ROWS)),
    "view of a generator": Case(f"CREATE MATERIALIZED VIEW g AS {GENERATED}"),
    "sink": Case(SINK, (STREAM, QUERY)),
    "source": Case(SOURCE, (STREAM,)),
    "user": Case("CREATE USER ada PASSWORD 'correct horse'"),
    "function": Case("CREATE FUNCTION twice(n INT) RETURNS INT RETURN 2 * n"),
    "rename": Case("ALTER TABLE items RENAME TO things", (TABLE, ITEMS)),
    "new column": Case("ALTER TABLE items ADD COLUMNS (price INT)", (TABLE, ITEMS)),
    "range": Case("ALTER TABLE s SET RANGE INTERVAL '1' HOUR", (STREAM, ROWS)),
    "insert": Case(ITEMS, (TABLE,)),
    "truncate": Case("TRUNCATE TABLE items", (TABLE, ITEMS)),
    "delete of a stream": Case("DELETE FROM s WHERE k = 'a'", (STREAM, ROWS)),
    "pause": Case("PAUSE QUERY q", (STREAM, QUERY)),
    "pause of a sink": Case("PAUSE SINK o", (STREAM, QUERY, SINK)),
    "pause of a source": Case("PAUSE SOURCE c", (STREAM, SOURCE)),
    "resume": Case("RESUME QUERY q", (STREAM, QUERY, "PAUSE QUERY q")),
    "drop of a table": Case("DROP TABLE items", (TABLE, ITEMS)),
    "drop of a streaming table": Case("DROP TABLE s", (STREAM, ROWS)),
    "drop of a table with an index": Case("DROP TABLE s", (STREAM, ROWS, INDEX)),
    "drop of a view of a generator": Case(
        "DROP MATERIALIZED VIEW g", (f"CREATE MATERIALIZED VIEW g AS {GENERATED}",)
    ),
    "drop of an index": Case("DROP INDEX i", (STREAM, ROWS, INDEX)),
    "drop of a view": Case("DROP VIEW v", (STREAM, ROWS, VIEW)),
    "drop of a query": Case("DROP QUERY q", (STREAM, ROWS, QUERY)),
    "drop of a materialized view": Case("DROP MATERIALIZED VIEW m", (STREAM, ROWS, KEPT)),
    "drop of a sink": Case("DROP SINK o", (STREAM, QUERY, SINK)),
    "drop of a source": Case("DROP SOURCE c", (STREAM, SOURCE)),
}  # fmt: skip
LISTS = ("TABLES", "INDEXES", "QUERIES", "VIEWS", "SOURCES", "SINKS", "FUNCTIONS", "USERS")
READ = {"items", "things", "s", "v", "j"}  # tables and views whose rows are compared too


def state(db: headwater.Database) -> dict[str, Any]:
    """What is there: names of all kinds, columns and rows."""
    db.flush()
    found: dict[str, Any] = {}
    for kind in LISTS:
        found[kind] = sorted(row[0] for row in db.sql(f"SHOW {kind}").rows())
    for relation in db.relations():
        rows = (
            sorted(db.sql(f"SELECT * FROM {relation.name}").rows())
            if relation.name in READ
            else None
        )
        found[f"columns of {relation.name}"] = (relation.schema.names, rows)
    for kind in ("queries", "sources", "sinks"):
        rows = db.sql(f"SELECT name, state FROM headwater.{kind}").rows()
        found[f"paused {kind}"] = sorted(name for name, now in rows if now == "paused")
    definitions = [table.definition for table in db._context.streams.all()]
    found["ranges"] = {d.name: d.range_ticks for d in definitions}
    return found


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[headwater.Database]:
    with headwater.connect(folder / "data", settings=INLINE) as db:
        db.create_function("numbers", numbers, returns="TABLE(n INT)", kind="table")
        yield db


def numbers(first: int) -> Iterator[tuple[int]]:
    """A generator for queries."""
    yield (first,)


class Tried:
    """A statement, tried with a failing call again and again from the same start."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._text, self._folder = case.text.replace("{folder}", str(folder)), folder
        self._start = folder / "start"
        with opened(self._start) as db:
            for text in case.before:
                db.sql(text.replace("{folder}", str(folder)))
            self._before = state(db)
        shutil.copytree(self._start, folder / "whole")
        with opened(folder / "whole") as db:
            db.sql(self._text)
            self._after = state(db)

    def calls_that_fail(self, kind: str, step: int) -> None:
        """Lets each call of a kind fail once, or each second one."""
        for at in range(1, MOST_CALLS, step):
            number = list(SQLSTATES)[at % len(SQLSTATES)]
            where = self._folder / f"{kind}-{at}"
            shutil.copytree(self._start, where)
            if not self._failed(where, kind, at, number):
                return
            shutil.rmtree(where)
        raise AssertionError("more calls than expected")

    def _failed(self, folder: Path, kind: str, at: int, number: int) -> bool:
        """Whether there was such a call."""
        with opened(folder) as db:
            db.flush()
            calls = FailingCalls(folder / "data", at, number)
            error: BaseException | None = None
            with calls.of(kind):
                try:
                    db.sql(self._text)
                except BaseException as caught:
                    error = caught
            if calls.failed is None:
                return False
            if error is not None:
                assert isinstance(error, headwater.Error), repr(error)
                assert error.sqlstate == SQLSTATES[number], error
                assert str(folder) in error.message, error
            self._wholly(state(db), error)
            self._wholly(as_killed(folder), error)
            repeated = state(db) == self._after or self._repeated(db)
        with opened(folder) as db:
            self._wholly(state(db), None if repeated else error)
        return True

    def _repeated(self, db: headwater.Database) -> bool:
        """Runs the statement again; a table whose commit was not synced is opened anew first."""
        try:
            db.sql(self._text)
        except StorageError as error:
            if error.hint is None or "close and open the database" not in error.hint:
                raise
            return False
        assert state(db) == self._after
        return True

    def _wholly(self, found: dict[str, Any], error: BaseException | None) -> None:
        """All of the statement or nothing of it; all if it said that it had succeeded."""
        assert found == self._after or (error is not None and found == self._before)


def as_killed(folder: Path) -> dict[str, Any]:
    """What is there for a process that opens the folder after this one was killed now."""
    shutil.copytree(folder / "data", folder / "copy" / "data")
    with opened(folder / "copy") as db:
        found = state(db)
    shutil.rmtree(folder / "copy")
    return found


@pytest.mark.parametrize(
    ("name", "step"),
    [pytest.param(name, 2, id=name) for name in CASES if "generator" not in name]
    + [pytest.param(name, 1, id=f"{name}, all", marks=pytest.mark.large) for name in CASES],
)
def test_a_statement_whose_files_fail(name: str, step: int, tmp_path: Path) -> None:
    tried = Tried(CASES[name], tmp_path)
    for kind in CALLS:
        tried.calls_that_fail(kind, step)


def test_an_open_whose_files_fail(tmp_path: Path) -> None:
    """The error is ours, and nothing keeps the folder from being opened after it."""
    case = CASES["drop of a sink"]
    Tried(case, tmp_path)
    folder = tmp_path / "start" / "data"
    with headwater.connect(folder, settings=INLINE) as db:
        expected = state(db)
    for kind in CALLS:
        for at in range(1, MOST_CALLS):
            calls = FailingCalls(folder, at, errno.EIO)
            with calls.of(kind), contextlib.suppress(headwater.Error):
                headwater.connect(folder, settings=INLINE).close()
            if calls.failed is None:
                break
        with headwater.connect(folder, settings=INLINE) as db:
            assert state(db) == expected


def test_a_copy_into_a_file_that_cannot_be_written(db: headwater.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE items (k STRING)")
    for name in ("nowhere/items.csv", "nowhere/items.parquet"):
        with pytest.raises(StorageError) as caught:
            db.sql(f"COPY items TO '{tmp_path / name}'")
        assert caught.value.sqlstate == "58P01"
        assert name in caught.value.message
