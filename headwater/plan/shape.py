"""The shape of a query: its SELECT blocks, and in each block where its clauses and items stand.

A block is one SELECT with its own FROM; WITH, UNION and parentheses hold several. Must never: refuse a
query. What is not known (PIVOT, LATERAL VIEW, GROUP BY ROLLUP, …) is noted in `Block.unknown`, and the block
stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from headwater.sql.dialect import relation_of
from headwater.sql.extensions import NamedRelation
from headwater.sql.lexer import tokenize
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query
from headwater.sql.text import Name, Span

# Parts of a SELECT that keep it whole, and what they are called.
_UNKNOWN = {
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "sort": "SORT",
    "cluster": "CLUSTER",
    "distribute": "DISTRIBUTE",
    "laterals": "LATERAL",
    "hint": "a hint",
    "connect": "CONNECT",
    "sample": "TABLESAMPLE",
}
_SETS = {"rollup": "ROLLUP", "cube": "CUBE", "grouping_sets": "GROUPING"}
_GROUPS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True)
class Item:
    """One item of a select list: `expression [AS name]`, `*` or `a.*`."""

    span: Span
    expression: Span
    name: Name | None
    star: bool = False
    star_of: Name | None = None  # a of `a.*`


@dataclass(frozen=True)
class BlockSource:
    """One relation of a FROM clause and how it is joined to those before it."""

    span: Span  # of the relation with its alias, without the join words and ON
    join: str  # "" for the first, "," , "inner", "left", "right", "full", "cross", "semi", "anti"
    relation: NamedRelation | None  # a name; None for a subquery or a function
    subquery: Span | None  # without its parentheses
    alias: Name | None
    on: tuple[Span, ...] = ()  # the conjuncts of ON
    using: tuple[Name, ...] = ()


@dataclass(frozen=True)
class OrderItem:
    """One item of ORDER BY."""

    span: Span
    expression: Span
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Limit:
    """LIMIT and OFFSET; `plain`: both are numbers."""

    span: Span
    text: str  # with their words
    count: int | None
    offset: int
    plain: bool


@dataclass(frozen=True)
class SelectBlock:
    """One SELECT."""

    node: exp.Select = field(compare=False, repr=False)
    span: Span
    distinct: bool
    items: tuple[Item, ...]
    sources: tuple[BlockSource, ...]
    conjuncts: tuple[Span, ...]
    group: tuple[Span, ...]
    group_all: bool
    having: Span | None
    order: tuple[OrderItem, ...]
    limit: Limit | None
    natural: bool
    unknown: str | None  # the first thing that is not understood
    places: dict[str, Span] = field(
        default_factory=dict, compare=False
    )  # of each clause, without its words


def blocks_of(query: Query) -> list[SelectBlock]:
    """All blocks of a query, outer ones first; none if it was not understood."""
    if query.tree is None:
        return []
    found = [_Reader(query.text, node).block() for node in _selects(query.tree)]
    return sorted(found, key=lambda block: (block.span.start, -block.span.end))


def _selects(tree: exp.Expr) -> Iterator[exp.Select]:
    return (node for node in tree.find_all(exp.Select) if has_span(node))


def cte_bodies(query: Query) -> dict[str, Span]:
    """Where each CTE's query stands, by its name."""
    ctes = query.tree.find_all(exp.CTE) if query.tree is not None else ()
    return {cte.alias.lower(): span_of(cte.this) for cte in ctes if has_span(cte.this)}


def conjuncts_of(condition: exp.Expr) -> tuple[Span, ...]:
    """The conjuncts of a condition; parentheses around them do not count."""
    return tuple(span_of(part) for part in _conjuncts(condition))


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


