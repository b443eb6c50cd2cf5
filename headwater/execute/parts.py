"""How many parts a view or a query has, and why some have none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.errors import BindError, SettingError
from headwater.execute.context import Context
from headwater.execute.continuous_plan import Made
from headwater.fold.share import Share
from headwater.plan.calls import varying_calls

MOST_PARTS = 64


def part_count(saved: Mapping[str, Any]) -> int:
    """How many parts a definition of the catalog has now.

    `parts` is what a user has asked for, None if nobody has; `split` what the coordinator has made of it.
    """
    return int(saved.get("parts") or saved.get("split") or 1)


def splits_by_itself(saved: Mapping[str, Any]) -> bool:
    """Whether the coordinator decides how many parts there are."""
    return saved.get("parts", 1) is None


def shares(count: int) -> list[Share]:
    """All shares of the keys."""
    return [Share(place, count) for place in range(count)]


def check_part_count(value: object) -> None:
    """SettingError if that is no number of parts."""
    if type(value) is not int or not 1 <= value <= MOST_PARTS:
        raise SettingError(f"parts is a whole number from 1 to {MOST_PARTS}")


def cannot_have_parts(what: str, count: int | str, reason: str) -> BindError:
    """The error of a view or query that is to have parts and cannot."""
    return BindError(
        f"the {what} cannot have {count} parts: {reason}",
        sqlstate="42P17",
        hint=f"leave parts out: the {what} lives in one factory whole",
    )


def varies(context: Context, made: Made) -> str | None:
    """Why a row may not have the same key in every part; None if it has."""
    if varying_calls(made.query.text):
        return "its parts would see other times, or other chance"
    if made.plan.identifiers & context.functions.keys():
        return "it calls functions, of which nobody knows whether they answer the same twice"
    return None
