"""Pieces of a query's text with some places replaced.

Names of ours are replaced by tokens: never inside a longer name, a string or a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from headwater.plan.continuous.folds import INSTANT
from headwater.sql.lexer import Kind, tokenize
from headwater.sql.text import Span

Replacement = tuple[Span, str]


class Rendering:
    """A text with replacements that hold everywhere; more may be given for one piece."""

    def __init__(self, text: str, always: Iterable[Replacement]) -> None:
        self.text = text
        self._always = sorted(always, key=lambda r: r[0].start)

    def of(self, span: Span, extra: Sequence[Replacement] = ()) -> str:
        """The text of a span; of nested replacements the outermost counts."""
        wanted = [r for r in (*extra, *self._always) if _within(r[0], span)]
        wanted.sort(key=lambda r: (r[0].start, -r[0].end))
        pieces, done = [], span.start
        for place, new in wanted:
            if place.start < done:
                continue  # inside one that was replaced
            pieces += [self.text[done : place.start], new]
            done = place.end
        return "".join([*pieces, self.text[done : span.end]])


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A text with other names in the place of some."""
    edits = [
        (token.span, names[token.text])
        for token in tokenize(text)
        if token.kind is Kind.WORD and token.text in names
    ]
    return Rendering(text, edits).of(Span(0, len(text)))


def with_columns(text: str, columns: Mapping[tuple[str, str], str]) -> str:
    """A text with other names in the place of some columns, by (alias, column)."""
    tokens = tokenize(text)
    edits = []
    for place, (alias, dot, column) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        new = columns.get((alias.name, column.name)) if dot.text == "." else None
        if new is not None and (not place or tokens[place - 1].text != "."):
            edits.append((Span(alias.start, column.end), new))
    return Rendering(text, edits).of(Span(0, len(text)))


def at_instant(text: str, instant: str) -> str:
    """A text with an instant in the place of INSTANT."""
    if INSTANT not in text:
        return text
    tokens = tokenize(text)
    edits = [
        (Span(name.start, close.end), instant)
        for name, opening, close in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if f"{name.text}{opening.text}{close.text}" == INSTANT
    ]
    return Rendering(text, edits).of(Span(0, len(text)))


def orders_rows(text: str) -> bool:
    """Whether ORDER BY or SORT BY stands anywhere in a text."""
    words = [token.upper for token in tokenize(text)]
    return any(first in ("ORDER", "SORT") and second == "BY" for first, second in pairwise(words))


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
