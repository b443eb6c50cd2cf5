"""Drawing errors: message, the marked place, detail and hint.

The same words as `str(error)`, with colours where there are any, and with long lines cut around
the place so that the marker stays on the screen. An error about an error helps no one: nothing
here may raise.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from headwater.errors import Error, Place
from headwater.values import safe

LEAST_LINE = 40
DEBUG_VARIABLE = "HEADWATER_DEBUG"


def complain(
    console: Console, error: BaseException, more: Callable[[str], str | None] | None = None
) -> None:
    """Writes an error; `more` tells for an SQLSTATE where more is said about it."""
    width = console.width if console.is_terminal else None
    shown = drawn(error, width)
    pointer = more(error.sqlstate) if more is not None and isinstance(error, Error) else None
    if pointer is not None:
        shown.append(Text.assemble(("more: ", "bold"), (pointer, "dim")))
    for text in shown:
        console.print(text, soft_wrap=True, highlight=False)
    if os.environ.get(DEBUG_VARIABLE):
        lines = traceback.format_exception(error)
        console.print(Text("".join(lines).rstrip(), style="dim"), soft_wrap=True, highlight=False)


def drawn(error: BaseException, width: int | None) -> list[Text]:
    """The lines of an error, for a screen of that width (None: nothing is cut)."""
    if not isinstance(error, Error):
        return _unforeseen(error)
    head = Text.assemble(("error: ", "bold red"), (_clean(error.message), "bold"))
    head.append(f" ({error.sqlstate})", "dim")
    lines = [head, *(Text(_clean(note), style="dim") for note in notes(error))]
    if error.place is not None:
        lines += marked(error.place, width)
    if error.detail:
        lines.append(Text.assemble(("detail: ", "bold"), _clean(error.detail)))
    if error.hint:
        lines.append(Text.assemble(("hint: ", "bold cyan"), (_clean(error.hint), "cyan")))
    return lines


def notes(error: BaseException) -> list[str]:
    """What callers noted on the error on its way up: the file that it came from."""
    return list(getattr(error, "__notes__", []))


def _unforeseen(error: BaseException) -> list[Text]:
    name = type(error).__name__
    head = Text.assemble(("internal error: ", "bold red"), _clean(f"{name}: {error}"))
    hint = f"this is a fault of Headwater; {DEBUG_VARIABLE}=1 shows where it happened"
    return [head, Text.assemble(("hint: ", "bold cyan"), (hint, "cyan"))]


def _clean(text: str) -> str:
    return "\n".join(safe(line) for line in text.splitlines())


def marked(place: Place, width: int | None) -> list[Text]:
    """The line of the place with a marker under it, cut to the width around the marker."""
    first = place.text.rfind("\n", 0, place.start) + 1
    last = place.text.find("\n", first)
    line = place.text[first : last if last >= 0 else len(place.text)]
    start = place.start - first
    length = min(max(place.end - place.start, 1), max(len(line) - start, 1))
    head = f"line {place.line}: "
    before, within, after = line[:start], line[start : start + length], line[start + length :]
    if width is not None:
        room = max(width - len(head), LEAST_LINE)
        before, within, after = cut_around(before, within, after, room)
    before, within, after = _flat(before), _flat(within), _flat(after)
    shown = Text.assemble((head, "dim"), before, (within, "bold red"), after)
    marker = " " * (len(head) + Text(before).cell_len) + "^" * max(Text(within).cell_len, 1)
    return [shown, Text(marker, style="bold red")]


def _flat(text: str) -> str:
    """One place per character, so that the marker stands where it should."""
    return safe(text.replace("\t", " ").replace("\r", " "))


def cut_around(before: str, within: str, after: str, room: int) -> tuple[str, str, str]:
    """The three parts of a line, shortened at both ends to fit the room."""
    if len(before) + len(within) + len(after) <= room:
        return before, within, after
    if len(within) > room // 2:
        within = within[: room // 2 - 1] + "…"
    rest = room - len(within)
    lead = max(rest // 2, rest - len(after))
    if len(before) > lead:
        before = "…" + before[len(before) - lead + 1 :]
    tail = rest - len(before)
    if len(after) > tail:
        after = after[: max(tail - 1, 0)] + "…"
    return before, within, after
