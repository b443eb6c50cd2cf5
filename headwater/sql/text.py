"""Places in a text, and a text with edits in place.

Text for Spark is the user's own text with a few places replaced, never text made from a syntax
tree: sqlglot's generator loses meaning (`percentile_cont` becomes an approximation, for one).
`EditedText` holds the edits and maps positions both ways, so an error that Spark reports on the
edited text is shown on the text that the user wrote. It must never look into the text itself.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from headwater.errors import Place


@dataclass(frozen=True, order=True)
class Span:
    """A half-open range of character positions."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """The text in the span."""
        return text[self.start : self.end]

    def shifted(self, by: int) -> Span:
        """The span moved by some characters."""
        return Span(self.start + by, self.end + by)

    def within(self, outer: Span) -> bool:
        """Whether all of the span lies in another one."""
        return outer.start <= self.start and self.end <= outer.end

    def place(self, text: str) -> Place:
        """The span as the place of an error in the text."""
        return Place(text, self.start, self.end)

    def __len__(self) -> int:
        return self.end - self.start


class Name(str):
    """A name as the user wrote it (without its backticks), which knows where it stands."""

    span: Span

    def __new__(cls, value: str, span: Span | None = None) -> Name:
        """The name; a name that comes from no text stands at (0, 0)."""
        name = super().__new__(cls, value)
        name.span = span or Span(0, 0)
        return name

    def __getnewargs__(self) -> tuple[str, Span]:  # type: ignore[override]  # str has one value
        return str(self), self.span

    @property
    def key(self) -> str:
        """The name for comparison: names are case-insensitive."""
        return self.lower()


@dataclass(frozen=True)
class Edit:
    """One replacement: a span of the original text and what stands there now."""

    span: Span
    new: str


class EditedText:
    """A text with replacements; edits are given in the original's positions, without overlap."""

    def __init__(self, original: str) -> None:
        self.original = original
        self._edits: list[Edit] = []

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits in the order of the text."""
        return tuple(self._edits)

    def is_free(self, span: Span) -> bool:
        """Whether no edit touches a span."""
        return not any(e.span.start < span.end and span.start < e.span.end for e in self._edits)

    def replace(self, start: int, end: int, new: str) -> EditedText:
        """Put new text in place of original[start:end]; an empty span inserts. Returns itself."""
        if not 0 <= start <= end <= len(self.original):
            raise ValueError(f"no span {start}..{end} in a text of {len(self.original)} characters")
        index = bisect_right(self._edits, (start, end), key=lambda e: (e.span.start, e.span.end))
        before = self._edits[index - 1] if index else None
        after = self._edits[index] if index < len(self._edits) else None
        if (before and before.span.end > start) or (after and after.span.start < end):
            raise ValueError(f"an edit at {start}..{end} overlaps another")
        self._edits.insert(index, Edit(Span(start, end), new))
        return self

    def remove(self, span: Span) -> EditedText:
        """Take a span out; a space is left so that the words around it stay apart."""
        return self.replace(span.start, span.end, " ")

    @property
    def text(self) -> str:
        """The text with all edits made."""
        pieces, done = [], 0
        for edit in self._edits:
            pieces += [self.original[done : edit.span.start], edit.new]
            done = edit.span.end
        return "".join([*pieces, self.original[done:]])

    def original_position(self, position: int) -> int:
        """The position in the original text of a position in the edited text.

        A position inside replaced text is that of the start of the original piece.
        """
        shift = 0  # edited position minus original position, up to here
        for edit in self._edits:
            start = edit.span.start + shift
            if position < start:
                break
            if position < start + len(edit.new):
                return edit.span.start
            shift += len(edit.new) - len(edit.span)
        return min(max(position - shift, 0), len(self.original))

    def original_span(self, span: Span) -> Span:
        """The span of the original text that a span of the edited text came from."""
        start = self.original_position(span.start)
        if not len(span):
            return Span(start, start)
        end = self._original_end(span.end - 1)
        return Span(start, max(end, start))

    def _original_end(self, last: int) -> int:
        """The end, in the original, of the piece that the edited character `last` came from."""
        shift = 0
        for edit in self._edits:
            start = edit.span.start + shift
            if start <= last < start + len(edit.new):
                return edit.span.end
            if last < start:
                break
            shift += len(edit.new) - len(edit.span)
        return min(last - shift + 1, len(self.original))
