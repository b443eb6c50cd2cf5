"""Who may do what over HTTP: logins, roles, pages of other sites, paths."""

from __future__ import annotations

import http.client
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater.cli.serve import CLOSED
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.server.serve import tls_context
from headwater.server.users import REMEMBERED, Authenticator, ServerUsers
from headwater.sql.statements.user import Role
from tests.harness.patience import PATIENCE_S
from tests.server.http.client import Client, basic
from tests.server.live import Live
from tests.server.matrix import RANKS, STATEMENTS, fill
from tests.server.test_serve import certificate


@pytest.fixture
def guarded(plain: headwater.Database) -> Iterator[Live]:
    """A server with a user of each role."""
    fill(plain)
    with Live(HttpServer(plain, HttpOptions(port=0))) as server:
        yield server


def test_the_matrix(guarded: Live, plain: headwater.Database) -> None:
    """Statements × {no login, wrong password, unknown user, reader, writer, admin, tokens}."""
    tokens = {role: plain.sql(f"CREATE TOKEN k{role} ROLE {role}").rows()[0][0] for role in RANKS}
    nobody = (
        None,
        basic("r", "wrong"),
        basic("zzz", "pw-reader"),
        "Bearer hw_x",
        "Basic ?",
        "Digest x",
    )
    for header in nobody:
        with Client(guarded, header) as client:
            for text in STATEMENTS:
                answer = client.sql(text)
                assert (answer.status, answer.sqlstate[:2]) == (401, "28"), (header, text)
                assert "Basic" in answer.headers["www-authenticate"]
            rows = client.ask("POST", "/tables/t", '{"a":1}', Content_Type="application/json")
            assert rows.status == 401
            assert client.ask("GET", "/subscribe/q").status == 401
            assert client.ask("GET", "/metrics").status == 401
            assert client.ask("GET", "/health").status == 200
    for role in RANKS:
        for header in (basic(role[0], f"pw-{role}"), f"Bearer {tokens[role]}"):
            with Client(guarded, header) as client:
                _check_role(client, role)


def _check_role(client: Client, role: Role) -> None:
    for text, least in STATEMENTS.items():
        answer = client.sql(text)
        refused = answer.status == 403 and answer.sqlstate == "42501"
        assert refused == (RANKS.index(role) < RANKS.index(least)), (role, text, answer.body)
        if not refused and not text.startswith("COPY"):
            assert answer.status == 200, (text, answer.body)
    rows = client.ask("POST", "/tables/t", '{"a":1}', Content_Type="application/json")
    assert rows.status == (403 if role == "reader" else 200)
    assert client.ask("GET", "/metrics").status == 200
    assert client.ask("GET", "/subscribe/zzz").status == 404


def test_a_changed_password_holds_at_once(guarded: Live, plain: headwater.Database) -> None:
    """What was remembered of the old password is worth nothing, nor is a dropped user or token."""
    token = plain.sql("CREATE TOKEN k").rows()[0][0]
    with (
        Client(guarded, basic("r", "pw-reader")) as client,
        Client(guarded, f"Bearer {token}") as other,
    ):
        assert client.sql("SHOW TABLES").status == other.sql("SHOW TABLES").status == 200
        plain.sql("ALTER USER r PASSWORD 'new'; DROP TOKEN k")
        assert client.sql("SHOW TABLES").status == other.sql("SHOW TABLES").status == 401


def test_passwords_do_not_come_back(guarded: Live) -> None:
    """An error about CREATE USER has no password in it."""
    with Client(guarded, basic("a", "pw-admin")) as client:
        answer = client.sql("CREATE USER x PASSWORD 'hunter2' ROLE KING")
    assert answer.status == 400
    assert b"hunter2" not in answer.body


