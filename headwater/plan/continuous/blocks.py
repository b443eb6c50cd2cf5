"""A query with its blocks bound to tables: what the rules look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import Protocol

import pyarrow as pa

from headwater.plan.continuous.folds import Leaf, StaticSource, StreamColumns, stream_view
from headwater.plan.continuous.rendering import Rendering, Replacement
from headwater.plan.continuous.scope import ColumnUse, Scope, inside, within
from headwater.plan.continuous.shape import Block, conjuncts_of
from headwater.sql.statements.query import Query
from headwater.sql.text import Span
from headwater.sql.types import quoted

Sampling = OneOf["interval", "rows", "chunks", "realtime"]


class Tables(Protocol):
    """What the planner asks of the catalog."""

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table, a stream or a materialized view."""

    def standard(self, name: str) -> pa.Schema | None:
        """The columns of a standard table."""


@dataclass(frozen=True)
class Unfit(Exception):
    """Raised by a rule: why a block cannot be split this way."""

    reason: str


@dataclass(frozen=True)
class PreviousUse:
    """One PREV: where it stands, what stands for it, and the columns of the earlier row in that."""

    span: Span
    text: str
    leaf: Leaf
    columns: tuple[tuple[str, int], ...]


@dataclass
class Bound:
    """A query under way to its plan."""

    query: Query
    text: str  # the query's, with trailing clauses blanked
    blocks: list[Block]
    scopes: list[Scope]
    leaves: tuple[Leaf, ...]
    uses: list[ColumnUse]
    rendering: Rendering
    sampling: Sampling
    foldable: frozenset[str]
    volatile: tuple[Span, ...]  # where the instant or PREV is read
    previous: tuple[PreviousUse, ...] = ()
    replaced: list[Replacement] = field(default_factory=list)  # blocks that are folded

    def nested(self, span: Span) -> list[Block]:
        """The blocks that lie inside a span, but are not the span."""
        return [b for b in self.blocks if within(b.span, span) and b.span != span]

    def own_uses(self, block: Block, span: Span) -> list[ColumnUse]:
        """The columns in a span of a block that are not inside a subquery of it."""
        deeper = [b.span for b in self.nested(block.span)]
        return [u for u in inside(self.uses, span) if not any(within(u.span, d) for d in deeper)]

    def direct(self, scope: Scope) -> list[tuple[int, Leaf]]:
        """The windowed tables that stand in a block's own FROM."""
        return [(n, s.leaf) for n, s in enumerate(scope.sources) if s.leaf is not None]

    def streams_in(self, span: Span) -> bool:
        """Whether a windowed table stands in a span."""
        return any(within(leaf.name.span, span) for leaf in self.leaves)

    def is_pushable(self, span: Span) -> bool:
        """Whether a condition gives the same answer for a row at every instant."""
        if any(within(place, span) for place in self.volatile):
            return False
        return not self.streams_in(span)

    def check_subqueries(self, block: Block) -> None:
        """Unfit if a subquery of a block reads the block's own columns."""
        for inner in self.nested(block.span):
            scope = self.scopes[self.blocks.index(inner)]
            names = {item.name.casefold() for item in inner.items if item.name is not None}
            for use in self.own_uses(inner, inner.span):
                known = scope.resolve(use) is not None
                if not known and not (use.table is None and use.name.casefold() in names):
                    raise Unfit("a subquery depends on the rows outside it")

    def check_independent(self, block: Block, scope: Scope) -> None:
        """Unfit if a block inside another reads a row outside it: it cannot be folded by itself."""
        if all(block.span == b.span or not within(block.span, b.span) for b in self.blocks):
            return
        names = {item.name.casefold() for item in block.items if item.name is not None}
        if any(scope.is_foreign(use, names) for use in self.own_uses(block, block.span)):
            raise Unfit("a subquery depends on the rows outside it")

    def from_text(self, block: Block, scope: Scope) -> str:
        """The FROM clause with the block's streams under the names that Spark holds."""
        extra = [*self.replaced]
        for _, leaf in self.direct(scope):
            extra += leaf_edits(leaf, self.query, stream_view(leaf.number))
        return self.rendering.of(block.places["FROM"], extra)

    def statics(self, scope: Scope) -> tuple[tuple[int, StaticSource], ...]:
        """The sources of a block without a stream."""
        found = []
        for number, info in enumerate(scope.sources):
            if info.leaf is not None:
                continue
            source = info.source
            text = (
                f"({self.rendering.of(source.subquery)})"
                if source.subquery is not None
                else source.relation.name.span.of(self.text)  # type: ignore[union-attr]
            )
            condition = () if source.on is None else conjuncts_of(self.text, source.on)
            found.append(
                (
                    number,
                    StaticSource(
                        info.alias,
                        text,
                        source.join,
                        tuple(self.rendering.of(span) for span in condition),
                        tuple(str(name) for name in source.using),
                        info.schema,
                    ),
                )
            )
        return tuple(found)


def leaf_edits(leaf: Leaf, query: Query, view: str) -> list[Replacement]:
    """What puts a view in the place of a windowed table."""
    alias = next(r.alias for r in query.relations if r.span == leaf.name.span)
    shown = view if alias is not None else f"{view} AS {quoted(leaf.alias)}"
    if leaf.cut is not None:  # its clause is gone from every text already
        return [(leaf.name.span, shown)]
    return [(leaf.name.span, shown), (leaf.window.span, " ")]


def normal_tokens(text: str) -> Sequence[str]:
    """The tokens of a text for comparison."""
    from headwater.sql.lexer import tokenize

    return [token.upper for token in tokenize(text)][:-1]
