"""Rule: select and map over one stream (and tables) keep the rows that pass; results are concatenated.

The columns that the rest of the block reads are kept as c0, c1, …; DISTINCT, ORDER BY, LIMIT and
everything that depends on the instant is finished above. Concatenation in DC4's words.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.plan.blocks import AddedUse, Bound, BoundBlock, Unfit
from headwater.plan.folds import (
    Finish,
    FoldPlan,
    Output,
    SourceColumn,
)
from headwater.plan.pieces import Piece, Stand, all_of, column
from headwater.plan.scope import Scope
from headwater.plan.shape import SelectBlock
from headwater.plan.text import RowsSlot, SparkText, joined, spark_text
from headwater.plan.view_rules import R1, R4
from headwater.sql.text import Span
from headwater.sql.types import quoted


def fold_rows(one: BoundBlock) -> FoldPlan:
    """The split of a block without grouping."""
    block, scope = one.block, one.scope
    growing = [leaf for _, leaf in one.direct if leaf.grows]
    if growing:
        windowed = "a landmark window keeps every row"
        whole = "without a grouping every row is needed"
        broken = R4 if _sorts_below(one.query) else R1
        raise Unfit(windowed if growing[0].windowed else whole, broken)
    kept = _Kept(one.query, block, scope)
    outputs = _outputs(kept)
    condition = all_of([kept.piece(span) for span in one.above]) if one.above else None
    order = tuple((kept.piece(item.expression, by_alias=True), item) for item in block.order)
    if block.having is not None:
        raise Unfit("HAVING without grouping")
    finish = Finish(outputs, condition, order, block.limit, block.distinct)
    in_order = len(scope.sources) == 1 and not block.order and not block.distinct
    found = one.fold("rows", "concatenation", finish)
    return replace(found, columns=tuple(kept.columns), in_order=in_order)


def _sorts_below(bound: Bound) -> bool:
    """Whether a block inside another, or beside it, sorts and cuts the rows of a stream."""
    cuts = [b for b in bound.blocks if b.order and b.limit is not None and not b.group]
    return len(bound.blocks) > 1 and any(bound.streams_in(block.span) for block in cuts)


class _Kept:
    """The columns that a block keeps, numbered as they are met."""

    def __init__(self, bound: Bound, block: SelectBlock, scope: Scope) -> None:
        self.bound, self.block, self.scope = bound, block, scope
        self.columns: list[SourceColumn] = []
        self.aliases = {item.name.casefold() for item in block.items if item.name is not None}

    def name(self, column: SourceColumn) -> str:
        if column not in self.columns:
            self.columns.append(column)
        return f"_c{self.columns.index(column)}"

    def piece(self, span: Span, by_alias: bool = False) -> Piece:
        """A piece of the block over the kept columns."""
        extra = [*self.bound.replaced]
        added = [use for use in self.bound.added if use.span.within(span)]
        extra += [Stand.of(use.span, self._added(use)) for use in added]
        for use in self.bound.own_uses(self.block, span):
            if any(use.span.within(other.span) for other in added):
                continue
            if by_alias and use.table is None and use.name.casefold() in self.aliases:
                continue  # ORDER BY sees the output first
            known = self.scope.resolve(use)
            if known is not None:
                extra.append(Stand.of(use.span, column(self.name(known))))
            elif use.table is not None or use.name.casefold() not in self.aliases:
                raise Unfit(f"column {use.name} is not plainly one table's")
        return self.bound.rendering.piece(span, extra)

    def _added(self, use: AddedUse) -> Piece:
        """PREV or a call with state over the kept columns."""
        direct = self.bound.direct(self.scope)
        source = next(n for n, leaf in direct if leaf.number == use.leaf.number)
        return use.over(lambda name: column(self.name(SourceColumn(source, name))))


def _outputs(kept: _Kept) -> tuple[Output, ...]:
    found: list[Output] = []
    for item in kept.block.items:
        if item.star:
            columns = kept.scope.star(item.star_of)
            if columns is None:
                raise Unfit("only Spark knows the columns of *")
            found += [Output(column(kept.name(one)), one.name) for one in columns]
            continue
        name = str(item.name) if item.name is not None else None
        uses = kept.bound.own_uses(kept.block, item.expression)
        if name is None and len(uses) == 1 and uses[0].whole == item.expression:
            name = uses[0].shown if kept.scope.resolve(uses[0]) is not None else None
        found.append(Output(kept.piece(item.expression), name))
    return tuple(found)


def block_text(fold: FoldPlan, rows: RowsSlot) -> SparkText:
    """The block over its fold's result, for Spark."""
    finish = fold.finish
    assert finish is not None
    columns = [
        o.piece.text if o.name is None else spark_text(o.piece.text, f" AS {quoted(o.name)}")
        for o in finish.outputs
    ]
    distinct = "DISTINCT " if finish.distinct else ""
    parts = [spark_text(f"SELECT {distinct}", joined(", ", columns), " FROM ", rows)]
    if finish.condition is not None:
        parts.append(spark_text("WHERE ", finish.condition.text))
    if finish.order:
        items = [
            spark_text(
                piece.text,
                f"{' DESC' if item.descending else ''} NULLS {'FIRST' if item.nulls_first else 'LAST'}",
            )
            for piece, item in finish.order
        ]
        parts.append(spark_text("ORDER BY ", joined(", ", items)))
    if finish.limit is not None:
        parts.append(spark_text(finish.limit.text))
    return joined(" ", parts)
