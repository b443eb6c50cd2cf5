"""Pieces of a query: the text that Spark gets, and the tree that operators are compiled from.

Both are made of the user's query by the same replacements, so they mean the same: the text is copied by
span, the tree with the replaced nodes put in place. Must never: make text from a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.plan.text import INSTANT, Slot, SparkText, ValueSlot, conjunction, spark_text
from headwater.sql.spans import has_span, span_of
from headwater.sql.text import Span
from headwater.sql.types import quoted

BLANK = spark_text(" ")  # in the place of clauses of ours, which have no tree
# `x` of ORDER BY is x, and so is that of FILTER (WHERE x).
AROUND = (exp.Ordered, exp.Order, exp.Where)
INSTANT_COLUMN = (
    "headwater_instant"  # the column of the instant, where rows are computed by operators
)


@dataclass(frozen=True)
class Piece:
    """An expression; equal ones have equal texts."""

    text: SparkText
    node: exp.Expr | None  # None: only Spark can compute it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Piece) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return str(self.text)

    @property
    def is_name(self) -> bool:
        """Whether it is one bare name or number, so that it needs no parentheses inside others."""
        return isinstance(self.node, exp.Column | exp.Literal)


@dataclass(frozen=True)
class Stand:
    """What stands for a span of the query."""

    span: Span
    text: SparkText
    node: exp.Expr | None = None

    @staticmethod
    def of(span: Span, piece: Piece) -> Stand:
        """A piece in the place of a span."""
        return Stand(span, piece.text, piece.node)


def column(name: str, table: str | None = None) -> Piece:
    """A column; `name` and `table` as they are called, without backticks."""
    bare = name if name.isidentifier() and name.isascii() else quoted(name)
    text = bare if table is None else f"{quoted(table)}.{quoted(name)}"
    return Piece(spark_text(text), exp.column(name, table=table))


def value(aggregate: int) -> Piece:
    """The value of an aggregate of a fold."""
    slot = ValueSlot(aggregate)
    return Piece(spark_text(slot), exp.column(slot.name))


def instant() -> Piece:
    """The instant."""
    return Piece(spark_text(INSTANT), exp.column(INSTANT_COLUMN))


def number(whole: int) -> Piece:
    """A whole number."""
    return Piece(spark_text(str(whole)), exp.Literal.number(whole))


def case_when(condition: Piece, then: Piece) -> Piece:
    """CASE WHEN condition THEN then END."""
    text = spark_text("CASE WHEN ", condition.text, " THEN ", then.text, " END")
    if condition.node is None or then.node is None:
        return Piece(text, None)
    branch = exp.If(this=condition.node.copy(), true=then.node.copy())
    return Piece(text, exp.Case(ifs=[branch]))


def is_not_null(piece: Piece) -> Piece:
    """piece IS NOT NULL."""
    text = spark_text(piece.text, " IS NOT NULL")
    if piece.node is None:
        return Piece(text, None)
    test = exp.Is(this=piece.node.copy(), expression=exp.Null())
    return Piece(text, exp.Not(this=test))


def equal(left: Piece, right: Piece) -> Piece:
    """left = right."""
    text = spark_text(left.text, " = ", right.text)
    if left.node is None or right.node is None:
        return Piece(text, None)
    return Piece(text, exp.EQ(this=left.node.copy(), expression=right.node.copy()))


def cast(piece: Piece, type_: str) -> Piece:
    """CAST(piece AS type)."""
    text = spark_text("CAST(", piece.text, f" AS {type_})")
    if piece.node is None:
        return Piece(text, None)
    to = exp.DataType.build(type_, dialect="spark")
    return Piece(text, exp.Cast(this=piece.node.copy(), to=to))


def in_parentheses(piece: Piece) -> Piece:
    """The piece in parentheses."""
    node = None if piece.node is None else exp.Paren(this=piece.node.copy())
    return Piece(spark_text("(", piece.text, ")"), node)


def all_of(pieces: Sequence[Piece]) -> Piece:
    """The conjunction of conditions, each in parentheses."""
    nodes = [in_parentheses(piece).node for piece in pieces]
    found = nodes[0]
    for node in nodes[1:]:
        both = found is not None and node is not None
        found = exp.And(this=found, expression=node) if both else None
    return Piece(conjunction(piece.text for piece in pieces), found)


class Rendering:
    """A query with replacements that hold everywhere; more may be given for one piece."""

    def __init__(self, text: str, tree: exp.Expr | None, always: Iterable[Stand]) -> None:
        self.text, self._tree = text, tree
        self._always = sorted(always, key=lambda stand: stand.span.start)
        self._nodes: dict[Span, exp.Expr] = {}
        for node in tree.walk(bfs=False) if tree is not None else ():
            if has_span(node) and not isinstance(node, AROUND):
                self._nodes.setdefault(span_of(node), node)

    def of(self, span: Span, extra: Sequence[Stand] = ()) -> SparkText:
        """The text of a span; of nested replacements the outermost counts."""
        pieces: list[str | Slot | SparkText] = []
        done = span.start
        for stand in self._inside(span, extra):
            pieces += [self.text[done : stand.span.start], stand.text]
            done = stand.span.end
        return spark_text(*pieces, self.text[done : span.end])

    def piece(self, span: Span, extra: Sequence[Stand] = ()) -> Piece:
        """The expression in a span, with the replacements in it."""
        return Piece(self.of(span, extra), self._node(span, extra))

    def tree(self, extra: Sequence[Stand]) -> exp.Expr | None:
        """The whole query with the replacements in it; None if one of them has no tree."""
        if self._tree is None:
            return None
        stands = self._inside(Span(0, len(self.text)), extra)
        return _replaced(self._tree, [stand for stand in stands if stand.text != BLANK])

    def node(self, span: Span) -> exp.Expr | None:
        """The outermost node that stands in just this span."""
        return self._nodes.get(span)

    def _inside(self, span: Span, extra: Sequence[Stand]) -> list[Stand]:
        wanted = [s for s in (*extra, *self._always) if s.span.within(span)]
        wanted.sort(key=lambda s: (s.span.start, len(s.span) > 0, -s.span.end))  # insertions first
        found: list[Stand] = []
        for stand in wanted:
            if not found or stand.span.start >= found[-1].span.end:
                found.append(stand)
        return found

    def _node(self, span: Span, extra: Sequence[Stand]) -> exp.Expr | None:
        node = self.node(span)
        return None if node is None else _replaced(node, self._inside(span, extra))


def _replaced(node: exp.Expr, given: Sequence[Stand]) -> exp.Expr | None:
    """A tree with the trees of replacements in their places; None if one has none, or no place."""
    stands = {stand.span: stand for stand in given}
    if any(stand.node is None for stand in stands.values()):
        return None
    if not stands:
        return node
    used: set[Span] = set()

    def replaced(one: exp.Expr) -> exp.Expr:
        is_place = has_span(one) and not isinstance(one, AROUND)
        stand = stands.get(span_of(one)) if is_place else None
        clause = one.args.get("with_") if isinstance(one, exp.Select) else None
        if clause is not None:  # the SELECT begins where its WITH ends
            end, after = span_of(one).end, span_of(clause).end
            stand = next((s for s in given if s.span.end == end and s.span.start >= after), None)
        if stand is None or stand.node is None:
            return one
        used.add(stand.span)
        found = stand.node.copy()
        if clause is not None:
            found.set("with_", clause.transform(replaced))
        return found

    made = node.transform(replaced)
    return made if len(used) == len(stands) else None
