"""A request as the routes see it.

Owns reading the parts of a request that clients may get wrong: target, headers, types of content. Must never
open a file: no part of a path is ever one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from headwater.server.http.failure import HttpError
from headwater.sql.statements.user import Role

LONGEST_TARGET = 8192
MOST_FIELDS = 100  # parameters of a target


@dataclass(frozen=True)
class Identity:
    """Who asks."""

    name: str
    role: Role


@dataclass
class Request:
    """One request; `segments` are the decoded parts of its path."""

    method: str
    segments: tuple[str, ...]
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    peer: str
    identity: Identity | None = None
    given: dict[str, str] = field(default_factory=dict)  # the named parts of the path

    def header(self, name: str, default: str = "") -> str:
        """A header, by its name in lower case."""
        return self.headers.get(name, default)

    @property
    def content_type(self) -> str:
        """The type of the body, without parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    def accepts(self, *kinds: str) -> str | None:
        """The first of some types that the client takes; None if it takes none of them."""
        wanted = self.header("accept") or "*/*"
        found = [entry.partition(";")[0].strip().lower() for entry in wanted.split(",")]
        for entry in found:
            if entry in ("*/*", "application/*", ""):
                return kinds[0]
            if entry in kinds:
                return entry
        return None

    def number(self, name: str) -> float | None:
        """A parameter that is a positive number."""
        text = self.parameters.get(name)
        if text is None:
            return None
        return positive(text, name)


def positive(value: object, name: str) -> float:
    """A positive number of a request."""
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not 0 < number < 1e9 or isinstance(value, bool):
        raise HttpError(400, f"{name} is a positive number", sqlstate="22023")
    return number


def split_target(target: bytes) -> tuple[tuple[str, ...], dict[str, str]]:
    """The decoded parts of a path, and the parameters behind it."""
    if len(target) > LONGEST_TARGET:
        raise HttpError(400, "the target of the request is too long", sqlstate="54000")
    try:
        text = target.decode("ascii")
    except UnicodeDecodeError as error:
        raise HttpError(400, "the target of the request is not ASCII") from error
    path, _, query = text.partition("?")
    if not path.startswith("/"):
        raise HttpError(400, "the target of the request is no path")
    try:
        segments = tuple(unquote(part, errors="strict") for part in path[1:].split("/"))
        pairs = parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError as error:
        raise HttpError(400, "the target of the request cannot be read") from error
    if any("\x00" in part for part in segments):
        raise HttpError(400, "the target of the request cannot be read")
    return segments, dict(pairs)


def json_of_body(data: bytes, make_float: Callable[[str], float] = float) -> Any:
    """The JSON of a body; NaN and Infinity are no JSON."""
    try:
        return json.loads(data, parse_constant=_refuse_constant, parse_float=make_float)
    except (ValueError, RecursionError) as error:
        raise HttpError(
            400, "the body is not JSON", sqlstate="22P02", detail=str(error)[:200]
        ) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
