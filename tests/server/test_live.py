"""A live server, and one script that every client runs: rows, parameters, COPY, errors, transactions."""

from __future__ import annotations

import datetime as dt
import io
import shutil
import subprocess
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import headwater
from headwater.server.wire.scram import make_verifier
from headwater.server.wire.users import Login
from headwater.sql.statements.user import Role
from tests.harness.patience import PATIENCE_S
from tests.server.live import LiveServer

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
ROW = (
    1,
    'it\'s \\ "x"',
    1.5,
    dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    Decimal("1.25"),
    True,
    dt.date(2024, 2, 29),
    b"\0a",
    2**40,
)
TYPES = "a INT, b STRING, c DOUBLE, d TIMESTAMP, e DECIMAL(10, 2), f BOOLEAN, g DATE, h BINARY, i BIGINT"
PLACES = "%s, %s, %s, %s, %s, %s, %s, %s, %s"


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A fresh database behind a server."""
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db, LiveServer(db) as server:
        yield server


def connected(live: LiveServer, **options: Any) -> Any:
    return psycopg.connect(live.dsn, autocommit=True, **options)


def test_psycopg_runs_the_script(live: LiveServer) -> None:
    """psycopg 3: every type in text and binary, prepared statements, COPY, cursors, errors."""
    with connected(live) as client:
        client.execute(f"CREATE TABLE t ({TYPES})")
        client.execute(f"INSERT INTO t VALUES ({PLACES})", ROW)
        for binary in (False, True):
            with client.cursor(binary=binary) as cursor:
                assert cursor.execute("SELECT * FROM t WHERE a = %s", (1,)).fetchall() == [ROW]
        with client.cursor() as cursor, cursor.copy("COPY t (a, b) FROM STDIN") as copy:
            for number in range(2, 1000):
                copy.write_row((number, None if number % 2 else f"tab\t{number}"))
        with client.cursor() as cursor, cursor.copy("COPY t (a, b) TO STDOUT") as copy:
            assert [row for row in copy.rows() if row[0] in ("2", "3")] == [
                ("2", "tab\t2"),
                ("3", None),
            ]
        for number in range(7):
            found = client.execute(
                "SELECT b FROM t WHERE a = %s", (number,), prepare=True
            ).fetchall()
            assert len(found) == (number > 0)
        with client.cursor() as cursor:
            assert sum(1 for _ in cursor.stream("SELECT a FROM t")) == 999
        with client.transaction(), client.cursor("c") as cursor:
            cursor.execute("SELECT a FROM t ORDER BY a")
            assert cursor.fetchone() == (1,)
            assert cursor.fetchmany(2) == [(2,), (3,)]
        with pytest.raises(psycopg.errors.UndefinedTable) as caught:
            client.execute("SELECT *\nFROM nowhere WHERE a = %s", (1,))
        assert caught.value.diag.statement_position == "15"
        assert "SHOW TABLES" in caught.value.diag.message_hint
        assert client.execute("SELECT 1; SELECT 2").fetchall() == [(1,)]
        assert client.execute("").description is None


def test_a_transaction_holds_its_rows_back(live: LiveServer) -> None:
    """Rows of several tables become visible together at COMMIT; ROLLBACK and errors drop them."""
    with connected(live) as other, psycopg.connect(live.dsn) as client:

        def rows() -> list[int]:
            found = [other.execute(f"SELECT x FROM {name}").fetchall() for name in ("p", "q")]
            return [len(part) for part in found]

        for name in ("p", "q"):
            other.execute(f"CREATE STREAMING TABLE {name} (x INT)")
        other.execute("CREATE TABLE r (x INT)")
        client.execute("INSERT INTO p VALUES (1), (2)")
        with client.cursor() as cursor, cursor.copy("COPY q FROM STDIN") as copy:
            copy.write_row((3,))
        assert rows() == [0, 0]
        assert client.execute("SELECT x FROM p").fetchall() == []
        client.commit()
        assert rows() == [2, 1]
        times = other.execute("SELECT _t FROM p").fetchall()
        assert len(set(times)) == 1
        client.execute("INSERT INTO p VALUES (9)")
        client.rollback()
        client.execute("INSERT INTO p VALUES (9)")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="one standard table"):
            client.execute("INSERT INTO r VALUES (1)")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            client.execute("SELECT 1")
        client.commit()  # of a failed transaction: nothing is kept
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="COMMIT"):
            client.execute("DELETE FROM r")
        client.rollback()
        assert rows() == [2, 1]
        with client.transaction():
            client.execute("INSERT INTO r VALUES (1)")
            with client.transaction():
                client.execute("INSERT INTO r VALUES (2)")
                raise psycopg.Rollback
        client.commit()
        assert other.execute("SELECT x FROM r").fetchall() == [(1,)]


def test_subscribe_streams_until_it_is_cancelled(live: LiveServer) -> None:
    """Rows come as their instants close; a cancel request ends the statement, not the session."""
    with connected(live) as client, connected(live) as writer:
        client.execute("CREATE STREAMING TABLE s (at INT, v INT) TIMESTAMP BY at")
        client.execute(
            "CREATE CONTINUOUS QUERY q AS SELECT sum(v) AS n FROM s [INTERVAL '1' SECOND]"
            " SAMPLE INTERVAL '1' SECOND"
        )
        writer.execute("INSERT INTO s VALUES (1, 5), (2, 6)")
        writer.execute("ADVANCE s TO 3")
        found: list[Any] = []

        def streamed(rows: Any) -> None:
            for row in rows:
                found.append(row)
                if len(found) == 3:
                    client.cancel_safe()

        with client.cursor() as cursor, pytest.raises(psycopg.errors.QueryCanceled):
            streamed(cursor.stream("SUBSCRIBE q EARLIEST"))
        assert found == [(5, 1), (11, 2), (6, 3)]
        assert client.execute("SELECT 1").fetchall() == [(1,)]

        def copied() -> None:
            with cursor.copy("COPY (SUBSCRIBE q EARLIEST) TO STDOUT CSV") as copy:
                streamed(map(bytes, copy))

        found.clear()
        with client.cursor() as cursor, pytest.raises(psycopg.errors.QueryCanceled):
            copied()
        assert found == [b"5,1\n", b"11,2\n", b"6,3\n"]


def test_an_unchanged_view_is_answered_again(live: LiveServer) -> None:
    """The short way gives the rows of the long way, and never an old answer after an insert."""
    with connected(live) as client:
        client.execute("CREATE STREAMING TABLE s (k INT)")
        client.execute("CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k")
        for number in range(1, 6):
            client.execute("INSERT INTO s VALUES (7)")
            for _ in range(3):
                assert client.execute("SELECT * FROM v").fetchall() == [(7, number)]
                binary = client.cursor(binary=True).execute("SELECT * FROM v")
                assert binary.fetchall() == [(7, number)]
        assert client.execute("SELECT * FROM v;").fetchall() == [(7, 5)]
        client.execute("CREATE OR REPLACE VIEW v AS SELECT k, sum(k) AS n FROM s GROUP BY k")
        for _ in range(3):
            assert client.execute("SELECT * FROM v").fetchall() == [(7, 35)]
        client.execute("DROP VIEW v")
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT * FROM v")


def test_session_parameters_and_names_in_quotes(live: LiveServer) -> None:
    """SET and SHOW of PostgreSQL's parameters are the session's own; "x" is a name."""
    with connected(live, application_name="me") as client:
        assert client.execute("SHOW application_name").fetchall() == [("me",)]
        client.execute("SET TimeZone TO 'Europe/Berlin'")
        assert client.info.parameter_status("TimeZone") == "Europe/Berlin"
        with pytest.raises(psycopg.Error, match="client_encoding"):
            client.execute("SET client_encoding = 'LATIN1'")
        client.execute("RESET ALL")
        assert client.info.parameter_status("TimeZone") == "UTC"
        assert client.execute("SHOW rows_at_once").fetchall() == [("1000000",)]
        client.execute('CREATE TABLE "Odd" ("One" INT)')
        client.execute('INSERT INTO "Odd" VALUES (%s::INTEGER)', (4,))
        assert client.execute('SELECT "One" FROM "Odd"').fetchall() == [(4,)]
        assert client.execute("SELECT to_regclass('\"Odd\"')::oid > 0").fetchall() == [(True,)]


def test_copy_errors_leave_nothing(live: LiveServer) -> None:
    """A line that does not fit, or a client that gives up: no row is kept, the session goes on."""
    with connected(live) as client:
        client.execute("CREATE TABLE t (a INT)")

        def copied(data: bytes, give_up: bool = False) -> None:
            with client.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
                copy.write(data)
                if give_up:
                    raise ZeroDivisionError

        with pytest.raises(psycopg.errors.BadCopyFileFormat, match="line 2"):
            copied(b"1\ntwo\n")
        client.execute("CREATE STREAMING TABLE s (k INT)")
        client.execute("CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k")
        for name in ("nowhere", "v"):
            with pytest.raises(psycopg.ProgrammingError, match=f"{name}"):
                client.execute(f"COPY {name} FROM STDIN")
        with pytest.raises(ZeroDivisionError):
            copied(b"1\n", give_up=True)
        assert client.execute("SELECT a FROM t").fetchall() == []


class OneUser:
    """The one user that a server is given."""

    def __init__(self, user: str, login: Login) -> None:
        self._user, self._login = user, login

    def verifier_of(self, user: str) -> Login | None:
        return self._login if user == self._user else None

    def role_of(self, user: str) -> Role | None:
        return self._login.role if user == self._user else None

    def __len__(self) -> int:
        return 1


def test_passwords() -> None:
    """With users, a password is needed and the right one; who exists is not told."""
    users = OneUser("me", Login(make_verifier("secret", b"0123456789abcdef")))
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db, LiveServer(db, users) as live:

        def login(user: str, password: str) -> Any:
            return psycopg.connect(
                host=live.host, port=live.port, user=user, password=password, dbname="x"
            )

        with login("me", "secret") as client:
            assert client.execute("SELECT current_user").fetchall() == [("me",)]
        refused = []
        for user in ("me", "you"):
            with pytest.raises(psycopg.OperationalError) as caught:
                login(user, "guess")
            refused.append(str(caught.value).rpartition(user)[0])
        assert refused[0] == refused[1]
        assert "password authentication failed" in refused[0]


def test_a_client_that_goes_away(live: LiveServer) -> None:
    """A connection that breaks during SUBSCRIBE ends its statement; the server stays."""
    with connected(live) as client:
        client.execute("CREATE STREAMING TABLE s (at INT) TIMESTAMP BY at")
        client.execute("CREATE CONTINUOUS QUERY q AS SELECT * FROM s [ROWS 1] SAMPLE 1 ROWS")
        gone = psycopg.connect(live.dsn, autocommit=True)
        gone.pgconn.send_query(b"SUBSCRIBE q")
        gone.pgconn.flush()
        number = gone.info.backend_pid
        ended = live.server.connections[number].ended
        gone.close()
        live.wait_for(ended)
        assert number not in live.server.connections
        assert client.execute("SELECT 1").fetchall() == [(1,)]


def test_a_slow_reader_costs_bounded_memory(live: LiveServer) -> None:
    """While a client does not read, no more of its result is encoded than a few parts."""
    with connected(live) as client:
        client.execute("CREATE TABLE t (a BIGINT, b STRING)")
        with client.cursor() as cursor, cursor.copy("COPY t FROM STDIN CSV") as copy:
            copy.write("".join(f"{n},{'x' * 200}\n" for n in range(60_000)))
        slow = psycopg.connect(live.dsn, autocommit=True)
        slow.pgconn.send_query(b"SELECT * FROM t")
        slow.pgconn.flush()
        connection = live.server.connections[slow.info.backend_pid]
        live.wait_until(lambda: not connection._writable.is_set())
        assert connection._transport is not None
        assert connection._transport.get_write_buffer_size() < 4 << 20
        slow.close()
        assert client.execute("SELECT 1").fetchall() == [(1,)]


psql = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")


@psql
def test_psql_runs_the_script(live: LiveServer) -> None:
    """psql: \\d, \\dt, \\dv, \\d+ t, COPY both ways, errors with a marker under the place."""
    script = """
