"""Where the rows of COPY's text and CSV end, and where their values do.

Owns what a quote, an escape and a backslash mean for that. Every byte is looked at once, however large a row
is. Must never change a byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from headwater.sql.statements.copy import Copy

END = b"\\."
_END_LINE = re.compile(rb"(?:^|(?<=\n))\\\.(?=\r?\n|\Z)")


def csv_ends(data: bytes, statement: Copy, inside: bool = False) -> tuple[list[int], bool, int]:
    """The ends of the rows of CSV, whether it stops inside of quotes, and how far that is known.

    `inside`: it begins inside of quotes.
    """
    quote, escape = statement.quote.encode(), statement.escape.encode()
    if quote != escape:
        return _escaped_ends(data, quote, escape, inside)
    found = np.frombuffer(data, np.uint8)
    is_end = found == ord("\n")
    if inside or quote in data:
        within = np.logical_xor.accumulate(found == quote[0]) ^ inside
        is_end &= ~within
        inside = bool(within[-1]) if len(within) else inside
    return (np.flatnonzero(is_end) + 1).tolist(), inside, len(data)


def _escaped_ends(
    data: bytes, quote: bytes, escape: bytes, inside: bool
) -> tuple[list[int], bool, int]:
    """The same where the escape is a character of its own, which means something in quotes only."""
    q, e = re.escape(quote), re.escape(escape)
    in_quotes, plain = re.compile(q + b"|" + e + b"(.?)", re.DOTALL), re.compile(q + b"|\n")
    ends: list[int] = []
    place = 0
    while True:
        match = (in_quotes if inside else plain).search(data, place)
        if match is None:
            return ends, inside, len(data)
        place = match.end()
        if match.group() == quote:
            inside = not inside
        elif not inside:
            ends.append(place)
        elif not match.group(1):
            return ends, inside, match.start()  # what is escaped has not come yet


@dataclass
class RowEnds:
    """How much of the bytes that wait are whole rows; more bytes may come behind them."""

    statement: Copy
    _known: int = 0  # bytes that were looked at
    _end: int = 0
    inside: bool = False  # what is known ends inside of quotes

    def find(self, waiting: bytearray) -> int:
        """The end of the last whole row."""
        if self.statement.format == "csv":
            ends, self.inside, known = csv_ends(
                bytes(waiting[self._known :]), self.statement, self.inside
            )
            self._end = self._known + ends[-1] if ends else self._end
            self._known += known
            return self._end
        end = waiting.rfind(b"\n", self._known)
        while end > 0 and waiting[end - 1] == ord("\\"):  # it may be a value's own
            end = waiting.rfind(b"\n", self._known, end)
        self._end = max(self._end, end + 1)
        self._known = len(waiting)
        return self._end

    def taken(self, count: int) -> None:
        """So many bytes wait no more."""
        self._known -= count
        self._end -= count


def until_end(data: bytes, statement: Copy) -> bytes | None:
    """The rows before a line that is `\\.`, outside of quotes; None if there is no such line."""
    if END not in data:
        return None
    found = [match.start() for match in _END_LINE.finditer(data)]
    if found and statement.format == "csv":
        starts = {0, *csv_ends(data, statement)[0]}
        found = [place for place in found if place in starts]
    return data[: found[0]] if found else None


def without_first(data: bytes, statement: Copy) -> bytes:
    """The rows behind the first one, which names the columns."""
    if statement.format == "csv":
        ends = csv_ends(data, statement)[0]
        return data[ends[0] :] if ends else b""
    return data.partition(b"\n")[2]


def doubled(data: bytes, statement: Copy) -> bytes:
    """CSV whose quotes inside of quotes are doubled, where it had a character of its own for that."""
    quote, escape = statement.quote.encode(), statement.escape.encode()
    if quote == escape or escape not in data:
        return data
    q, e = re.escape(quote), re.escape(escape)
    value = re.compile(q + b"((?:[^" + q + e + b"]|" + e + b".?)*)(" + q + b"?)", re.DOTALL)
    escaped = re.compile(e + b"(" + q + b"|" + e + b")")

    def plain(match: re.Match[bytes]) -> bytes:
        return quote * 2 if match.group(1) == quote else escape

    return value.sub(lambda m: quote + escaped.sub(plain, m.group(1)) + m.group(2), data)


def parted(text: bytes, separator: bytes) -> list[bytes]:
    """The parts between separators that no backslash stands before."""
    if b"\\" + separator not in text:
        return text.split(separator)
    part = re.compile(rb"(?:[^\\" + re.escape(separator) + rb"]|\\.)*\\?", re.DOTALL)
    parts, place = [], 0
    while place <= len(text):
        match = part.match(text, place)
        assert match is not None  # the pattern takes nothing, at least
        parts.append(match.group())
        place = match.end() + len(separator)
    return parts
