"""Drawing a tree of text: what stands above is made from what hangs below it.

Knows forks, bars and broken lines; knows nothing of plans. Without `Look.unicode` everything drawn
is ASCII, without `Look.colour` no escape sequence is written.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from headwater.cli.grid import BOLD, DIM, Look
from headwater.values import safe

LEAST_ROOM = 24
"""Text is broken into lines of no less than this, however deep it hangs."""
GREEN, YELLOW = "\x1b[32m", "\x1b[33m"
TIERS = {"operators": GREEN, "Spark": YELLOW}
"""Where a part runs, when its line ends so."""


@dataclass(frozen=True)
class Node:
    """A line and what hangs below it; `note` says more about it, in lines of its own."""

    text: str
    below: tuple[Node, ...] = ()
    note: str = ""

    @property
    def label(self) -> str:
        """The words before the colon."""
        return self.text.partition(":")[0]


def drawn(node: Node, look: Look, first: str = "", rest: str = "") -> Iterator[str]:
    """The lines of a tree; `first` stands before its first line, `rest` before the others."""
    fork, end, bar = ("├─ ", "└─ ", "│  ") if look.unicode else ("|- ", "`- ", "|  ")
    room = None if look.width is None else max(look.width - len(first) - len(bar), LEAST_ROOM)
    head, *more = _broken(node.text, room)
    notes = [part for line in node.note.splitlines() for part in _broken(line, room)]
    beside = ""
    if len(notes) == 1 and not more and (room is None or len(head) + 2 + len(notes[0]) <= room):
        beside = look.styled("  " + notes.pop(), DIM)
    yield look.styled(first, DIM) + _coloured(head, look, root=not first) + beside
    aside = rest + (bar if node.below else "   ")
    yield from (look.styled(aside, DIM) + line for line in more)
    yield from (look.styled(aside + line, DIM) for line in notes)
    for number, child in enumerate(node.below, 1):
        last = number == len(node.below)
        yield from drawn(
            child, look, rest + (end if last else fork), rest + ("   " if last else bar)
        )


def _broken(text: str, room: int | None) -> list[str]:
    text = safe(text)
    if room is None or len(text) <= room:
        return [text]
    return textwrap.wrap(text, room, break_on_hyphens=False) or [text]


def _coloured(text: str, look: Look, root: bool) -> str:
    """The label in bold, and where the part runs in the colour of that tier."""
    if root or not look.colour:
        return look.styled(text, BOLD)
    for tier, style in TIERS.items():
        if text.endswith((f": {tier}", f", {tier}")):
            text = text.removesuffix(tier) + look.styled(tier, style)
    label, colon, rest = text.partition(": ")
    return f"{look.styled(label, BOLD)}: {rest}" if colon else text
