"""Where statements end in a script, and where the shell's own commands stand between them.

The parser decides what a statement is; it is imported on first use, when the database has it
loaded anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ShellText:
    """A part of a script: statements, or one backslash command."""

    text: str
    command: bool


def complete(text: str) -> bool:
    """Whether the last statement is closed with a semicolon, or there is none."""
    from headwater.sql.parser import is_complete

    return is_complete(text.rstrip())


def pieces(text: str) -> Iterator[ShellText]:
    """A script in parts: lines that start with a backslash between statements are commands."""
    gathered: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("\\") and complete("".join(gathered)):
            yield from _statements(gathered)
            yield ShellText(line.strip(), command=True)
            # Empty lines in place of what ran keep the line numbers of later errors right.
            gathered = ["\n" * (1 + "".join(gathered).count("\n"))]
        else:
            gathered.append(line)
    yield from _statements(gathered)


def _statements(lines: list[str]) -> Iterator[ShellText]:
    text = "".join(lines)
    if text.strip():
        yield ShellText(text, command=False)
