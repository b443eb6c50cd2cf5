"""The shell's backslash commands, one function each, and the table that lists them.

A command never touches the database except through the session, so that Ctrl-C, formats and
errors are the same as for SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from headwater.cli.output import FORMATS
from headwater.cli.session import Outcome, Quit, Session
from headwater.errors import SettingError, SqlSyntaxError

INCLUDE_DEPTH = 16
"""How deep files may include files."""


@dataclass(frozen=True)
class Command:
    """A backslash command: what it is called, takes and does."""

    name: str
    takes: str
    meaning: str
    act: Callable[[Session, str], None]


def run(session: Session, text: str) -> None:
    """Runs one line such as `\\d orders`."""
    name, _, rest = text.strip().rstrip(";").partition(" ")
    command = BY_NAME.get(name)
    if command is None:
        near = get_close_matches(name, list(BY_NAME), n=1)
        hint = f"did you mean {near[0]}?" if near else "\\? lists the commands"
        raise SqlSyntaxError(f"{name} is not a command of the shell", hint=hint)
    command.act(session, rest.strip())


def _help(session: Session, _rest: str) -> None:
    wide = max(len(f"{c.name} {c.takes}") for c in TABLE)
    lines = [f"  {f'{c.name} {c.takes}':<{wide}}  {c.meaning}" for c in TABLE]
    keys = [f"  {name:<{wide}}  {meaning}" for name, meaning in KEYS]
    text = ["Statements end with ; and may span lines.", "", *lines, "", *keys]
    session.out.write("\n".join(text) + "\n")


def _quit(_session: Session, _rest: str) -> None:
    raise Quit


def _describe(session: Session, rest: str) -> None:
    if rest:
        session.run_sql(f"DESCRIBE {_name(rest)}")
    else:
        session.show(_listed(session))


def _name(text: str) -> str:
    """The name as SQL: quoted if it has blanks, otherwise as the user wrote it."""
    return f"`{text}`" if " " in text and "`" not in text else text


def _listed(session: Session) -> Outcome:
    import pyarrow as pa

    names = session.database.catalog_names()
    columns = {"name": list(names), "columns": [", ".join(c) for c in names.values()]}
    schema = pa.schema([("name", pa.string()), ("columns", pa.string())])
    return Outcome("SHOW", True, len(names), pa.table(columns, schema=schema), None)


def _tables(session: Session, _rest: str) -> None:
    session.run_sql("SHOW TABLES")


def _timing(session: Session, rest: str) -> None:
    session.preferences.timing = _switched(session.preferences.timing, rest)
    session.out.write(f"timing is {'on' if session.preferences.timing else 'off'}\n")


def _switched(now: bool, rest: str) -> bool:
    if rest.lower() not in ("", "on", "off"):
        raise SettingError(f"{rest!r} is neither on nor off")
    return rest.lower() == "on" if rest else not now


def _format(session: Session, rest: str) -> None:
    if rest:
        session.preferences.format = checked_format(rest)
    session.out.write(f"format is {session.preferences.format}\n")


def checked_format(name: str) -> str:
    """The name of a format, or an error that lists them."""
    if name.lower() not in FORMATS:
        raise SettingError(f"format {name} does not exist", hint=f"one of {', '.join(FORMATS)}")
    return name.lower()


def _expanded(session: Session, _rest: str) -> None:
    upright = session.preferences.format == "vertical"
    _format(session, "table" if upright else "vertical")


def _rows(session: Session, rest: str) -> None:
    if rest:
        if not (rest.isascii() and rest.isdigit()):
            raise SettingError(f"{rest!r} is not a number of rows", hint="0 shows all rows")
        session.preferences.row_limit = int(rest)
    limit = session.preferences.row_limit
    session.out.write(f"showing {f'at most {limit}' if limit else 'all'} rows\n")


def _include(session: Session, rest: str) -> None:
    if not rest:
        raise SqlSyntaxError("\\i needs a file", hint="\\i schema.sql")
    if session.depth >= INCLUDE_DEPTH:
        raise SqlSyntaxError(
            f"files include each other more than {INCLUDE_DEPTH} deep", sqlstate="54001"
        )
    session.depth += 1
    try:
        session.run_file(rest.strip("'\""))
    finally:
        session.depth -= 1


TABLE: tuple[Command, ...] = (
    Command("\\?", "", "this list", _help),
    Command("\\q", "", "leave", _quit),
    Command("\\d", "[name]", "describe an object, or list all with their columns", _describe),
    Command("\\dt", "", "list the tables", _tables),
    Command("\\i", "file", "run the statements of a file", _include),
    Command("\\format", "[name]", f"how results look: {', '.join(FORMATS)}", _format),
    Command("\\x", "", "switch between table and vertical", _expanded),
    Command("\\rows", "[n]", "draw at most n rows of a result; 0 draws all", _rows),
    Command("\\timing", "[on|off]", "show how long statements take", _timing),
)
BY_NAME = {command.name: command for command in TABLE}
KEYS = (
    ("Enter", "run if the statement is complete, else a new line"),
    ("Alt-Enter", "a new line in any case"),
    ("Tab", "complete keywords, names and files"),
    ("Ctrl-R", "search the history"),
    ("Ctrl-C", "cancel the running statement, or clear what is typed"),
    ("Ctrl-D", "leave"),
)