class _Reader:
    """Reads one block."""

    def __init__(self, text: str, node: exp.Select) -> None:
        self._text, self._node = text, node
        self._unknown: str | None = None

    def _note(self, what: str) -> None:
        self._unknown = self._unknown or what

    def block(self) -> SelectBlock:
        node = self._node
        span = self._span()
        for part, name in _UNKNOWN.items():
            if node.args.get(part):
                self._note(name)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            self._note("DISTINCT ON")
        where, having = node.args.get("where"), node.args.get("having")
        group, group_all = self._group()
        items = tuple(self._item(item) for item in node.expressions)
        sources = tuple(self._sources(span))
        block = SelectBlock(
            node=node,
            span=span,
            distinct=distinct is not None,
            items=items,
            sources=sources,
            conjuncts=() if where is None else conjuncts_of(where.this),
            group=group,
            group_all=group_all,
            having=None if having is None else span_of(having.this),
            order=self._order(),
            limit=self._limit(),
            natural=any(join.args.get("method") == "NATURAL" for join in self._joins()),
            unknown=self._unknown,
        )
        block.places.update(self._places(block))
        return block

    def _span(self) -> Span:
        """From SELECT to the end; WITH stands before it."""
        span, with_ = span_of(self._node), self._node.args.get("with_")
        if with_ is None or not has_span(with_):
            return span
        after = span_of(with_).end
        first = next(token.start for token in tokenize(self._text) if token.start >= after)
        return Span(first, span.end)

    def _places(self, block: SelectBlock) -> dict[str, Span]:
        found: dict[str, Span] = {}
        if block.items:
            found["SELECT"] = Span(block.items[0].span.start, block.items[-1].span.end)
        from_ = self._node.args.get("from_")
        if from_ is not None:
            ends = [span_of(part).end for part in (from_, *self._joins()) if has_span(part)]
            found["FROM"] = Span(span_of(from_.this).start, max(ends))
        where = self._node.args.get("where")
        if where is not None:
            found["WHERE"] = span_of(where.this)
        if block.group:
            found["GROUP"] = Span(block.group[0].start, block.group[-1].end)
        if block.having is not None:
            found["HAVING"] = block.having
        return found

    # Pieces

    def _item(self, node: exp.Expr) -> Item:
        span = span_of(node)
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star) and any(star.args.values()):
            self._note("EXCEPT in a select list")
            return Item(span, span, None)
        if isinstance(node, exp.Star):
            return Item(span, span, None, star=True)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            owner = node.args.get("table")
            if node.args.get("db") or not isinstance(owner, exp.Identifier):
                self._note("* of a field")
                return Item(span, span, None, star=True)
            return Item(span, span, None, star=True, star_of=Name(owner.name, span_of(owner)))
        if isinstance(node, exp.Alias):
            name = node.args["alias"]
            return Item(span, span_of(node.this), Name(name.name, span_of(name)))
        if isinstance(node, exp.Aliases):
            self._note("several names of one item")
        return Item(span, span, None)

    def _group(self) -> tuple[tuple[Span, ...], bool]:
        group = self._node.args.get("group")
        if group is None:
            return (), False
        for part, name in _SETS.items():
            if group.args.get(part):
                plain = all(has_span(one) for one in group.args[part])
                self._note(f"GROUP BY {name}" if plain else "GROUP BY … WITH")
        for key, name in zip(_GROUPS, _SETS.values(), strict=True):
            if any(isinstance(one, key) for one in group.expressions):
                self._note(f"GROUP BY {name}")
        if group.args.get("totals"):
            self._note("GROUP BY … WITH")
        return tuple(span_of(key) for key in group.expressions), bool(group.args.get("all"))

    def _order(self) -> tuple[OrderItem, ...]:
        order = self._node.args.get("order")
        found = []
        for item in order.expressions if order is not None else ():
            descending, first = bool(item.args.get("desc")), bool(item.args.get("nulls_first"))
            found.append(OrderItem(span_of(item), span_of(item.this), descending, first))
        return tuple(found)

    def _limit(self) -> Limit | None:
        parts = [p for n in ("limit", "offset") if (p := self._node.args.get(n)) is not None]
        if not parts:
            return None
        spans = [span_of(part) for part in parts]
        values: dict[type, int] = {}
        for part in parts:
            value = part.expression
            if isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
                values[type(part)] = int(value.name)
        span = Span(min(s.start for s in spans), max(s.end for s in spans))
        plain = len(values) == len(parts)
        return Limit(
            span, span.of(self._text), values.get(exp.Limit), values.get(exp.Offset, 0), plain
        )

    # FROM

    def _joins(self) -> list[exp.Join]:
        return list(self._node.args.get("joins") or ())

    def _sources(self, span: Span) -> Iterator[BlockSource]:
        from_ = self._node.args.get("from_")
        if from_ is None:
            return
        if span_of(from_).start <= span.start:
            self._note("FROM before SELECT")
        yield self._source(from_.this, "", None)
        for join in self._joins():
            yield self._source(join.this, self._kind(join), join)

    def _kind(self, join: exp.Join) -> str:
        if self._text[span_of(join).start] == ",":
            return ","
        method = join.args.get("method")
        if method:
            self._note("NATURAL JOIN" if method == "NATURAL" else "something in FROM")
        kind, side = (join.args.get("kind") or "").lower(), (join.args.get("side") or "").lower()
        if kind in ("semi", "anti", "cross"):
            return kind
        if kind not in ("", "inner", "outer"):
            self._note("something in FROM")
        return side or "inner"

    def _source(self, node: exp.Expr, kind: str, join: exp.Join | None) -> BlockSource:
        relation = relation_of(node) if isinstance(node, exp.Table) else None
        subquery = self._subquery(node)
        if relation is None and subquery is None:
            self._note("a function in FROM")
        for part in ("joins", "pivots", "sample", "laterals", "ordinality"):
            if node.args.get(part):
                self._note("PIVOT" if part == "pivots" else "something in FROM")
        alias = node.args.get("alias")
        named = alias is not None and isinstance(alias.this, exp.Identifier)
        if alias is not None and alias.args.get("columns"):
            self._note("column names after an alias")
        on = None if join is None else join.args.get("on")
        using = (join.args.get("using") if join is not None else None) or []
        return BlockSource(
            span_of(node),
            kind,
            relation,
            subquery,
            Name(alias.name, span_of(alias.this)) if alias is not None and named else None,
            () if on is None or not has_span(on) else conjuncts_of(on),
            tuple(Name(name.name, span_of(name)) for name in using),
        )

    def _subquery(self, node: exp.Expr) -> Span | None:
        """What stands in the parentheses of a subquery or of VALUES."""
        if isinstance(node, exp.Subquery):
            inner = node.this
            if isinstance(inner, exp.Query) and not isinstance(inner, exp.Table):
                return span_of(inner)
            self._note("parentheses in FROM")
            return span_of(inner)
        start = span_of(node).start
        if isinstance(node, exp.Values) and self._text[start] == "(":
            ends = [span_of(row).end for row in node.expressions]
            first = next(t.start for t in tokenize(self._text) if t.start > start)
            return Span(first, max(ends))
        return None
