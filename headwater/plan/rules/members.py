"""Rule: EXISTS, NOT EXISTS, IN and NOT IN over a table are semi and anti joins with it.

A conjunct `EXISTS (SELECT … FROM t WHERE t.k = a.k AND …)` is asked of each row of the block's streams, so it
belongs into the stream pipeline like any join with a table. Spark is given the conjunct as it is written; in
line it is the join. NOT IN is one only where neither side can be NULL: `x NOT IN (SELECT y …)` is never true
once a y is NULL. Whatever else a subquery may be is left for the rules after this one.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headwater.plan.blocks import Bound, BoundBlock, MemberJoin
from headwater.plan.folds import SourceColumn, StaticSource
from headwater.plan.pieces import Piece, Stand, column, equal
from headwater.plan.scope import ColumnUse, Scope, SourceInfo
from headwater.plan.shape import SelectBlock
from headwater.sql.spans import has_span, span_of
from headwater.sql.text import Span

_INNER = ("", ",", "inner", "cross", "semi", "anti")


def join_members(one: BoundBlock) -> BoundBlock | None:
    """The block with the joins that conjuncts of its WHERE are."""
    found: list[MemberJoin] = []
    for span in one.block.conjuncts:
        member = _member(one, span, found) if one.query.is_pushable(span) else None
        found += [] if member is None else [member]
    return replace(one, members=tuple(found)) if found else None


def _member(one: BoundBlock, span: Span, before: list[MemberJoin]) -> MemberJoin | None:
    """The join that a conjunct is, or None."""
    test, negated = _test(one.query.rendering.node(span))
    if isinstance(test, exp.Exists):
        select, left = test.this, None
    elif isinstance(test, exp.In) and has_span(test.this):
        select, left = test.args.get("query"), span_of(test.this)
    else:
        return None
    while isinstance(select, exp.Subquery):
        select = select.this
    inner = next((block for block in one.query.blocks if block.node is select), None)
    info = None if inner is None else _table(one.query, inner)
    if inner is None or info is None:
        return None
    if left is not None and (len(inner.items) != 1 or inner.items[0].star):
        return None
    if left is not None and negated and not _never_null(one, inner, left):
        return None
    taken = {source.alias.casefold() for source in one.scope.sources}
    taken |= {member.source.alias.casefold() for member in before}
    alias = info.alias
    while alias.casefold() in taken:
        alias += "_"
    naming = _Naming(one, inner, alias)
    condition = [naming.inner(part) for part in inner.conjuncts]
    if left is not None:
        item = naming.inner(inner.items[0].expression)
        outer = naming.outer(left)
        both = None if item is None or outer is None else equal(outer, item)
        condition.insert(0, both)
    known = [piece for piece in condition if piece is not None]
    if len(known) < len(condition) or not known:
        return None
    asked = one.query.rendering.piece(span, one.query.replaced)
    join = "anti" if negated else "semi"
    text = one.query.source_text(info)
    source = StaticSource(alias, text, join, tuple(known), (), info.schema, asked)
    return MemberJoin(inner, source)


def _test(node: exp.Expr | None) -> tuple[exp.Expr | None, bool]:
    """What a condition asks, and whether it must not be so."""
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return node, negated


def _table(bound: Bound, inner: SelectBlock) -> SourceInfo | None:
    """The one table of a subquery that gives a row for each row of it that its WHERE takes."""
    scope = bound.scopes[bound.blocks.index(inner)]
    grouped = inner.group or inner.group_all or inner.having or inner.limit
    if inner.unknown or grouped or len(scope.sources) != 1 or bound.nested(inner.span):
        return None
    if any(bound.calls_in(item.span) for item in inner.items):
        return None  # an aggregate gives a row for none, explode several for one
    info = scope.sources[0]
    return None if info.schema is None or info.streaming else info


class _Naming:
    """Pieces over the block's sources and the table: each column with its table's name."""

    def __init__(self, one: BoundBlock, inner: SelectBlock, alias: str) -> None:
        self._one, self._inner, self._alias = one, inner, alias
        self._scope = one.query.scopes[one.query.blocks.index(inner)]

    def inner(self, span: Span) -> Piece | None:
        """A piece of the subquery; None if a name in it is neither the table's nor the block's."""
        return self._piece(span, self._inner, True)

    def outer(self, span: Span) -> Piece | None:
        """A piece of the block."""
        return self._piece(span, self._one.block, False)

    def _piece(self, span: Span, block: SelectBlock, within_table: bool) -> Piece | None:
        bound = self._one.query
        if bound.nested(span):
            return None
        uses = bound.own_uses(block, span)
        named = [(use, self._named(use, within_table)) for use in uses]
        stands = [Stand.of(use.span, piece) for use, piece in named if piece is not None]
        if len(stands) < len(uses):
            return None
        piece = bound.rendering.piece(span, stands)
        fields = any(use.whole != use.span for use in uses)
        return Piece(piece.text, None) if fields else piece

    def _named(self, use: ColumnUse, within_table: bool) -> Piece | None:
        own = self._scope.resolve(use) if within_table else None
        if own is not None:
            return column(own.name, self._alias)
        known = self._one.scope.resolve(use)
        return (
            None
            if known is None
            else column(known.name, self._one.scope.sources[known.source].alias)
        )


def _never_null(one: BoundBlock, inner: SelectBlock, left: Span) -> bool:
    """Whether neither side of `x NOT IN (SELECT y …)` can be NULL."""
    scope = one.query.scopes[one.query.blocks.index(inner)]
    return _is_there(one.query, one.block, one.scope, left) and _is_there(
        one.query, inner, scope, inner.items[0].expression
    )


def _is_there(bound: Bound, block: SelectBlock, scope: Scope, span: Span) -> bool:
    """Whether an expression is a column that is declared NOT NULL, or that WHERE asks to be there."""
    known = _column(bound, block, scope, span)
    if known is None:
        return False
    for place in block.conjuncts:
        node, negated = _test(bound.rendering.node(place))
        if not isinstance(node, exp.Is) or not isinstance(node.expression, exp.Null) or not negated:
            continue
        if has_span(node.this) and _column(bound, block, scope, span_of(node.this)) == known:
            return True
    schema = scope.sources[known.source].schema
    kept = all(info.source.join in _INNER for info in scope.sources)
    return schema is not None and kept and not schema.field(known.name).nullable


def _column(bound: Bound, block: SelectBlock, scope: Scope, span: Span) -> SourceColumn | None:
    uses = bound.own_uses(block, span)
    plain = len(uses) == 1 and uses[0].span == span and uses[0].whole == span
    return scope.resolve(uses[0]) if plain else None
