"""WITH (…) options as the catalog keeps them: values of JSON, intervals in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.sql.duration import Duration
from headwater.sql.statements.base import Options


def to_json(given: Options) -> dict[str, Any]:
    """The options for the catalog."""
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
