"""The examples that come along: folders of SQL, some with Python, each by its name.

In a wheel they are part of this package; in a clone they stand in `examples/`, beside it. Owns where they
are and how one is loaded; must never know what is in one.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

_AROUND = Path(__file__).parents[2]
if (_AROUND / "pyproject.toml").exists():  # a clone
    __path__.append(str(_AROUND / "examples"))


def names() -> list[str]:
    """The examples that have Python in them."""
    return sorted(found.name for found in iter_modules(__path__) if found.ispkg)


def load(example: str, part: str) -> ModuleType:
    """A module of an example."""
    return import_module(f"{__name__}.{example}.{part}")
