"""A query with its blocks bound to tables: what the rules look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import Protocol

import pyarrow as pa

from headwater.errors import BindError
from headwater.plan.calls import AGGREGATES, SqlCall
from headwater.plan.folds import (
    Finish,
    FoldKind,
    FoldPlan,
    Leaf,
    Life,
    StaticSource,
    StreamColumns,
)
from headwater.plan.pieces import Piece, Rendering, Stand, column, equal
from headwater.plan.scope import ColumnUse, Scope, SourceInfo, inside
from headwater.plan.shape import SelectBlock
from headwater.plan.text import NO_TEXT, RowsSlot, SparkText, spark_text
from headwater.plan.view_rules import R2
from headwater.sql.names import nearest
from headwater.sql.statements.query import Query
from headwater.sql.text import Name, Span
from headwater.sql.types import quoted

Sampling = OneOf["interval", "rows", "chunks", "realtime"]
VIEW_MARK = "VIEW "  # before the name of a view among identifiers, which are in lower case


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
        """The columns of a standard table, or of a view that is read like one."""

    def kind(self, name: str) -> str | None:
        """What a name means: a kind of the catalog, "system table", or nothing."""

    def names(self) -> Sequence[str]:
        """All names that may stand in FROM."""

    def state_function(self, name: str) -> StateFunction | None:
        """A function with state, by its name in lower case."""

    def is_aggregate(self, name: str) -> bool:
        """Whether a user's function is an aggregate, by its name in lower case."""


@dataclass(frozen=True)
class Unfit(Exception):
    """Raised by a rule: why a block cannot be split this way, and which rule for views that breaks."""

    reason: str
    rule: str | None = None


def outside() -> Unfit:
    """What a block is that cannot be evaluated by itself."""
    return Unfit("a subquery depends on the rows outside it", R2)


@dataclass(frozen=True)
class AddedUse:
    """One PREV or call with state: where it stands, and what stands for it: a piece over added columns."""

    span: Span
    over: Callable[[Callable[[str], Piece]], Piece]  # the piece, from what stands for its columns
    leaf: Leaf
    columns: tuple[str, ...]
    named: bool = False  # an item of a select list without a name is called as it is written

    @property
    def piece(self) -> Piece:
        """The piece over the leaf's columns."""
        return self.over(lambda name: column(name, self.leaf.alias))


@dataclass
class Bound:
    """A query under way to its plan."""

    query: Query
    blocks: list[SelectBlock]
    calls: list[SqlCall]
    scopes: list[Scope]
    leaves: tuple[Leaf, ...]
    uses: list[ColumnUse]
    rendering: Rendering
    sampling: Sampling
    foldable: frozenset[str]
    volatile: tuple[Span, ...]  # where the instant or PREV is read
    added: tuple[AddedUse, ...] = ()
    aggregates: frozenset[str] = AGGREGATES  # with the users', in upper case
    replaced: list[Stand] = field(default_factory=list)  # blocks that are folded
    at_hand: bool = False  # the rows are all there and computed by operators: Spark gets no text

    @property
    def text(self) -> str:
        """The query's text."""
        return self.query.text

    def calls_in(self, span: Span) -> list[SqlCall]:
        """The calls in a span, outer ones before those inside them."""
        return [call for call in self.calls if call.span.within(span)]

    def nested(self, span: Span) -> list[SelectBlock]:
        """The blocks that lie inside a span, but are not the span."""
        return [b for b in self.blocks if b.span.within(span) and b.span != span]

    def own_uses(self, block: SelectBlock, span: Span) -> list[ColumnUse]:
        """The columns in a span of a block that are not inside a subquery of it."""
        deeper = [b.span for b in self.nested(block.span)]
        return [u for u in inside(self.uses, span) if not any(u.span.within(d) for d in deeper)]

    def direct(self, scope: Scope) -> list[tuple[int, Leaf]]:
        """The windowed tables that stand in a block's own FROM."""
        return [(n, s.leaf) for n, s in enumerate(scope.sources) if s.leaf is not None]

    def streams_in(self, span: Span) -> bool:
        """Whether a windowed table stands in a span."""
        return any(leaf.name.span.within(span) for leaf in self.leaves)

    def is_pushable(self, span: Span) -> bool:
        """Whether a condition gives the same answer for a row at every instant."""
        if any(place.within(span) for place in self.volatile):
            return False
        return not self.streams_in(span)

    def check_independent(self, block: SelectBlock, scope: Scope) -> None:
        """Unfit if a block inside another reads a row outside it: it cannot be folded by itself."""
        if all(block.span == b.span or not block.span.within(b.span) for b in self.blocks):
            return
        names = {item.name.casefold() for item in block.items if item.name is not None}
        if any(scope.is_foreign(use, names) for use in self.own_uses(block, block.span)):
            raise outside()

    def check_ctes(self, block: SelectBlock, scope: Scope) -> None:
        """Unfit if the stream pipeline of a block reads a CTE, which stands outside of its text."""
        sources = [info.source.relation for info in scope.sources if info.streaming]
        known = {relation.span for relation in sources if relation is not None}
        known |= {reference.span for reference in self.query.table_references}
        places = [block.places[word] for word in ("FROM", "WHERE") if word in block.places]
        for relation in self.query.relations:
            inner = any(relation.span.within(place) for place in places)
            if inner and relation.span not in known:
                raise Unfit(f"{relation.name} of WITH is read together with the rows of a stream")

    def from_text(self, block: SelectBlock, scope: Scope) -> SparkText:
        """The FROM clause with the block's streams under the names that Spark holds."""
        extra = [*self.replaced]
        if self.at_hand:
            return NO_TEXT
        for _, leaf in self.direct(scope):
            extra += leaf_edits(leaf, self.query, RowsSlot("stream", leaf.number))
        return self.rendering.of(block.places["FROM"], extra)

    def join_conditions(self, scope: Scope) -> tuple[Piece, ...]:
        """The conjuncts of ON, and what USING says, of a block's streams."""
        found: list[Piece] = []
        for info in scope.sources:
            if info.leaf is not None:
                found += [self.rendering.piece(span) for span in info.source.on]
                first = scope.sources[0].alias
                found += [
                    equal(column(str(name), first), column(str(name), info.alias))
                    for name in info.source.using
                ]
        return tuple(found)

    def statics(self, scope: Scope) -> tuple[tuple[int, StaticSource], ...]:
        """The sources of a block without a stream."""
        found = []
        for number, info in enumerate(scope.sources):
            if info.leaf is not None:
                continue
            source, text = info.source, self.source_text(info)
            condition = (*info.on, *(self.rendering.piece(span) for span in source.on))
            using = tuple(str(name) for name in source.using)
            static = StaticSource(info.alias, text, source.join, condition, using, info.schema)
            found.append((number, static))
        return tuple(found)

    def source_text(self, info: SourceInfo) -> SparkText:
        """What a source without a stream reads: a name, or a query in parentheses."""
        if info.rows is not None:
            return spark_text(info.rows)
        if info.source.subquery is not None:
            return spark_text("(", self.rendering.of(info.source.subquery), ")")
        assert info.source.relation is not None
        return spark_text(info.source.relation.name.span.of(self.text))


