"""Names that a select list gives, where others use them: its own later items, HAVING, QUALIFY, ORDER BY.

An item of the list takes the name's place. Inside aggregates and window functions a name is a column of FROM.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.plan.relational.expressions import refuse, replaced, stands_for
from headwater.plan.relational.names import Names

SEES_FROM_ONLY = (exp.AggFunc, exp.Window)


def lateral(items: Sequence[exp.Expr], names: Names) -> list[exp.Expr]:
    """The items of a select list: a name that FROM has not is that of an item before it."""
    found: list[exp.Expr] = []
    for item in items:

        def item_of(part: exp.Expr) -> exp.Expr | None:
            if isinstance(part, SEES_FROM_ONLY):
                return part
            if not isinstance(part, exp.Column) or part.table or stands_for(part):
                return None
            return _named(part, found) if names.find(part) is None else None

        found.append(replaced(item, item_of))
    return found


def columns_first(node: exp.Expr, items: Sequence[exp.Expr], names: Names) -> exp.Expr:
    """A condition of HAVING or QUALIFY: a name that FROM has not is an item's."""

    def item_of(part: exp.Expr) -> exp.Expr | None:
        if isinstance(part, SEES_FROM_ONLY):
            return part
        if not isinstance(part, exp.Column) or part.table:
            return None
        named = _named(part, items)
        if named is None:
            return None
        if names.find(part) is not None:
            raise refuse(f"{part.name}, which is a column and an alias", part)
        return named

    return replaced(node, item_of)


def items_first(node: exp.Expr, items: Sequence[exp.Expr]) -> exp.Expr:
    """An expression of ORDER BY: a name is an item's, and a column's only where no item has it."""

    def item_of(part: exp.Expr) -> exp.Expr | None:
        if isinstance(part, SEES_FROM_ONLY):
            return part
        bare = isinstance(part, exp.Column) and not part.table
        return _named(part, items) if bare else None

    return replaced(node, item_of)


def _named(part: exp.Expr, items: Sequence[exp.Expr]) -> exp.Expr | None:
    """What the select list calls by a name, if it is not a column of that name."""
    wanted = part.name.casefold()
    aliases = [item for item in items if isinstance(item, exp.Alias)]
    found = [item.this for item in aliases if item.alias.casefold() == wanted]
    if len(found) > 1:
        raise refuse(f"{part.name}, which several items are called", part)
    if not found or _is_column(found[0], wanted):
        return None
    return found[0] if isinstance(found[0], exp.Column | exp.Window) else exp.Paren(this=found[0])


def _is_column(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name.casefold() == name
