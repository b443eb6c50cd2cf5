"""Colours for SQL while it is typed; for the eye only, nothing depends on them."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer

from headwater.cli.scanner import ScannedPart, parts
from headwater.sql.keywords import WORDS

COLOURS = {
    "continuation": "ansibrightblack",
    "sql.keyword": "ansiblue bold",
    "sql.quoted": "ansigreen",
    "sql.number": "ansicyan",
    "sql.comment": "ansibrightblack",
}
"""Of the sixteen colours that a terminal's own theme defines, so that they fit light and dark."""


class SqlLexer(Lexer):
    """Colours keywords, quoted text, numbers and comments."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """A function from a line's number to its coloured text."""
        lines = list(split_lines(coloured(document.text)))
        return lambda number: lines[number] if number < len(lines) else []


def coloured(text: str) -> StyleAndTextTuples:
    """The text in coloured parts."""
    if text.lstrip().startswith("\\"):
        return [("", text)]
    return [(_style(part), part.text) for part in parts(text)]


def _style(part: ScannedPart) -> str:
    if part.kind == "word":
        return "class:sql.keyword" if part.text.upper() in WORDS else ""
    return "" if part.kind == "other" else f"class:sql.{part.kind}"
