"""Rule: first and last of one stream go by (T, _seq); Spark is told so wherever it sees whole windows.

Spark's own first() takes the row that happens to come first. In the texts over rows of windows (and over
rings) it becomes min_by, last() becomes max_by; a fold has its own partials for them. Over a join of
streams, or over a subquery, there is no order to go by, and the functions stay Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.plan.blocks import Bound
from headwater.plan.calls import SqlCall
from headwater.plan.folds import Leaf
from headwater.plan.pieces import Rendering, Stand, column
from headwater.plan.scope import Scope
from headwater.plan.shape import SelectBlock
from headwater.plan.text import SparkText, conjunction, spark_text
from headwater.sql.lexer import tokenize
from headwater.sql.text import Span
from headwater.sql.types import quoted

WAYS = {"FIRST": "min_by", "FIRST_VALUE": "min_by", "LAST": "max_by", "LAST_VALUE": "max_by"}

_TIGHT = frozenset("().,")


def ordered_leaf(scope: Scope) -> Leaf | None:
    """The one stream of a block, whose order first and last follow."""
    leaves = [info.leaf for info in scope.sources if info.leaf is not None]
    others = any(info.streaming and info.leaf is None for info in scope.sources)
    return leaves[0] if len(leaves) == 1 and not others else None


def edge_calls(
    calls: Sequence[SqlCall], block: SelectBlock, deeper: Sequence[Span]
) -> list[SqlCall]:
    """The calls of first and last that are a block's own."""
    pieces = [item.expression for item in block.items] + [item.span for item in block.order]
    pieces += [] if block.having is None else [block.having]
    return [
        call
        for piece in pieces
        for call in calls
        if call.span.within(piece)
        if call.name in WAYS and not call.windowed and len(call.arguments) in (1, 2)
        if not any(call.span.within(span) for span in deeper)
    ]


def edge_edits(bound: Bound, block: SelectBlock, scope: Scope) -> list[Stand]:
    """What stands for first and last in a block over the rows of its window."""
    leaf = ordered_leaf(scope)
    deeper = [inner.span for inner in bound.nested(block.span)]
    calls = [] if leaf is None else edge_calls(bound.calls, block, deeper)
    if leaf is None or not calls:
        return []
    edits = [Stand(call.span, _by_order(bound.rendering, leaf, call)) for call in calls]
    for item in block.items:
        mine = [edit for edit in edits if edit.span.within(item.expression)]
        if mine and item.name is None:
            shown = _shown(item.expression.of(bound.text))
            text = bound.rendering.of(item.expression, mine)
            named = Stand(item.span, spark_text(text, f" AS {quoted(shown)}"))
            edits.insert(0, named)  # it may stand for just the call
    return edits


def _shown(text: str) -> str:
    """An expression as a name: without comments, blanks only where words need them."""
    found = ""
    for token in tokenize(text)[:-1]:
        tight = token.text in _TIGHT or found[-1:] in ("", "(", ".")
        found += token.text if tight else f" {token.text}"
    return found


def _by_order(rendering: Rendering, leaf: Leaf, call: SqlCall) -> SparkText:
    value = rendering.of(call.arguments[0])
    conditions = [] if call.filter is None else [rendering.of(call.filter)]
    conditions += [spark_text("(", value, ") IS NOT NULL")] if call.ignore_nulls else []
    time, sequence = column(leaf.columns.time, leaf.alias), column("_seq", leaf.alias)
    order = spark_text("struct(", time.text, ", ", sequence.text, ")")
    text = spark_text(f"{WAYS[call.name]}(", value, ", ", order, ")")
    if conditions:
        text = spark_text(text, " FILTER (WHERE ", conjunction(conditions), ")")
    return text
