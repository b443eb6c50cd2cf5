"""`headwater serve`: a database for clients of PostgreSQL and of HTTP, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import os
import pwd
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from headwater.cli.complaint import complain
from headwater.cli.greeting import Served, greeting
from headwater.database import Database, connect
from headwater.errors import Error, SettingError, StorageError
from headwater.execute.users import Login
from headwater.execute.verifiers import make_verifier, mock_verifier
from headwater.server.attempts import Attempts
from headwater.server.config import ServeConfig, configured, file_of
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.server.notify import notify
from headwater.server.serve import Listener, check_reach, serve, tls_context
from headwater.server.users import GIVEN_USER, ServerUsers
from headwater.server.wire.server import WireOptions, WireServer
from headwater.server.wire.unix_socket import UnixListener, chosen_folder

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
    password = given_password(config.password_file)
    tls = (
        tls_context(Path(config.tls_certificate), Path(config.tls_key) if config.tls_key else None)
        if config.tls_certificate
        else None
    )
    settings = {**CLOSED, **config.settings}
    with connect(config.path, master=config.master or None, settings=settings) as database:
        users = ServerUsers(database.users, given_login(password, database))
        for host in {config.host, config.http_host or config.host}:
            secret = tls is not None or config.tls_elsewhere
            check_reach(host, users=len(users), tls=secret, insecure=config.insecure)
        _serve(config, database, users, tls, console)
    console.print("stopped; everything acknowledged is on disk", style="dim")


def given_password(password_file: str) -> str:
    """The password of user `headwater`, of a file or of the environment; nothing if there is none."""
    if password_file:
        password = Path(password_file).read_text(encoding="utf-8").rstrip("\r\n")
        if not password:
            raise SettingError(f"the file {password_file} holds no password")
    else:
        password = os.environ.pop(PASSWORD_VARIABLE, "")  # Java need not know it
    return password


def given_login(password: str, database: Database) -> Login | None:
    """The user `headwater`, an admin; nobody without a password."""
    if not password:
        return None
    database.has_given_admin()
    # The salt that the name has anyway: it does not tell whether there is such a user.
    salt = mock_verifier(GIVEN_USER, database.login_secret).salt
    return Login(make_verifier(password, salt), "admin")


def _serve(
    config: ServeConfig,
    database: Database,
    users: ServerUsers,
    tls: ssl.SSLContext | None,
    console: Console,
) -> None:
    c, attempts = config, Attempts()
    wire = WireServer(
        database,
        WireOptions(c.host, c.port, tls, c.insecure, c.trust_loopback),
        users,
        attempts,
    )
    http = HttpServer(
        database,
        HttpOptions(
            c.http_host or c.host, c.http_port, tls, c.insecure, c.trust_loopback, c.origins
        ),
        users,
        attempts=attempts,
    )
    folder = _socket_folder(config, console)
    unix = None if folder is None else UnixListener(wire, folder)
    listeners: list[Listener] = [wire, http] if unix is None else [wire, unix, http]

    def started() -> None:
        served = Served(
            wire.address,
            http.address,
            "" if unix is None else unix.address[0],
            tls is not None,
            len(users),
            users.verifier_of(GIVEN_USER) is not None,
            c.insecure,
            c.trust_loopback,
            _own_user(),
        )
        for line in greeting(served):
            console.print(line, soft_wrap=True, markup=False)
        console.print("Ctrl-C stops", style="dim")
        notify("READY=1")

    def stopping() -> None:
        notify("STOPPING=1")
        console.print("stopping: statements under way may end", style="dim")

    asyncio.run(serve(listeners, started, stopping))


def _socket_folder(config: ServeConfig, console: Console) -> Path | None:
    """Where the Unix socket goes; a place that nobody asked for may be missing."""
    try:
        return chosen_folder(config.socket, os.environ)
    except StorageError as error:
        if config.socket:
            raise
        console.print(f"no Unix socket: {error.message}", style="dim", soft_wrap=True)
        return None


def _own_user() -> str:
    """The name of the OS user that the server runs as; its number if it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
