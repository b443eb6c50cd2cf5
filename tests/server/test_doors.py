"""What readers and writers do not get at, over both listeners: files, Java's words, paths, other users."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import headwater
from headwater.errors import Error
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.server.users import ServerUsers
from headwater.settings import Settings
from tests.server import matrix
from tests.server.http.client import Client
from tests.server.live import Live, LiveServer

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = 3"


@pytest.fixture
def shop(folder: Path) -> Iterator[headwater.Database]:
    """A database in a folder of a known name, with a user of each role."""
    with headwater.connect(folder) as db:
        matrix.fill(db)
        db.sql("INSERT INTO t VALUES (1)")
        db.sql("INSERT INTO e VALUES (1)")
        yield db


@pytest.fixture
def wire(shop: headwater.Database) -> Iterator[LiveServer]:
    """PostgreSQL's protocol."""
    with LiveServer(shop, ServerUsers(shop.users)) as server:
        yield server


@pytest.fixture
def web(shop: headwater.Database) -> Iterator[Live]:
    """HTTP."""
    with Live(HttpServer(shop, HttpOptions(port=0))) as server:
        yield server


def logged_in(live: LiveServer, role: str) -> Any:
    """A connection of a user of a role."""
    where = f"host={live.host} port={live.port} dbname=headwater sslmode=disable"
    return psycopg.connect(f"{where} user={role[0]} password=pw-{role}", autocommit=True)


def asking(live: Live, role: str) -> Client:
    """An HTTP client of a user of a role."""
    secret = base64.b64encode(f"{role[0]}:pw-{role}".encode()).decode()
    return Client(live, f"Basic {secret}")


def opened(path: Path) -> str:
    """A call that has Spark open a file as an XML schema."""
    return f"from_xml('<a>1</a>', 'a INT', map('rowValidationXSDPath', 'file:{path}'))"


def test_a_reader_reads_no_file_by_a_function(wire: LiveServer, web: Live, tmp_path: Path) -> None:
    """In every statement that may hold an expression, prepared or not, over both listeners."""
    secret = tmp_path / "secret.xsd"
    secret.write_text("super-secret-token-42")
    call = opened(secret)
    texts = [
        f"SELECT {call}",
        f"SELECT a FROM t WHERE {call}.a = 1",
        f"EXPLAIN SELECT {call}",
        f"EXPLAIN ANALYZE SELECT {call}",
        f"DESCRIBE (SELECT {call})",
        f"COPY (SELECT {call}) TO STDOUT",
        f"BEGIN; DECLARE c CURSOR FOR SELECT {call}; FETCH c",
        f"SUBSCRIBE TO (SELECT {call}.a AS a FROM e [ROWS 3] SAMPLE 1 ROWS)",
        f"INSERT INTO t SELECT {call}.a",
        f"BEGIN; INSERT INTO t SELECT {call}.a; COMMIT",
        f"INSERT INTO t VALUES ({call}.a)",
        f"UPDATE t SET a = {call}.a",
        f"DELETE FROM t WHERE {call}.a = 1",
        f"MERGE INTO t USING (SELECT {call}.a) u ON t.a = u.a WHEN MATCHED THEN DELETE",
        f"CALL p({call})",
    ]
    for role in ("reader", "writer"):
        for text in texts:
            with logged_in(wire, role) as client, pytest.raises(psycopg.Error) as caught:
                client.execute(text)
            assert caught.value.sqlstate == "42501", (role, text)
        with logged_in(wire, role) as client, pytest.raises(psycopg.Error) as caught:
            client.execute(f"SELECT {call}, %s", (1,), prepare=True)
        assert caught.value.sqlstate == "42501"
        with asking(web, role) as client:
            for text in texts:
                if "BEGIN" not in text and "STDOUT" not in text:
                    assert client.sql(text).sqlstate == "42501", (role, text)
            select = f"SELECT {call}.a AS a FROM e [ROWS 3] SAMPLE 1 ROWS"
            answer = client.ask("GET", "/subscribe/" + quote(select, safe=""))
            assert (answer.status, answer.sqlstate) == (403, "42501")


