"""Addresses of sources: `kind:rest`, and which kinds there are."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import NotSupportedError, SettingError
from headwater.sql.names import nearest

KINDS = ("csv", "json", "parquet", "delta", "spark", "python", "tcp", "kafka", "postgresql", "demo")
LATER = ("http",)


@dataclass(frozen=True)
class Address:
    """Where rows come from."""

    kind: str
    rest: str


def parse_address(url: str) -> Address:
    """The parts of an address; an error that names the kind if it is not there (yet)."""
    kind, _, rest = url.partition(":")
    kind = kind.strip().lower()
    if kind in LATER:
        raise NotSupportedError(
            f"sources of kind {kind} are not supported yet", hint="kinds: " + ", ".join(KINDS)
        )
    if kind not in KINDS:
        near = nearest(kind, KINDS)
        raise SettingError(
            f"there is no kind of source named {kind!r}",
            hint=f"did you mean {near}?" if near else "kinds: " + ", ".join(KINDS),
        )
    if not rest.strip():
        raise SettingError(
            f"the address '{url}' is not complete",
            hint="write 'csv:/data/in', 'spark:rate' or 'python:name'",
        )
    return Address(kind, rest.strip())
