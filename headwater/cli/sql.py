"""`headwater sql`: opens the database, runs what was given, or starts the shell.

Without a terminal, or with `-c` or `-f`, it ends at the first error with code 1 and the message on
stderr. This is the only module of the command line that opens a database.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from io import TextIOWrapper

from rich.console import Console
from rich.text import Text

from headwater._version import __version__
from headwater.cli.complaint import complain
from headwater.cli.interface import DatabaseLike
from headwater.cli.running import Interrupted, Leave
from headwater.cli.session import ROWS_SHOWN, Preferences, Quit, ShellSession
from headwater.errors import SettingError

MEMORY = ":memory:"
FAILED, INTERRUPTED, PIPE_CLOSED = 1, 130, 141
CLOSE_WAIT_S = 3.0
"""How long a forced leave waits for the database to close."""


@dataclass(frozen=True)
class SqlOptions:
    """What the command line asked for."""

    path: str = MEMORY
    commands: Sequence[str] = ()
    files: Sequence[str] = ()
    format: str = "table"
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False


Connect = Callable[..., DatabaseLike]


def main(options: SqlOptions, connect: Connect | None = None) -> int:
    """Runs `headwater sql`; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that it lacks must not end a query
    errors = Console(stderr=True, highlight=False)
    try:
        open_ = connect or import_module("headwater").connect
        database = open_(options.path, master=options.master, settings=dict(options.settings))
    except Exception as error:
        complain(errors, error)
        return FAILED
    try:
        code = _run(options, database, errors)
    except BrokenPipeError:
        code = _pipe_closed()
    if code == INTERRUPTED:
        _close_soon(database)
    else:
        database.close()
    return code


def _run(options: SqlOptions, database: DatabaseLike, errors: Console) -> int:
    given = bool(options.commands or options.files)
    if not given and sys.stdin.isatty() and sys.stdout.isatty():
        return _interactive(options, database, errors)
    preferences = Preferences(options.format, quiet=options.quiet)
    session = ShellSession(database, preferences, sys.stdout, sys.stderr)
    return _batch(session, options, errors)


def _batch(session: ShellSession, options: SqlOptions, errors: Console) -> int:
    """Files, then commands, or else standard input; stops at the first error."""
    try:
        for path in options.files:
            _run_source(session, path)
        for text in options.commands:
            session.run(text)
        if not options.files and not options.commands:
            session.run(sys.stdin.read())
        session.out.flush()
    except Quit:
        return 0
    except (Interrupted, Leave, KeyboardInterrupt):
        errors.print("cancelled", style="yellow")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        session.out.flush()
        complain(errors, error)
        return FAILED
    return 0


def _run_source(session: ShellSession, path: str) -> None:
    if path == "-":
        session.run(sys.stdin.read())
    else:
        session.run_file(path)


def _interactive(options: SqlOptions, database: DatabaseLike, errors: Console) -> int:
    from headwater.cli.history import open_history
    from headwater.cli.shell import Shell

    preferences = Preferences(
        options.format, timing=True, quiet=options.quiet, row_limit=ROWS_SHOWN, interactive=True
    )
    if not options.quiet:
        Console(highlight=False).print(greeting(options.path))
    session = ShellSession(database, preferences, sys.stdout, sys.stderr)
    return Shell(session, errors, open_history()).run()


def greeting(path: str) -> Text:
    """The lines above the first prompt."""
    text = Text.assemble((f"Headwater {__version__}", "bold"))
    if path == MEMORY:
        text.append(" · in memory: nothing is kept when you leave")
        text.append("\nheadwater sql ./data keeps everything in the folder ./data", "dim")
    else:
        text.append(f" · {path}")
    text.append("\nEnd statements with ;   \\? helps   \\q leaves\n", "dim")
    return text


def _close_soon(database: DatabaseLike) -> None:
    """Closes if that goes quickly; the user wanted to leave and has said so twice."""
    closing = threading.Thread(target=database.close, name="headwater-close", daemon=True)
    closing.start()
    closing.join(CLOSE_WAIT_S)
    if closing.is_alive():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)


def _pipe_closed() -> int:
    """The reader of our output went away: be as quiet as a process that SIGPIPE ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def parsed_settings(pairs: Sequence[str]) -> dict[str, str]:
    """`name=value` pairs as a dictionary."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise SettingError(f"--set takes name=value, not {pair!r}")
        settings[name.strip()] = value.strip()
    return settings
