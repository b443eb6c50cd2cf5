"""What a text means besides its words: names that users' functions took, the time zone, values of `$n`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Terms:
    """The terms under which an expression is read; `functions` in lower case."""

    functions: frozenset[str] = frozenset()
    time_zone: str = "UTC"
    values: tuple[str, ...] = ()  # of `$1`, `$2`, …, as SQL texts


PLAIN = Terms()
