"""A query with its blocks bound to tables: what the rules look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import Protocol

import pyarrow as pa

from headwater.plan.continuous.calls import AGGREGATES
from headwater.plan.continuous.folds import Leaf, Life, StaticSource, StreamColumns, stream_view
from headwater.plan.continuous.rendering import Rendering, Replacement
from headwater.plan.continuous.scope import ColumnUse, Scope, inside, within
from headwater.plan.continuous.shape import Block, conjuncts_of
from headwater.sql.statements.query import Query
from headwater.sql.text import Span
from headwater.sql.types import quoted

Sampling = OneOf["interval", "rows", "chunks", "realtime"]


@dataclass(frozen=True)
class StateFunction:
    """What the planner must know of a function with state."""

    life: Life
    type: pa.DataType


class Tables(Protocol):
    """What the planner asks of the catalog."""

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table, a stream or a materialized view."""

    def standard(self, name: str) -> pa.Schema | None:
        """The columns of a standard table."""

    def state_function(self, name: str) -> StateFunction | None:
        """A function with state, by its name in lower case."""

    def is_aggregate(self, name: str) -> bool:
        """Whether a user's function is an aggregate, by its name in lower case."""


@dataclass(frozen=True)
class Unfit(Exception):
    """Raised by a rule: why a block cannot be split this way."""

    reason: str


@dataclass(frozen=True)
class AddedUse:
    """One PREV or call with state: where it stands, and what stands for it: a text over added columns."""

    span: Span
    text: str
    leaf: Leaf
    columns: tuple[str, ...]
    named: bool = False  # an item of a select list without a name is called as it is written


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
    added: tuple[AddedUse, ...] = ()
    aggregates: frozenset[str] = AGGREGATES  # with the users', in upper case
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

    def check_ctes(self, block: Block, scope: Scope) -> None:
        """Unfit if the stream pipeline of a block reads a CTE, which stands outside of its text."""
        sources = [info.source.relation for info in scope.sources if info.streaming]
        known = {relation.span for relation in sources if relation is not None}
        known |= {reference.span for reference in self.query.table_references}
        places = [block.places[word] for word in ("FROM", "WHERE") if word in block.places]
        for relation in self.query.relations:
            inner = any(within(relation.span, place) for place in places)
            if inner and relation.span not in known:
                raise Unfit(f"{relation.name} of WITH is read together with the rows of a stream")

    def from_text(self, block: Block, scope: Scope) -> str:
        """The FROM clause with the block's streams under the names that Spark holds."""
        extra = [*self.replaced]
        for _, leaf in self.direct(scope):
            extra += leaf_edits(leaf, self.query, stream_view(leaf.number))
        return self.rendering.of(block.places["FROM"], extra)

    def join_conditions(self, scope: Scope) -> tuple[str, ...]:
        """The conjuncts of ON, and what USING says, of a block's streams."""
        found: list[str] = []
        for info in scope.sources:
            if info.leaf is not None and info.source.on is not None:
                found += [self.rendering.of(s) for s in conjuncts_of(self.text, info.source.on)]
            if info.leaf is not None and info.source.using:
                first = scope.sources[0].alias
                found += [f"{first}.{name} = {info.alias}.{name}" for name in info.source.using]
        return tuple(found)

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