def test_a_procedure_of_an_admin_lends_no_rights_a_view_shows_what_it_was_made_for(
    shop: headwater.Database,
) -> None:
    """What is called runs as the caller; what is read was an admin's choice."""
    shop.sql("CREATE PROCEDURE p(x STRING) AS BEGIN SELECT from_xml(x, 'a INT'); END")
    shop.sql("CREATE VIEW v AS SELECT from_xml('<r><a>1</a></r>', 'a INT').a AS a FROM t")
    shop.sql("CREATE FUNCTION twice(x INT) RETURNS INT RETURN 2 * x")
    with pytest.raises(Error) as caught:
        shop.statement("CALL p('<a/>')", role="reader")
    assert caught.value.sqlstate == "42501"
    assert shop.statement("SELECT a FROM v", role="reader").row_count == 1
    assert shop.statement("SELECT twice(a) AS a FROM t", role="reader").rows() == [(2,)]


def test_an_answer_that_an_admin_got_is_not_given_to_others(
    shop: headwater.Database, wire: LiveServer
) -> None:
    """Known answers go out without a look at the role: those that take an admin are not kept."""
    shop.sql("CREATE VIEW known AS SELECT count(*) AS n FROM e")
    text = "SELECT n, schema_of_xml('<r><a>1</a></r>') FROM known"
    with logged_in(wire, "admin") as client:
        for _ in range(3):
            assert len(client.execute(text).fetchall()) == 1
    with logged_in(wire, "reader") as client, pytest.raises(psycopg.Error) as caught:
        client.execute(text)
    assert caught.value.sqlstate == "42501"