\\set ON_ERROR_STOP off
CREATE TABLE t (a INT NOT NULL, b STRING, "C" DECIMAL(10, 2));
CREATE STREAMING TABLE s (k INT);
CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k;
\\copy t FROM STDIN CSV
1,one,1.5
2,,
\\.
\\d
\\dt
\\dv
\\d+ t
\\d v
COPY t TO STDOUT;
SELECT * FROM t WHERE a = 1;
SELECT a FROM nowhere;
BEGIN;
INSERT INTO t VALUES (3, 'three', NULL);
ROLLBACK;
SELECT a FROM t ORDER BY a;
"""
    command = ["psql", "-X", "-A", "-v", "FETCH_COUNT=0", live.dsn]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=PATIENCE_S)
    out = done.stdout
    assert "public|s|table|tester\npublic|t|table|tester\npublic|v|view|tester" in out
    assert "a|integer||not null|" in out
    assert "C|numeric(10,2)|||" in out
    assert 'View "public.v"' in out
    assert "1\tone\t1.50\n2\t\\N\t\\N\n" in out
    assert "a|b|C\n1|one|1.50\n(1 row)" in out
    assert out.endswith("BEGIN\nINSERT 0 1\nROLLBACK\na\n1\n2\n(2 rows)\n")
    assert "LINE 1: SELECT a FROM nowhere" in done.stderr
    assert done.stderr.count("ERROR") == 1


def test_asyncpg_runs_the_script(live: LiveServer) -> None:
    """asyncpg: binary both ways, types asked of the server, cursors, COPY."""
    asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is not installed")
    import asyncio

    async def script() -> None:
        client = await asyncpg.connect(
            host=live.host, port=live.port, user="tester", database="headwater", ssl=False
        )
        await client.execute(f"CREATE TABLE t ({TYPES})")
        places = ", ".join(f"${n}" for n in range(1, 10))
        await client.execute(f"INSERT INTO t VALUES ({places})", *ROW)
        assert tuple(await client.fetchrow("SELECT * FROM t WHERE a = $1", 1)) == ROW
        source = io.BytesIO(b"2,two\n")
        await client.copy_to_table("t", source=source, columns=["a", "b"], format="csv")
        async with client.transaction():
            await client.execute("INSERT INTO t (a) VALUES ($1)", 3)
            assert [r["a"] async for r in client.cursor("SELECT a FROM t ORDER BY a")] == [1, 2]
        assert len(await client.fetch("SELECT a FROM t")) == 3
        with pytest.raises(asyncpg.UndefinedTableError):
            await client.fetch("SELECT * FROM nowhere")
        await client.close()

    asyncio.run(script())


def test_sqlalchemy_reflects_and_writes(live: LiveServer) -> None:
    """SQLAlchemy: reflection of tables and views, create_all, inserts of many rows, selects."""
    sa = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    engine = sa.create_engine(f"postgresql+psycopg://tester@{live.host}:{live.port}/headwater")
    table = sa.Table("t", sa.MetaData(), sa.Column("a", sa.Integer), sa.Column("B", sa.String))
    table.metadata.create_all(engine)
    with engine.begin() as client:
        client.execute(table.insert(), [{"a": 1, "B": "x"}, {"a": 2, "B": None}])
    with engine.connect() as client:
        chosen = sa.select(table).where(table.c.a >= 1).order_by(table.c.a)
        assert client.execute(chosen).fetchall() == [(1, "x"), (2, None)]
    found = sa.inspect(engine)
    assert found.get_table_names() == ["t"]
    assert [(c["name"], str(c["type"])) for c in found.get_columns("t")] == [
        ("a", "INTEGER"),
        ("B", "TEXT"),
    ]
    engine.dispose()


def test_many_clients_at_once(live: LiveServer) -> None:
    """Eight clients write and read side by side; every acknowledged row is there."""
    with connected(live) as client:
        client.execute("CREATE STREAMING TABLE s (who INT, n INT)")

        def work(who: int) -> None:
            with connected(live) as mine:
                for number in range(20):
                    mine.execute("INSERT INTO s VALUES (%s, %s)", (who, number))

        threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(client.execute("SELECT * FROM s").fetchall()) == 160
