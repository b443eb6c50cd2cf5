"""How far each query is with what came: whoever flushes waits for rounds, not for a moment without work.

A round of a query is one look at what came, and firings until what it saw is answered. While somebody waits
for a query no new look interrupts its round, so a round ends however fast rows come; else every firing is
followed by a look. Owns: the numbers of rounds. Must never: look at a clock, or run a query. It has no lock:
the caller calls it under its own.
"""

from __future__ import annotations

from collections.abc import Iterable


class Rounds:
    """By query: the last round that began, the last one that ended, and the one that is waited for."""

    def __init__(self) -> None:
        self._begun: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._wanted: dict[str, int] = {}

    def begin(self, name: str) -> None:
        """It looks at what came; what is left of the round before is part of this one."""
        self._begun[name] = self._begun.get(name, 0) + 1

    def end(self, name: str) -> None:
        """What it saw is answered."""
        self._ended[name] = self._begun.get(name, 0)

    def want(self, names: Iterable[str]) -> dict[str, int]:
        """For each the round that answers everything that is there now: the next one to begin."""
        wanted = {name: self._begun.get(name, 0) + 1 for name in names}
        for name, number in wanted.items():
            self._wanted[name] = max(number, self._wanted.get(name, 0))
        return wanted

    def is_waited_for(self, name: str) -> bool:
        """Whether somebody waits for the end of its round, or of a later one."""
        return self._wanted.get(name, 0) > self._ended.get(name, 0)

    def is_over(self, name: str, number: int) -> bool:
        """Whether a round, or a later one, has ended."""
        return self._ended.get(name, 0) >= number

    def forget(self, name: str) -> None:
        """The query is gone."""
        for numbers in (self._begun, self._ended, self._wanted):
            numbers.pop(name, None)
