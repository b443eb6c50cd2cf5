"""The upper part of a query as one block over its folds' results, where it is one.

`SELECT avg(t) FROM (SELECT sum(v) AS t FROM s … GROUP BY k)` becomes `SELECT avg(t) FROM headwater_upper_0`:
the inner block is a fold, and what is left can be computed in line as any block over one table and probes.
Must never: look at types; the engine finds out whether it can compute the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.plan.continuous.folds import ContinuousPlan
from headwater.plan.continuous.planner import cte_bodies, without_clauses
from headwater.plan.continuous.rendering import Rendering, Replacement
from headwater.plan.continuous.scope import within
from headwater.plan.continuous.shape import Source, blocks_of
from headwater.sql.statements.query import Query
from headwater.sql.text import Span
from headwater.sql.types import quoted


@dataclass(frozen=True)
class UpperText:
    """One block over tables, of which some are folds."""

    text: str
    folds: Mapping[str, int]  # which fold a name stands for
    first: str  # the first relation of FROM


def upper_name(fold: int) -> str:
    """The name under which a block reads a fold's finished rows."""
    return f"headwater_upper_{fold}"


def upper_text(query: Query, plan: ContinuousPlan) -> UpperText | None:
    """The block above the folds; None if it is more than one, or if a fold is not plainly in its FROM."""
    blanked = without_clauses(query)
    if any(fold.outside for fold in plan.folds):
        return None
    inner = {fold.block.span: fold.number for fold in plan.folds}
    others = [b for b in blocks_of(blanked, query.relations) if b.span not in inner]
    if len(others) != 1 or others[0].unknown is not None or not others[0].sources:
        return None
    block, bodies = others[0], cte_bodies(blanked)
    edits: list[Replacement] = []
    used: list[int] = []
    names: list[str] = []
    for source in block.sources:
        body = source.subquery
        if source.relation is not None:
            body = bodies.get(source.relation.name.key)
        if body is None:
            if source.relation is None:
                return None
            names.append(source.relation.name.key)
            continue
        fold = next((n for span, n in inner.items() if within(span, body)), None)
        if fold is None or fold in used:
            return None
        used.append(fold)
        names.append(upper_name(fold))
        edits.append(_replacement(blanked, source, fold))
    if sorted(used) != sorted(inner.values()):
        return None
    text = Rendering(blanked, edits).of(block.span)
    return UpperText(text, {upper_name(n): n for n in used}, names[0])


def _replacement(text: str, source: Source, fold: int) -> Replacement:
    """The fold's name in the place of a subquery or of a CTE's name."""
    if source.relation is not None:
        alias = "" if source.relation.alias else f" AS {quoted(source.relation.name)}"
        return source.relation.span, upper_name(fold) + alias
    assert source.subquery is not None
    start = text.rindex("(", 0, source.subquery.start)
    end = text.index(")", source.subquery.end) + 1
    return Span(start, end), upper_name(fold)
