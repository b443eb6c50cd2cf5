"""Python's database interface (PEP 249), over a database in memory. No Spark needed."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

import headwater
from headwater import dbapi


@pytest.fixture
def connection() -> Iterator[dbapi.Connection]:
    with dbapi.connect(":memory:", settings={"eager_spark": False}) as opened:
        cursor = opened.cursor()
        cursor.execute("CREATE STREAMING TABLE items (id INT NOT NULL, name STRING)")
        cursor.executemany("INSERT INTO items VALUES (?, ?)", [(1, "pen"), (2, "it's"), (3, None)])
        assert cursor.rowcount == 3
        yield opened


def test_rows_are_fetched_in_parts(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("SELECT id, name FROM items ORDER BY id")
    assert cursor.fetchone() == (1, "pen")
    assert cursor.fetchmany(5) == [(2, "it's"), (3, None)]
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == (None, [], [])
    assert list(cursor.execute("SELECT id FROM items WHERE id > ? ORDER BY id", [1])) == [
        (2,),
        (3,),
    ]


def test_columns_are_described(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount) == (None, -1)
    cursor.execute("SELECT id, name FROM items")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["id", "name"]
    kinds = [column[1] for column in cursor.description]
    assert tuple(kinds) == (dbapi.NUMBER, dbapi.STRING)
    assert kinds[1] != dbapi.NUMBER
    assert dbapi.STRING != dbapi.BINARY
    assert cursor.rowcount == 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELEC 1", dbapi.ProgrammingError),
        ("SELECT * FROM nothing", dbapi.ProgrammingError),
        ("SELECT id FROM items WHERE id = ?", dbapi.ProgrammingError),
        ("INSERT INTO items VALUES (NULL, 'x')", dbapi.IntegrityError),
        ("INSERT INTO items VALUES (10000000000, 'x')", dbapi.DataError),
        ("CREATE TABLE t (a INT, UNIQUE (a))", dbapi.NotSupportedError),
    ],
)
def test_errors_are_of_the_kinds_that_tools_know(
    connection: dbapi.Connection, text: str, kind: type[dbapi.Error]
) -> None:
    with pytest.raises(kind) as raised:
        connection.cursor().execute(text, [] if "?" in text else None)
    assert isinstance(raised.value, dbapi.DatabaseError)
    cause = raised.value.__cause__
    assert isinstance(cause, headwater.Error)
    assert (cause.sqlstate, cause.hint) == (raised.value.sqlstate, raised.value.hint)


def test_what_is_closed_says_so(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="no rows"):
        cursor.fetchone()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="closed"):
        cursor.execute("SELECT 1")
    connection.commit()
    with pytest.raises(dbapi.NotSupportedError):
        connection.rollback()


def test_pandas_reads_through_it(connection: dbapi.Connection) -> None:
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql("SELECT id, name FROM items WHERE id < ?", connection, params=[3])
    assert frame["name"].tolist() == ["pen", "it's"]
