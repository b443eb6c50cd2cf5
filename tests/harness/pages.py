"""Pages of the docs whose examples show their output: read, run, compared, or written anew.

A block of ```sql or ```python that is followed by a block of ```text shows its output: for SQL what
the shell draws of results with rows, and errors; for Python what is printed. `python -m tests.harness.pages
PAGE` puts the present output in its place. A comment before a block says how it is run:

    <!-- not run -->        it is not
    <!-- killed -->         in a shell of its own, which is killed when the output is there
    <!-- over the wire -->  by a client of a server; errors look as in psql with VERBOSITY verbose
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

import headwater
from headwater.cli.grid import Look
from headwater.cli.output import Footer, render
from headwater.sql.parser import split
from tests.server.live import LiveServer

ROOT = Path(__file__).parents[2]
NOT_RUN, KILLED, WIRE = "not run", "killed", "over the wire"
PATIENCE_S = 300.0
FENCE = re.compile(r"```(\w*)$")
LINES = str.maketrans({"│": "|", "─": "-", "┼": "+"})


@dataclass(frozen=True)
class Block:
    """A block of code: its first line's number, and the lines of the output below it, if shown."""

    line: int
    language: str
    text: str
    mark: str | None = None
    shown: str | None = None
    shown_at: tuple[int, int] | None = None


def blocks(text: str) -> list[Block]:
    """The blocks of SQL and Python on a page, with the output that each shows."""
    found: list[Block] = []
    lines = text.splitlines()
    for start, end, language in _fences(lines):
        body = "\n".join(lines[start + 1 : end])
        if language in ("sql", "python"):
            found.append(Block(start + 1, language, body, _mark(lines, start)))
        elif language == "text" and found and _follows(lines, found[-1], start):
            last = found[-1]
            found[-1] = Block(last.line, last.language, last.text, last.mark, body, (start, end))
    return found


def _fences(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    start: int | None = None
    language = ""
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if start is None and fence:
            start, language = number, fence[1]
        elif start is not None and line == "```":
            yield start, number, language
            start = None


def _mark(lines: list[str], start: int) -> str | None:
    before = re.fullmatch(r"<!-- (.+) -->", lines[start - 1].strip()) if start else None
    return before[1] if before else None


def _follows(lines: list[str], block: Block, start: int) -> bool:
    """Whether only empty lines stand between a block of code and a block of output."""
    after = block.line + block.text.count("\n") + 2
    return block.shown is None and not any(line.strip() for line in lines[after:start])


def plain(text: str) -> str:
    """Output as it is where there is no terminal."""
    return text.translate(LINES)


def drawn(result: headwater.Result) -> str:
    """A result with rows as the shell draws it, without the time that it took."""
    lines = list(render(result.arrow(), "table", Look(unicode=True)))
    lines += [f"notice: {result.notice}"] if result.notice else []
    return "\n".join([*lines, Footer(result.kind, True, result.row_count).text()])


class Reader:
    """Runs the blocks of a page one after the other, as somebody who copies them would."""

    def __init__(self, folder: Path, page: Path, settings: dict[str, object] | None = None) -> None:
        self.folder, self.page = folder, page
        self._settings = settings or {}
        self._names: dict[str, object] = {"headwater": headwater}
        self._db: headwater.Database | None = None

    def output(self, block: Block) -> str:
        """What a block gives; the folder must be the current one."""
        if block.mark == KILLED:
            return self._killed(block)
        if block.mark == WIRE:
            return _over_the_wire(self.db, block.text)
        if block.language == "python":
            return self._python(block.text)
        return self._sql(block.text)

    @property
    def db(self) -> headwater.Database:
        """The database of the page's SQL."""
        if self._db is None:
            self._db = headwater.connect(self.folder / "data", settings=self._settings)
        return self._db

    def close(self) -> None:
        """Closes every database that the page has opened."""
        for database in self._names.values():
            if isinstance(database, headwater.Database):
                database.close()
        self._close_own()

    def _close_own(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None

    def _sql(self, text: str) -> str:
        shown = []
        try:
            shown += [drawn(r) for r in self.db.script(text) if r.has_rows]
        except headwater.Error as error:
            shown.append(f"error: {error}")
        return "\n\n".join(shown)

    def _python(self, text: str) -> str:
        if "headwater.connect(" in text:
            self._close_own()
        elif "db" not in self._names:
            self._names["db"] = self.db
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(text, str(self.page), "exec"), self._names)
            except headwater.Error as error:
                print(f"error: {error}")
        return printed.getvalue().rstrip("\n")

    def _killed(self, block: Block) -> str:
        """The output of a shell that gets SIGKILL once it has shown what the page shows."""
        self.close()
        environment = {**os.environ, "HEADWATER_EAGER_SPARK": "false", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "headwater.cli", "sql", str(self.folder / "data")]
        wanted = plain(block.shown or "")
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        ) as shell:
            watch = threading.Timer(PATIENCE_S, shell.kill)
            watch.start()
            assert shell.stdin is not None
            assert shell.stdout is not None
            shell.stdin.write(block.text)
            shell.stdin.close()
            seen = ""
            for line in shell.stdout:
                seen += line
                if wanted and _rows_only(seen).endswith(wanted):
                    break
            watch.cancel()
            shell.send_signal(signal.SIGKILL)
        return _rows_only(seen)


def _over_the_wire(database: headwater.Database, text: str) -> str:
    """What psql shows of the errors of statements, each sent by itself."""
    shown = []
    with (
        LiveServer(database) as server,
        psycopg.connect(server.dsn, autocommit=True) as client,
    ):
        for piece in split(text):
            try:
                client.execute(piece.text.encode())
            except psycopg.Error as error:
                shown.append(f"ERROR:  {error.diag.sqlstate}: {error.diag.message_primary}")
                if error.diag.message_hint:
                    shown.append(f"HINT:  {error.diag.message_hint}")
    return "\n".join(shown)


def _rows_only(text: str) -> str:
    """What a shell without a terminal has shown, without the tags of statements that have no rows."""
    tag = re.compile(r"^[A-Z ]+( \d+)?$\n?", re.MULTILINE)
    return re.sub(r"\n{2,}", "\n\n", tag.sub("", text)).strip("\n")


def written_anew(page: Path) -> str:
    """The page with the present output of every block that shows some."""
    text = page.read_text()
    lines = text.splitlines()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        reader = Reader(Path(folder), page)
        try:
            outputs = [(b, reader.output(b)) for b in blocks(text) if b.mark != NOT_RUN]
        finally:
            reader.close()
    for block, output in reversed(outputs):
        if block.shown_at is not None and plain(block.shown or "") != plain(output):
            lines[block.shown_at[0] + 1 : block.shown_at[1]] = output.splitlines()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(written_anew(Path(name)))
