"""Rule: select and map over one stream (and tables) keep the rows that pass; results are concatenated.

The columns that the rest of the block reads are kept as c0, c1, …; DISTINCT, ORDER BY, LIMIT and
everything that depends on the instant is finished above. Concatenation in DC4's words.
"""

from __future__ import annotations

from headwater.plan.continuous.blocks import AddedUse, Bound, Unfit
from headwater.plan.continuous.folds import (
    Finish,
    FoldPlan,
    Output,
    SourceColumn,
)
from headwater.plan.continuous.rendering import Replacement, with_columns
from headwater.plan.continuous.rules.probe import check_probe
from headwater.plan.continuous.rules.pushdown import split_conditions
from headwater.plan.continuous.scope import Scope, within
from headwater.plan.continuous.shape import Block
from headwater.sql.text import Span
from headwater.sql.types import quoted


def fold_rows(bound: Bound, block: Block, scope: Scope, number: int) -> FoldPlan:
    """The split of a block without grouping."""
    check_probe(scope)
    bound.check_subqueries(block)
    direct = bound.direct(scope)
    if any(leaf.window.kind == "landmark" for _, leaf in direct):
        raise Unfit("a landmark window keeps every row")
    below, above = split_conditions(bound, block)
    kept = _Kept(bound, block, scope)
    outputs = _outputs(kept)
    condition = " AND ".join(f"({kept.text(span)})" for span in above) or None
    order = tuple((kept.order_text(item.expression), item) for item in block.order)
    limit = None if block.limit is None else block.limit.of(bound.text)
    joined = len(direct) == 2
    if block.having is not None:
        raise Unfit("HAVING without grouping")
    return FoldPlan(
        number=number,
        kind="join" if joined else "rows",
        block=block,
        leaves=tuple(leaf for _, leaf in direct),
        leaf_sources=tuple(place for place, _ in direct),
        statics=bound.statics(scope),
        from_text=bound.from_text(block, scope),
        where=tuple(bound.rendering.of(span, bound.replaced) for span in below),
        join_on=bound.join_conditions(scope) if joined else (),
        keys=(),
        aggregates=(),
        columns=tuple(kept.columns),
        finish=Finish(outputs, condition, order, limit, block.distinct),
        in_order=len(scope.sources) == 1 and not block.order and not block.distinct,
        transformation="multi-stream join" if joined else "concatenation",
    )


class _Kept:
    """The columns that a block keeps, numbered as they are met."""

    def __init__(self, bound: Bound, block: Block, scope: Scope) -> None:
        self.bound, self.block, self.scope = bound, block, scope
        self.columns: list[SourceColumn] = []
        self.aliases = {item.name.casefold() for item in block.items if item.name is not None}

    def name(self, column: SourceColumn) -> str:
        if column not in self.columns:
            self.columns.append(column)
        return f"_c{self.columns.index(column)}"

    def text(self, span: Span, by_alias: bool = False) -> str:
        """A piece of the block over the kept columns."""
        extra: list[Replacement] = [*self.bound.replaced]
        added = [use for use in self.bound.added if within(use.span, span)]
        extra += [(use.span, self._added_text(use)) for use in added]
        for use in self.bound.own_uses(self.block, span):
            if any(within(use.span, other.span) for other in added):
                continue
            if by_alias and use.table is None and use.name.casefold() in self.aliases:
                continue  # ORDER BY sees the output first
            column = self.scope.resolve(use)
            if column is not None:
                extra.append((use.span, self.name(column)))
            elif use.table is not None or use.name.casefold() not in self.aliases:
                raise Unfit(f"column {use.name} is not plainly one table's")
        return self.bound.rendering.of(span, extra)

    def _added_text(self, use: AddedUse) -> str:
        """PREV or a call with state over the kept columns."""
        number = next(
            n for n, leaf in self.bound.direct(self.scope) if leaf.number == use.leaf.number
        )
        names = {
            (use.leaf.alias, column): self.name(SourceColumn(number, column))
            for column in use.columns
        }
        return with_columns(use.text, names)

    def order_text(self, span: Span) -> str:
        return self.text(span, by_alias=True)


def _outputs(kept: _Kept) -> tuple[Output, ...]:
    found: list[Output] = []
    for item in kept.block.items:
        if item.star:
            columns = kept.scope.star(item.star_of)
            if columns is None:
                raise Unfit("only Spark knows the columns of *")
            found += [Output(kept.name(column), column.name) for column in columns]
            continue
        name = str(item.name) if item.name is not None else None
        uses = kept.bound.own_uses(kept.block, item.expression)
        if name is None and len(uses) == 1 and uses[0].whole == item.expression:
            column = kept.scope.resolve(uses[0])
            name = uses[0].shown if column is not None else None
        found.append(Output(kept.text(item.expression), name))
    return tuple(found)


def block_text(fold: FoldPlan, view: str) -> str:
    """The block over its fold's result, for Spark."""
    finish = fold.finish
    assert finish is not None
    columns = [
        output.text if output.name is None else f"{output.text} AS {quoted(output.name)}"
        for output in finish.outputs
    ]
    parts = [f"SELECT {'DISTINCT ' if finish.distinct else ''}{', '.join(columns)} FROM {view}"]
    if finish.condition is not None:
        parts.append(f"WHERE {finish.condition}")
    if finish.order:
        items = [
            f"{text}{' DESC' if item.descending else ''} NULLS "
            f"{'FIRST' if item.nulls_first else 'LAST'}"
            for text, item in finish.order
        ]
        parts.append(f"ORDER BY {', '.join(items)}")
    if finish.limit is not None:
        parts.append(finish.limit)
    return " ".join(parts)
