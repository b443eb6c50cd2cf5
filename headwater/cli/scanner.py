"""SQL that is still being typed → parts to colour, and whether the cursor stands in a quote.

A lenient scanner: what is not closed yet runs to the end of the text, where the lexer of
`headwater.sql` rightly refuses. It must never decide where a statement ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<quoted> [rR]'[^']*(?:'|\Z)
                | '(?:[^'\\]|\\.)*(?:'|\\?\Z)
                | "(?:[^"\\]|\\.)*(?:"|\\?\Z)
                | `[^`]*(?:`|\Z)
                | \$(?P<tag>[A-Za-z_]*)\$.*?(?:\$(?P=tag)\$|\Z) )
    | (?P<number> \d\w* )
    | (?P<word> \w+ )
    | (?P<other> \s+ | . )
    """,
    re.DOTALL | re.VERBOSE,
)
_KINDS = ("comment", "quoted", "number", "word", "other")


@dataclass(frozen=True)
class ScannedPart:
    """A part of a text: comment, quoted, number, word or other."""

    kind: str
    text: str


def parts(text: str) -> Iterator[ScannedPart]:
    """The text in parts, nothing left out."""
    for match in _TOKEN.finditer(text):
        kind = next(kind for kind in _KINDS if match.group(kind) is not None)
        yield ScannedPart(kind, match.group())


def in_quote(text: str) -> bool:
    """Whether what is typed next belongs to a comment, string or quoted name."""
    *_, last = parts(text + "\0")  # a character that joins whatever is open
    return last.text != "\0"
