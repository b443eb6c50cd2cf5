"""Dates and timestamps outside the years 1 to 9999 are refused on every way into a table."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater
from headwater import values
from headwater.errors import Error
from headwater.server.http.rows_out import ARROW, JSON, LINES
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.server.wire.parameters import parameter_text
from headwater.storage.door import FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME
from tests.server.http.client import Client
from tests.server.live import Live, LiveServer

TIMESTAMP, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
COLUMNS = "at TIMESTAMP NOT NULL, id INT, n TIMESTAMP_NTZ, d DATE, p STRUCT<a: ARRAY<TIMESTAMP>>"
NESTED = pa.struct([("a", pa.list_(TIMESTAMP))])
NOW = datetime(2026, 11, 17, tzinfo=UTC)
FAR = {"at": [LAST_TIME + 1, FIRST_TIME - 1], "n": [LAST_TIME + 1, FIRST_TIME - 1]}
BAD: list[tuple[str, Any]] = [
    *(("at", pa.array([n], TIMESTAMP)) for n in FAR["at"]),
    *(("n", pa.array([n], NTZ)) for n in FAR["n"]),
    *(("d", pa.array([n], pa.date32())) for n in (FIRST_DAY - 1, LAST_DAY + 1)),
    ("p", pa.array([{"a": [0, 1 << 62]}], NESTED)),
]
IDS = [f"{name}-{n}" for n, (name, _) in enumerate(BAD)]
KINDS = {
    "t": f"CREATE TABLE t ({COLUMNS})",
    "s": f"CREATE STREAMING TABLE s ({COLUMNS}) TIMESTAMP BY at",
}


@pytest.fixture
def plain() -> Iterator[headwater.Database]:
    """A database that starts no Spark by itself, with a table of each kind."""
    with headwater.connect(settings={"eager_spark": False}) as database:
        for text in KINDS.values():
            database.sql(text)
        yield database


def rows_with(column: str, value: Any) -> pa.Table:
    """Two rows, the second with the value."""
    columns: dict[str, Any] = {
        "at": pa.array([0, 0], TIMESTAMP),
        "id": pa.array([1, 2], pa.int32()),
    }
    columns[column] = pa.chunked_array([pa.nulls(1, value.type), value])
    if column == "at":
        columns[column] = pa.chunked_array([pa.array([0], TIMESTAMP), value])
    return pa.table(columns)


def refused(db: headwater.Database, call: Callable[[], object], *words: str) -> None:
    """The call is refused with 22008, and nothing was written."""
    with pytest.raises(Error) as caught:
        call()
    assert caught.value.sqlstate == "22008", caught.value
    for word in words:
        assert word in caught.value.message
    for table in KINDS:
        assert db.sql(f"SELECT id FROM {table}").rows() == []


@pytest.mark.parametrize("table", KINDS)
@pytest.mark.parametrize(("column", "value"), BAD, ids=IDS)
def test_rows_from_python_and_files(
    plain: headwater.Database, tmp_path: Path, table: str, column: str, value: Any
) -> None:
    rows = rows_with(column, value)
    words = ("row 1:", f"column {column}")
    refused(plain, lambda: plain.insert(table, rows), *words)
    refused(plain, lambda: plain.insert(table, rows.to_batches()[-1]), f"column {column}")
    pq.write_table(rows, tmp_path / "in.parquet")
    refused(
        plain, lambda: plain.sql(f"COPY {table} FROM '{tmp_path / 'in.parquet'}' PARQUET"), *words
    )
    assert plain.insert(table, rows.slice(0, 1)) == 1


LINES_OF_CSV = [
    "12026-11-17 08:00:00+00,1,,,",
    "2026-11-17 08:00:00Z,1,+12026-11-17 08:00:00,,",
    "2026-11-17 08:00:00Z,1,0000-12-31 23:59:59,,",
    "2026-11-17 08:00:00Z,1,,99999-01-01,",
    "2026-11-17 08:00:00Z,1,,0000-12-31,",
]


@pytest.mark.parametrize("table", KINDS)
@pytest.mark.parametrize("line", LINES_OF_CSV)
def test_csv(plain: headwater.Database, tmp_path: Path, table: str, line: str) -> None:
    line = line[:-1]  # without the nested column
    path = tmp_path / "in.csv"
    path.write_text(line + "\n")
    refused(plain, lambda: plain.sql(f"COPY {table} (at, id, n, d) FROM '{path}' CSV"))
    with LiveServer(plain) as live, psycopg.connect(live.dsn, autocommit=True) as client:
        with (
            pytest.raises(psycopg.errors.DatetimeFieldOverflow),
            client.cursor().copy(f"COPY {table} (at, id, n, d) FROM STDIN CSV") as copy,
        ):
            copy.write(line + "\n")
        assert client.execute(f"SELECT id FROM {table}").fetchall() == []
    with Live(HttpServer(plain, HttpOptions(port=0))) as live, Client(live) as http:
        body = "at,id,n,d\n" + line + "\n"
        answer = http.ask("POST", f"/tables/{table}", body, Content_Type="text/csv")
        assert answer.sqlstate == "22008", answer.body
    refused(plain, lambda: plain.insert(table, rows_with(*BAD[0])))


@pytest.mark.parametrize("table", KINDS)
def test_http(plain: headwater.Database, table: str) -> None:
    sink = io.BytesIO()
    rows = rows_with(*BAD[0])
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    far = '{"at": "12026-11-17T08:00:00Z", "id": 1}'
    nested = '{"at": "2026-11-17T08:00:00Z", "p": {"a": ["9999-12-31T23:59:59-01:00"]}}'
    day = '{"at": "2026-11-17T08:00:00Z", "d": "12026-11-17"}'
    with Live(HttpServer(plain, HttpOptions(port=0))) as live, Client(live) as http:
        for kind, body in (
            (ARROW, sink.getvalue()),
            *((kind, text) for kind in (JSON, LINES) for text in (far, day)),
        ):
            answer = http.ask("POST", f"/tables/{table}", body, Content_Type=kind)
            assert answer.sqlstate == "22008", answer.body
        answer = http.ask("POST", f"/tables/{table}", nested, Content_Type=JSON)
        assert answer.status == 400, answer.body
        assert http.sql(f"SELECT id FROM {table}").json["rows"] == []


FAR_PARAMETERS = [
    (1184, 1, struct.pack("!q", LAST_TIME + 1 - 10_957 * 86_400_000_000)),
    (1184, 1, struct.pack("!q", (1 << 63) - 1)),
    (1114, 1, struct.pack("!q", -(1 << 63))),
    (1082, 1, struct.pack("!i", (1 << 31) - 1)),
    (1184, 0, b"12026-11-17 08:00:00+00"),
    (1184, 0, b"9999-12-31 23:59:59-01"),
    (1114, 0, b"12026-11-17 08:00:00"),
    (1082, 0, b"12026-11-17"),
    (1115, 0, b'{"12026-11-17 08:00:00"}'),
]


@pytest.mark.parametrize(("oid", "format_", "data"), FAR_PARAMETERS)
def test_parameters_over_the_wire(oid: int, format_: int, data: bytes) -> None:
    with pytest.raises(Error) as caught:
        parameter_text(data, oid, format_)
    assert caught.value.sqlstate == "22008"


@pytest.mark.parametrize("table", KINDS)
def test_a_bound_parameter_over_the_wire(plain: headwater.Database, table: str) -> None:
    with LiveServer(plain) as live, psycopg.connect(live.dsn, autocommit=True) as client:
        for text in ("9999-12-31 23:59:59-01", "12026-11-17 08:00:00"):
            with pytest.raises(psycopg.errors.DatetimeFieldOverflow):
                client.execute(f"INSERT INTO {table} (at, id) VALUES (%s, 1)", [text])
        client.execute(f"INSERT INTO {table} (at, id) VALUES (%s, 1)", [NOW])
        assert client.execute(f"SELECT id FROM {table}").fetchall() == [(1,)]


def test_the_first_and_last_moments_are_stored_and_shown_everywhere(
    plain: headwater.Database,
) -> None:
    ends = pa.table(
        {
            "at": pa.array([FIRST_TIME, LAST_TIME], TIMESTAMP),
            "id": pa.array([1, 2], pa.int32()),
            "n": pa.array([FIRST_TIME, LAST_TIME], NTZ),
            "d": pa.array([FIRST_DAY, LAST_DAY], pa.date32()),
        }
    )
    first, last = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
    plain.sql("SET max_clock_ahead_s = 0")
    for table in KINDS:
        plain.insert(table, ends)
        plain.seal()
        rows = plain.sql(f"SELECT at, n, d FROM {table}").rows()
        assert [(at.replace(tzinfo=None), n, d) for at, n, d in sorted(rows)] == [
            (moment, moment, moment.date()) for moment in (first, last)
        ]
        with Live(HttpServer(plain, HttpOptions(port=0))) as live, Client(live) as http:
            assert sorted(http.sql(f"SELECT at, d FROM {table}").json["rows"]) == [
                ["0001-01-01T00:00:00Z", "0001-01-01"],
                ["9999-12-31T23:59:59.999999Z", "9999-12-31"],
            ]
        with LiveServer(plain) as live, psycopg.connect(live.dsn, autocommit=True) as client:
            client.execute("SET TimeZone TO 'UTC'")
            found = client.execute(f"SELECT n, d FROM {table}").fetchall()
            assert sorted(found) == [(first, first.date()), (last, last.date())]


STATEMENTS = [
    "INSERT INTO {0} (at) VALUES ('+12026-11-17 08:00:00')",
    "INSERT INTO {0} (at) VALUES (TIMESTAMP '9999-12-31 23:59:59-01:00')",
    "INSERT INTO {0} (at) VALUES (TIMESTAMP '+294247-01-10 04:00:54')",
    "INSERT INTO {0} (at, d) VALUES (now(), DATE '+12026-11-17')",
    "INSERT INTO {0} (at, p) SELECT now(), named_struct('a', array(timestamp_micros(1L << 60)))",
]
CHANGES = [
    "UPDATE {0} SET n = TIMESTAMP_NTZ '+12026-11-17 08:00:00' WHERE id = 1",
    "MERGE INTO {0} USING (SELECT 1 AS id) AS x ON {0}.id = x.id"
    " WHEN MATCHED THEN UPDATE SET d = DATE '+12026-11-17'",
]


def test_statements_that_spark_evaluates(db: headwater.Database) -> None:
    for text in KINDS.values():
        db.sql(text)
    for table in KINDS:
        for text in STATEMENTS:
            refused(db, lambda text=text, table=table: db.sql(text.format(table)), "column ")  # type: ignore[misc]
    with pytest.raises(Error, match="column d is outside"):
        db.sql("CREATE TABLE made AS SELECT DATE '+12026-11-17' AS d")
    with pytest.raises(Error, match="made does not exist"):
        db.sql("SELECT * FROM made")
    for table in KINDS:
        db.insert(table, [{"at": NOW, "id": 1}])
        for text in CHANGES[: 1 if table == "s" else None]:  # MERGE is for standard tables
            with pytest.raises(Error) as caught:
                db.sql(text.format(table))
            assert caught.value.sqlstate == "22008"
        assert db.sql(f"SELECT id, n, d FROM {table}").rows() == [(1, None, None)]
    # Inside of a query Spark's years hold, and their digits stay.
    rows = db.sql("SELECT TIMESTAMP '+67562-01-01 01:26:24' AS far")
    assert values.python_values(rows.arrow().column(0)) == ["67562-01-01 01:26:24.000000Z"]
