"""What `headwater serve` says once it listens: how to connect, and who may without a password.

Pure. Owns that every line can be copied: an address that stands for all addresses is never shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.server.users import GIVEN_USER

ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True)
class Served:
    """Where a server listens, and whom it lets in."""

    wire: tuple[str, int]
    http: tuple[str, int]
    folder: str = ""  # of the Unix socket
    tls: bool = False
    users: int = 0
    is_given: bool = False  # the user headwater has a password
    trusts_anyone: bool = False
    trusts_loopback: bool = False
    own_user: str = ""  # the OS user of the server


def greeting(served: Served) -> Iterator[str]:
    """The lines, in the order in which they are wanted."""
    name = GIVEN_USER if served.is_given or not served.users else "USER"
    host, port = served.wire
    yield f"PostgreSQL clients: psql -h {_reachable(host)} -p {port} -U {name}"
    if served.folder:
        yield f"on this machine too: psql -h {served.folder} -p {port} -U {name}"
    web_host, web_port = served.http
    shown = _reachable(web_host)
    scheme, place = "https" if served.tls else "http", f"[{shown}]" if ":" in shown else shown
    yield f"HTTP: {scheme}://{place}:{web_port}/openapi.json"
    yield f"console: {scheme}://{place}:{web_port}/"
    if {host, web_host} & ALL_ADDRESSES.keys():
        yield "from other machines: the same with the name of this one"
    yield _who(served)


def _reachable(host: str) -> str:
    return ALL_ADDRESSES.get(host, host)


def _who(served: Served) -> str:
    if served.users:
        return "everybody needs a password or a token"
    if served.trusts_anyone:
        return "nobody needs a password, on any machine: whoever connects is an admin (--insecure)"
    if served.trusts_loopback:
        return (
            "nobody on this machine needs a password: every OS user is an admin (--trust-loopback)"
        )
    own = served.own_user if served.own_user == "root" else f"{served.own_user} (or root)"
    return (
        f"OS user {own} on this machine needs no password and is an admin; "
        "nobody else gets in before CREATE USER"
    )
