"""The one cache of parsed statements: texts that come again are not read again.

Key: the text as it came, and how it is spelled (PostgreSQL's clients write some things differently).
Bound: `MOST_TEXTS` texts of at most `LONGEST_TEXT` characters; the longest unasked goes.
Only statements that give rows or make views and queries stay: the others bring rows or passwords of their
own, and seldom come again.
Validity: for ever. A text is read without a catalog, so it always means the same; the one thing that it
depends on, the time zone of its literals, is kept with the statement, which is read again under another.
What else follows from a statement's text alone (`fact`) is kept with it; what depends on more, as the scan
that a query is (`execute.query.ready_scan`), is kept with the marks of what it depends on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from headwater.sql.kinds import COME_AGAIN
from headwater.sql.parser import StatementText, parse, split
from headwater.sql.statements.base import Remembering, Statement
from headwater.sql.text import EditedText, Span

MOST_TEXTS = 512
LONGEST_TEXT = 4096  # characters
Spelling = Callable[[str], EditedText]


class Asked(Remembering):
    """One statement that somebody asked for: its text as we read it, and as it was written."""

    def __init__(self, piece: StatementText, read: EditedText, key: object) -> None:
        self.text, self.start = piece.text, piece.start
        self._read, self._key = read, key
        self._parsed: tuple[str, Statement] | None = None
        self.facts = {}

    def statement(self, time_zone: str | None = None) -> Statement:
        """The statement, parsed once; an error says what is wrong with it. None: in whatever time zone."""
        known = self._parsed
        if known is None or time_zone not in (None, known[0]):
            zone = time_zone or "UTC"
            known = self._parsed = zone, parse(self.text, time_zone=zone)
            _settle(self._key, type(known[1]) in COME_AGAIN)
        return known[1]

    def original_position(self, position: int) -> int:
        """The position in the text as it came of a position in this one."""
        return self._read.original_position(self.start + position)

    def original(self, span: Span | None = None) -> str:
        """The statement, or a span of it, as it was written."""
        start, end = (0, len(self.text)) if span is None else (span.start, span.end)
        return self._read.original[self.original_position(start) : self.original_position(end)]


Script = tuple[Asked, ...]
_kept: OrderedDict[object, Script] = OrderedDict()
_lock = threading.Lock()


def read(text: str, spelling: Spelling = EditedText) -> Script:
    """The statements of a script; empty ones are left out."""
    return _remembered(text, spelling, split)


def read_one(text: str) -> Asked:
    """The one statement that a text is."""
    return _remembered(text, EditedText, _whole)[0]


def _whole(text: str) -> list[StatementText]:
    return [StatementText(text, 0)]


def _remembered(text: str, spelling: Spelling, cut: Callable[[str], list[StatementText]]) -> Script:
    key = text, spelling, cut
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
            return found
    edited = spelling(text)
    made = tuple(Asked(piece, edited, key) for piece in cut(edited.text))
    if len(text) <= LONGEST_TEXT:
        with _lock:
            _kept[key] = made
            _shrink(2 * MOST_TEXTS)  # texts that nobody parses go as well
    return made


def _settle(key: object, stays: bool) -> None:
    """A statement was parsed for the first time: what it is decides whether its text stays."""
    with _lock:
        if not stays:
            _kept.pop(key, None)
        _shrink(MOST_TEXTS)


def _shrink(most: int) -> None:
    while len(_kept) > most:
        _kept.popitem(last=False)
