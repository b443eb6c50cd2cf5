"""Rule: GROUP BY and aggregates become partials per pane, merged per instant; HAVING and the rest stay above.

Covers DC4's compensation (sum, count, min, max, group by), expanding replication (avg and kin become
several partials) and synchronous replication (several aggregates over one grouping). The keys are
columns _k0, _k1, … of the merged result, the aggregates _a0, _a1, …
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.plan.blocks import Bound, BoundBlock, Unfit
from headwater.plan.calls import AGGREGATES, SqlCall
from headwater.plan.folds import AggregateCall, Finish, FoldPlan, Output, SourceColumn
from headwater.plan.forms import form
from headwater.plan.pieces import (
    Piece,
    Stand,
    case_when,
    column,
    in_parentheses,
    number,
    value,
)
from headwater.plan.scope import Scope, inside
from headwater.plan.shape import Item, SelectBlock
from headwater.plan.view_rules import TIME
from headwater.sql.spans import has_span, span_of
from headwater.sql.text import Span

EXPANDING = frozenset({"avg", "mean", "variance", "var_samp", "var_pop", "stddev", "std"}) | {
    "stddev_samp",
    "stddev_pop",
}


def is_grouped(bound: Bound, block: SelectBlock) -> bool:
    """Whether a block groups its rows: GROUP BY, DISTINCT, or an aggregate over all of them."""
    if block.group or block.group_all or (block.distinct and len(block.sources) >= 1):
        kept = any(item.star or not bound.is_pushable(item.expression) for item in block.items)
        return not (block.distinct and not block.group and kept)
    pieces = [item.span for item in block.items] + [o.span for o in block.order]
    pieces += [] if block.having is None else [block.having]
    deeper = [b.span for b in bound.nested(block.span)]
    return any(
        call.name in bound.aggregates and not call.windowed
        for piece in pieces
        for call in bound.calls_in(piece)
        if not any(call.span.within(d) for d in deeper)
    )


def fold_groups(one: BoundBlock) -> FoldPlan | None:
    """The split of a block with GROUP BY or aggregates, or with DISTINCT alone."""
    bound, block, scope = one.query, one.block, one.scope
    if not is_grouped(bound, block):
        return None
    if one.above:
        raise Unfit("a condition below the grouping changes from instant to instant", TIME)
    grouped = _Grouped(bound, block, scope)
    outputs = tuple(grouped.output(item) for item in block.items)
    having = None if block.having is None else grouped.having(block.having)
    order = tuple((grouped.piece(i.expression, by_alias=True), i) for i in block.order)
    if len(one.direct) == 2 and any(a.function in _NOT_JOINED for a in grouped.aggregates):
        raise Unfit("first, last and distinct values do not cross a join of streams")
    finish = Finish(outputs, having, order, block.limit, block.distinct and bool(block.group))
    found = one.fold("aggregate", _transformation(grouped), finish)
    keys, aggregates = tuple(grouped.key_pieces), tuple(grouped.aggregates)
    return replace(found, keys=keys, aggregates=aggregates)


_NOT_JOINED = frozenset(
    {"first", "last", "first_ignore_nulls", "last_ignore_nulls", "count_distinct"}
)


def _transformation(grouped: _Grouped) -> str:
    words = ["compensation"]
    if any(a.function in EXPANDING for a in grouped.aggregates):
        words.append("expanding replication")
    if len(grouped.aggregates) > 1 or (grouped.aggregates and grouped.key_pieces):
        words.append("synchronous replication")
    return ", ".join(words)


class _Grouped:
    """Keys and aggregates of a block, numbered as they are met."""

    def __init__(self, bound: Bound, block: SelectBlock, scope: Scope) -> None:
        self.bound, self.block, self.scope = bound, block, scope
        self.aliases = {i.name.casefold(): i for i in block.items if i.name is not None}
        self.aggregates: list[AggregateCall] = []
        self.key_spans = self._keys()
        if not all(bound.is_pushable(span) for span in self.key_spans):
            raise Unfit("a grouping depends on the instant", TIME)
        self.key_pieces = [bound.rendering.piece(span) for span in self.key_spans]
        self.key_columns = [self._column(span) for span in self.key_spans]

    def _keys(self) -> list[Span]:
        block = self.block
        if block.distinct and not block.group:
            return self._all_items()
        if block.group_all:
            return [i.expression for i in block.items if not self._has_aggregate(i.expression)]
        return [self._key(span) for span in block.group]

    def _all_items(self) -> list[Span]:
        if any(item.star for item in self.block.items):
            raise Unfit("DISTINCT over *")
        if any(self._has_aggregate(item.expression) for item in self.block.items):
            raise Unfit("DISTINCT above a grouping")
        return [item.expression for item in self.block.items]

    def _has_aggregate(self, span: Span) -> bool:
        calls = self.bound.calls_in(span)
        return any(c.name in self.bound.aggregates and not c.windowed for c in calls)

    def _key(self, span: Span) -> Span:
        """A grouping expression; a number or an alias means an item of the select list."""
        node = self.bound.rendering.node(span)
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            place = int(node.name) - 1
            if not 0 <= place < len(self.block.items):
                raise Unfit("GROUP BY a number that no item has")
            return self.block.items[place].expression
        uses = self.bound.own_uses(self.block, span)
        if len(uses) == 1 and uses[0].span == span and self.scope.resolve(uses[0]) is None:
            item = self.aliases.get(uses[0].name.casefold())
            if item is not None:
                return item.expression
        return span

    def _column(self, span: Span) -> SourceColumn | None:
        uses = self.bound.own_uses(self.block, span)
        if len(uses) == 1 and uses[0].span == span:
            return self.scope.resolve(uses[0])
        return None

    def output(self, item: Item) -> Output:
        """An item of the select list over keys and aggregates."""
        if item.star:
            raise Unfit("* beside a grouping")
        name = None if item.name is None else str(item.name)
        uses = self.bound.own_uses(self.block, item.expression)
        if name is None and len(uses) == 1 and uses[0].whole == item.expression:
            name = uses[0].shown
        for call in self.bound.calls_in(item.expression):
            if name is None and call.span == item.expression:
                name = self._shown(call)
        return Output(self._item(item), name)

    def _item(self, item: Item) -> Piece:
        """Its expression; names that items before it have mean what they mean."""
        before = self.block.items[: self.block.items.index(item)]
        return self.piece(item.expression, False, self._named(item.expression, before))

    def _shown(self, call: SqlCall) -> str | None:
        """What Spark calls the column of an aggregate without an alias; None if it is not a plain one."""
        if call.name not in AGGREGATES or call.windowed or call.filter or call.ignore_nulls:
            return None
        words = ["1"] if call.star else []
        for span in call.arguments:
            uses, node = self.bound.own_uses(self.block, span), self.bound.rendering.node(span)
            if len(uses) == 1 and uses[0].whole == span:
                words.append(uses[0].name)
            elif isinstance(node, exp.Literal) and not node.is_string:
                words.append(node.name)
            else:
                return None
        return f"{call.name.lower()}({'DISTINCT ' if call.distinct else ''}{', '.join(words)})"

    def having(self, span: Span) -> Piece:
        """HAVING over keys and aggregates: it becomes a WHERE, where an alias means nothing."""
        return self.piece(span, by_alias=False, aliases=self._named(span, self.block.items))

    def _named(self, span: Span, items: Sequence[Item]) -> list[Stand]:
        """Names of the select list inside an expression, and what takes their places."""
        edits: list[Stand] = []
        for use in self.bound.own_uses(self.block, span):
            item = self.aliases.get(use.name.casefold()) if use.table is None else None
            if item is None or item not in items or self.scope.resolve(use) is not None:
                continue
            piece = self._item(item)
            edits.append(Stand.of(use.span, piece if piece.is_name else in_parentheses(piece)))
        return edits

    def piece(self, span: Span, by_alias: bool, aliases: Sequence[Stand] = ()) -> Piece:
        """A piece of the block over keys and aggregates; Unfit if anything else is left in it."""
        extra = self._aggregate_edits(span)
        called = [stand.span for stand in extra]
        extra += [a for a in aliases if not any(a.span.within(place) for place in called)]
        extra += self._key_edits(span, [stand.span for stand in extra])
        taken = [stand.span for stand in extra]
        for use in self.bound.own_uses(self.block, span):
            if any(use.span.within(place) for place in taken):
                continue
            named = use.table is None and use.name.casefold() in self.aliases
            if not named or (self.scope.resolve(use) is not None and not by_alias):
                raise Unfit(f"column {use.name} is not grouped")
        return self.bound.rendering.piece(span, [*extra, *self.bound.replaced])

    def _aggregate_edits(self, span: Span) -> list[Stand]:
        deeper = [b.span for b in self.bound.nested(self.block.span)]
        found: list[Stand] = []
        for call in self.bound.calls_in(span):
            inner = any(call.span.within(stand.span) for stand in found)
            if inner or call.name not in self.bound.aggregates or call.windowed:
                continue
            if any(call.span.within(d) for d in deeper):
                continue
            found.append(Stand.of(call.span, value(self._number(call))))
        return found

    def _number(self, call: SqlCall) -> int:
        aggregate = self._aggregate(call)
        forms = [self._call_form(other) for other in self.aggregates]
        found = self._call_form(aggregate)
        if found in forms:
            return forms.index(found)
        self.aggregates.append(aggregate)
        return len(self.aggregates) - 1

    def _call_form(self, call: AggregateCall) -> Hashable:
        node = None if call.argument is None else call.argument.node
        return (call.function, call.argument if node is None else self._form(node))

    def _aggregate(self, call: SqlCall) -> AggregateCall:
        bound, function = self.bound, call.name.lower()
        if call.name not in AGGREGATES:
            raise Unfit(f"{function} is an aggregate in Python, which has no fold")
        if any(not bound.is_pushable(span) for span in call.arguments):
            raise Unfit("an aggregate depends on the instant", TIME)
        if bound.nested(call.span):
            raise Unfit("a subquery stands in an aggregate")
        pieces = [bound.rendering.piece(span) for span in call.arguments]
        if function == "count_if" and len(pieces) == 1:
            function, pieces = "count", [case_when(pieces[0], number(1))]
        if call.ignore_nulls:
            function, pieces = f"{_EDGES.get(function, function)}_ignore_nulls", pieces[:1]
        if call.distinct:
            if function not in ("count", "min", "max"):
                raise Unfit(f"{function}(DISTINCT …) has no fold")
            function = "count_distinct" if function == "count" else function
        if function not in bound.foldable or call.within:
            raise Unfit(f"aggregate {function} has no fold")
        constant = len(pieces) == 1 and isinstance(pieces[0].node, exp.Literal)
        if function == "count" and (call.star or constant):
            pieces = []
        elif len(pieces) != 1:
            raise Unfit(f"{function} of {len(pieces)} arguments has no fold")
        if call.filter is not None:
            if function in _EDGES:
                raise Unfit(f"{function} with FILTER has no fold")  # NULL is a value of it
            pieces = [self._filtered(call.filter, pieces)]
        return AggregateCall(function, pieces[0] if pieces else None)

    def _filtered(self, condition: Span, pieces: list[Piece]) -> Piece:
        if not self.bound.is_pushable(condition) or self.bound.nested(condition):
            raise Unfit("FILTER depends on the instant", TIME)
        counted = pieces[0] if pieces else number(1)
        return case_when(self.bound.rendering.piece(condition), counted)

    def _key_edits(self, span: Span, taken: list[Span]) -> list[Stand]:
        forms = [self._form(self.bound.rendering.node(key)) for key in self.key_spans]
        found: list[Stand] = []
        self._find_keys(self.bound.rendering.node(span), forms, taken, found)
        for use in inside(self.bound.uses, span):
            key = self.scope.resolve(use)
            known = any(use.span.within(p) for p in [*taken, *(s.span for s in found)])
            fits = key is not None and key in self.key_columns and not known
            if fits and self._not_deeper(use.span):
                found.append(Stand.of(use.span, column(f"_k{self.key_columns.index(key)}")))
        return found

    def _find_keys(
        self,
        node: exp.Expr | None,
        forms: Sequence[object],
        taken: Sequence[Span],
        found: list[Stand],
    ) -> None:
        """Expressions that are a key, the outermost first."""
        if node is None or isinstance(node, exp.Query):
            return
        if has_span(node):
            place = span_of(node)
            if any(place.within(t) for t in taken):
                return
            form = self._form(node)
            if form in forms and not any(t.within(place) for t in taken):
                found.append(Stand.of(place, column(f"_k{forms.index(form)}")))
                return
        for part in node.iter_expressions():
            self._find_keys(part, forms, taken, found)

    def _form(self, node: exp.Expr | None) -> Hashable:
        return form(node, self._meant)

    def _meant(self, node: exp.Column) -> SourceColumn | None:
        """The column that a name of the query means."""
        if not has_span(node):
            return None
        place = span_of(node)
        uses = [use for use in self.bound.uses if use.span == place]
        return self.scope.resolve(uses[0]) if uses else None

    def _not_deeper(self, place: Span) -> bool:
        return not any(place.within(b.span) for b in self.bound.nested(self.block.span))


_EDGES = {"first": "first", "last": "last", "first_value": "first", "last_value": "last"}
