"""The shell's history: a bounded file in the user's state folder.

Statements that hold a password are never written to it. A history that cannot be written costs
the user the history, never the shell.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from headwater.sql.masking import masked

ENTRIES_KEPT = 2_000
LONGEST_ENTRY = 20_000
_SECRET = re.compile(r"\bpassword\b", re.IGNORECASE)


def history_path(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_STATE_HOME/headwater/history`, or below `~/.local/state`."""
    env = os.environ if environment is None else environment
    base = env.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "headwater" / "history"


class BoundedHistory(FileHistory):
    """A history file of at most so many entries, cut when it is opened."""

    def __init__(self, path: Path, kept: int = ENTRIES_KEPT) -> None:
        super().__init__(str(path))
        self._path = path
        self._cut(kept)

    def _cut(self, kept: int) -> None:
        newest = list(islice(self.load_history_strings(), kept + 1))
        if len(newest) <= kept:
            return
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        fresh.touch(mode=0o600)
        cut = FileHistory(str(fresh))
        for entry in reversed(newest[:kept]):
            cut.store_string(entry)
        fresh.replace(self._path)

    def store_string(self, string: str) -> None:
        """Adds an entry to the file, unless it is secret or huge."""
        if len(string) > LONGEST_ENTRY or _SECRET.search(string) or masked(string) != string:
            return
        try:
            super().store_string(string)
        except OSError:
            pass  # a full disk must not end the shell


def open_history(path: Path | None = None) -> History:
    """The user's history, or one in memory if there is no place for a file."""
    path = history_path() if path is None else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        return BoundedHistory(path)
    except (OSError, RuntimeError):
        return InMemoryHistory()
