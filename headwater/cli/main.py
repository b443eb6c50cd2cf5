"""The `headwater` command and its subcommands.

Only declares options and hands on: everything heavy is imported inside the commands, so that
`headwater version` and `--help` answer at once.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="headwater",
    help="A streaming database on Spark: streams, history and tables in one SQL.",
    epilog="New here? `headwater demo` shows around, `headwater doctor` checks this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Format(StrEnum):
    """How results are written."""

    table = "table"
    csv = "csv"
    json = "json"
    vertical = "vertical"


TlsElsewhere = Annotated[
    bool | None,
    typer.Option("--tls-elsewhere", help="A proxy in front speaks TLS; passwords are needed."),
]
Insecure = Annotated[
    bool | None,
    typer.Option("--insecure", help="Listen beyond this machine without password and TLS."),
]
Socket = Annotated[
    str | None,
    typer.Option("--socket", metavar="FOLDER", help="Of the Unix socket; none: without one."),
]
TrustLoopback = Annotated[
    bool | None,
    typer.Option("--trust-loopback", help="Without users, trust every OS user of this machine."),
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="The Spark master; local[*] if none is given."),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command()
def sql(
    path: Annotated[
        str, typer.Argument(help="The data folder; made if it is not there.", show_default=False)
    ] = ":memory:",
    command: Annotated[
        list[str] | None,
        typer.Option("-c", "--command", metavar="SQL", help="Run this and leave; may be repeated."),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("-f", "--file", metavar="FILE", help="Run a file and leave; - is stdin."),
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="How results look.")] = Format.table,
    master: Master = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting, ours or spark.…"),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only results: no greeting, no footers.")
    ] = False,
) -> None:
    """Open a SQL shell, or run statements from -c, -f or standard input.

    Without a PATH the database is in memory and nothing is kept.
    """
    from headwater.cli.sql import SqlOptions, main, parsed_settings

    options = SqlOptions(
        path, command or (), file or (), format_.value, master, parsed_settings(set_ or ()), quiet
    )
    raise typer.Exit(main(options))


@app.command()
def serve(
    path: Annotated[
        str | None,
        typer.Argument(help="The data folder; made if it is not there.", show_default=False),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="A TOML file with the same options."),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on; 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", help="The port for PostgreSQL clients; 5433.")
    ] = None,
    http_host: Annotated[
        str | None, typer.Option("--http-host", help="Another address for HTTP.")
    ] = None,
    http_port: Annotated[
        int | None, typer.Option("--http-port", help="The port for HTTP; 8080.")
    ] = None,
    tls_certificate: Annotated[
        str | None, typer.Option("--tls-certificate", metavar="FILE", help="Speak TLS with it.")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="The key of the certificate.")
    ] = None,
    password_file: Annotated[
        str | None,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="The password of user headwater; the variable HEADWATER_PASSWORD gives one too.",
        ),
    ] = None,
    tls_elsewhere: TlsElsewhere = None,
    insecure: Insecure = None,
    socket: Socket = None,
    trust_loopback: TrustLoopback = None,
    cors: Annotated[
        str | None,
        typer.Option("--cors", metavar="ORIGINS", help="Sites whose pages may ask over HTTP."),
    ] = None,
    master: Master = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting, ours or spark.…"),
    ] = None,
) -> None:
    """Serve a data folder to clients of PostgreSQL and HTTP, until Ctrl-C.

    A flag beats its variable (HEADWATER_SERVE_PORT, …), which beats the file.
    """
    from headwater.cli.serve import main
    from headwater.cli.sql import parsed_settings

    flags = {
        "path": path, "host": host, "port": port, "http_host": http_host, "http_port": http_port,
        "tls_certificate": tls_certificate, "tls_key": tls_key, "password_file": password_file,
        "tls_elsewhere": tls_elsewhere, "insecure": insecure, "cors": cors, "master": master,
        "socket": socket, "trust_loopback": trust_loopback,
    }  # fmt: skip
    raise typer.Exit(main(flags, parsed_settings(set_ or ()), config))


@app.command()
def demo(
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="How long, the start included.")
    ] = 60,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Go on until Ctrl-C.")
    ] = False,
    tour: Annotated[bool, typer.Option("--tour", help="Take a short tour of SQL instead.")] = False,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Show it in a browser too.")
    ] = True,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="The browser's port; 8080, or a free one."),
    ] = None,
    master: Master = None,
) -> None:
    """Show a minute of live traffic and tolls: the Linear Road benchmark in SQL."""
    if tour:
        code = import_module("headwater.cli.tour").main(master=master)
    else:
        from headwater.examples import load

        length = None if keep_running else seconds
        code = load("linearroad", "demo.run").main(
            seconds=length, master=master, browser=browser, port=port
        )
    raise typer.Exit(code or 0)


@app.command()
def doctor(
    path: Annotated[
        str | None, typer.Argument(help="The data folder to look at.", show_default=False)
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    read_all: Annotated[
        bool, typer.Option("--read-all", help="Look for damage in every row, however many.")
    ] = False,
) -> None:
    """Check that this machine can run Headwater, and say what to do if not."""
    from headwater.cli.doctor import main

    raise typer.Exit(main(path, json_, read_all))


@app.command()
def bench(
    name: Annotated[
        str | None,
        typer.Argument(help="The benchmark, such as start; all without.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller runs.")] = False,
    part: Annotated[
        list[str] | None,
        typer.Option("--part", help="Only this part, of a benchmark that has some; repeatable."),
    ] = None,
) -> None:
    """Run a benchmark beside its peers."""
    code = import_module("headwater.cli.bench").main(name, quick, part or ())
    raise typer.Exit(code or 0)


@app.command()
def version() -> None:
    """Show the version."""
    from headwater._version import __version__

    typer.echo(f"headwater {__version__}")


def run() -> None:
    """The entry point of the console script."""
    from headwater.errors import Error

    if sys.argv[1:] in (["version"], ["--version"]):
        version()  # typer loads its checks of options first, which takes longer than all the rest
        return
    try:
        app(prog_name="headwater")
    except Error as error:
        from rich.console import Console

        from headwater.cli.complaint import complain

        complain(Console(stderr=True, highlight=False), error)
        sys.exit(1)
