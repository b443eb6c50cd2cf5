"""What a check of `headwater doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One finding: what was looked at, how it is, and what to do about it."""

    name: str
    status: Status
    text: str
    advice: str = ""


def ok(name: str, text: str) -> Finding:
    """All is well."""
    return Finding(name, "ok", text)


def warning(name: str, text: str, advice: str) -> Finding:
    """It works, but not as well as it could."""
    return Finding(name, "warning", text, advice)


def problem(name: str, text: str, advice: str) -> Finding:
    """Headwater will not run, or not safely."""
    return Finding(name, "problem", text, advice)


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
