"""Addresses of sources: `kind:rest`, and which kinds there are."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.addresses import kind_and_rest

KINDS = ("csv", "json", "parquet", "delta", "spark", "python", "tcp", "kafka", "postgresql", "demo")
LATER = ("http",)


@dataclass(frozen=True)
class Address:
    """Where rows come from."""

    kind: str
    rest: str


def parse_address(url: str) -> Address:
    """The parts of an address; an error that names the kind if it is not there (yet)."""
    example = "'csv:/data/in', 'spark:rate' or 'python:name'"
    return Address(*kind_and_rest(url, "source", KINDS, LATER, example))
