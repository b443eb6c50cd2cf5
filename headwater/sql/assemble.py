"""Text for Spark put together from pieces of a statement.

UPDATE and MERGE cannot be sent to Spark as they are: their expressions are copied, untouched, into
queries of ours. `Assembly` remembers where each piece came from, so that an error which Spark
reports is shown at its place in what the user wrote.
"""

from __future__ import annotations

from headwater.sql.text import Span


class Assembly:
    """A text made of our own words and of pieces of the user's statement."""

    def __init__(self, original: str) -> None:
        self.original = original
        self._parts: list[str] = []
        self._pieces: list[tuple[int, int, int]] = []  # (start in text, length, start in original)
        self._length = 0

    def say(self, text: str) -> Assembly:
        """Adds words of ours."""
        self._parts.append(text)
        self._length += len(text)
        return self

    def copy(self, span: Span) -> Assembly:
        """Adds a piece of the user's text, in parentheses and on lines of its own.

        A comment at the end of the piece must not swallow what follows it.
        """
        self.say("(")
        self._pieces.append((self._length, len(span), span.start))
        self.say(span.of(self.original))
        return self.say("\n)")

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def original_position(self, position: int) -> int:
        """Where in the user's statement a position of the text comes from; -1 if from nowhere."""
        for start, length, origin in self._pieces:
            if start <= position <= start + length:
                return origin + position - start
        return -1
