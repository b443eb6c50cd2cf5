"""`*` and NATURAL JOIN: columns of ours beside the user's take no part in them.

A query may name hidden columns (`_seq`, `_t`, `_late`), and PREV, functions with state, first and last read
columns beside the declared ones. Spark sees those like any other, so `*` is told to leave them out, and what
cannot be told is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import NotSupportedError
from headwater.plan.continuous.folds import Leaf
from headwater.plan.continuous.rendering import Replacement
from headwater.plan.continuous.scope import Scope, within
from headwater.plan.continuous.shape import Block
from headwater.sql.cursor import CLOSING, OPENING
from headwater.sql.lexer import Token, tokenize
from headwater.sql.names import words
from headwater.sql.types import quoted

_BEFORE_A_STAR = words("SELECT DISTINCT ALL") | {"(", ",", "."}


def reads_all_columns(text: str, block: Block) -> bool:
    """Whether `*` means columns in a block: in its list, or in struct(*) and the like."""
    return bool(_stars(text, block))


def star_edits(text: str, block: Block, scope: Scope) -> list[Replacement]:
    """`*` of a block without columns of ours; NotSupportedError where they cannot be left out."""
    sources = [
        (info.alias, info.leaf)
        for info in scope.sources
        if info.leaf is not None and info.source.join not in ("semi", "anti")
    ]
    extra = [(alias, name) for alias, leaf in sources for name in leaf.beside]
    if not extra:
        return []
    _check_natural(text, block, [name for _, name in extra])
    found: list[Replacement] = []
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
            found.append((item.span, f"{item.span.of(text)} EXCEPT ({', '.join(names)})"))
    if star_in_expression(text, block):
        raise NotSupportedError(
            "* stands beside a column that it does not show",
            detail=f"{extra[0][1]} is read, which is no declared column of {extra[0][0]}",
            hint="write the columns out",
        )
    return found


def star_in_expression(text: str, block: Block) -> bool:
    """Whether `*` is more than an item of the list: in struct(*), or with EXCEPT."""
    places = [item.span for item in block.items if item.star]
    return any(not any(within(s.span, p) for p in places) for s in _stars(text, block))


def _check_natural(text: str, block: Block, names: Sequence[str]) -> None:
    place = block.places.get("FROM")
    natural = place is not None and any(
        token.upper == "NATURAL" for token in tokenize(text) if within(token.span, place)
    )
    if natural and len(set(names)) < len(names):
        raise NotSupportedError(
            "NATURAL JOIN of tables whose hidden columns are read",
            detail=f"{max(names, key=names.count)} would be one of the columns joined by",
            hint="JOIN … USING names the columns",
        )


def _stars(text: str, block: Block) -> list[Token]:
    """Every `*` of a block's own, not of a subquery, that is no product and no count(*)."""
    tokens = [token for token in tokenize(text) if within(token.span, block.span)]
    found: list[Token] = []
    depth, inside = 0, [0]  # how deep the subqueries begin that a token stands in
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], tokens[-1]], strict=False):
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if token.text == "(" and after.upper in ("SELECT", "WITH", "VALUES", "FROM"):
            inside.append(depth)
        elif depth < inside[-1]:
            inside.pop()
        counted = before.text == "(" and after.text == ")" and _counts(tokens, before)
        starred = token.text == "*" and before.upper in _BEFORE_A_STAR and not counted
        if starred and len(inside) == 1:
            found.append(token)
    return found


def _counts(tokens: Sequence[Token], opening: Token) -> bool:
    place = tokens.index(opening)
    return place > 0 and tokens[place - 1].upper == "COUNT"


def hidden_names(leaf: Leaf, named: Sequence[str]) -> tuple[str, ...]:
    """The hidden columns of a leaf that are among the names, which are in lower case."""
    stored, visible = leaf.columns.schema.names, set(leaf.columns.visible)
    return tuple(n for n in stored if n not in visible and n.casefold() in named)
