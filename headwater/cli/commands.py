"""The shell's backslash commands, one function each, and the table that lists them.

A command never touches the database except through the session, so that Ctrl-C, formats and
errors are the same as for SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from textwrap import dedent, indent

from headwater.cli.helping import help_lines
from headwater.cli.output import FORMATS
from headwater.cli.session import Quit, ShellOutcome, ShellSession
from headwater.cli.watching import watch
from headwater.errors import SettingError, SqlSyntaxError

INCLUDE_DEPTH = 16
"""How deep files may include files."""
WATCH_S, LEAST_WATCH_S = 2.0, 0.1


@dataclass(frozen=True)
class Command:
    """A backslash command: what it is called, takes and does."""

    name: str
    takes: str
    meaning: str
    act: Callable[[ShellSession, str], None]


def run(session: ShellSession, text: str) -> None:
    """Runs one line such as `\\d orders`."""
    name, _, rest = text.strip().rstrip(";").partition(" ")
    command = BY_NAME.get(ALIASES.get(name, name))
    if command is None:
        near = get_close_matches(name, list(BY_NAME), n=1)
        hint = f"did you mean {near[0]}?" if near else "\\? lists the commands"
        hint = ELSEWHERE.get(name, hint)
        raise SqlSyntaxError(f"{name} is not a command of the shell", hint=hint)
    command.act(session, rest.strip())


def _commands(session: ShellSession, _rest: str) -> None:
    wide = max(len(f"{c.name} {c.takes}") for c in TABLE)
    lines = [f"  {f'{c.name} {c.takes}':<{wide}}  {c.meaning}" for c in TABLE]
    keys = [f"  {name:<{wide}}  {meaning}" for name, meaning in KEYS]
    text = ["Statements end with ; and may span lines.", "", *lines, "", *keys]
    session.out.write("\n".join(text) + "\n")


def _help(session: ShellSession, rest: str) -> None:
    session.out.write("\n".join(help_lines(rest)) + "\n")


def _quit(_session: ShellSession, _rest: str) -> None:
    raise Quit


def _describe(session: ShellSession, rest: str) -> None:
    if not rest:
        session.show(_listed(session))
        return
    found = session.database.relation(rest.strip("`"))
    if found is not None:
        session.tell(f"{found.kind} {found.name}")
    session.run_sql(f"DESCRIBE {_name(rest)}")
    if found is not None and found.text:
        session.tell(f"made of:\n{indent(dedent(found.text).strip(), '  ')}")


def _name(text: str) -> str:
    """The name as SQL: quoted if it has blanks, otherwise as the user wrote it."""
    return f"`{text}`" if " " in text and "`" not in text else text


def _listed(session: ShellSession) -> ShellOutcome:
    import pyarrow as pa

    found = session.database.relations()
    rows = [(r.name, r.kind, ", ".join(r.schema.names) or None) for r in found]
    schema = pa.schema([(name, pa.string()) for name in ("name", "kind", "columns")])
    table = pa.table([pa.array([row[i] for row in rows], pa.string()) for i in range(3)], schema)
    return ShellOutcome("SHOW", True, len(rows), table, None)


def _shown(*kinds: str) -> Callable[[ShellSession, str], None]:
    """A command that lists objects."""

    def act(session: ShellSession, _rest: str) -> None:
        for kind in kinds:
            if len(kinds) > 1:
                session.tell(kind.lower())
            session.run_sql(f"SHOW {kind}")

    return act


def _watch(session: ShellSession, rest: str) -> None:
    words = rest.split()
    if session.last_text is None:
        raise SqlSyntaxError("there is no statement to watch", hint="run one, then \\watch 2")
    if len(words) > 2 or not all(_is_number(word) for word in words):
        raise SettingError(f"{rest!r} is no time", hint="\\watch 2 shows it every 2 seconds")
    every_s = float(words[0]) if words else WATCH_S
    times = int(float(words[1])) if len(words) > 1 else None
    watch(session, session.last_text, max(every_s, LEAST_WATCH_S), times)


def _is_number(word: str) -> bool:
    return word.isascii() and word.replace(".", "", 1).isdigit()


def _timing(session: ShellSession, rest: str) -> None:
    session.preferences.timing = _switched(session.preferences.timing, rest)
    session.out.write(f"timing is {'on' if session.preferences.timing else 'off'}\n")


def _switched(now: bool, rest: str) -> bool:
    if rest.lower() not in ("", "on", "off"):
        raise SettingError(f"{rest!r} is neither on nor off")
    return rest.lower() == "on" if rest else not now


def _format(session: ShellSession, rest: str) -> None:
    if rest:
        session.preferences.format = checked_format(rest)
    session.out.write(f"format is {session.preferences.format}\n")


def checked_format(name: str) -> str:
    """The name of a format, or an error that lists them."""
    if name.lower() not in FORMATS:
        raise SettingError(f"format {name} does not exist", hint=f"one of {', '.join(FORMATS)}")
    return name.lower()


def _expanded(session: ShellSession, _rest: str) -> None:
    upright = session.preferences.format == "vertical"
    _format(session, "table" if upright else "vertical")


def _rows(session: ShellSession, rest: str) -> None:
    if rest:
        if not (rest.isascii() and rest.isdigit()):
            raise SettingError(f"{rest!r} is not a number of rows", hint="0 shows all rows")
        session.preferences.row_limit = int(rest)
    limit = session.preferences.row_limit
    session.out.write(f"showing {f'at most {limit}' if limit else 'all'} rows\n")


def _include(session: ShellSession, rest: str) -> None:
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
    Command("\\?", "", "this list", _commands),
    Command("\\help", "[what]", "how a statement is written; what to do about an SQLSTATE", _help),
    Command("\\q", "", "leave", _quit),
    Command("\\d", "[name]", "describe an object, or list all with their columns", _describe),
    Command("\\dt", "", "list the tables", _shown("TABLES")),
    Command("\\dv", "", "list the views", _shown("VIEWS")),
    Command("\\dq", "", "list the continuous queries", _shown("QUERIES")),
    Command("\\ds", "", "list the sources and the sinks", _shown("SOURCES", "SINKS")),
    Command("\\di", "", "list the indexes", _shown("INDEXES")),
    Command("\\df", "", "list the functions and the procedures", _shown("FUNCTIONS", "PROCEDURES")),
    Command("\\du", "", "list the users", _shown("USERS")),
    Command("\\watch", "[seconds [times]]", "run the last statement again and again", _watch),
    Command("\\i", "file", "run the statements of a file", _include),
    Command("\\format", "[name]", f"how results look: {', '.join(FORMATS)}", _format),
    Command("\\x", "", "switch between table and vertical", _expanded),
    Command("\\rows", "[n]", "draw at most n rows of a result; 0 draws all", _rows),
    Command("\\timing", "[on|off]", "show how long statements take", _timing),
)
BY_NAME = {command.name: command for command in TABLE}
ALIASES = {"\\h": "\\help", "\\quit": "\\q", "\\include": "\\i"}
ELSEWHERE = {
    "\\l": "a folder is a database; \\d lists what is in it",
    "\\c": "leave, and open another folder: headwater sql ./other",
    "\\e": "Alt-Enter adds a line, Ctrl-R finds old statements",
    "\\o": "headwater sql ./data --format csv -c '…' > file, or COPY (query) TO 'file'",
    "\\copy": "COPY t FROM 'file' and COPY t TO 'file' are statements here",
    "\\!": "leave with \\q first",
    "\\g": "end the statement with ;",
    "\\dn": "there are no schemas; \\d lists all objects",
}
"""What to do instead of commands that psql has."""
KEYS = (
    ("Enter", "run if the statement is complete, else a new line"),
    ("Alt-Enter", "a new line in any case"),
    ("Tab", "complete keywords, names and files"),
    ("Ctrl-R", "search the history"),
    ("Ctrl-C", "cancel the running statement, or clear what is typed"),
    ("Ctrl-D", "leave"),
)
