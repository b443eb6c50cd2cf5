"""The shape of a query: its SELECT blocks, and in each block where its clauses and items stand.

Works on tokens, because the parts of a plan are made of the user's own text (`sql/text`), and
sqlglot's tree does not say where an expression stands. A block is one SELECT with its own FROM;
WITH, UNION and parentheses hold several. Must never: refuse a query. What it does not know (PIVOT,
LATERAL VIEW, GROUP BY ROLLUP, …) it notes in `Block.unknown`, and the block stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headwater.sql.cursor import CLOSING, OPENING
from headwater.sql.extensions import Relation
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.names import words
from headwater.sql.text import Name, Span

SET_OPERATIONS = words("UNION EXCEPT INTERSECT MINUS")
_AFTER_SET_OPERATION = SET_OPERATIONS | words("ALL DISTINCT")
JOIN_WORDS = words("JOIN INNER LEFT RIGHT FULL OUTER CROSS SEMI ANTI NATURAL")
_CLAUSES = ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
_UNKNOWN = words("QUALIFY WINDOW SORT CLUSTER DISTRIBUTE LATERAL PIVOT UNPIVOT TABLESAMPLE |>")


@dataclass(frozen=True)
class Item:
    """One item of a select list: `expression [AS name]`, `*` or `a.*`."""

    span: Span
    expression: Span
    name: Name | None
    star: bool = False
    star_of: Name | None = None  # a of `a.*`


@dataclass(frozen=True)
class Source:
    """One relation of a FROM clause and how it is joined to those before it."""

    span: Span  # of the relation with its alias, without the join words and ON
    join: str  # "" for the first, "," , "inner", "left", "right", "full", "cross", "semi", "anti"
    relation: Relation | None  # a name; None for a subquery or a function
    subquery: Span | None  # without its parentheses
    alias: Name | None
    on: Span | None = None
    using: tuple[Name, ...] = ()


@dataclass(frozen=True)
class OrderItem:
    """One item of ORDER BY."""

    span: Span
    expression: Span
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Block:
    """One SELECT."""

    span: Span
    distinct: bool
    items: tuple[Item, ...]
    sources: tuple[Source, ...]
    conjuncts: tuple[Span, ...]
    group: tuple[Span, ...]
    group_all: bool
    having: Span | None
    order: tuple[OrderItem, ...]
    limit: Span | None  # LIMIT … OFFSET … with its words
    unknown: str | None  # the first thing that is not understood
    places: dict[str, Span] = field(default_factory=dict, compare=False)  # SELECT … of each clause


def blocks_of(text: str, relations: Sequence[Relation]) -> list[Block]:
    """All blocks of a query's text, outer ones first; the text is without trailing clauses."""
    tokens = tokenize(text)
    named = {relation.span.start: relation for relation in relations}
    found: list[Block] = []
    for start, end in _selects(tokens):
        found.append(_Reader(text, tokens, start, end, named).block())
    return found


