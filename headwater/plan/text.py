"""Text for Spark with slots: the user's own characters, and names that are only known when it runs.

A text is never searched or edited. Whoever puts one together says where the rows of a table, of a window or
of a fold are read, and where the instant belongs; `fill` puts names there. Must never: look into its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal as OneOf


@dataclass(frozen=True)
class InstantSlot:
    """Where the instant belongs."""

    @property
    def name(self) -> str:
        """How a text shows it."""
        return "headwater_instant()"


@dataclass(frozen=True)
class RowsSlot:
    """Where rows are read by a name: a leaf's new ones, its whole window, a fold's result, a pinned table."""

    of: OneOf["stream", "window", "fold", "static"]
    which: int | str

    @property
    def name(self) -> str:
        """The name, unless it runs under another."""
        return f"headwater_{self.of}_{self.which}"


@dataclass(frozen=True)
class ValueSlot:
    """Where the value of an aggregate of a fold is read."""

    number: int

    @property
    def name(self) -> str:
        """Its column in the fold's result."""
        return f"_a{self.number}"


INSTANT = InstantSlot()
Slot = InstantSlot | RowsSlot | ValueSlot


@dataclass(frozen=True)
class SparkText:
    """Pieces of text and slots, in their order."""

    parts: tuple[str | Slot, ...]

    def __str__(self) -> str:
        """The text as EXPLAIN shows it."""
        return self._plain

    @cached_property
    def _plain(self) -> str:
        return "".join(part if isinstance(part, str) else part.name for part in self.parts)

    @property
    def reads_instant(self) -> bool:
        """Whether the instant stands in it."""
        return INSTANT in self.parts

    def fill(self, instant: str | None = None, names: Mapping[Slot, str] | None = None) -> str:
        """The text with an instant, and other names in the place of some."""
        known: dict[Slot, str] = {**(names or {})}
        if instant is not None:
            known[INSTANT] = instant
        return "".join(
            part if isinstance(part, str) else known.get(part, part.name) for part in self.parts
        )

    def replaced(self, slots: Mapping[Slot, Slot | SparkText]) -> SparkText:
        """The text with other slots or texts in the place of some."""
        return spark_text(*(p if isinstance(p, str) else slots.get(p, p) for p in self.parts))


NO_TEXT = SparkText(())


def spark_text(*parts: str | Slot | SparkText) -> SparkText:
    """A text made of others; neighbouring strings become one, so that equal texts are equal."""
    found: list[str | Slot] = []
    for part in parts:
        for one in part.parts if isinstance(part, SparkText) else (part,):
            if isinstance(one, str) and found and isinstance(found[-1], str):
                found[-1] += one
            elif one != "":
                found.append(one)
    return SparkText(tuple(found))


def joined(separator: str, texts: Iterable[str | Slot | SparkText]) -> SparkText:
    """Texts with a separator between them."""
    parts: list[str | Slot | SparkText] = []
    for text in texts:
        parts += [separator, text] if parts else [text]
    return spark_text(*parts)


def conjunction(conditions: Iterable[SparkText]) -> SparkText:
    """All of some conditions."""
    return joined(" AND ", (spark_text("(", condition, ")") for condition in conditions))
