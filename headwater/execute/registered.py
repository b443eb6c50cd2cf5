"""Functions with state as they are registered now: a query waits for those that it calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.errors import BindError
from headwater.execute.context import Context
from headwater.kernel.functions import PythonFunction
from headwater.plan.folds import StateCall
from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of


def registered(context: Context, call: StateCall) -> Any:
    """The function of a call as it is registered now; None if there is none that fits the query."""
    found = context.functions.get(call.name)
    if not isinstance(found, PythonFunction) or found.state != call.life:
        return None
    return found.function if parse_type(found.returns) == call.type else None


def check_registered(context: Context, needed: Sequence[tuple[str, str | None, str]]) -> None:
    """BindError unless each [name, life, type] is there: a query waits for its functions with state."""
    for name, life, type_ in needed:
        found = context.functions.get(name)
        same = isinstance(found, PythonFunction) and found.state == life
        if not same or name_of(parse_type(found.returns)) != type_:  # type: ignore[union-attr]
            raise BindError(
                f"function {name} is not registered as the query needs it",
                sqlstate="42883",
                hint=f'db.create_function("{name}", …, returns="{type_}"'
                + ("" if life is None else f', state="{life}"')
                + ") lets it go on",
            )