def test_the_memory_of_passwords_is_bounded(plain: headwater.Database) -> None:
    """Right passwords are remembered, as hashes, up to a bound; wrong ones are not."""
    plain.sql("CREATE USER u PASSWORD 'p' ROLE ADMIN")
    found = Authenticator(ServerUsers(plain.users))
    found.identify(basic("u", "p"), trusted=False)
    found._passed.update((n.to_bytes(4, "big"), None) for n in range(REMEMBERED + 50))
    with pytest.raises(headwater.Error):
        found.identify(basic("u", "q"), trusted=True)
    found.identify(basic("u", "p"), trusted=False)
    assert len(found._passed) == REMEMBERED
    assert b"p" not in found._passed


def test_without_users_this_machine_is_trusted_and_no_page_of_another_site(client: Client) -> None:
    """A page cannot use a browser on this machine: neither with its Origin nor by a bent name."""
    assert client.sql("SHOW TABLES").status == 200
    assert client.sql("SHOW TABLES", Host="localhost:8080").status == 200
    assert client.sql("SHOW TABLES", Host="evil.example").status == 401
    strange = client.sql("SHOW TABLES", Origin="https://evil.example")
    assert (strange.status, strange.sqlstate) == (403, "42501")
    assert "access-control-allow-origin" not in strange.headers
    own = client.sql("SHOW TABLES", Origin="http://localhost:1", Host="localhost:1")
    assert own.status == 200
    assert client.sql("SHOW TABLES", Origin="null").status == 403


def test_sites_that_are_let_in(plain: headwater.Database) -> None:
    """`origins` answers preflights and names the one site, never all."""
    options = HttpOptions(port=0, origins=frozenset({"https://app.example"}))
    with Live(HttpServer(plain, options)) as live, Client(live) as client:
        asked = client.ask("OPTIONS", "/sql", Origin="https://app.example")
        assert asked.status == 200
        assert asked.headers["access-control-allow-origin"] == "https://app.example"
        assert "POST" in asked.headers["access-control-allow-methods"]
        answer = client.sql("SHOW TABLES", Origin="https://app.example")
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert client.sql("SHOW TABLES", Origin="https://b.example").status == 403


PATHS = (
    "/../etc/passwd",
    "/tables/../../etc/passwd",
    "/tables/..%2f..%2fetc%2fpasswd",
    "/subscribe/%2e%2e%2f%2e%2e",
    "//health",
    "/health/",
    "/HEALTH",
    "/%00",
    "/tables/",
    "*",
    "/sql/%ff",
)


def test_no_path_leads_to_a_file(client: Client) -> None:
    """Whatever the path, the answer is an error as JSON."""
    for path in PATHS:
        for method in ("GET", "POST"):
            answer = client.ask(method, path, b"" if method == "POST" else None)
            assert answer.status in (400, 404, 405), path
            assert len(answer.sqlstate) == 5


def test_readers_do_not_reach_the_servers_files(db: headwater.Database, tmp_path: Path) -> None:
    """What `headwater serve` sets keeps queries from files, also by a name that is computed."""
    (tmp_path / "secret.txt").write_text("secret")
    path = str(tmp_path / "secret.txt")
    for name, value in CLOSED.items():
        db.sql(f"SET {name} = '{value}'")
    for role, state in (("reader", "42501"), ("admin", "42P01")):
        for source in (f"text.`{path}`", f"IDENTIFIER('text.`{path}`')"):
            with pytest.raises(headwater.Error) as caught:
                db.statement(f"SELECT * FROM {source}", role=role)
            assert caught.value.sqlstate in (state, "42P01")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_tls(plain: headwater.Database, tmp_path: Path) -> None:
    """With a certificate the server speaks TLS and nothing else."""
    found, key = certificate(tmp_path)
    options = HttpOptions(port=0, tls=tls_context(found, key))
    context = ssl.create_default_context(cafile=str(found))
    context.check_hostname = False
    with Live(HttpServer(plain, options)) as live:
        secret = http.client.HTTPSConnection(
            live.host, live.port, timeout=PATIENCE_S, context=context
        )
        secret.request("GET", "/health")
        assert secret.getresponse().read() == b'{"status":"ok"}'
        secret.close()
        with Client(live) as client, pytest.raises((http.client.HTTPException, OSError)):
            client.ask("GET", "/health")
