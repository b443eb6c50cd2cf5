"""The upper part of a query as blocks over its folds' results, where each can be computed by itself.

`SELECT avg(t) FROM (SELECT sum(v) AS t FROM s … GROUP BY k)` becomes `SELECT avg(t) FROM headwater_upper_1`:
the inner block is a fold, and what is left can be computed in line as any block over one table and probes.
A block may read others: from FROM or a CTE as a relation, `x IN (SELECT …)` as a semi join, EXISTS over a
relation as it stands, an aggregate in the place of a value as a column of one value, and a correlated
aggregate over a stream as a left join with its groups. Must never: look at types; what compiles a block finds
out whether it can be computed in line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from sqlglot import exp

from headwater.plan.folds import ContinuousPlan, FoldPlan
from headwater.plan.pieces import Rendering, Stand
from headwater.plan.rules.correlated import is_null_over_nothing
from headwater.plan.scope import within
from headwater.plan.shape import BlockSource, SelectBlock, blocks_of, cte_bodies
from headwater.plan.text import SparkText, joined, spark_text
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query
from headwater.sql.text import Span
from headwater.sql.types import quoted

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

    of: FoldRows | UpperText


@dataclass(frozen=True, eq=False)
class UpperText:
    """One block over tables, folds and other blocks."""

    text: SparkText
    first: str  # the first relation of FROM
    relations: Mapping[str, Part]  # what a name of FROM stands for, where it is no table
    scalars: Mapping[
        str, FoldRows | UpperText
    ]  # values of one row and column, read as columns of the first relation


Part = FoldRows | FoldGroups | Members | UpperText


class _NotPlain(Exception):
    """Raised while a block is read: it cannot be computed by itself."""


def upper_text(query: Query, plan: ContinuousPlan) -> UpperText | None:
    """The outermost block above the folds; None if some block is not of the shapes above."""
    inner = {fold.block.span: fold for fold in plan.split}
    blocks = blocks_of(query)
    bodies = cte_bodies(query)
    outermost = [
        b
        for b in blocks
        if b.span not in inner
        and not any(b is not other and within(b.span, other.span) for other in blocks)
        and not any(within(b.span, body) for body in bodies.values())
    ]
    if len(outermost) != 1:
        return None
    tables = {reference.span for reference in query.table_references}
    reader = _Reader(query, blocks, inner, bodies, tables)
    if reader.has_inner_ctes:
        return None
    try:
        return reader.block(outermost[0]) if reader.folds_used(outermost[0]) else None
    except _NotPlain:
        return None


@dataclass
class _Edits:
    """What is replaced in the text of one block, and what comes to its FROM."""

    replaced: list[Stand] = field(default_factory=list)
    joined: list[SparkText] = field(default_factory=list)
    relations: dict[str, Part] = field(default_factory=dict)
    scalars: dict[str, FoldRows | UpperText] = field(default_factory=dict)


class _Reader:
    """Reads blocks from the outermost inwards."""

    def __init__(
        self,
        query: Query,
        blocks: Sequence[SelectBlock],
        folds: Mapping[Span, FoldPlan],
        bodies: Mapping[str, Span],
        tables: Set[Span],
    ) -> None:
        self._query, self._blocks, self._folds, self._bodies = query, blocks, folds, bodies
        self._tables = tables  # where names mean tables, although a CTE may be called the same
        self._made = 0

    @property
    def has_inner_ctes(self) -> bool:
        """Whether a subquery has a WITH of its own, whose names hold only there."""
        tree = self._query.tree
        return tree is not None and any(w.parent is not tree for w in tree.find_all(exp.With))

    def folds_used(self, outermost: SelectBlock) -> bool:
        """Whether each fold stands in the outermost block or in a CTE."""
        places = [outermost.span, *self._bodies.values()]
        return all(any(within(span, place) for place in places) for span in self._folds)

    def block(self, block: SelectBlock) -> UpperText:
        """One block, and those that it reads."""
        if block.unknown is not None or not block.sources:
            raise _NotPlain
        edits, names = _Edits(), []
        for source in block.sources:
            names.append(self._source(source, edits))
        if len(set(names)) < len(names):
            raise _NotPlain  # a relation that is joined with itself
        taken = [s.subquery for s in block.sources if s.subquery is not None]
        for child in self._children(block, taken):
            self._expression(block, child, edits)
        added = edits.joined or edits.scalars
        if added and any(item.star for item in block.items):
            raise _NotPlain
        if edits.joined:
            end = block.places["FROM"].end
            edits.replaced.append(Stand(Span(end, end), joined("", edits.joined)))
        text = self._rendering(edits.replaced).of(block.span)
        return UpperText(text, names[0], edits.relations, edits.scalars)

    def _children(self, block: SelectBlock, taken: Sequence[Span]) -> list[SelectBlock]:
        """The blocks that stand directly in a block, outside of its FROM."""
        inside = [b for b in self._blocks if b is not block and within(b.span, block.span)]
        inside = [b for b in inside if not any(within(b.span, span) for span in taken)]
        return [b for b in inside if not any(_holds(other, b) for other in inside)]

    # FROM

    def _source(self, source: BlockSource, edits: _Edits) -> str:
        body = source.subquery
        if source.relation is not None and source.relation.span not in self._tables:
            body = self._bodies.get(source.relation.name.key)
        if body is None:
            if source.relation is None:
                raise _NotPlain
            return source.relation.name.key
        part = self._relation(body)
        name = self._name("upper" if isinstance(part, FoldRows) else "block")
        edits.relations[name] = part
        edits.replaced.append(self._in_place(source, name))
        return name

    def _relation(self, body: Span) -> FoldRows | UpperText:
        """What a subquery of FROM or a CTE gives: one block, or a fold."""
        inside = [b for b in self._blocks if within(b.span, body)]
        tops = [b for b in inside if not any(_holds(other, b) for other in inside)]
        if len(tops) != 1 or tops[0].span != body:
            raise _NotPlain  # a UNION, or WITH inside
        fold = self._folds.get(tops[0].span)
        if fold is None:
            return self.block(tops[0])
        if fold.outside:
            raise _NotPlain
        return FoldRows(fold)

    @staticmethod
    def _in_place(source: BlockSource, name: str) -> Stand:
        """A name in the place of a subquery or of a CTE's name."""
        if source.relation is not None:
            alias = "" if source.relation.alias else f" AS {quoted(source.relation.name)}"
            return Stand(source.relation.span, spark_text(name + alias))
        alias = "" if source.alias is None else f" AS {quoted(source.alias)}"
        return Stand(source.span, spark_text(name + alias))

    # Expressions

    def _expression(self, block: SelectBlock, child: SelectBlock, edits: _Edits) -> None:
        """A block inside an expression of another."""
        subquery = child.node.parent
        if isinstance(subquery, exp.Exists):
            self._existence(child, edits)
            return
        if not isinstance(subquery, exp.Subquery) or not has_span(subquery):
            raise _NotPlain  # ANY, ALL
        user = subquery.parent
        if isinstance(user, exp.In):
            self._membership(block, child, user, edits)
            return
        if isinstance(user, exp.Exists | exp.Any | exp.All | exp.SubqueryPredicate):
            raise _NotPlain
        whole = span_of(subquery)
        fold = self._folds.get(child.span)
        if fold is not None and fold.outside:
            self._lookup(fold, whole, edits)
            return
        name = self._name("scalar")
        if fold is None and not self._has_one_row(child):
            raise _NotPlain
        edits.scalars[name] = self.block(child) if fold is None else self._one_row(fold)
        edits.replaced.append(Stand(whole, spark_text(name)))

    def _existence(self, child: SelectBlock, edits: _Edits) -> None:
        """`EXISTS (SELECT … FROM r WHERE …)` stays: over a relation it is a join, like over a table."""
        if child.unknown is not None or len(child.sources) != 1:
            raise _NotPlain
        taken = [s.subquery for s in child.sources if s.subquery is not None]
        if self._children(child, taken) or child.span in self._folds:
            raise _NotPlain
        self._source(child.sources[0], edits)

    def _membership(
        self, block: SelectBlock, child: SelectBlock, user: exp.In, edits: _Edits
    ) -> None:
        """`x IN (SELECT y …)` as a conjunct: a semi join."""
        if not has_span(user) or span_of(user) not in block.conjuncts:
            raise _NotPlain
        if len(child.items) != 1 or child.items[0].star:
            raise _NotPlain
        fold = self._folds.get(child.span)
        if fold is not None and fold.outside:
            raise _NotPlain
        name = self._name("in")
        rows = self.block(child) if fold is None else FoldRows(fold)
        edits.relations[name] = Members(rows)
        left = self._rendering(()).of(span_of(user.this))
        edits.joined.append(spark_text(f" LEFT SEMI JOIN {name} ON (", left, f") = {name}.{VALUE}"))
        edits.replaced.append(Stand(span_of(user), spark_text("true")))

    def _lookup(self, fold: FoldPlan, whole: Span, edits: _Edits) -> None:
        """A correlated aggregate: the value of its group, NULL where there is none."""
        if not is_null_over_nothing(fold):
            raise _NotPlain
        name = self._name("groups")
        edits.relations[name] = FoldGroups(fold)
        sides = [
            spark_text(f"{name}._k{n} = (", outer.text, ")") for n, outer in enumerate(fold.outside)
        ]
        edits.joined.append(spark_text(f" LEFT JOIN {name} ON ", joined(" AND ", sides)))
        edits.replaced.append(Stand(whole, spark_text(f"{name}.{VALUE}")))

    @staticmethod
    def _one_row(fold: FoldPlan) -> FoldRows:
        finish = fold.finish
        if fold.keys or not fold.aggregates or finish is None or finish.condition or finish.limit:
            raise _NotPlain
        return FoldRows(fold)

    @staticmethod
    def _has_one_row(block: SelectBlock) -> bool:
        """Whether a block may be one aggregate over all rows; whether it is one, its plan tells."""
        grouped = block.group or block.group_all or block.having or block.distinct
        return not grouped and block.limit is None and len(block.items) == 1

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"headwater_{kind}_{self._made}"

    def _rendering(self, stands: Sequence[Stand]) -> Rendering:
        return Rendering(self._query.text, None, stands)


def _holds(outer: SelectBlock, inner: SelectBlock) -> bool:
    return outer is not inner and within(inner.span, outer.span)
