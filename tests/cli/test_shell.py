"""The interactive shell, driven by keys, with a database without Spark."""

from __future__ import annotations

import io
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from headwater.cli.colouring import coloured
from headwater.cli.history import BoundedHistory, history_path, open_history
from headwater.cli.session import Preferences, ShellSession
from headwater.cli.shell import Shell, reminds
from headwater.cli.watching import watch
from tests.harness.patience import PATIENCE_S

ENTER, TAB, CTRL_C, CTRL_D, ALT_ENTER = "\r", "\t", "\x03", "\x04", "\x1b\r"


class Typist:
    """Types keys into a shell and keeps what it wrote."""

    def __init__(self, database: Any) -> None:
        self.database = database
        self.out, self.err = io.StringIO(), io.StringIO()
        self.history = InMemoryHistory()
        self.awaited: dict[str, str] = {}

    def when_typed(self, text: str, keys: str) -> None:
        """Types more keys once the line reads so."""
        self.awaited[text] = keys

    def type(self, *keys: str) -> int:
        preferences = Preferences(interactive=True, row_limit=10)
        session = ShellSession(self.database, preferences, self.out, self.err)
        console = Console(file=self.err, highlight=False, width=80)
        with create_pipe_input() as pipe:
            pipe.send_text("".join(keys))
            shell = Shell(session, console, self.history, pipe, DummyOutput())

            def changed(buffer: Buffer) -> None:
                pipe.send_text(self.awaited.pop(buffer.text, ""))

            shell.prompt.default_buffer.on_text_changed += changed
            return shell.run()


@pytest.fixture
def typist(database: Any) -> Typist:
    return Typist(database)


def test_a_statement_over_two_lines(typist: Typist) -> None:
    assert typist.type("select 1", ENTER, "2;", ENTER, CTRL_D) == 0
    assert typist.database.statements == ["select 1\n2"]
    assert typist.out.getvalue() == " n\n---\n 1\n 2\n(2 rows)\n\n"


def test_who_forgets_the_semicolon_is_reminded() -> None:
    """After Enter behind a statement without one, until something else is typed."""
    assert reminds("select 1\n")
    assert reminds("select 1\n\n")
    assert not any(map(reminds, ["", "\n", "select 1", "select 1\nfrom", "select 1;\n"]))


def test_alt_enter_adds_a_line(typist: Typist) -> None:
    typist.type("select 1;", ALT_ENTER, "select 2;", ENTER, "\\q", ENTER)
    assert typist.database.statements == ["select 1", "select 2"]


def test_errors_do_not_end_the_shell(typist: Typist) -> None:
    typist.type("bad;", ENTER, "bug;", ENTER, "\\nope", ENTER, "select 4;", ENTER, CTRL_D)
    err = typist.err.getvalue()
    assert "error: no such thing (42704)" in err
    assert "hint: did you mean good?" in err
    assert "internal error: ZeroDivisionError" in err
    assert "\\nope is not a command" in err
    assert typist.database.statements[-1] == "select 4"


def test_ctrl_c_at_the_prompt_clears_the_line(typist: Typist) -> None:
    typist.type("bad", CTRL_C, "select 1;", ENTER, CTRL_D)
    assert typist.database.statements == ["select 1"]


