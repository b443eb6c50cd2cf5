"""Fills parameters into the text of a procedure or a function.

Works on tokens: a bare name that is a parameter's is replaced, a name after or before a dot, or
one that is called, is not. Values go in as SQL text, so a string can never become code.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.sql.lexer import tokenize
from headwater.sql.text import EditedText, Span


def substitute(text: str, values: Mapping[str, str], span: Span | None = None) -> EditedText:
    """The text (or a span of it) with parameters replaced by SQL texts; keys in lower case."""
    piece = text if span is None else span.of(text)
    edited = EditedText(piece)
    tokens = tokenize(piece)
    for index, token in enumerate(tokens[:-1]):
        if not token.is_name or token.name.lower() not in values:
            continue
        before = tokens[index - 1].text if index else ""
        if before == "." or before.upper() == "AS" or tokens[index + 1].text in (".", "("):
            continue
        edited.replace(token.start, token.end, values[token.name.lower()])
    return edited
