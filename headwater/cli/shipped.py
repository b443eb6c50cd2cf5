"""Where files of the repository are that the command line reads: examples and the reference."""

from __future__ import annotations

from pathlib import Path


def shipped(name: str) -> Path | None:
    """A file or folder by its path in the repository; nothing if it did not come along."""
    package = Path(__file__).parents[1]
    # In a wheel they are part of the package; in a clone they are beside it.
    places = (package / name, package.parent / name)
    return next((place for place in places if place.exists()), None)