def test_ctrl_c_cancels_the_statement_not_the_shell(typist: Typist) -> None:
    def press() -> None:
        typist.database.started.wait(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    assert typist.type("wait;", ENTER, "select 1;", ENTER, CTRL_D) == 0
    pressing.join()
    assert "cancelled" in typist.err.getvalue()
    assert typist.database.statements == ["wait", "select 1"]


@pytest.mark.parametrize("word", ["exit", "quit;", "\\q", "  QUIT  "])
def test_ways_to_leave(typist: Typist, word: str) -> None:
    assert typist.type(word, ENTER, "select 1;", ENTER, CTRL_D) == 0
    assert typist.database.statements == []


def test_commands(typist: Typist) -> None:
    keys = [
        "help",
        "\\d",
        "\\d orders",
        "\\d line items",
        "\\dt",
        "\\timing",
        "\\x",
        "\\format csv",
    ]
    typist.type(*(f"{key}{ENTER}" for key in keys), "\\rows x", ENTER, "\\rows 3", ENTER, CTRL_D)
    out = typist.out.getvalue()
    assert "\\timing [on|off]" in out
    assert "id, price, placed at" in out
    assert typist.database.statements == [
        "DESCRIBE orders",
        "DESCRIBE `line items`",
        "SHOW TABLES",
    ]
    assert "timing is on" in out
    assert "format is vertical\nformat is csv\nshowing at most 3 rows" in out
    assert "not a number of rows" in typist.err.getvalue()


def test_commands_that_list(typist: Typist) -> None:
    """Each kind of object has a command that lists it; where it lists two kinds, it names them."""
    typist.type(*(f"\\d{kind}{ENTER}" for kind in "vqifsu"), CTRL_D)
    kinds = ["VIEWS", "QUERIES", "INDEXES", "FUNCTIONS", "PROCEDURES", "SOURCES", "SINKS", "USERS"]
    assert typist.database.statements == [f"SHOW {kind}" for kind in kinds]
    assert "sources\n" in typist.out.getvalue()


def test_a_described_object_says_what_it_is_made_of(typist: Typist) -> None:
    """`\\d` names the kind, and shows the query of a view."""
    typist.type("\\d dear", ENTER, "\\d orders", ENTER, CTRL_D)
    out = typist.out.getvalue()
    assert out.startswith("view dear\n")
    assert "made of:\n  SELECT *\n    FROM orders\n" in out
    assert "table orders\n" in out


def test_errors_point_to_their_page(typist: Typist) -> None:
    """What the last line of an error names tells the cause and the cure."""
    typist.type("bad;", ENTER, "\\help 42704", ENTER, "bug;", ENTER, CTRL_D)
    assert typist.err.getvalue().count("more: \\help 42704\n") == 1
    assert typist.out.getvalue().startswith("42704: a type, setting, user")
    assert "Causes\n" in typist.out.getvalue()
    assert typist.out.getvalue().endswith("more: docs/reference/errors/42704.md\n")


def test_commands_of_psql_say_what_to_do_instead(typist: Typist) -> None:
    """Habits from psql get an answer."""
    typist.type("\\l", ENTER, "\\h select", ENTER, CTRL_D)
    assert "a folder is a database" in typist.err.getvalue()
    assert typist.out.getvalue().startswith("SELECT: ")


def test_watch_runs_the_last_statement_again(typist: Typist) -> None:
    """So many times, or until an error."""
    typist.type("select 1;", ENTER, "\\watch 0.1 3", ENTER, "bad;", ENTER, "\\watch", ENTER, CTRL_D)
    assert typist.database.statements == ["select 1"] * 4 + ["bad"] * 2
    assert typist.out.getvalue().count("every 0.1 s; Ctrl-C ends") == 3


def test_watch_needs_a_statement_and_a_time(typist: Typist) -> None:
    """What it cannot do it says."""
    typist.type("\\watch", ENTER, "select 1;", ENTER, "\\watch often", ENTER, CTRL_D)
    assert "there is no statement to watch" in typist.err.getvalue()
    assert "'often' is no time" in typist.err.getvalue()
    assert typist.database.statements == ["select 1"]


def test_ctrl_c_ends_watching(typist: Typist) -> None:
    """In the middle of a statement or between two: the shell goes on, and nothing else is lost."""
    pause = threading.Event()

    def press() -> None:
        for _ in range(6000):
            if len(typist.database.statements) == 2 or pause.wait(0.01):
                break
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    typist.type("select 1;", ENTER, "\\watch 60", ENTER, "select 2;", ENTER, CTRL_D)
    pressing.join()
    assert typist.database.statements == ["select 1", "select 1", "select 2"]
    assert typist.err.getvalue() == ""


def test_ctrl_c_in_a_statement_that_ends_well_ends_watching(database: Any) -> None:
    """A press that came too late to cancel anything is not lost."""
    session = ShellSession(database, Preferences(), io.StringIO(), io.StringIO())
    real = database.script

    def script(text: str, **more: Any) -> Any:
        session.runner.press()
        return real(text, **more)

    database.script = script
    watch(session, "select 1", 60.0)
    assert database.statements == ["select 1"]


def test_only_the_first_rows_are_drawn(typist: Typist) -> None:
    typist.type("many 11;", ENTER, "\\rows 0", ENTER, "many 12;", ENTER, CTRL_D)
    assert "(the first 10 of 11 rows; \\rows 0 shows all)" in typist.out.getvalue()
    assert "(12 rows)" in typist.out.getvalue()


def test_tab_completes(typist: Typist) -> None:
    # Completion is asynchronous: the next keys are typed when the word has changed. The first
    # Tab gives what `orders` and `order` share, the second picks the first of them, Enter takes it.
    typist.when_typed("describe order", TAB)
    typist.when_typed("describe orders", f"{ENTER};{ENTER}{CTRL_D}")
    typist.type("describe ord", TAB)
    assert typist.database.statements == ["describe orders"]


def test_history_is_kept(typist: Typist) -> None:
    typist.type("select", ENTER, "1;", ENTER, "\\timing", ENTER, CTRL_D)
    assert typist.history.get_strings() == ["select\n1;", "\\timing"]


def test_history_file_is_bounded_and_has_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    history = open_history(path)
    for number in range(30):
        history.append_string(f"select\n{number};")
    history.append_string("create user u password 'secret';")
    history.append_string("create sink k from q into 'postgresql://u:secret@h/d';")
    assert "secret" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    kept = list(BoundedHistory(path, kept=10).load_history_strings())
    assert kept == [f"select\n{number};" for number in range(29, 19, -1)]
    assert path.stat().st_mode & 0o077 == 0


def test_history_without_a_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert isinstance(open_history(tmp_path / "file" / "history"), InMemoryHistory)
    assert history_path({"XDG_STATE_HOME": "/s"}) == Path("/s/headwater/history")


def test_colours() -> None:
    parts = [(style, text) for style, text, *_ in coloured("sample 12 'x' -- c")]
    assert ("class:sql.keyword", "sample") in parts
    assert ("class:sql.number", "12") in parts
    assert ("class:sql.quoted", "'x'") in parts
    assert ("class:sql.comment", "-- c") in parts
