"""All functions of the table, by kind: importing this folder enters them."""

from __future__ import annotations

from headwater.expression.functions import (
    arithmetic,
    casing,
    casts,
    compare,
    digests,
    formats,
    json,
    logic,
    mathematics,
    nested,
    patterns,
    text,
    times,
)
from headwater.expression.table import OPERATIONS

__all__ = [
    "OPERATIONS",
    "arithmetic",
    "casing",
    "casts",
    "compare",
    "digests",
    "formats",
    "json",
    "logic",
    "mathematics",
    "nested",
    "patterns",
    "text",
    "times",
]
