"""Whose connection it is: the kernel's answers read, and clients of other OS users turned away."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.server import owners, peers
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.server.owners import owner_in_answer, owner_in_table
from headwater.server.peers import Peer, is_local, neighbourhood, peer_of, refusal
from headwater.server.wire.server import WireOptions
from tests.harness.patience import PATIENCE_S
from tests.server.http.client import Client
from tests.server.live import Live, LiveServer

NOBODY = 65534
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
V4 = ("127.0.0.1", 0xBABF), ("127.0.0.1", 5433)
REST = "00000000:00000000 00:00000000 00000000"


def row(near: str, far: str, state: str = "01", uid: object = 1000) -> str:
    return f"   0: {near} {far} {state} {REST}  {uid}        0 584413 1 0000000013814570 100 0 0 10 0\n"


NEAR, FAR = "0100007F:BABF", "0100007F:1539"
MAPPED = "0000000000000000FFFF0000"
ONE = "00000000000000000000000001000000"


@pytest.mark.parametrize(
    ("rows", "ends", "owner"),
    [
        ([row(NEAR, FAR)], V4, 1000),
        ([row(NEAR, FAR, uid=0)], V4, 0),
        ([], V4, None),
        ([row(FAR, NEAR)], V4, None),  # our own end of it
        ([row(NEAR, "00000000:0000", "0A")], V4, None),  # a listener on the client's port
        ([row(NEAR, FAR, "06", 0)], V4, None),  # TIME_WAIT is shown as root's
        ([row(NEAR, FAR, "04", 0)], V4, None),  # FIN_WAIT1, perhaps nobody's any more
        ([row(NEAR, FAR, "08", 0)], V4, None),
        ([row("0100007F:BABE", FAR, uid=7), row(NEAR, FAR)], V4, 1000),
        ([row(NEAR, "0100007F:153A", uid=7)], V4, None),
        ([row("0200007F:BABF", FAR, uid=7)], V4, None),
        ([row(MAPPED + NEAR, MAPPED + FAR)], V4, 1000),  # a client of IPv6 that means IPv4
        ([row(NEAR, FAR)], (("::ffff:127.0.0.1", 0xBABF), ("::ffff:127.0.0.1", 5433)), 1000),
        ([row(f"{ONE}:BABF", f"{ONE}:1539")], (("::1", 0xBABF), ("::1", 5433)), 1000),
        ([row(f"{ONE}:BABF", f"{ONE}:1539")], V4, None),
        (["", "   0: " + NEAR, row(NEAR, FAR, uid="x")], V4, None),
    ],
)
def test_the_table_of_connections(rows: list[str], ends: Any, owner: int | None) -> None:
    """The one row of the client's own end, established; anything else is nobody."""
    assert owner_in_table([HEAD, *rows], *ends, byte_order="little") == owner


def test_the_table_of_a_machine_that_counts_from_the_other_end() -> None:
    """Words of the addresses are numbers of the machine."""
    assert owner_in_table([row("7F000001:BABF", "7F000001:1539")], *V4, byte_order="big") == 1000
    assert owner_in_table([row(NEAR, FAR)], *V4, byte_order="big") is None


def answer(state: int = 1, uid: int = 1000, kind: int = 20, near: str = "127.0.0.1") -> bytes:
    ends = struct.pack(
        "!HH16s16s", 0xBABF, 5433, socket.inet_aton(near), socket.inet_aton("127.0.0.1")
    )
    body = (
        bytes([socket.AF_INET, state, 0, 0])
        + ends
        + bytes(12)
        + struct.pack("=5I", 0, 0, 0, uid, 9)
    )
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body


def test_the_kernels_answer() -> None:
    """An established connection of just these ends; errors and other sockets are nobody's."""
    assert owner_in_answer(answer(), *V4) == 1000
    assert owner_in_answer(answer(state=10, uid=0), *V4) is None
    assert owner_in_answer(answer(state=6, uid=0), *V4) is None
    assert owner_in_answer(answer(kind=2), *V4) is None
    assert owner_in_answer(answer(near="127.0.0.2"), *V4) is None
    assert owner_in_answer(answer()[:-1], *V4) is None
    assert owner_in_answer(b"", *V4) is None


