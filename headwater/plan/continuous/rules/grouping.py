"""Rule: GROUP BY and aggregates become partials per pane, merged per instant; HAVING and the rest stay above.

Covers DC4's compensation (sum, count, min, max, group by), expanding replication (avg and kin become
several partials) and synchronous replication (several aggregates over one grouping). The keys are
columns _k0, _k1, … of the merged result, the aggregates _a0, _a1, …
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.plan.continuous.blocks import Bound, Unfit, normal_tokens
from headwater.plan.continuous.calls import AGGREGATES, Call, calls_in
from headwater.plan.continuous.folds import AggregateText, Finish, FoldPlan, Output, SourceColumn
from headwater.plan.continuous.rendering import Replacement
from headwater.plan.continuous.rules.probe import check_probe
from headwater.plan.continuous.rules.pushdown import split_conditions
from headwater.plan.continuous.scope import Scope, inside, within
from headwater.plan.continuous.shape import Block, Item
from headwater.sql.lexer import Kind, tokenize
from headwater.sql.text import Span

EXPANDING = frozenset({"avg", "mean", "variance", "var_samp", "var_pop", "stddev", "std"}) | {
    "stddev_samp",
    "stddev_pop",
}


def fold_groups(bound: Bound, block: Block, scope: Scope, number: int) -> FoldPlan:
    """The split of a block with GROUP BY or aggregates, or with DISTINCT alone."""
    check_probe(scope)
    bound.check_subqueries(block)
    direct = bound.direct(scope)
    below, above = split_conditions(bound, block)
    if above:
        raise Unfit("a condition below the grouping changes from instant to instant")
    grouped = _Grouped(bound, block, scope)
    outputs = tuple(grouped.output(item) for item in block.items)
    having = None if block.having is None else grouped.having(block.having)
    order = tuple((grouped.text(i.expression, by_alias=True), i) for i in block.order)
    joined = len(direct) == 2
    if joined and any(a.function in _NOT_JOINED for a in grouped.aggregates):
        raise Unfit("first, last and distinct values do not cross a join of streams")
    return FoldPlan(
        number=number,
        kind="join" if joined else "aggregate",
        block=block,
        leaves=tuple(leaf for _, leaf in direct),
        leaf_sources=tuple(place for place, _ in direct),
        statics=bound.statics(scope),
        from_text=bound.from_text(block, scope),
        where=tuple(bound.rendering.of(span, bound.replaced) for span in below),
        join_on=bound.join_conditions(scope),
        keys=tuple(grouped.key_texts),
        aggregates=tuple(grouped.aggregates),
        columns=(),
        finish=Finish(
            outputs, having, order, _limit(bound, block), block.distinct and bool(block.group)
        ),
        in_order=False,
        transformation=_transformation(grouped, joined),
    )


_NOT_JOINED = frozenset(
    {"first", "last", "first_ignore_nulls", "last_ignore_nulls", "count_distinct"}
)


def _limit(bound: Bound, block: Block) -> str | None:
    return None if block.limit is None else block.limit.of(bound.text)


def _transformation(grouped: _Grouped, joined: bool) -> str:
    if joined:
        return "multi-stream join"
    words = ["compensation"]
    if any(a.function in EXPANDING for a in grouped.aggregates):
        words.append("expanding replication")
    if len(grouped.aggregates) > 1 or (grouped.aggregates and grouped.key_texts):
        words.append("synchronous replication")
    return ", ".join(words)


class _Grouped:
    """Keys and aggregates of a block, numbered as they are met."""

    def __init__(self, bound: Bound, block: Block, scope: Scope) -> None:
        self.bound, self.block, self.scope = bound, block, scope
        self.aliases = {i.name.casefold(): i for i in block.items if i.name is not None}
        self.aggregates: list[AggregateText] = []
        self.key_spans = self._keys()
        if not all(bound.is_pushable(span) for span in self.key_spans):
            raise Unfit("a grouping depends on the instant")
        self.key_texts = [bound.rendering.of(span) for span in self.key_spans]
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
        calls = calls_in(self.bound.text, span)
        return any(c.name in self.bound.aggregates and not c.windowed for c in calls)

    def _key(self, span: Span) -> Span:
        """A grouping expression; a number or an alias means an item of the select list."""
        text = span.of(self.bound.text)
        if text.isdigit():
            place = int(text) - 1
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
        text = self.text(item.expression, by_alias=False)
        if name is None and text.startswith("_a") and text[2:].isdigit():
            name = self.aggregates[int(text[2:])].name
        return Output(text, name)

    def having(self, span: Span) -> str:
        """HAVING over keys and aggregates: it becomes a WHERE, where an alias means nothing."""
        edits: list[Replacement] = []
        for use in self.bound.own_uses(self.block, span):
            item = self.aliases.get(use.name.casefold()) if use.table is None else None
            if item is None or self.scope.resolve(use) is not None:
                continue
            below = self.bound.own_uses(self.block, item.expression)
            if any(self.scope.resolve(other) is None for other in below):
                raise Unfit("HAVING over an alias of an alias")
            text = self.text(item.expression, by_alias=False)
            edits.append((use.span, text if text.isidentifier() else f"({text})"))
        return self.text(span, by_alias=False, aliases=edits)

    def text(self, span: Span, by_alias: bool, aliases: Sequence[Replacement] = ()) -> str:
        """A piece of the block over keys and aggregates; Unfit if anything else is left in it."""
        extra = self._aggregate_edits(span)
        called = [place for place, _ in extra]
        extra += [a for a in aliases if not any(within(a[0], place) for place in called)]
        taken = [place for place, _ in extra]
        extra += self._key_edits(span, taken)
        taken = [place for place, _ in extra]
        for use in self.bound.own_uses(self.block, span):
            if any(within(use.span, place) for place in taken):
                continue
            named = use.table is None and use.name.casefold() in self.aliases
            if not named or (self.scope.resolve(use) is not None and not by_alias):
                raise Unfit(f"column {use.name} is not grouped")
        return self.bound.rendering.of(span, [*extra, *self.bound.replaced])

    def _aggregate_edits(self, span: Span) -> list[Replacement]:
        deeper = [b.span for b in self.bound.nested(self.block.span)]
        found: list[Replacement] = []
        for call in calls_in(self.bound.text, span):
            inner = any(within(call.span, place) for place, _ in found)
            if inner or call.name not in self.bound.aggregates or call.windowed:
                continue
            if any(within(call.span, d) for d in deeper):
                continue
            found.append((call.span, f"_a{self._number(call)}"))
        return found

    def _number(self, call: Call) -> int:
        aggregate = self._aggregate(call)
        for place, other in enumerate(self.aggregates):
            if (other.function, other.argument) == (aggregate.function, aggregate.argument):
                return place
        self.aggregates.append(aggregate)
        return len(self.aggregates) - 1

    def _aggregate(self, call: Call) -> AggregateText:
        bound, function = self.bound, call.name.lower()
        if call.name not in AGGREGATES:
            raise Unfit(f"{function} is an aggregate in Python, which has no fold")
        if any(not bound.is_pushable(span) for span in call.arguments):
            raise Unfit("an aggregate depends on the instant")
        if bound.nested(call.span):
            raise Unfit("a subquery stands in an aggregate")
        texts = [bound.rendering.of(span) for span in call.arguments]
        name = _shown(call, [span.of(bound.text) for span in call.arguments])
        if function == "count_if" and len(texts) == 1:
            function, texts = "count", [f"CASE WHEN {texts[0]} THEN 1 END"]
        if call.ignore_nulls or (
            function in _EDGES and len(texts) == 2 and texts[1].lower() == "true"
        ):
            function, texts = f"{_EDGES.get(function, function)}_ignore_nulls", texts[:1]
        if call.distinct:
            if function not in ("count", "min", "max"):
                raise Unfit(f"{function}(DISTINCT …) has no fold")
            function = "count_distinct" if function == "count" else function
        if function not in bound.foldable or call.within:
            raise Unfit(f"aggregate {function} has no fold")
        constant = len(call.arguments) == 1 and _is_constant(texts[0])
        if function == "count" and (call.star or constant):
            texts = []
        elif len(texts) != 1:
            raise Unfit(f"{function} of {len(texts)} arguments has no fold")
        if call.filter is not None:
            if function in _EDGES:
                raise Unfit(f"{function} with FILTER has no fold")  # NULL is a value of it
            texts = [self._filtered(call.filter, texts)]
        return AggregateText(function, texts[0] if texts else None, name)

    def _filtered(self, condition: Span, texts: list[str]) -> str:
        if not self.bound.is_pushable(condition) or self.bound.nested(condition):
            raise Unfit("FILTER depends on the instant")
        value = texts[0] if texts else "1"
        return f"CASE WHEN {self.bound.rendering.of(condition)} THEN {value} END"

    def _key_edits(self, span: Span, taken: list[Span]) -> list[Replacement]:
        found: list[Replacement] = []
        tokens = [t for t in tokenize(self.bound.text) if t.kind is not Kind.END]
        places = [i for i, t in enumerate(tokens) if within(t.span, span)]
        for number, key in enumerate(self.key_spans):
            wanted = normal_tokens(key.of(self.bound.text))
            for index in places:
                part = tokens[index : index + len(wanted)]
                if len(part) < len(wanted) or part[-1].end > span.end:
                    continue
                place = Span(part[0].start, part[-1].end)
                before = tokens[index - 1].text if index else ""
                if any(within(place, t) for t in [*taken, *(p for p, _ in found)]) or before == ".":
                    continue
                if [t.upper for t in part] == wanted and self._not_deeper(place):
                    found.append((place, f"_k{number}"))
        for use in inside(self.bound.uses, span):
            column = self.scope.resolve(use)
            known = any(within(use.span, p) for p in [*taken, *(p for p, _ in found)])
            fits = column is not None and column in self.key_columns and not known
            if fits and self._not_deeper(use.span):
                found.append((use.span, f"_k{self.key_columns.index(column)}"))
        return found

    def _not_deeper(self, place: Span) -> bool:
        return not any(within(place, b.span) for b in self.bound.nested(self.block.span))


_EDGES = {"first": "first", "last": "last", "first_value": "first", "last_value": "last"}


def _is_constant(text: str) -> bool:
    tokens = tokenize(text)
    return len(tokens) == 2 and tokens[0].kind in (Kind.NUMBER, Kind.STRING)


def _shown(call: Call, arguments: list[str]) -> str:
    """What Spark calls the column of an aggregate without an alias, for plain ones."""
    if call.star:
        return f"{call.name.lower()}(1)"
    inner = ", ".join(argument.rpartition(".")[2].strip("`") for argument in arguments)
    return f"{call.name.lower()}({'DISTINCT ' if call.distinct else ''}{inner})"
