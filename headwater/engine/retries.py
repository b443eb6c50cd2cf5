"""Queries and views that wait for their next attempt, after an error that may pass by itself.

A full disk or a failed system call is no fault of the query: it is tried again after a pause that doubles
up to a bound, for as long as it takes. Owns: when. Must never: look at a clock, or run a query; the caller
passes in the time. It has no lock: the caller calls it under its own.
"""

from __future__ import annotations

import math

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0


class Retries:
    """By name: when it is tried again, and the pause after that."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._pauses: dict[str, float] = {}

    def failed(self, name: str, now: float) -> None:
        """An attempt failed: the next one comes after a pause."""
        pause = self._pauses.get(name, FIRST_PAUSE_S)
        self._due[name] = now + pause
        self._pauses[name] = min(2 * pause, LONGEST_PAUSE_S)

    def take(self, now: float) -> str | None:
        """One whose time has come; it waits no more."""
        name = next((name for name, due in self._due.items() if due <= now), None)
        if name is not None:
            del self._due[name]
        return name

    def hurry(self, name: str) -> None:
        """Its time has come."""
        if name in self._due:
            self._due[name] = -math.inf

    def __contains__(self, name: str) -> bool:
        return name in self._due

    def wake_at(self) -> float | None:
        """When the next one is tried; None if none waits."""
        return min(self._due.values(), default=None)

    def forget(self, name: str) -> None:
        """It is well, or somebody else decides from now on."""
        self._due.pop(name, None)
        self._pauses.pop(name, None)