def _selects(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The token ranges of all SELECTs: from SELECT to the end of the block."""
    for index, token in enumerate(tokens):
        if token.upper != "SELECT" or (index and tokens[index - 1].text == "."):
            continue
        part = index > 0 and tokens[index - 1].upper in _AFTER_SET_OPERATION
        depth, end = 0, index + 1
        while tokens[end].kind is not Kind.END:
            if tokens[end].text in OPENING:
                depth += 1
            elif tokens[end].text in CLOSING:
                depth -= 1
                if depth < 0:
                    break
            elif depth == 0 and (_is_set_operation(tokens, end) or tokens[end].text == ";"):
                break
            elif depth == 0 and part and tokens[end].upper in ("ORDER", "LIMIT", "OFFSET"):
                break  # it belongs to the whole UNION
            end += 1
        yield index, end


def _is_set_operation(tokens: Sequence[Token], index: int) -> bool:
    """Whether another SELECT follows; `* EXCEPT (a, b)` leaves columns out."""
    return tokens[index].upper in SET_OPERATIONS and tokens[index - 1].text != "*"


class _Reader:
    """Reads one block."""

    def __init__(
        self,
        text: str,
        tokens: Sequence[Token],
        start: int,
        end: int,
        named: dict[int, Relation],
    ) -> None:
        self._text = text
        self._tokens = tokens
        self._start, self._end = start, end
        self._named = named
        self._unknown: str | None = None

    def block(self) -> Block:
        parts = self._parts()
        first, last = self._tokens[self._start], self._tokens[self._end - 1]
        distinct, items = self._select(*parts["SELECT"])
        group, group_all = self._group(*parts["GROUP"]) if "GROUP" in parts else ((), False)
        limits = [parts[word] for word in ("LIMIT", "OFFSET") if word in parts]
        limit = None
        if limits:
            limit = self._span(min(a for a, _ in limits) - 1, max(b for _, b in limits))
        return Block(
            span=Span(first.start, last.end),
            distinct=distinct,
            items=items,
            sources=self._sources(*parts["FROM"]) if "FROM" in parts else (),
            conjuncts=self._conjuncts(*parts["WHERE"]) if "WHERE" in parts else (),
            group=group,
            group_all=group_all,
            having=self._span(*parts["HAVING"]) if "HAVING" in parts else None,
            order=self._order(*parts["ORDER"]) if "ORDER" in parts else (),
            limit=limit,
            unknown=self._unknown,
            places={word: self._span(*ends) for word, ends in parts.items() if ends[0] < ends[1]},
        )

    def _parts(self) -> dict[str, tuple[int, int]]:
        """The token ranges of the clauses, without their words."""
        found: dict[str, tuple[int, int]] = {}
        word, begin, depth = "SELECT", self._start + 1, 0
        index = begin
        while index < self._end:
            token = self._tokens[index]
            if token.text in OPENING:
                depth += 1
            elif token.text in CLOSING:
                depth -= 1
            elif depth == 0 and self._starts_clause(index):
                found[word] = (begin, index)
                word = token.upper
                index += 2 if word in ("GROUP", "ORDER") else 1
                begin = index
                continue
            elif depth == 0 and token.upper in _UNKNOWN and not self._is_name(index):
                self._unknown = self._unknown or token.upper
            index += 1
        found[word] = (begin, self._end)
        return found

    def _starts_clause(self, index: int) -> bool:
        token, previous = self._tokens[index], self._tokens[index - 1]
        if token.kind is not Kind.WORD or previous.text == ".":
            return False
        if token.upper == "FROM":
            return previous.upper != "DISTINCT"  # IS DISTINCT FROM
        if token.upper in ("GROUP", "ORDER"):
            return self._tokens[index + 1].upper == "BY"
        return token.upper in _CLAUSES

    def _is_name(self, index: int) -> bool:
        return self._tokens[index - 1].text == "." or self._tokens[index - 1].upper == "AS"

    # Pieces

    def _span(self, begin: int, end: int) -> Span:
        return Span(self._tokens[begin].start, self._tokens[end - 1].end)

    def _split(self, begin: int, end: int, separator: str) -> list[tuple[int, int]]:
        """Token ranges between separators outside of brackets and CASE … END."""
        pieces, depth, first, between = [], 0, begin, False
        for index in range(begin, end):
            token = self._tokens[index]
            word = token.upper
            if token.text in OPENING or word == "CASE":
                depth += 1
            elif token.text in CLOSING or (word == "END" and depth):
                depth -= 1
            elif depth == 0 and word == "BETWEEN":
                between = True
            elif depth == 0 and word == separator:
                if separator == "AND" and between:
                    between = False  # x BETWEEN a AND b
                    continue
                pieces.append((first, index))
                first = index + 1
        return [piece for piece in [*pieces, (first, end)] if piece[0] < piece[1]]

    def _select(self, begin: int, end: int) -> tuple[bool, tuple[Item, ...]]:
        distinct = self._tokens[begin].upper == "DISTINCT"
        if self._tokens[begin].upper in ("DISTINCT", "ALL"):
            begin += 1
        if self._tokens[begin].upper == "/" or begin >= end:
            self._unknown = self._unknown or "a hint"
        return distinct, tuple(self._item(*piece) for piece in self._split(begin, end, ","))

    def _item(self, begin: int, end: int) -> Item:
        span, last = self._span(begin, end), self._tokens[end - 1]
        if last.text == "*" and end - begin == 1:
            return Item(span, span, None, star=True)
        if last.text == "*" and end - begin == 3 and self._tokens[begin + 1].text == ".":
            owner = self._tokens[begin]
            return Item(span, span, None, star=True, star_of=Name(owner.name, owner.span))
        words = [token.upper for token in self._tokens[begin:end]]
        if ("*", "EXCEPT") in pairwise(words):
            self._unknown = self._unknown or "EXCEPT in a select list"
        if end - begin > 2 and self._tokens[end - 2].upper == "AS" and last.is_name:
            return Item(span, self._span(begin, end - 2), Name(last.name, last.span))
        ends_case = last.upper == "END" and any(t.upper == "CASE" for t in self._tokens[begin:end])
        if end - begin > 1 and last.is_name and not ends_case and self._ends_operand(end - 2):
            return Item(span, self._span(begin, end - 1), Name(last.name, last.span))
        return Item(span, span, None)

    def _ends_operand(self, index: int) -> bool:
        """Whether an operand ends at a token, so that a name after it is its alias."""
        token = self._tokens[index]
        if token.kind in (Kind.STRING, Kind.NUMBER, Kind.QUOTED) or token.text in CLOSING:
            return self._tokens[index - 1].upper != "INTERVAL"
        operators = words("AND OR NOT IS IN LIKE ILIKE RLIKE BETWEEN DIV WHEN THEN ELSE CASE "
                          "INTERVAL DISTINCT FROM DATE TIMESTAMP")  # fmt: skip
        return token.kind is Kind.WORD and token.upper not in operators

    def _conjuncts(self, begin: int, end: int) -> tuple[Span, ...]:
        if any(self._at_top(begin, end, "OR")):
            return (self._span(begin, end),)
        found: list[Span] = []
        for first, last in self._split(begin, end, "AND"):
            inner = self._unwrapped(first, last)
            if inner is None:
                found.append(self._span(first, last))
            else:
                found += self._conjuncts(*inner)
        return tuple(found)

    def _at_top(self, begin: int, end: int, word: str) -> Iterator[bool]:
        return (True for _ in self._split(begin, end, word)[1:])

    def _unwrapped(self, begin: int, end: int) -> tuple[int, int] | None:
        """What stands in one pair of parentheses around everything; None if there is none."""
        if self._tokens[begin].text != "(" or self._tokens[end - 1].text != ")":
            return None
        if self._tokens[begin + 1].upper in ("SELECT", "WITH", "VALUES", "FROM"):
            return None
        return (begin + 1, end - 1) if self._closing(begin) == end - 1 else None

    def _closing(self, opening: int) -> int:
        depth = 0
        for index in range(opening, self._end):
            if self._tokens[index].text in OPENING:
                depth += 1
            elif self._tokens[index].text in CLOSING:
                depth -= 1
                if depth == 0:
                    return index
        return self._end

    def _group(self, begin: int, end: int) -> tuple[tuple[Span, ...], bool]:
        if end - begin == 1 and self._tokens[begin].upper == "ALL":
            return (), True
        for index in range(begin, end):
            word = self._tokens[index].upper
            sets = word in ("ROLLUP", "CUBE") and self._tokens[index + 1].text == "("
            if sets or (word == "GROUPING" and self._tokens[index + 1].upper == "SETS"):
                self._unknown = self._unknown or f"GROUP BY {word}"
            if word == "WITH":
                self._unknown = self._unknown or "GROUP BY … WITH"
        return tuple(self._span(*piece) for piece in self._split(begin, end, ",")), False

    def _order(self, begin: int, end: int) -> tuple[OrderItem, ...]:
        return tuple(self._order_item(*piece) for piece in self._split(begin, end, ","))

    def _order_item(self, begin: int, end: int) -> OrderItem:
        span, nulls = self._span(begin, end), None
        if end - begin > 2 and self._tokens[end - 2].upper == "NULLS":
            nulls = self._tokens[end - 1].upper == "FIRST"
            end -= 2
        descending = self._tokens[end - 1].upper == "DESC"
        if end - begin > 1 and self._tokens[end - 1].upper in ("ASC", "DESC"):
            end -= 1
        first = not descending if nulls is None else nulls
        return OrderItem(span, self._span(begin, end), descending, first)

    # FROM

    def _sources(self, begin: int, end: int) -> tuple[Source, ...]:
        found: list[Source] = []
        index, join = begin, ""
        while index < end:
            source, index = self._source(index, end, join)
            found.append(source)
            join, index = self._join(index, end)
        return tuple(found)

    def _source(self, index: int, end: int, join: str) -> tuple[Source, int]:
        first = index
        relation: Relation | None = None
        subquery: Span | None = None
        token = self._tokens[index]
        if token.text == "(":
            close = self._closing(index)
            if self._tokens[index + 1].upper in ("SELECT", "WITH", "VALUES", "FROM"):
                subquery = self._span(index + 1, close)
            else:
                self._unknown = self._unknown or "parentheses in FROM"
            index = close + 1
        else:
            relation = self._named.get(token.start)
            index = self._after_name(index, end)
            if relation is None:
                self._unknown = self._unknown or "a function in FROM"
        alias, index = self._alias(index, end)
        last = index
        on, using, index = self._condition(index, end)
        span = self._span(first, last)
        return Source(span, join, relation, subquery, alias, on, using), index

    def _after_name(self, index: int, end: int) -> int:
        index += 1
        while index < end and self._tokens[index].text == ".":
            index += 2
        while index < end and self._tokens[index].text in OPENING:
            index = self._closing(index) + 1
        return index

    def _alias(self, index: int, end: int) -> tuple[Name | None, int]:
        if index < end and self._tokens[index].upper == "AS":
            index += 1
        token = self._tokens[index] if index < end else None
        stops = JOIN_WORDS | words("ON USING")
        if token is None or not token.is_name or token.upper in stops:
            return None, index
        index += 1
        if index < end and self._tokens[index].text == "(":
            self._unknown = self._unknown or "column names after an alias"
            index = self._closing(index) + 1
        return Name(token.name, token.span), index

    def _condition(self, index: int, end: int) -> tuple[Span | None, tuple[Name, ...], int]:
        if index >= end or self._tokens[index].upper not in ("ON", "USING"):
            return None, (), index
        word, begin = self._tokens[index].upper, index + 1
        index = begin
        while index < end:
            token = self._tokens[index]
            if token.text in OPENING:
                index = self._closing(index) + 1
                continue
            starts_join = token.upper in JOIN_WORDS and self._tokens[index - 1].text != "."
            if token.text == "," or (starts_join and self._begins_join(index, end)):
                break
            index += 1
        if word == "ON":
            return self._span(begin, index), (), index
        names = [t for t in self._tokens[begin:index] if t.is_name]
        return None, tuple(Name(t.name, t.span) for t in names), index

    def _begins_join(self, index: int, end: int) -> bool:
        while index < end and self._tokens[index].upper in JOIN_WORDS:
            if self._tokens[index].upper == "JOIN":
                return True
            index += 1
        return False

    def _join(self, index: int, end: int) -> tuple[str, int]:
        if index >= end:
            return "", index
        if self._tokens[index].text == ",":
            return ",", index + 1
        found = []
        while index < end and self._tokens[index].upper in JOIN_WORDS:
            found.append(self._tokens[index].upper)
            index += 1
            if found[-1] == "JOIN":
                break
        if not found or found[-1] != "JOIN":
            self._unknown = self._unknown or "something in FROM"
            return "?", max(index, end)
        if "NATURAL" in found:
            self._unknown = self._unknown or "NATURAL JOIN"
        for word in ("SEMI", "ANTI", "LEFT", "RIGHT", "FULL", "CROSS"):
            if word in found:
                return word.lower(), index
        return "inner", index

    def on_conjuncts(self, span: Span) -> tuple[Span, ...]:
        """The conjuncts of a condition."""
        begin = next(i for i, t in enumerate(self._tokens) if t.start == span.start)
        end = next(i for i, t in enumerate(self._tokens) if t.end == span.end) + 1
        return self._conjuncts(begin, end)


def conjuncts_of(text: str, span: Span) -> tuple[Span, ...]:
    """The conjuncts of a condition that stands in a span of the text."""
    tokens = tokenize(text)
    return _Reader(text, tokens, 0, len(tokens) - 1, {}).on_conjuncts(span)
