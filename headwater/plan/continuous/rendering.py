"""Pieces of a query's text with some places replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
