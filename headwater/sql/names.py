"""Names: the nearest known name for a mistyped one.

Owns the one rule of likeness that every "did you mean" uses. It never decides that a name is
right: callers look names up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LIKENESS = 0.6  # difflib's ratio below which a suggestion would only confuse
CANDIDATES_SEEN = 10_000


def words(text: str) -> frozenset[str]:
    """The words of a text as a set; for lists of keywords."""
    return frozenset(text.split())


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like the name, ignoring case, or None if none is close."""
    by_key: dict[str, str] = {}
    for candidate in candidates:
        if len(by_key) >= CANDIDATES_SEEN:
            break
        by_key.setdefault(candidate.lower(), candidate)
    found = get_close_matches(name.lower(), by_key, n=1, cutoff=LIKENESS)
    return by_key[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The hint "did you mean x?", or None."""
    near = nearest(name, candidates)
    return f"did you mean {near}?" if near else None
