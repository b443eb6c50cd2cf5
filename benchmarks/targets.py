"""One ratio and its bound, as the tables of targets show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One ratio and its bound."""

    what: str
    reached: float | None  # None: void or missing
    bound: float
    at_least: bool = True

    @property
    def met(self) -> str:
        """In a word."""
        if self.reached is None:
            return "void or missing"
        good = self.reached >= self.bound if self.at_least else self.reached <= self.bound
        return "met" if good else "missed"

    def row(self) -> tuple[str, str, str, str]:
        """A row of the table."""
        sign = "≥" if self.at_least else "≤"
        reached = "–" if self.reached is None else f"{self.reached:,.2f}"
        return self.what, reached, f"{sign} {self.bound:,g}", self.met
