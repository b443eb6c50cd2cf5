"""`headwater serve`: a database for clients of PostgreSQL and of HTTP, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from headwater.cli.complaint import complain
from headwater.database import Database, connect
from headwater.errors import Error, SettingError, StorageError
from headwater.execute.users import Login
from headwater.execute.verifiers import make_verifier
from headwater.server.config import ServeConfig, configured, file_of
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.server.notify import notify
from headwater.server.serve import check_reach, serve, tls_context
from headwater.server.users import GIVEN_USER, ServerUsers
from headwater.server.wire.server import WireOptions, WireServer

FAILED = 1
# Whoever may read tables may not read the server's files: SELECT * FROM csv.`/etc/passwd`.
CLOSED: Mapping[str, object] = {"spark.sql.runSQLOnFiles": "false"}
PASSWORD_VARIABLE = "HEADWATER_PASSWORD"


def main(
    flags: Mapping[str, Any], settings: Mapping[str, object], config_file: Path | None = None
) -> int:
    """Runs the server; the exit code."""
    console = Console(stderr=True, highlight=False)
    try:
        path = file_of(config_file, os.environ)
        text = None if path is None else path.read_text(encoding="utf-8")
        config = configured(flags, os.environ, text, settings)
        run(config, console)
    except (Error, OSError) as error:
        complain(console, explained(error) if isinstance(error, OSError) else error)
        return FAILED
    return 0


def explained(error: OSError) -> Error:
    """What the machine refused, in our words: mostly a port that another program has."""
    port = re.search(r"\('[^']*', (\d+)", str(error))
    if error.errno == errno.EADDRINUSE:
        which = f"port {port.group(1)}" if port else "the port"
        hint = "--port and --http-port choose others; headwater doctor tells which are taken"
        return StorageError(f"{which} is in use by another program", sqlstate="55006", hint=hint)
    return StorageError(str(error), sqlstate="58030")


def run(config: ServeConfig, console: Console) -> None:
    """Opens the database and serves it; returns when the server was told to stop."""
    given = given_login(config.password_file)
    tls = (
        tls_context(Path(config.tls_certificate), Path(config.tls_key) if config.tls_key else None)
        if config.tls_certificate
        else None
    )
    settings = {**CLOSED, **config.settings}
    with connect(config.path, master=config.master or None, settings=settings) as database:
        users = ServerUsers(database.users, given)
        for host in {config.host, config.http_host or config.host}:
            secret = tls is not None or config.tls_elsewhere
            check_reach(host, users=len(users), tls=secret, insecure=config.insecure)
        _serve(config, database, users, tls, console)
    console.print("stopped; everything acknowledged is on disk", style="dim")


def given_login(password_file: str) -> Login | None:
    """The user `headwater`, with the password of a file or of the environment; nobody without one."""
    if password_file:
        password = Path(password_file).read_text(encoding="utf-8").rstrip("\r\n")
        if not password:
            raise SettingError(f"the file {password_file} holds no password")
    else:
        password = os.environ.pop(PASSWORD_VARIABLE, "")  # Java need not know it
    if not password:
        return None
    return Login(make_verifier(password, secrets.token_bytes(16)), "admin")


def _serve(
    config: ServeConfig,
    database: Database,
    users: ServerUsers,
    tls: ssl.SSLContext | None,
    console: Console,
) -> None:
    wire = WireServer(database, WireOptions(config.host, config.port, tls, config.insecure), users)
    options = HttpOptions(
        config.http_host or config.host, config.http_port, tls, config.insecure, config.origins
    )
    http = HttpServer(database, options, users)

    def started() -> None:
        host, port = wire.address
        console.print(
            f"PostgreSQL clients: psql -h {host} -p {port} -U {GIVEN_USER}", soft_wrap=True
        )
        host, port = http.address
        scheme = "http" if tls is None else "https"
        console.print(f"HTTP: {scheme}://{host}:{port}/openapi.json", soft_wrap=True)
        console.print(f"console: {scheme}://{host}:{port}/", soft_wrap=True)
        console.print("Ctrl-C stops", style="dim")
        notify("READY=1")

    asyncio.run(serve([wire, http], started))
    notify("STOPPING=1")
