"""`*` and NATURAL JOIN: columns of ours beside the user's take no part in them.

A query may name hidden columns (`_seq`, `_t`, `_late`), and PREV, functions with state, first and last read
columns beside the declared ones. Spark sees those like any other, so `*` is told to leave them out, and what
cannot be told is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.errors import NotSupportedError
from headwater.plan.folds import Leaf
from headwater.plan.pieces import Stand
from headwater.plan.scope import Scope
from headwater.plan.shape import SelectBlock
from headwater.plan.text import spark_text
from headwater.sql.types import quoted


def reads_all_columns(block: SelectBlock) -> bool:
    """Whether `*` means columns in a block: in its list, or in struct(*) and the like."""
    return any(item.star for item in block.items) or star_in_expression(block)


def star_in_expression(block: SelectBlock) -> bool:
    """Whether `*` is more than an item of the list: in struct(*), or with EXCEPT; count(*) counts rows."""
    for star in block.node.find_all(exp.Star):
        owner = star.parent if isinstance(star.parent, exp.Column) else star
        item = owner.parent is block.node and not any(star.args.values())
        own = owner.find_ancestor(exp.Select) is block.node
        if own and not item and not isinstance(owner.parent, exp.Count):
            return True
    return False


def star_edits(text: str, block: SelectBlock, scope: Scope) -> list[Stand]:
    """`*` of a block without columns of ours; NotSupportedError where they cannot be left out."""
    sources = [
        (info.alias, info.leaf)
        for info in scope.sources
        if info.leaf is not None and info.source.join not in ("semi", "anti")
    ]
    extra = [(alias, name) for alias, leaf in sources for name in leaf.beside]
    if not extra:
        return []
    _check_natural(block, [name for _, name in extra])
    found: list[Stand] = []
    for item in block.items:
        if not item.star:
            continue
        owner = None if item.star_of is None else item.star_of.casefold()
        names = [
            quoted(name) if owner else f"{quoted(alias)}.{quoted(name)}"
            for alias, name in extra
            if owner is None or alias.casefold() == owner
        ]
        if names:
            shown = f"{item.span.of(text)} EXCEPT ({', '.join(names)})"
            found.append(Stand(item.span, spark_text(shown)))
    if star_in_expression(block):
        raise NotSupportedError(
            "* stands beside a column that it does not show",
            detail=f"{extra[0][1]} is read, which is no declared column of {extra[0][0]}",
            hint="write the columns out",
        )
    return found


def _check_natural(block: SelectBlock, names: Sequence[str]) -> None:
    if block.natural and len(set(names)) < len(names):
        raise NotSupportedError(
            "NATURAL JOIN of tables whose hidden columns are read",
            detail=f"{max(names, key=names.count)} would be one of the columns joined by",
            hint="JOIN … USING names the columns",
        )


def hidden_names(leaf: Leaf, named: Sequence[str]) -> tuple[str, ...]:
    """The hidden columns of a leaf that are among the names, which are in lower case."""
    stored, visible = leaf.columns.schema.names, set(leaf.columns.visible)
    return tuple(n for n in stored if n not in visible and n.casefold() in named)
