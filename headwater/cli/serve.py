"""`headwater serve`: a database for clients of PostgreSQL, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from headwater.cli.complaint import complain
from headwater.database import Database, connect
from headwater.errors import Error, SettingError
from headwater.server.serve import check_reach, serve, tls_context
from headwater.server.wire.scram import make_verifier
from headwater.server.wire.server import WireOptions, WireServer
from headwater.server.wire.users import FixedUsers, Login, NoUsers, Users

FAILED = 1
PASSWORD_VARIABLE = "HEADWATER_PASSWORD"
ADMIN = "headwater"


@dataclass(frozen=True)
class ServeOptions:
    """What the command line asked for."""

    path: str
    host: str = "127.0.0.1"
    port: int = 5433
    certificate: Path | None = None
    key: Path | None = None
    password_file: Path | None = None
    insecure: bool = False
    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


def main(options: ServeOptions) -> int:
    """Runs the server; the exit code."""
    console = Console(stderr=True, highlight=False)
    try:
        users = given_users(options.password_file)
        tls = None if options.certificate is None else tls_context(options.certificate, options.key)
        check_reach(options.host, users=len(users), tls=tls is not None, insecure=options.insecure)
        with connect(options.path, master=options.master, settings=options.settings) as database:
            _serve(options, database, users, tls, console)
    except (Error, OSError) as error:
        complain(console, error)
        return FAILED
    return 0


def given_users(password_file: Path | None) -> Users:
    """The user `headwater`, with the password of a file or of the environment; nobody without one."""
    if password_file is None:
        password = os.environ.get(PASSWORD_VARIABLE, "")
    else:
        password = password_file.read_text().rstrip("\r\n")
        if not password:
            raise SettingError(f"the file {password_file} holds no password")
    if not password:
        return NoUsers()
    return FixedUsers({ADMIN: Login(make_verifier(password, secrets.token_bytes(16)))})


def _serve(
    options: ServeOptions,
    database: Database,
    users: Users,
    tls: ssl.SSLContext | None,
    console: Console,
) -> None:
    wire = WireServer(
        database, WireOptions(options.host, options.port, tls, options.insecure), users
    )

    def started() -> None:
        host, port = wire.address
        console.print(f"PostgreSQL clients: psql -h {host} -p {port} -U {ADMIN}", soft_wrap=True)
        console.print("Ctrl-C stops", style="dim")

    asyncio.run(serve([wire], started))
    console.print("stopped; everything acknowledged is on disk", style="dim")