def test_javas_words_are_for_admins_and_the_log(
    shop: headwater.Database,
    wire: LiveServer,
    web: Live,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Others learn the SQLSTATE and a number, under which the log has the cause."""
    missing = tmp_path / "no-such-file.xsd"
    shop.sql(f"CREATE VIEW broken AS SELECT {opened(missing)}.a AS a FROM t")
    with pytest.raises(Error, match="no-such-file"):
        shop.sql("SELECT a FROM broken")
    said = []
    with caplog.at_level(logging.WARNING, "headwater"):
        with logged_in(wire, "reader") as client, pytest.raises(psycopg.Error) as caught:
            client.execute("SELECT a FROM broken")
        said.append(str(caught.value))
        with asking(web, "reader") as client:
            answer = client.sql("SELECT a FROM broken")
        said.append(str(answer.json))
    for words in said:
        assert "Spark could not run the statement" in words
        assert "no-such-file" not in words
        assert "java" not in words.lower()
    logged = [record.getMessage() for record in caplog.records if record.name == "headwater"]
    assert len(logged) == 2
    assert all("no-such-file" in line for line in logged)


def test_errors_about_the_statement_itself_are_said_in_full(shop: headwater.Database) -> None:
    """Columns that are not there, divisions by zero, texts that are no numbers."""
    for text, state, words in (
        ("SELECT upper(zzz) FROM t", "42703", "zzz"),
        ("SELECT 1 / (a - 1) FROM t", "22012", "division by zero"),
        ("SELECT CAST('/etc/abc' AS INT), upper('a')", "22018", "/etc/abc"),
    ):
        with pytest.raises(Error) as caught:
            shop.statement(text, role="reader")
        assert (caught.value.sqlstate, words in str(caught.value).lower()) == (state, True), text


def test_readers_see_no_paths_of_the_server(shop: headwater.Database, folder: Path) -> None:
    """Not in system tables, not in plans, not in errors; an admin sees them."""
    shop.seal()
    (folder.parent / "in").mkdir()
    shop.sql(f"CREATE SOURCE s INTO e FROM 'csv:{folder.parent}/in'")
    shop.sql(f"SET spark.local.thing = '{folder}/x'")
    texts = [
        *(
            f"SELECT * FROM headwater.{name}"
            for name in ("tables", "blocks", "sources", "settings")
        ),
        "SHOW SOURCES",
        "SHOW SETTINGS",
        "SHOW spark.local.thing",
        "EXPLAIN SELECT upper('a'), a FROM t",
        "EXPLAIN SELECT upper('a'), a FROM e",
    ]
    for text in texts:
        assert str(folder.parent) in str(shop.statement(text).rows()), text
        for role in ("reader", "writer"):
            assert str(folder.parent) not in str(shop.statement(text, role=role).rows()), text
    shown = shop.statement("SELECT location FROM headwater.tables WHERE name = 't'", role="reader")
    assert shown.rows()[0][0].startswith("tables/t-")
    damaged = next((folder / "tables").glob("t-*/*.parquet"))
    damaged.unlink()
    with pytest.raises(Error) as caught:
        shop.statement("SELECT upper('a'), a FROM t", role="reader")
    assert caught.value.sqlstate == "XX001"
    assert str(folder.parent) not in str(caught.value)


def test_readers_query_no_files_even_where_admins_may(
    shop: headwater.Database, tmp_path: Path
) -> None:
    """The setting that lets Spark read files by their paths holds for admins alone."""
    (tmp_path / "secret.txt").write_text("secret")
    text = f"SELECT * FROM text.`{tmp_path}/secret.txt`"
    for _ in range(2):
        assert shop.sql(text).rows() == [("secret",)]
        for role in ("reader", "writer"):
            with pytest.raises(Error) as caught:
                shop.statement(text, role=role)
            assert caught.value.sqlstate == "42P01"


def test_everybody_sees_himself_and_admins_see_all_users(wire: LiveServer, web: Live) -> None:
    """SHOW USERS, SHOW TOKENS and PostgreSQL's catalogs."""
    wire.server.database.sql("CREATE TOKEN k ROLE READER")
    for role, names in (("reader", ["r"]), ("writer", ["w"]), ("admin", ["a", "r", "w"])):
        with logged_in(wire, role) as client:
            assert sorted(row[0] for row in client.execute("SHOW USERS").fetchall()) == names
            assert len(client.execute("SHOW TOKENS").fetchall()) == (role == "admin")
            for table, column in (("pg_roles", "rolname"), ("pg_user", "usename")):
                found = client.execute(f"SELECT {column} FROM pg_catalog.{table}").fetchall()
                assert {row[0] for row in found} <= {*names, role[0]}
        with asking(web, role) as client:
            rows = client.sql("SHOW USERS").json["rows"]
            assert sorted(row[0] if isinstance(row, list) else row["name"] for row in rows) == names


def test_statements_of_users_have_a_limit_and_those_of_admins_none() -> None:
    """The default is five minutes; a session may ask for less, not for more."""
    assert Settings().number("statement_timeout_users_s") == 300
    assert Settings().number("statement_timeout_s") == 0
    with headwater.connect(settings={"statement_timeout_users_s": 0.5}) as db:
        matrix.fill(db)
        assert db.sql("SELECT upper('a')").rows() == [("A",)]
        for role, limit_s, name in (
            ("reader", 0.0, "statement_timeout_users_s = 0.5"),
            ("writer", 60.0, "statement_timeout_users_s = 0.5"),
            ("reader", 0.1, "statement_timeout = 0.1"),
            ("admin", 0.2, "statement_timeout = 0.2"),
        ):
            with pytest.raises(Error, match=name) as caught:
                db.statement(ENDLESS, role=role, limit_s=limit_s)  # type: ignore[arg-type]
            assert caught.value.sqlstate == "57014"
        db.sql("SET statement_timeout_users_s = 600")
        with LiveServer(db, ServerUsers(db.users)) as live, logged_in(live, "reader") as client:
            client.execute("SET statement_timeout = '200ms'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                client.execute(ENDLESS)
            with pytest.raises(psycopg.Error):
                client.execute("SET statement_timeout = 'never'")
