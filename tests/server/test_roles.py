"""The permission matrix over PostgreSQL's protocol: statements × who is logged in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headwater
from headwater.server.users import ServerUsers
from headwater.sql.statements.user import Role
from tests.server import matrix
from tests.server.live import LiveServer
from tests.server.matrix import RANKS

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
STATEMENTS: dict[str, Role] = {
    **matrix.STATEMENTS,
    "BEGIN; INSERT INTO t VALUES (1); COMMIT": "writer",
    "DECLARE c CURSOR FOR DELETE FROM t; FETCH c": "writer",
}


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A server with a user of each role."""
    with headwater.connect(settings={"eager_spark": False}) as db:
        matrix.fill(db)
        with LiveServer(db, ServerUsers(db.users)) as server:
            yield server


def logged_in(live: LiveServer, user: str, password: str) -> Any:
    """A connection of a user."""
    where = f"host={live.host} port={live.port} dbname=headwater sslmode=disable"
    return psycopg.connect(f"{where} user={user} password={password}", autocommit=True)


def test_nobody_comes_in_without_the_password(live: LiveServer) -> None:
    """A wrong password and an unknown user get the same answer; none at all gets nowhere."""
    said = []
    for user, password in (("r", "wrong"), ("zzz", "pw-reader"), ("r", "''")):
        with pytest.raises(psycopg.OperationalError) as caught:
            logged_in(live, user, password)
        said.append(str(caught.value).replace("zzz", "r").rpartition("failed: ")[2])
    assert said[0] == said[1]
    assert "authentication" in said[0]


@pytest.mark.parametrize("role", RANKS)
def test_the_matrix(live: LiveServer, role: Role) -> None:
    """Each role runs what it may, by the simple and the extended protocol; the rest is 42501."""
    for text, least in STATEMENTS.items():
        allowed = RANKS.index(role) >= RANKS.index(least)
        for prepared in (False, True) if ";" not in text else (False,):
            with logged_in(live, role[0], f"pw-{role}") as client:
                sqlstate = _sqlstate(client, text, prepared)
            assert (sqlstate == "42501") != allowed, (role, text, prepared)
            assert sqlstate in ("", "42501") or least == "admin" or "DECLARE" in text


def _sqlstate(client: Any, text: str, prepared: bool) -> str:
    """The SQLSTATE that a statement fails with; nothing if it does not."""
    try:
        client.execute(text, () if prepared else None, prepare=prepared)
    except psycopg.Error as error:
        return str(error.sqlstate)
    return ""


def test_copy(live: LiveServer) -> None:
    """COPY FROM STDIN is a writer's, COPY TO STDOUT a reader's; what a reader may not adds no row."""
    with logged_in(live, "r", "pw-reader") as client:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):  # noqa: SIM117
            with client.cursor().copy("COPY t FROM STDIN") as copy:
                copy.write_row((1,))
        with client.cursor().copy("COPY t TO STDOUT") as copy:
            assert list(copy.rows()) == []
    with logged_in(live, "w", "pw-writer") as client:
        with client.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write_row((1,))
        assert client.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_role_that_is_taken_away_is_gone_at_once(live: LiveServer) -> None:
    """Open connections too: a role that changed holds for the next statement, a dropped user runs none."""
    database = live.server.database
    database.sql("CREATE STREAMING TABLE counted (a INT)")
    database.sql("CREATE VIEW known AS SELECT count(*) AS n FROM counted")
    with logged_in(live, "w", "pw-writer") as client:
        client.execute("INSERT INTO counted VALUES (1)")
        for _ in range(4):
            assert client.execute("SELECT * FROM known", prepare=True).fetchall() == [(1,)]
        database.sql("ALTER USER w ROLE READER")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("INSERT INTO counted VALUES (1)")
        assert client.execute("SELECT * FROM known", prepare=True).fetchall() == [(1,)]
        database.sql("DROP USER w")
        for prepared in (True, False):
            with pytest.raises(psycopg.errors.InvalidAuthorizationSpecification):
                client.execute("SELECT * FROM known", prepare=prepared)
