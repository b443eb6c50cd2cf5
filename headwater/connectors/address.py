"""Addresses of sources and sinks: `kind:rest`, with `${env:NAME}` where a secret is not to be stored.

Owns how one is taken apart and what is said of one that is wrong. Which kinds there are is theirs to say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headwater.errors import NotSupportedError, SettingError
from headwater.sql.names import nearest

SERVERS = ("kafka", "postgresql", "tcp")  # the other kinds are folders and names, taken as written
_VARIABLE = re.compile(r"\$\{env:(\w+)\}")


@dataclass(frozen=True)
class Address:
    """Where rows come from or go to; `url` is what the user wrote."""

    kind: str
    rest: str
    url: str

    def for_use(self) -> Address:
        """With the values of environment variables that the address of a server names."""
        if self.kind not in SERVERS:
            return self
        return replace(self, rest=from_environment(self.rest), url=from_environment(self.url))


@dataclass(frozen=True)
class Kinds:
    """The kinds of sources, or of sinks."""

    what: str
    names: tuple[str, ...]
    later: tuple[str, ...]
    example: str
    other_names: Mapping[str, str] = field(default_factory=dict)

    def parse(self, url: str) -> Address:
        """The parts of an address; an error that names the kind if it is not there (yet)."""
        kind, _, rest = url.partition(":")
        kind = kind.strip().lower()
        kind = self.other_names.get(kind, kind)
        if kind in self.later:
            raise NotSupportedError(
                f"{self.what}s of kind {kind} are not supported yet",
                hint="kinds: " + ", ".join(self.names),
            )
        if kind not in self.names:
            near = nearest(kind, self.names)
            raise SettingError(
                f"there is no kind of {self.what} named {kind!r}",
                hint=f"did you mean {near}?" if near else "kinds: " + ", ".join(self.names),
            )
        if not rest.strip():
            raise SettingError(f"the address '{url}' is not complete", hint=f"write {self.example}")
        return Address(kind, rest.strip(), url.strip())


def from_environment(text: str) -> str:
    """The text with the values of environment variables in place of `${env:NAME}`."""
    return _VARIABLE.sub(_value, text)


def all_from_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings with the values of environment variables that they name."""
    return {name: from_environment(value) for name, value in settings.items()}


def _value(match: re.Match[str]) -> str:
    name = match.group(1)
    if name not in os.environ:
        raise SettingError(
            f"the environment variable {name} is not set",
            hint="it is read by the process that has the database open",
        )
    return os.environ[name]
