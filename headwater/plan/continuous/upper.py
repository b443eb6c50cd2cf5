"""The upper part of a query as blocks over its folds' results, where each can be computed by itself.

`SELECT avg(t) FROM (SELECT sum(v) AS t FROM s … GROUP BY k)` becomes `SELECT avg(t) FROM headwater_upper_0`:
the inner block is a fold, and what is left can be computed in line as any block over one table and probes.
A block may read others: from FROM or a CTE as a relation, `x IN (SELECT …)` as a semi join, an aggregate in
the place of a value as a column of one value, and a correlated aggregate over a stream as a left join with
its groups. Must never: look at types; the engine finds out whether it can compute a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from headwater.plan.continuous.folds import ContinuousPlan, FoldPlan
from headwater.plan.continuous.planner import cte_bodies, without_clauses
from headwater.plan.continuous.rendering import Rendering, Replacement
from headwater.plan.continuous.rules.correlated import is_null_over_nothing
from headwater.plan.continuous.scope import within
from headwater.plan.continuous.shape import Block, Source, blocks_of
from headwater.sql.lexer import Token, tokenize
from headwater.sql.statements.query import Query
from headwater.sql.text import Span
from headwater.sql.types import quoted

VALUE = "headwater_value"  # the column of a relation that has one


@dataclass(frozen=True)
class FoldRows:
    """The finished rows of a fold."""

    fold: int


@dataclass(frozen=True)
class FoldGroups:
    """The keys of a fold (_k0, _k1, …) and the one value of each group, by the name of the relation."""

    fold: int


@dataclass(frozen=True)
class Members:
    """The one column of some rows, named VALUE: what IN looks into."""

    of: FoldRows | UpperText


@dataclass(frozen=True, eq=False)
class UpperText:
    """One block over tables, folds and other blocks."""

    text: str
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
    blanked = without_clauses(query)
    inner = {fold.block.span: fold for fold in plan.folds}
    blocks = blocks_of(blanked, query.relations)
    bodies = cte_bodies(blanked)
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
    reader = _Reader(blanked, blocks, inner, bodies, tables)
    if reader.has_inner_ctes:
        return None
    try:
        return reader.block(outermost[0]) if reader.folds_used(outermost[0]) else None
    except _NotPlain:
        return None


@dataclass
class _Edits:
    """What is replaced in the text of one block, and what comes to its FROM."""

    replaced: list[Replacement] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    relations: dict[str, Part] = field(default_factory=dict)
    scalars: dict[str, FoldRows | UpperText] = field(default_factory=dict)


class _Reader:
    """Reads blocks from the outermost inwards."""

    def __init__(
        self,
        text: str,
        blocks: Sequence[Block],
        folds: Mapping[Span, FoldPlan],
        bodies: Mapping[str, Span],
        tables: Set[Span],
    ) -> None:
        self._text, self._blocks, self._folds, self._bodies = text, blocks, folds, bodies
        self._tables = tables  # where names mean tables, although a CTE may be called the same
        self._tokens = tokenize(text)
        self._made = 0

    @property
    def has_inner_ctes(self) -> bool:
        """Whether a subquery has a WITH of its own, whose names hold only there."""
        return any(token.upper == "WITH" for token in self._tokens[1:])

    def folds_used(self, outermost: Block) -> bool:
        """Whether each fold stands in the outermost block or in a CTE."""
        places = [outermost.span, *self._bodies.values()]
        return all(any(within(span, place) for place in places) for span in self._folds)

    def block(self, block: Block) -> UpperText:
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
            edits.replaced.append((Span(end, end), "".join(edits.joined)))
        text = Rendering(self._text, edits.replaced).of(block.span)
        return UpperText(text, names[0], edits.relations, edits.scalars)

    def _children(self, block: Block, taken: Sequence[Span]) -> list[Block]:
        """The blocks that stand directly in a block, outside of its FROM."""
        inside = [b for b in self._blocks if b is not block and within(b.span, block.span)]
        inside = [b for b in inside if not any(within(b.span, span) for span in taken)]
        return [b for b in inside if not any(_holds(other, b) for other in inside)]

    # FROM

    def _source(self, source: Source, edits: _Edits) -> str:
        body = source.subquery
        if source.relation is not None and source.relation.span not in self._tables:
            body = self._bodies.get(source.relation.name.key)
        if body is None:
            if source.relation is None:
                raise _NotPlain
            return source.relation.name.key
        part = self._relation(body)
        name = f"headwater_upper_{part.fold}" if isinstance(part, FoldRows) else self._name("block")
        edits.relations[name] = part
        edits.replaced.append(self._in_place(source, name))
        return name

    def _relation(self, body: Span) -> FoldRows | UpperText:
        """What a subquery of FROM or a CTE gives: one block, or a fold."""
        inside = [b for b in self._blocks if within(b.span, body)]
        tops = [b for b in inside if not any(_holds(other, b) for other in inside)]
        if len(tops) != 1 or self._text[body.start : body.end].strip() != self._of(tops[0].span):
            raise _NotPlain  # a UNION, or WITH inside
        fold = self._folds.get(tops[0].span)
        if fold is None:
            return self.block(tops[0])
        if fold.outside:
            raise _NotPlain
        return FoldRows(fold.number)

    def _in_place(self, source: Source, name: str) -> Replacement:
        """A name in the place of a subquery or of a CTE's name."""
        if source.relation is not None:
            alias = "" if source.relation.alias else f" AS {quoted(source.relation.name)}"
            return source.relation.span, name + alias
        assert source.subquery is not None
        return self._with_parentheses(source.subquery), name

    # Expressions

    def _expression(self, block: Block, child: Block, edits: _Edits) -> None:
        """A block inside an expression of another."""
        whole = self._with_parentheses(child.span)
        before = [t for t in self._tokens if t.end <= whole.start][-2:]
        if before and before[-1].upper == "EXISTS":
            raise _NotPlain
        if before and before[-1].upper in ("IN", "ANY", "SOME", "ALL"):
            self._membership(block, child, whole, before, edits)
            return
        fold = self._folds.get(child.span)
        if fold is not None and fold.outside:
            self._lookup(fold, whole, edits)
            return
        name = self._name("scalar")
        if fold is None and not self._has_one_row(child):
            raise _NotPlain
        edits.scalars[name] = self.block(child) if fold is None else self._one_row(fold)
        edits.replaced.append((whole, name))

    def _membership(
        self, block: Block, child: Block, whole: Span, before: Sequence[Token], edits: _Edits
    ) -> None:
        """`x IN (SELECT y …)` as a conjunct: a semi join."""
        found = [c for c in block.conjuncts if within(whole, c) and c.end == whole.end]
        if before[-1].upper != "IN" or before[0].upper == "NOT" or len(found) != 1:
            raise _NotPlain
        if len(child.items) != 1 or child.items[0].star:
            raise _NotPlain
        left = self._text[found[0].start : before[-1].start]
        if any(t.upper in ("NOT", "OR", "CASE") for t in tokenize(left)):
            raise _NotPlain
        fold = self._folds.get(child.span)
        if fold is not None and fold.outside:
            raise _NotPlain
        name = self._name("in")
        rows = self.block(child) if fold is None else FoldRows(fold.number)
        edits.relations[name] = Members(rows)
        edits.joined.append(f" LEFT SEMI JOIN {name} ON ({left}) = {name}.{VALUE}")
        edits.replaced.append((found[0], "true"))

    def _lookup(self, fold: FoldPlan, whole: Span, edits: _Edits) -> None:
        """A correlated aggregate: the value of its group, NULL where there is none."""
        if not is_null_over_nothing(fold):
            raise _NotPlain
        name = self._name("groups")
        edits.relations[name] = FoldGroups(fold.number)
        sides = [f"{name}._k{n} = ({outer})" for n, outer in enumerate(fold.outside)]
        edits.joined.append(f" LEFT JOIN {name} ON {' AND '.join(sides)}")
        edits.replaced.append((whole, f"{name}.{VALUE}"))

    @staticmethod
    def _one_row(fold: FoldPlan) -> FoldRows:
        finish = fold.finish
        if fold.keys or not fold.aggregates or finish is None or finish.condition or finish.limit:
            raise _NotPlain
        return FoldRows(fold.number)

    @staticmethod
    def _has_one_row(block: Block) -> bool:
        """Whether a block may be one aggregate over all rows; whether it is one, its plan tells."""
        grouped = block.group or block.group_all or block.having or block.distinct
        return not grouped and block.limit is None and len(block.items) == 1

    # Text

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"headwater_{kind}_{self._made}"

    def _of(self, span: Span) -> str:
        return self._text[span.start : span.end]

    def _with_parentheses(self, span: Span) -> Span:
        """The span of a subquery with the parentheses around it."""
        opening = [t for t in self._tokens if t.end <= span.start][-1:]
        closing = [t for t in self._tokens if t.start >= span.end][:1]
        if [t.text for t in (*opening, *closing)] != ["(", ")"]:
            raise _NotPlain
        return Span(opening[0].start, closing[0].end)


def _holds(outer: Block, inner: Block) -> bool:
    return outer is not inner and within(inner.span, outer.span)
