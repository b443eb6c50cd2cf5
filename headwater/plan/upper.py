"""The upper part of a query as blocks over its folds' results, where each can be computed by itself.

Of `SELECT avg(t) FROM (SELECT sum(v) AS t FROM s … GROUP BY k)` the inner block is a fold, and the outer one
can be computed as any block over one table and probes. A block may read others: from FROM or a CTE as
a relation, `x IN (SELECT …)` as a semi join, EXISTS over a relation like over a table, an aggregate in the
place of a value as a column of one value, and a correlated aggregate over a stream as a left join with its
groups. What is read is known first (`upper_plan`); the columns of it are known when it is compiled, and
then the block becomes a fold over rows at hand (`UpperPlan.fold`). Must never: write SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from headwater.plan.blocks import Bound, Tables
from headwater.plan.calls import AGGREGATES, SqlCall, calls_of
from headwater.plan.folds import ContinuousPlan, FoldPlan, Leaf, StreamColumns
from headwater.plan.pieces import Piece, Rendering, Stand, column, equal, in_parentheses, instant
from headwater.plan.planner import fold_at_hand, own_aggregates
from headwater.plan.rules.correlated import is_null_over_nothing
from headwater.plan.scope import (
    ColumnUse,
    Scope,
    SourceInfo,
    column_uses,
    innermost,
    narrowed,
)
from headwater.plan.shape import BlockSource, SelectBlock, blocks_of, cte_bodies
from headwater.plan.stars import reads_all_columns
from headwater.plan.times import time_edits
from headwater.sql.extensions import WindowClause
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query
from headwater.sql.text import Name, Span
from headwater.sql.types import TIMESTAMP

VALUE = "headwater_value"  # the column of a relation that has one


@dataclass(frozen=True)
class FoldRows:
    """The finished rows of a block that is a fold."""

    fold: FoldPlan


@dataclass(frozen=True)
class FoldGroups:
    """The keys of a fold (_k0, _k1, …) and the one value of each group, by the name of the relation."""

    fold: FoldPlan


@dataclass(frozen=True)
class Members:
    """The one column of some rows, named VALUE: what IN looks into."""

    of: FoldRows | UpperPlan


@dataclass(frozen=True)
class _Whole:
    """The query that the blocks are of."""

    query: Query
    blocks: list[SelectBlock]
    calls: list[SqlCall]
    uses: list[ColumnUse]
    times: list[Stand]
    time_type: pa.DataType

    def rendering(self, stands: Sequence[Stand] = ()) -> Rendering:
        return Rendering(self.query.text, self.query.tree, [*self.times, *stands])


@dataclass(frozen=True, eq=False)
class UpperPlan:
    """One block over tables, folds and other blocks."""

    whole: _Whole
    block: SelectBlock
    relations: dict[str, Part] = field(default_factory=dict)  # what it reads besides tables
    scalars: dict[str, FoldRows | UpperPlan] = field(
        default_factory=dict
    )  # values of one row and column, read as columns of the first relation
    sources: dict[Span, str] = field(default_factory=dict)  # the sources of FROM that are relations
    tests: list[SelectBlock] = field(default_factory=list)  # what EXISTS asks for
    values: list[ColumnUse] = field(default_factory=list)  # columns in the place of subqueries
    joins: list[SourceInfo] = field(default_factory=list)  # what comes to FROM for subqueries
    members: list[Span] = field(default_factory=list)  # conjuncts that are such joins

    @property
    def first(self) -> str:
        """The relation or table whose rows are gone through; the others are probed."""
        source = self.block.sources[0]
        return self.sources.get(source.span) or _table(source).key

    def fold(
        self,
        schemas: Mapping[str, pa.Schema],
        beside: Sequence[pa.Field],
        tables: Tables,
        foldable: frozenset[str],
    ) -> FoldPlan | None:
        """The block over rows that are all there; `schemas` of its relations, `beside` for its scalars."""
        rest = tuple(span for span in self.block.conjuncts if span not in self.members)
        blocks = [replace(self.block, conjuncts=rest), *self.tests]
        first, *others = (self._info(s, schemas, tables) for s in self.block.sources)
        others += [replace(join, schema=schemas[join.alias]) for join in self.joins]
        if not first.schema:
            return None
        leaf = self._leaf(first, beside)
        every = tuple(leaf.columns.schema.names)
        first = SourceInfo(first.source, first.alias, leaf.columns.schema, every, leaf, True)
        scopes = [Scope(blocks[0], [first, *others])]
        scopes += [Scope(b, [self._info(b.sources[0], schemas, tables)]) for b in self.tests]
        calls = [call for call in self.whole.calls if self._is_own(call.span)]
        return fold_at_hand(
            Bound(
                self.whole.query,
                blocks,
                calls,
                scopes,
                (leaf,),
                [*narrowed(self._uses, blocks, scopes), *self.values],
                self.whole.rendering(
                    [Stand.of(use.span, column(use.name, use.table)) for use in self.values]
                ),
                "interval",
                foldable,
                volatile=(),
                aggregates=AGGREGATES | own_aggregates(calls, tables),
                at_hand=True,
            )
        )

    def _info(
        self, source: BlockSource, schemas: Mapping[str, pa.Schema], tables: Tables
    ) -> SourceInfo:
        rows = self.sources.get(source.span)
        named = rows if source.relation is None else source.relation.name.rpartition(".")[2]
        schema = tables.standard(str(_table(source))) if rows is None else schemas[rows]
        visible = () if schema is None else tuple(schema.names)
        return SourceInfo(source, str(source.alias or named), schema, visible, rows=rows)

    def _is_own(self, span: Span) -> bool:
        """Whether something stands in the block or in what EXISTS asks, and in no other block inside."""
        block = innermost(self.whole.blocks, span)
        return block is self.block or block in self.tests

    @property
    def _uses(self) -> list[ColumnUse]:
        return [use for use in self.whole.uses if self._is_own(use.span)]

    def _leaf(self, info: SourceInfo, beside: Sequence[pa.Field]) -> Leaf:
        """The first relation as the rows that are gone through, with the values that stand beside them."""
        names = list(info.schema.names if info.schema is not None else ())
        said = {name.casefold() for use in self._uses for name, _ in use.parts}
        said |= {name.casefold() for source in self.block.sources for name in source.using}
        on = [piece.node for join in self.joins for piece in join.on if piece.node is not None]
        columns = [column for node in on for column in node.find_all(exp.Column)]
        said |= {part.name.casefold() for column in columns for part in column.parts}
        every = reads_all_columns(self.block)
        needed = [n for n in names if every or n.casefold() in said] or names[:1]
        schema = pa.schema([*(info.schema or ()), *beside])
        visible = tuple(schema.names)
        stream = StreamColumns(self.first, schema, visible, names[0], self.whole.time_type)
        place = info.source.span
        window = WindowClause("interval", Span(place.end, place.end))
        read = (*needed, *(field.name for field in beside))
        return Leaf(0, Name(self.first, place), info.alias, window, stream, read)


Part = FoldRows | FoldGroups | Members | UpperPlan


class _NotPlain(Exception):
    """Raised while a block is read: it cannot be computed by itself."""


def upper_plan(query: Query, plan: ContinuousPlan) -> UpperPlan | None:
    """The outermost block above the folds; None if some block is not of the shapes above."""
    inner = {fold.block.span: fold for fold in plan.split}
    blocks, bodies = blocks_of(query), cte_bodies(query)
    uses = None if query.tree is None else column_uses(query.tree)
    outermost = [
        b
        for b in blocks
        if b.span not in inner
        and not any(b is not other and b.span.within(other.span) for other in blocks)
        and not any(b.span.within(body) for body in bodies.values())
    ]
    if len(outermost) != 1 or uses is None:
        return None
    in_view = not (query.windows or query.cuts)
    time_type = TIMESTAMP if in_view else plan.leaves[0].columns.time_type
    times = [Stand.of(call.span, instant()) for call in query.instants]
    times += time_edits(query.text, pa.types.is_integer(time_type))
    reader = _Reader(_Whole(query, blocks, calls_of(query), uses, times, time_type), inner, bodies)
    if reader.has_inner_ctes:
        return None
    try:
        return reader.block(outermost[0]) if reader.folds_used(outermost[0]) else None
    except _NotPlain:
        return None


class _Reader:
    """Reads blocks from the outermost inwards."""

    def __init__(
        self, whole: _Whole, folds: Mapping[Span, FoldPlan], bodies: Mapping[str, Span]
    ) -> None:
        self._whole, self._folds, self._bodies = whole, folds, bodies
        # Where names mean tables, although a CTE may be called the same.
        self._tables = {reference.span for reference in whole.query.table_references}
        self._made = 0
        self._known: dict[Span, FoldRows | UpperPlan] = {}  # a CTE that is read twice is one part

    @property
    def has_inner_ctes(self) -> bool:
        """Whether a subquery has a WITH of its own, whose names hold only there."""
        tree = self._whole.query.tree
        return tree is not None and any(w.parent is not tree for w in tree.find_all(exp.With))

    def folds_used(self, outermost: SelectBlock) -> bool:
        """Whether each fold stands in the outermost block or in a CTE."""
        places = [outermost.span, *self._bodies.values()]
        return all(any(span.within(place) for place in places) for span in self._folds)

    def block(self, block: SelectBlock) -> UpperPlan:
        """One block, and those that it reads."""
        if block.unknown is not None or not block.sources:
            raise _NotPlain
        found = UpperPlan(self._whole, block)
        for source in block.sources:
            self._source(source, found)
        taken = [s.subquery for s in block.sources if s.subquery is not None]
        for child in self._children(block, taken):
            self._expression(child, found)
        if (found.joins or found.scalars) and any(item.star for item in block.items):
            raise _NotPlain
        return found

    def _children(self, block: SelectBlock, taken: Sequence[Span]) -> list[SelectBlock]:
        """The blocks that stand directly in a block, outside of its FROM."""
        inside = [b for b in self._whole.blocks if b is not block and b.span.within(block.span)]
        inside = [b for b in inside if not any(b.span.within(span) for span in taken)]
        return [b for b in inside if not any(_holds(other, b) for other in inside)]

    # FROM

    def _source(self, source: BlockSource, found: UpperPlan) -> None:
        body = source.subquery
        if source.relation is not None and source.relation.span not in self._tables:
            body = self._bodies.get(source.relation.name.key)
        if body is None and source.relation is None:
            raise _NotPlain
        if body is not None:
            found.sources[source.span] = self._named("rows", self._relation(body), found)

    def _relation(self, body: Span) -> FoldRows | UpperPlan:
        """What a subquery of FROM or a CTE gives: one block, or a fold."""
        if body in self._known:
            return self._known[body]
        inside = [b for b in self._whole.blocks if b.span.within(body)]
        tops = [b for b in inside if not any(_holds(other, b) for other in inside)]
        if len(tops) != 1 or tops[0].span != body:
            raise _NotPlain  # a UNION, or WITH inside
        found = self._known[body] = self._rows(tops[0])
        return found

    def _rows(self, block: SelectBlock) -> FoldRows | UpperPlan:
        """The rows of a block that is a fold, or stands above some."""
        fold = self._folds.get(block.span)
        if fold is not None and fold.outside:
            raise _NotPlain
        return self.block(block) if fold is None else FoldRows(fold)

    # Expressions

    def _expression(self, child: SelectBlock, found: UpperPlan) -> None:
        """A block inside an expression of another."""
        subquery = child.node.parent
        if isinstance(subquery, exp.Exists):
            self._existence(child, found)
            return
        if not isinstance(subquery, exp.Subquery) or not has_span(subquery):
            raise _NotPlain  # ANY, ALL
        user = subquery.parent
        if isinstance(user, exp.In):
            self._membership(child, user, found)
            return
        if isinstance(user, exp.Exists | exp.Any | exp.All | exp.SubqueryPredicate):
            raise _NotPlain
        fold = self._folds.get(child.span)
        if fold is not None and fold.outside:
            self._lookup(fold, span_of(subquery), found)
            return
        if fold is not None and not fold.has_one_row:
            raise _NotPlain  # of another block its plan tells
        name = self._name("scalar")
        found.scalars[name] = self._rows(child)
        found.values.append(_column_for(span_of(subquery), name))

    def _existence(self, child: SelectBlock, found: UpperPlan) -> None:
        """`EXISTS (SELECT … FROM r WHERE …)`: over a relation it is a join, like over a table."""
        if child.unknown is not None or len(child.sources) != 1:
            raise _NotPlain
        taken = [s.subquery for s in child.sources if s.subquery is not None]
        if self._children(child, taken) or child.span in self._folds:
            raise _NotPlain
        self._source(child.sources[0], found)
        found.tests.append(child)

    def _membership(self, child: SelectBlock, user: exp.In, found: UpperPlan) -> None:
        """`x IN (SELECT y …)` as a conjunct: a semi join."""
        if not has_span(user) or span_of(user) not in found.block.conjuncts:
            raise _NotPlain
        if len(child.items) != 1 or child.items[0].star:
            raise _NotPlain
        name = self._named("in", Members(self._rows(child)), found)
        left = self._whole.rendering().piece(span_of(user.this))
        on = equal(in_parentheses(left), column(VALUE, name))
        found.joins.append(_joined(name, "semi", (on,)))
        found.members.append(span_of(user))

    def _lookup(self, fold: FoldPlan, whole: Span, found: UpperPlan) -> None:
        """A correlated aggregate: the value of its group, NULL where there is none."""
        if not is_null_over_nothing(fold):
            raise _NotPlain
        name = self._named("groups", FoldGroups(fold), found)
        on = tuple(
            equal(column(f"_k{n}", name), in_parentheses(outer))
            for n, outer in enumerate(fold.outside)
        )
        found.joins.append(_joined(name, "left", on))
        found.values.append(_column_for(whole, VALUE, name))

    def _named(self, kind: str, part: Part, found: UpperPlan) -> str:
        """The name under which a block reads a relation."""
        name = self._name(kind)
        found.relations[name] = part
        return name

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"headwater_{kind}_{self._made}"


def _column_for(place: Span, name: str, table: str | None = None) -> ColumnUse:
    """A column that stands for a subquery."""
    return ColumnUse(place, table, name, True, ((name, place),))


def _joined(name: str, kind: str, on: tuple[Piece, ...]) -> SourceInfo:
    """A relation that is joined, although it does not stand in FROM."""
    source = BlockSource(Span(0, 0), kind, None, None, None)
    return SourceInfo(source, name, None, (), rows=name, on=on)


def _table(source: BlockSource) -> Name:
    assert source.relation is not None
    return source.relation.name


def _holds(outer: SelectBlock, inner: SelectBlock) -> bool:
    return outer is not inner and inner.span.within(outer.span)
