"""Rule: a correlated scalar aggregate over a stream is folded by what it is correlated on (R2 of views).

`(SELECT sum(x) FROM s WHERE s.k = t.k AND …)` becomes a fold grouped by s.k; what is left in its place looks
its group up. The paper's word for it is unnesting: the stream ends on the probe side of a grouped join.
"""

from __future__ import annotations

import re
from dataclasses import replace

from headwater.plan.continuous.blocks import Bound, Unfit
from headwater.plan.continuous.folds import FoldPlan
from headwater.plan.continuous.rules.grouping import fold_groups
from headwater.plan.continuous.scope import Scope
from headwater.plan.continuous.shape import Block
from headwater.sql.cursor import CLOSING, OPENING
from headwater.sql.lexer import Kind, tokenize
from headwater.sql.names import words
from headwater.sql.text import Span
from headwater.sql.types import quoted

OUTSIDE = "a subquery depends on the rows outside it"
_COUNTS = frozenset({"count", "count_distinct", "count_if", "regr_count"})
_AGGREGATE = re.compile(r"\b_a(\d+)\b")
_ARITHMETIC = frozenset("+-*/%()")
_LOOSER = words("OR NOT IS IN LIKE ILIKE RLIKE REGEXP BETWEEN < > <= >= <> != <=> !")


def fold_correlated(bound: Bound, block: Block, scope: Scope, number: int) -> FoldPlan | None:
    """The fold of a correlated block; None if it is not correlated, Unfit if it is in another way."""
    if all(block.span == b.span or block not in bound.nested(b.span) for b in bound.blocks):
        return None
    correlated = [span for span in block.conjuncts if _is_foreign(bound, block, scope, span)]
    whole = _is_foreign(bound, block, scope, block.span)
    if not whole:
        return None
    plain = not (block.group or block.group_all or block.having or block.order or block.limit)
    items = [i for i in block.items if _is_foreign(bound, block, scope, i.span)]
    if not correlated or not plain or block.distinct or len(block.items) != 1 or items:
        raise Unfit(OUTSIDE)
    pairs = [_sides(bound, block, scope, span) for span in correlated]
    rest = tuple(span for span in block.conjuncts if span not in correlated)
    inner = replace(block, conjuncts=rest, group=tuple(own for own, _ in pairs))
    fold = fold_groups(bound, inner, scope, number)
    if not fold.aggregates:
        raise Unfit(OUTSIDE)
    return replace(fold, outside=tuple(bound.rendering.of(foreign) for _, foreign in pairs))


def _is_foreign(bound: Bound, block: Block, scope: Scope, span: Span) -> bool:
    names = {item.name.casefold() for item in block.items if item.name is not None}
    return any(scope.is_foreign(use, names) for use in bound.own_uses(block, span))


def _sides(bound: Bound, block: Block, scope: Scope, span: Span) -> tuple[Span, Span]:
    """The own and the outer side of an equality."""
    tokens = [t for t in tokenize(bound.text) if span.start <= t.start < span.end]
    depth, places = 0, []
    for token in tokens:
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if depth == 0 and token.upper in _LOOSER:
            raise Unfit(OUTSIDE)  # the equality is a part of something else
        if depth == 0 and token.text in ("=", "=="):
            places.append(token)
    if len(places) != 1:
        raise Unfit(OUTSIDE)
    left = Span(span.start, places[0].start)
    right = Span(places[0].end, span.end)
    for own, foreign in ((left, right), (right, left)):
        names = {item.name.casefold() for item in block.items if item.name is not None}
        uses = bound.own_uses(block, foreign)
        outer = bool(uses) and all(scope.is_foreign(use, names) for use in uses)
        if outer and not _is_foreign(bound, block, scope, own) and bound.own_uses(block, own):
            return own, foreign
    raise Unfit(OUTSIDE)


def lookup_text(fold: FoldPlan, view: str) -> str:
    """What stands for the block: the aggregates of its group, or those over no rows."""
    assert fold.finish is not None
    output = fold.finish.outputs[0]
    text = _AGGREGATE.sub(lambda m: _found(fold, m[0], int(m[1])), output.text)
    name = "" if output.name is None else f" AS {quoted(output.name)}"
    found = " AND ".join(f"_k{n} = ({outer})" for n, outer in enumerate(fold.outside))
    return f"SELECT {text}{name} FROM {view} WHERE {found}"


def _found(fold: FoldPlan, column: str, number: int) -> str:
    """One aggregate of the group that is looked up; without one, its value over no rows."""
    counts = fold.aggregates[number].function in _COUNTS
    return f"coalesce(max({column}), 0L)" if counts else f"max({column})"


def is_null_over_nothing(fold: FoldPlan) -> bool:
    """Whether the value over no rows is surely NULL: arithmetic with aggregates that do not count."""
    assert fold.finish is not None
    if any(a.function in _COUNTS for a in fold.aggregates):
        return False
    tokens = tokenize(fold.finish.outputs[0].text)[:-1]
    named = [token for token in tokens if _AGGREGATE.fullmatch(token.text)]
    others = [token for token in tokens if token not in named]
    plain = all(t.kind is Kind.NUMBER or t.text in _ARITHMETIC for t in others)
    return bool(named) and plain
