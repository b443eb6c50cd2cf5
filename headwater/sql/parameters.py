"""Fills parameters into the text of a procedure or a function.

Works on tokens: a bare name that is a parameter's is replaced, a name after or before a dot, or
one that is called, is not. Values go in as SQL text, so a string can never become code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.errors import BindError
from headwater.sql.lexer import Kind, tokenize
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


def parameter_count(text: str) -> int:
    """How many values `$1`, `$2`, … or `?` in a text need."""
    numbers = [token.text for token in tokenize(text) if token.kind is Kind.PARAMETER]
    named = max((int(text[1:]) for text in numbers if text != "?"), default=0)
    return max(named, numbers.count("?"))


def bind(text: str, values: Sequence[str]) -> EditedText:
    """The text with `$n`, or each `?` in turn, replaced by SQL texts."""
    edited = EditedText(text)
    asked = 0
    for token in tokenize(text):
        if token.kind is not Kind.PARAMETER:
            continue
        asked += token.text == "?"
        number = asked if token.text == "?" else int(token.text[1:])
        if not 1 <= number <= len(values):
            place = token.span.place(text)
            raise BindError(f"there is no value for {token.text}", sqlstate="08P01", place=place)
        edited.replace(token.start, token.end, values[number - 1])
    return edited