def test_who_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own OS user and root; never somebody of whom nothing is known."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [Peer("127.0.0.1", uid).is_own for uid in (1000, 0, 1001, None)] == [
        True, True, False, False,
    ]  # fmt: skip
    local = ("", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::1%lo")
    assert all(map(is_local, local))
    assert not any(map(is_local, ("192.0.2.1", "::", "::ffff:192.0.2.1", "gone", "localhost")))
    assert neighbourhood("::1") == "::1"
    hints = [refusal(Peer(*each)) for each in (("192.0.2.1",), ("127.0.0.1",), ("", 5))]
    assert all(error.sqlstate == "28000" and "CREATE USER" in str(error.hint) for error in hints)
    assert "--trust-loopback" in str(hints[1].hint)
    assert "number 5" in str(hints[2].detail)


linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel does not tell")


@linux
@pytest.mark.parametrize("by_table", [False, True])
@pytest.mark.parametrize(
    ("listening", "called"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("::", "127.0.0.1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_the_other_end_is_found(
    monkeypatch: pytest.MonkeyPatch, by_table: bool, listening: str, called: str
) -> None:
    """Over IPv4, IPv6 and one inside the other, by netlink and by the table; not once it has closed."""
    if ":" in listening + called and not socket.has_ipv6:
        pytest.skip("there is no IPv6")
    if by_table:
        monkeypatch.setattr(owners, "_asked_kernel", lambda _: None)
    family = socket.AF_INET6 if ":" in listening else socket.AF_INET
    with socket.create_server(
        (listening, 0), family=family, dualstack_ipv6=listening == "::"
    ) as listener:
        client = socket.create_connection((called, listener.getsockname()[1]))
        with closing(listener.accept()[0]) as ours:
            with client:
                found = peer_of(ours, with_user=True)
                assert (found.uid, found.is_local, found.is_own) == (os.geteuid(), True, True)
                assert peer_of(ours, with_user=False).uid is None
            assert ours.recv(1) == b""
            assert peer_of(ours, with_user=True).uid is None
            # Somebody else may have the client's port by now: our end no longer vouches for it.
            monkeypatch.setattr(peers, "owner_of_end", lambda *_: os.geteuid())
            assert peer_of(ours, with_user=True).uid is None


def test_a_unix_socket_tells_its_user() -> None:
    """Both ends are ours."""
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer_of(one, with_user=True) == Peer("", os.geteuid())


# Another OS user

SPEAK = """
import http.client, socket, struct, sys

PATIENCE_S = 120
host, wire, web, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def startup(client):
    body = struct.pack("!HH", 3, 0) + b"user\\0me\\0\\0"
    client.sendall(struct.pack("!I", len(body) + 4) + body)
    return client.recv(4096).replace(b"\\0", b" ")
if wire:
    with socket.create_connection((host, wire), timeout=PATIENCE_S) as client:
        print(startup(client))
if path:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        print(startup(client))
if web:
    for head in ({}, {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                      "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}):
        asking = http.client.HTTPConnection(host, web, timeout=PATIENCE_S)
        where = "/subscribe/zzz" if head else "/console/names"
        asking.request("GET", where, headers=head)
        found = asking.getresponse()
        print(found.status, found.read())
        asking.close()
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def spoken_by(uid: int, host: str, wire: int = 0, web: int = 0, path: str = "") -> str:
    """What another OS user's client is answered."""
    found = subprocess.run(
        [shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable, "-c", SPEAK,
         host, str(wire), str(web), path],
        capture_output=True, text=True, timeout=PATIENCE_S, user=uid, group=uid, cwd="/", env={},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


@linux
@as_root
def test_another_os_user_does_not_get_in() -> None:
    """Without users: 28000 with a hint over the wire, 401 over HTTP and for a WebSocket."""
    with (
        headwater.connect(settings={"eager_spark": False}) as db,
        LiveServer(db) as wire,
        Live(HttpServer(db, HttpOptions(port=0))) as web,
    ):
        said = spoken_by(NOBODY, wire.host, wire.port, web.port)
        refused, names, socket_answer = said.splitlines()
        assert "28000" in refused
        assert "only the OS user of the server" in refused
        assert "CREATE USER" in refused
        for line in (names, socket_answer):
            assert line.startswith("401 ")
            assert "28000" in line
        welcome, names, socket_answer = spoken_by(0, wire.host, wire.port, web.port).splitlines()
        assert "client_encoding" in welcome
        assert names.startswith("200 ")
        assert socket_answer.startswith("404 ")


@linux
@as_root
def test_every_os_user_gets_in_where_that_was_said() -> None:
    """`trust_loopback`."""
    with (
        headwater.connect(settings={"eager_spark": False}) as db,
        LiveServer(db, options=WireOptions(port=0, trust_loopback=True)) as wire,
        Live(HttpServer(db, HttpOptions(port=0, trust_loopback=True))) as web,
    ):
        welcome, names, _ = spoken_by(NOBODY, wire.host, wire.port, web.port).splitlines()
        assert "client_encoding" in welcome
        assert names.startswith("200 ")


@linux
@as_root
def test_with_users_the_password_decides() -> None:
    """Another OS user is asked for a password as everybody is."""
    with headwater.connect(settings={"eager_spark": False}) as db:
        db.sql("CREATE USER ada PASSWORD 'p' ROLE ADMIN")
        with LiveServer(db, db.users) as wire, Live(HttpServer(db, HttpOptions(port=0))) as web:
            asked, names, _ = spoken_by(NOBODY, wire.host, wire.port, web.port).splitlines()
            assert "SCRAM-SHA-256" in asked
            assert "a login is needed" in names


def test_where_the_machine_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets in over TCP without users, unless that was said; health is answered."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    monkeypatch.setattr(peers, "owner_of_end", lambda *_: None)
    with headwater.connect(settings={"eager_spark": False}) as db:
        with LiveServer(db) as wire, pytest.raises(psycopg.OperationalError, match="does not tell"):
            psycopg.connect(wire.dsn)
        with Live(HttpServer(db, HttpOptions(port=0))) as web, Client(web) as client:
            assert client.sql("SHOW TABLES").status == 401
            assert client.ask("GET", "/health").status == 200
        with LiveServer(db, options=WireOptions(port=0, trust_loopback=True)) as wire:
            psycopg.connect(wire.dsn).close()
