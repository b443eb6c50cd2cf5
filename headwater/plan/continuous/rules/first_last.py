"""Rule: first and last of one stream go by (T, _seq); Spark is told so wherever it sees whole windows.

Spark's own first() takes the row that happens to come first. In the texts over rows of windows (and over
rings) it becomes min_by, last() becomes max_by; a fold has its own partials for them. Over a join of
streams, or over a subquery, there is no order to go by, and the functions stay Spark's.
"""

from __future__ import annotations

from headwater.plan.continuous.blocks import Bound
from headwater.plan.continuous.calls import Call, calls_in
from headwater.plan.continuous.folds import Leaf
from headwater.plan.continuous.rendering import Rendering, Replacement
from headwater.plan.continuous.scope import Scope, within
from headwater.plan.continuous.shape import Block
from headwater.sql.text import Span
from headwater.sql.types import quoted

WAYS = {"FIRST": "min_by", "FIRST_VALUE": "min_by", "LAST": "max_by", "LAST_VALUE": "max_by"}


def ordered_leaf(scope: Scope) -> Leaf | None:
    """The one stream of a block, whose order first and last follow."""
    leaves = [info.leaf for info in scope.sources if info.leaf is not None]
    others = any(info.streaming and info.leaf is None for info in scope.sources)
    return leaves[0] if len(leaves) == 1 and not others else None


def edge_calls(text: str, block: Block, deeper: list[Span]) -> list[Call]:
    """The calls of first and last that are a block's own."""
    pieces = [item.expression for item in block.items] + [item.span for item in block.order]
    pieces += [] if block.having is None else [block.having]
    return [
        call
        for piece in pieces
        for call in calls_in(text, piece)
        if call.name in WAYS and not call.windowed and len(call.arguments) in (1, 2)
        if not any(within(call.span, span) for span in deeper)
    ]


def edge_edits(bound: Bound, block: Block, scope: Scope) -> list[Replacement]:
    """What stands for first and last in a block over the rows of its window."""
    leaf = ordered_leaf(scope)
    deeper = [inner.span for inner in bound.nested(block.span)]
    calls = [] if leaf is None else edge_calls(bound.text, block, deeper)
    if leaf is None or not calls:
        return []
    edits = [(call.span, _by_order(bound.rendering, leaf, call)) for call in calls]
    for item in block.items:
        mine = [edit for edit in edits if within(edit[0], item.expression)]
        if mine and item.name is None:
            shown = " ".join(item.expression.of(bound.text).split())
            text = bound.rendering.of(item.expression, mine)
            edits.append((item.span, f"{text} AS {quoted(shown)}"))
    return edits


def _by_order(rendering: Rendering, leaf: Leaf, call: Call) -> str:
    alias = quoted(leaf.alias)
    value = rendering.of(call.arguments[0])
    there = call.ignore_nulls or (
        len(call.arguments) == 2 and rendering.of(call.arguments[1]).upper() == "TRUE"
    )
    conditions = [] if call.filter is None else [rendering.of(call.filter)]
    conditions += [f"({value}) IS NOT NULL"] if there else []
    text = f"{WAYS[call.name]}({value}, struct({alias}.{quoted(leaf.columns.time)}, {alias}._seq))"
    if conditions:
        text += f" FILTER (WHERE {' AND '.join(f'({c})' for c in conditions)})"
    return text
