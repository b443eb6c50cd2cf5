"""The time at which a query is asked: one for the whole query, wherever it asks.

Must never: take a column for it. `current_date` without parentheses is a column where there is one of that
name.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlglot import exp

from headwater.sql.statements.query import Query

BARE = frozenset({"current_date", "current_timestamp"})  # may be columns


def asks_for_now(query: Query) -> bool:
    """Whether a query asks for the time in a way that is known here."""
    return query.tree is not None and any(map(_is_now, query.tree.walk()))


def names_a_moment(tree: exp.Expr, columns: Iterable[str]) -> bool:
    """Whether a column, of a table or made by the query, has the name of a function without parentheses."""
    named = {identifier.name.casefold() for identifier in tree.find_all(exp.Identifier)}
    return not BARE.isdisjoint(named | {column.casefold() for column in columns})


def with_now(tree: exp.Expr, zone: str) -> None:
    """Puts the time, as it is now, wherever a query asks for it."""
    now = datetime.now(UTC)
    texts = {
        "TIMESTAMP": now.isoformat(sep=" "),
        "DATE": now.astimezone(ZoneInfo(zone)).date().isoformat(),
    }
    for node in [node for node in tree.walk() if _is_now(node)]:
        type_ = "DATE" if isinstance(node, exp.CurrentDate) else "TIMESTAMP"
        node.replace(exp.cast(exp.Literal.string(texts[type_]), type_, dialect="spark"))


def _is_now(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.lower() == "now" and not node.expressions
    return named or (isinstance(node, exp.CurrentTimestamp | exp.CurrentDate) and not node.this)