@dataclass(frozen=True)
class BoundBlock:
    """One block with windowed tables in its own FROM, as the rules see it and rewrite it."""

    query: Bound
    block: SelectBlock
    scope: Scope
    number: int  # of the fold that it becomes
    members: tuple[MemberJoin, ...] = ()  # subqueries of WHERE that are joins
    below: tuple[Span, ...] = ()  # conjuncts of WHERE in the stream pipeline
    above: tuple[Span, ...] = ()  # and those that are asked at each instant

    @property
    def direct(self) -> list[tuple[int, Leaf]]:
        """The windowed tables that stand in the block's own FROM."""
        return self.query.direct(self.scope)

    @property
    def statics(self) -> tuple[tuple[int, StaticSource], ...]:
        """The sources without a stream, then those that subqueries of WHERE are."""
        first = len(self.scope.sources)
        joined = ((first + n, member.source) for n, member in enumerate(self.members))
        return (*self.query.statics(self.scope), *joined)

    def fold(self, kind: FoldKind, transformation: str, finish: Finish) -> FoldPlan:
        """The fold of the block; what it keeps is for the rule to add."""
        both = len(self.direct) == 2
        found = self.kept("join" if both else kind, "multi-stream join" if both else transformation)
        rendering, replaced = self.query.rendering, self.query.replaced
        return replace(
            found,
            from_text=self.query.from_text(self.block, self.scope),
            where=tuple(rendering.piece(span, replaced) for span in self.below),
            join_on=self.query.join_conditions(self.scope),
            finish=finish,
        )

    def kept(self, kind: FoldKind, transformation: str) -> FoldPlan:
        """The rows of the block's sources, as they are."""
        places, leaves = zip(*self.direct, strict=True)
        return FoldPlan(self.number, kind, self.block, leaves, places, self.statics, transformation)

    def check_subqueries(self) -> None:
        """Unfit if a subquery reads the block's own columns, and is not one of its joins."""
        query, known = self.query, [member.block for member in self.members]
        for inner in query.nested(self.block.span):
            scope = query.scopes[query.blocks.index(inner)]
            names = {item.name.casefold() for item in inner.items if item.name is not None}
            for use in query.own_uses(inner, inner.span) if inner not in known else ():
                own = scope.resolve(use) is not None
                if not own and not (use.table is None and use.name.casefold() in names):
                    raise outside()


@dataclass(frozen=True)
class MemberJoin:
    """A subquery of WHERE that is a semi or anti join: its block, and the source that it is."""

    block: SelectBlock
    source: StaticSource


Rule = Callable[[BoundBlock], FoldPlan | BoundBlock | None]


def leaf_edits(leaf: Leaf, query: Query, rows: RowsSlot) -> list[Stand]:
    """What puts rows under a name in the place of a windowed table."""
    alias = next(r.alias for r in query.relations if r.span == leaf.name.span)
    shown = spark_text(rows) if alias is not None else spark_text(rows, f" AS {quoted(leaf.alias)}")
    if leaf.cut is not None:  # its clause is gone from every text already
        return [Stand(leaf.name.span, shown)]
    return [Stand(leaf.name.span, shown), Stand(leaf.window.span, spark_text(" "))]


def unknown_table(name: Name | str, names: Iterable[str], text: str | None = None) -> BindError:
    """The error for a name that no table has."""
    near = nearest(str(name), list(names))
    place = name.span.place(text) if isinstance(name, Name) and text is not None else None
    return BindError(
        f"table {name} does not exist",
        sqlstate="42P01",
        hint=f"did you mean {near}?" if near else "SHOW TABLES lists what there is",
        place=place,
    )
