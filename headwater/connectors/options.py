"""WITH (…) options of sources and sinks: read from statements, kept in the catalog.

A connector has a table of the options that it knows, each with the field that it fills and its reader. Owns
how values are read and what is said of those that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.errors import SettingError
from headwater.sql.duration import Duration
from headwater.sql.names import nearest
from headwater.sql.statements.base import Options

Reader = Callable[[str, object], Any]
Known = Mapping[str, tuple[str, Reader]]  # option → field, reader
STARTS = ("earliest", "next")


def read_options(
    given: Options, known: Known, owner: str | None = None, shown: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, object]]:
    """The fields that are given, and the options that are not known; of an `owner` there are none."""
    fields: dict[str, Any] = {}
    others: dict[str, object] = {}
    for name, value in given.items():
        if name.lower() in known:
            field, read = known[name.lower()]
            fields[field] = read(name.lower(), value)
        elif owner is None:
            others[name] = value
        else:
            near = nearest(name.lower(), shown or tuple(known))
            raise SettingError(
                f"there is no option {name} of a {owner}",
                hint=f"did you mean {near}?" if near else "options: " + ", ".join(shown or known),
            )
    return fields, others


def one_of(*words: str) -> Reader:
    """Reads one of some words."""

    def read(name: str, value: object) -> str:
        word = str(value).lower()
        if word not in words:
            raise SettingError(f"there is no {name} {value!r}", hint="one of " + ", ".join(words))
        return word

    return read


def seconds(name: str, value: object, *, above_zero: bool = False) -> float:
    """Reads an interval."""
    if not isinstance(value, Duration) or value.microseconds < above_zero:
        raise SettingError(
            f"{name} is an interval{' above zero' if above_zero else ''}",
            hint=f"{name} = INTERVAL '10' SECONDS",
        )
    return value.seconds


def count(name: str, value: object) -> int:
    """Reads a number of things, of which there is one at least."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(f"{name} is a whole number of at least 1")
    return value


def flag(name: str, value: object) -> bool:
    """Reads true or false."""
    if not isinstance(value, bool):
        raise SettingError(f"{name} is true or false")
    return value


def text(name: str, value: object) -> str:
    """Reads a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"{name} is a text", hint=f"{name} = '…'")
    return value.strip()


def names(name: str, value: object) -> tuple[str, ...]:
    """Reads a list of names with commas between them."""
    return tuple(part.strip() for part in text(name, value).split(",") if part.strip())


def to_json(given: Options) -> dict[str, Any]:
    """The options for the catalog: values of JSON, intervals in microseconds."""
    return {
        name: {"microseconds": value.microseconds} if isinstance(value, Duration) else value
        for name, value in given.items()
    }


def from_json(saved: Mapping[str, Any]) -> dict[str, Any]:
    """The options from the catalog."""
    return {
        name: Duration(value["microseconds"]) if isinstance(value, dict) else value
        for name, value in saved.items()
    }
