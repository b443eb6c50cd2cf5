"""Runs text against a database and writes the results: the part that the shell, `-c`, `-f` and
piped input share.

Errors are raised, never written: the caller knows whether to go on. Data goes to `out` only.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from headwater.cli.grid import DIM, Look
from headwater.cli.interface import DatabaseLike
from headwater.cli.output import DATA_ONLY, Footer, duration, render
from headwater.cli.progress import ShellProgress
from headwater.cli.running import StatementRunner
from headwater.cli.statements import pieces
from headwater.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_SHOWN = 200
"""How many rows the interactive shell draws unless told otherwise."""


class Quit(Exception):
    """The text said `\\q`."""


@dataclass
class Preferences:
    """What the user can change while the shell runs."""

    format: str = "table"
    timing: bool = False
    quiet: bool = False
    row_limit: int = 0  # 0: all rows
    interactive: bool = False


@dataclass(frozen=True)
class ShellOutcome:
    """What came of one statement, fetched completely."""

    kind: str
    has_rows: bool
    row_count: int | None
    table: pa.Table | None
    seconds: float | None
    notice: str | None = None


class ShellSession:
    """A database, the streams to write to, and the user's preferences."""

    def __init__(
        self, database: DatabaseLike, preferences: Preferences, out: TextIO, err: TextIO
    ) -> None:
        self.database = database
        self.preferences = preferences
        self.out = out
        self.runner = StatementRunner(database, ShellProgress(err))
        self.depth = 0  # of files that include files
        self.last_text: str | None = None  # what \\watch runs again
        self._results_shown = 0

    def run(self, text: str) -> None:
        """Runs statements and backslash commands; raises at the first error."""
        from headwater.cli import commands

        for piece in pieces(text):
            if piece.command:
                commands.run(self, piece.text)
            else:
                self.run_sql(piece.text)

    def run_file(self, path: str) -> None:
        """Runs the text of a file; errors say which."""
        text = read_text(path)
        try:
            self.run(text)
        except Exception as error:
            error.add_note(f"in {path}")
            raise

    def run_sql(self, text: str) -> None:
        """Runs statements and shows each result as it comes."""
        self.last_text = text
        for outcome in self.outcomes(text):
            self.show(outcome)

    def outcomes(self, text: str) -> Iterator[ShellOutcome]:
        """The statements' outcomes, one by one, each waited for in the main thread."""
        results: list[Iterator[Any]] = []

        def advance() -> ShellOutcome | None:
            if not results:
                results.append(iter(self.database.script(text, follow=True)))
            return _fetched(results[0])

        while (outcome := self.runner.run(advance)) is not None:
            yield outcome

    def show(self, outcome: ShellOutcome) -> None:
        """Writes one outcome in the format of choice."""
        preferences = self.preferences
        shown = None
        if _is_plan(outcome) and preferences.format == "table":
            self._write_plan(outcome)
            return
        if outcome.table is not None:
            table = outcome.table
            if preferences.row_limit and preferences.format not in DATA_ONLY:
                table = table.slice(0, preferences.row_limit)
            shown = table.num_rows
            self._write_table(table)
        seconds = outcome.seconds if preferences.timing else None
        footer = Footer(outcome.kind, outcome.has_rows, outcome.row_count, shown, seconds)
        self._write_footer(footer, outcome.notice)
        self.out.flush()

    def tell(self, text: str) -> None:
        """Writes words beside results; nothing where only data may stand."""
        if self.preferences.format in DATA_ONLY or self.preferences.quiet:
            return
        apart = self._results_shown and not self.preferences.interactive
        self.out.write(f"\n{text}\n" if apart else f"{text}\n")
        self._results_shown = 0  # what comes next belongs to these words

    def _write_table(self, table: pa.Table) -> None:
        format_ = self.preferences.format
        self._write_lines(render(table, format_, self.look()), apart=format_ != "json")

    def _write_lines(self, lines: Iterable[str], apart: bool = True) -> None:
        """The lines of one result, set apart from the one before where no prompt does."""
        if self._results_shown and not self.preferences.interactive and apart:
            self.out.write("\n")
        self._results_shown += 1
        for line in lines:
            self.out.write(line + "\n")

    def _write_plan(self, outcome: ShellOutcome) -> None:
        """EXPLAIN as a tree; how many lines that took says nothing, so only the time is told."""
        from headwater.cli.plan_tree import plan_tree
        from headwater.cli.tree import drawn

        assert outcome.table is not None
        lines = outcome.table.column(0).to_pylist()
        self._write_lines(drawn(plan_tree(lines), self.look()))
        if self.preferences.timing and not self.preferences.quiet:
            self.out.write(self.look().styled(f"({duration(outcome.seconds or 0.0)})", DIM) + "\n")
        if self.preferences.interactive:
            self.out.write("\n")
        self.out.flush()

    def _write_footer(self, footer: Footer, notice: str | None) -> None:
        preferences = self.preferences
        if preferences.quiet or (preferences.format in DATA_ONLY and not preferences.interactive):
            return
        if notice is not None:
            self.out.write(f"notice: {notice}\n")
        self.out.write(self.look().styled(footer.text(), DIM) + "\n")
        if preferences.interactive and footer.has_rows:
            self.out.write("\n")

    def look(self) -> Look:
        """What the place of output can show at this moment."""
        return look_of(self.out)


def _is_plan(outcome: ShellOutcome) -> bool:
    table = outcome.table
    return outcome.kind == "EXPLAIN" and table is not None and table.column_names == ["plan"]


def look_of(stream: TextIO) -> Look:
    """A terminal's width, colours and characters; plain ASCII of any width elsewhere."""
    if not stream.isatty():
        return Look()
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    unicode = (stream.encoding or "").lower().startswith("utf")
    return Look(shutil.get_terminal_size().columns, colour, unicode)


def _fetched(results: Iterator[Any]) -> ShellOutcome | None:
    """The next result with its rows; runs in the worker thread."""
    started = time.perf_counter()
    result = next(results, None)
    if result is None:
        return None
    table = result.arrow() if result.has_rows else None
    count = result.row_count
    if count is None and table is not None:
        count = table.num_rows
    seconds = time.perf_counter() - started
    return ShellOutcome(result.kind, result.has_rows, count, table, seconds, result.notice)


def read_text(path: str) -> str:
    """A file of SQL, or an error that says why it cannot be read."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{path} is not UTF-8 text", sqlstate="22021", detail=str(error)
        ) from error
    except OSError as error:
        raise StorageError(
            f"cannot read {path}", sqlstate="58P01", detail=error.strerror or str(error)
        ) from error
