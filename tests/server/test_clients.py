"""The script that every client runs, with clients that are not installed everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import headwater
from tests.harness.patience import PATIENCE_S
from tests.server.live import LiveServer
from tests.server.test_live import PLACES, ROW, TYPES

FOLDER = Path(__file__).parent / "clients"
NODE_MISSING = "node-postgres is not installed (npm install -g pg, and NODE_PATH)"


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A fresh database behind a server."""
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db, LiveServer(db) as server:
        yield server


def node_environment() -> dict[str, str] | None:
    """The environment in which node finds node-postgres; None where there is none."""
    if shutil.which("node") is None:
        return None
    found = dict(os.environ)
    if not found.get("NODE_PATH") and shutil.which("npm") is not None:
        where = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True)
        found["NODE_PATH"] = where.stdout.strip()
    command = ["node", "-e", "require.resolve('pg')"]
    done = subprocess.run(command, env=found, cwd=FOLDER, capture_output=True)
    return found if done.returncode == 0 else None


def test_node_postgres_runs_the_script(live: LiveServer) -> None:
    """node-postgres: every type, parameters, named statements, transactions, a view, errors."""
    environment = node_environment()
    if environment is None:
        pytest.skip(NODE_MISSING)
    command = ["node", str(FOLDER / "node_postgres.js"), live.host, str(live.port)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["inserted"] == 1
    assert seen["row"] == {
        "a": 1,
        "b": 'it\'s \\ "x"',
        "c": 1.5,
        "d": "2024-01-01T00:00:00.000Z",
        "e": "1.25",
        "f": True,
        "g": [2024, 2, 29],
        "h": "0061",
        "i": "1099511627776",
    }
    assert seen["prepared"] == [[], [[ROW[1]]], [[ROW[1]]]]
    assert seen["a"] == [1, 3]
    assert seen["view"] == [[str(n)] for n in (1, 2, 3) for _ in range(3)]
    assert seen["error"] == {"code": "42P01", "position": "15"}
    assert seen["after"] == [{"one": 1}]


def test_psycopg2_runs_the_script(live: LiveServer) -> None:
    """psycopg 2: every type, COPY both ways, transactions, named cursors, errors."""
    psycopg2 = pytest.importorskip("psycopg2", reason="psycopg2 is not installed")
    import io

    client = psycopg2.connect(live.dsn)
    client.autocommit = True
    with client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t ({TYPES})")
        cursor.execute(f"INSERT INTO t VALUES ({PLACES})", ROW)
        cursor.execute("SELECT * FROM t WHERE a = %s", (1,))
        (found,) = cursor.fetchall()
        assert (*found[:7], bytes(found[7]), found[8]) == ROW
        assert isinstance(found[4], Decimal)
        cursor.copy_expert("COPY t (a, b) FROM STDIN CSV", io.StringIO("2,two\n3,\n"))
        copied = io.StringIO()
        cursor.copy_expert("COPY t (a, b) TO STDOUT CSV", copied)
        assert sorted(copied.getvalue().splitlines())[1:] == ["2,two", "3,"]
        with pytest.raises(psycopg2.errors.UndefinedTable):
            cursor.execute("SELECT * FROM nowhere")
    client.autocommit = False
    with client.cursor("c") as cursor:
        cursor.execute("SELECT a FROM t ORDER BY a")
        assert cursor.fetchmany(2) == [(1,), (2,)]
    with client.cursor() as cursor:
        cursor.execute("INSERT INTO t (a) VALUES (4)")
    client.rollback()
    with client.cursor() as cursor:
        cursor.execute("SELECT a FROM t ORDER BY a DESC LIMIT 1")
        assert cursor.fetchall() == [(3,)]
    client.close()


def test_what_clients_of_postgresql_write(live: LiveServer) -> None:
    """The schema before a name, arrays, membership in them, also as a parameter."""
    import psycopg

    with psycopg.connect(live.dsn, autocommit=True) as session:
        session.execute("CREATE STREAMING TABLE public.t (id INT, name STRING)")
        session.execute("INSERT INTO public.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        found = session.execute('SELECT "t"."id" FROM "public"."t" ORDER BY id').fetchall()
        assert found == [(1,), (2,), (3,)]
        for text in ("id = ANY(%s)", "public.t.id = ANY(%s::int[])", "id <> ALL(ARRAY[2])"):
            values = [[1, 3]] if "%s" in text else None
            found = session.execute(f"SELECT id FROM t WHERE {text} ORDER BY id", values).fetchall()  # type: ignore[arg-type]
            assert found == [(1,), (3,)]
        text = "SELECT count(*) FROM t WHERE NOT id = ANY(%s) AND id <> ALL(%s)"
        assert session.execute(text, [[], []]).fetchall() == [(3,)]
