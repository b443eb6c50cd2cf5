"""The one reader of queries: sqlglot with Spark's dialect, a few repairs, and our clauses.

Windows, cuts and versions are read where a table's name has ended and hang on its `exp.Table` node
(`relation_of`); SAMPLE, EMIT, PAIR NEWEST and WITH … at the end of the query, PREV, VALID and
CURRENT_INSTANT where they are called. Every node knows where it stands (`spans`). A tree is for
understanding, never for making text: see `text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from headwater.errors import Error, SqlSyntaxError
from headwater.sql.calls import NAMES, Calls, gathered, parse_call
from headwater.sql.clauses import Clauses, parse_clauses, starts_clause
from headwater.sql.cursor import Cursor, syntax_error
from headwater.sql.cuts import parse_stream_call
from headwater.sql.extensions import NamedRelation
from headwater.sql.lexer import Token, tokenize
from headwater.sql.mistakes import mistyped
from headwater.sql.names import words
from headwater.sql.spans import recording, settle, span_of
from headwater.sql.text import Name, Span
from headwater.sql.windows import BEFORE_ALIAS, misplaced, parse_postfix

DEPTH_KEPT = 60  # sqlglot recurses, many frames per level; deeper nesting is left to Spark
_BRACKETS = re.compile(r"[()\[\]]")


def _plus(parser: SparkParser) -> exp.Expr | None:
    """Unary plus, which sqlglot drops: on text it is a cast to a number."""
    operand = parser._parse_unary()
    if operand is None or (isinstance(operand, exp.Literal) and not operand.is_string):
        return operand
    return exp.Anonymous(this="+", expressions=[operand])


class Headwater(Spark):
    """Spark's dialect, with `GROUP BY window(…)` and `'it''s'` read as Spark 4 reads them."""

    class Tokenizer(Spark.Tokenizer):
        """Spark 4 reads a doubled quote inside a string as one quote."""

        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012  # sqlglot's class attribute

    @recording
    class Parser(SparkParser):
        """WINDOW is no clause where it is called as a function; unary plus is kept; our clauses."""

        UNARY_PARSERS = {**SparkParser.UNARY_PARSERS, TokenType.PLUS: _plus}  # noqa: RUF012
        # sqlglot writes patterns of dates and paths in JSON anew, and makes LOG10(x) into LOG(b, x).
        FUNCTIONS = {  # noqa: RUF012
            name: make
            for name, make in SparkParser.FUNCTIONS.items()
            if name not in ("DATE_FORMAT", "FROM_UNIXTIME", "GET_JSON_OBJECT", "LOG10", "LOG2")
        }
        FUNC_TOKENS = SparkParser.FUNC_TOKENS | {TokenType.SESSION}
        QUERY_MODIFIER_TOKENS = SparkParser.QUERY_MODIFIER_TOKENS - {TokenType.WINDOW}
        ours: Ours
        of_others = False  # inside of the arguments of one of those table functions

        def _warn_unsupported(self) -> None:
            """Say nothing: `tree_error` tells, and a library must not write to the log."""

        def _parse_table(self, *arguments: Any, **options: Any) -> exp.Expr | None:
            """`STREAM(s, 'CUT …')`, or any other table; no window stands after its alias."""
            if self._curr.text.upper() == "STREAM":
                found = self._stream_call()
                if found is not None:
                    return found
            before, self.of_others = self.of_others, self._curr.text.upper() in OF_OTHERS
            table = super()._parse_table(*arguments, **options)
            self.of_others = before
            if self._curr.token_type == TokenType.L_BRACKET and table is not None and table.alias:
                misplaced(self.ours.at(self._curr.start), BEFORE_ALIAS)
            return table

        def _parse_table_parts(
            self,
            schema: bool = False,
            is_db_reference: bool = False,
            wildcard: bool = False,
            fast: bool = False,
        ) -> exp.Table | exp.Dot | None:
            """The name of a table, and the window, cut or version after it."""
            first = self._index
            table = super()._parse_table_parts(schema, is_db_reference, wildcard, fast)
            name = None if table is None else name_of(table)
            if isinstance(table, exp.Table) and name is not None:
                joined = first > 0 and self._tokens[first - 1].token_type == TokenType.JOIN
                self._relate(table, self.ours.postfix(name, joined, self._curr.start))
            return table

        def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
            """An argument; the first of a table function that others have is a table."""
            named = self._curr.token_type != TokenType.L_PAREN
            if self.of_others and self._prev.token_type == TokenType.L_PAREN and named:
                self.of_others = False
                self._match(TokenType.TABLE)
                return self._parse_table_parts()
            return super()._parse_lambda(alias)

        def _relate(self, table: exp.Expr, found: tuple[NamedRelation, int]) -> None:
            relation, end = found
            table.meta[RELATION] = relation
            while self._curr and self._curr.start < end:
                self._advance()

        def _stream_call(self) -> exp.Table | None:
            cursor = self.ours.at(self._curr.start)
            stream = parse_stream_call(cursor) if cursor.at("STREAM", "(") else None
            if stream is None:
                return None
            name, cut = stream.name, stream.cut
            assert cut is not None
            while self._curr.start < name.span.start:
                self._advance()
            identifier = self.expression(exp.Identifier(this=str(name)), self._curr)
            table = exp.Table(this=identifier)
            self._relate(table, (stream, cut.span.end))
            alias = self._parse_table_alias()
            if alias is not None:
                table.set("alias", alias)
            return table

        def _parse_query_modifiers(self, this: Any) -> Any:
            """What ends a query; our clauses are read here and taken out of the tokens."""
            found = super()._parse_query_modifiers(this)
            if self._at_clause():
                end = self.ours.take_clauses(self._curr.start)
                last = self._index
                while last < self._tokens_size and self._tokens[last].start < end:
                    last += 1
                self._tokens = [*self._tokens[: self._index], *self._tokens[last:]]
                self._tokens_size = len(self._tokens)
                self._advance(0)
            return found

        def _at_clause(self) -> bool:
            return self._curr.text.upper() in _CLAUSE_STARTS and self.ours.at_clause(
                self._curr.start
            )

        def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
            """GROUP BY; what follows ALL may be a clause of ours, and is then no expression."""
            start = self._index
            if self._match(TokenType.GROUP_BY) and self._match(TokenType.ALL) and self._at_clause():
                return self.expression(exp.Group(all=True))
            self._retreat(start)
            return super()._parse_group(skip_group_by_token)

        def _parse_table_alias(self, *arguments: Any, **options: Any) -> exp.TableAlias | None:
            """An alias, unless one of our clauses begins here."""
            if self._at_clause():
                return None
            return super()._parse_table_alias(*arguments, **options)

        def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
            """An expression with its alias, unless one of our clauses begins here."""
            return this if self._at_clause() else super()._parse_alias(this, explicit)


RELATION = "relation"
OF_OTHERS = words("TUMBLE HOP CUMULATE SESSION")  # execute/familiar.py puts texts in their place
_CLAUSE_STARTS = words("SAMPLE EMIT PAIR WITH")


class Ours:
    """What of ours a query holds, as it is met while sqlglot reads the query."""

    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self._text, self._tokens = text, tokens
        self._places: dict[int, int] | None = None  # where tokens start → their numbers
        self.clauses = Clauses()

    def at(self, position: int) -> Cursor:
        """A cursor at the token that starts at a position of the text."""
        if self._places is None:
            self._places = {token.start: number for number, token in enumerate(self._tokens)}
        cursor = Cursor(self._text, self._tokens)
        cursor.index = self._places.get(position, len(self._tokens) - 1)
        return cursor

    def postfix(self, name: Name, joined: bool, position: int) -> tuple[NamedRelation, int]:
        """The table with what stands after its name, and where that ends."""
        if self._text[position : position + 1] not in _POSTFIX_STARTS:
            return NamedRelation(name, None), position
        cursor = self.at(position)
        relation = parse_postfix(cursor, name, joined)
        return relation, cursor.start

    def at_clause(self, position: int) -> bool:
        """Whether one of our clauses starts at a position."""
        cursor = self.at(position)
        return starts_clause(cursor.peek(), cursor.peek(1))

    def take_clauses(self, position: int) -> int:
        """Reads the clauses that start at a position; where they end."""
        cursor = self.at(position)
        self.clauses = parse_clauses(cursor)
        return cursor.start

    def calls(self, nodes: Iterable[exp.Expr]) -> Calls:
        """The calls of our functions."""
        found = [
            span_of(node).start
            for node in nodes
            if isinstance(node, exp.Anonymous)
            and node.name.upper() in NAMES
            and not isinstance(node.parent, exp.Dot)
        ]
        if not found:
            return Calls()
        return gathered(parse_call(self.at(start)) for start in sorted(found))


_POSTFIX_STARTS = frozenset("[cCvVfF")  # […], CUT, VERSION AS OF, FOR VERSION


def probe() -> None:
    """Raise unless sqlglot lets its classes be extended: `sqlglotc` forbids it."""
    try:
        Headwater.Parser(dialect=Headwater())
    except TypeError as error:
        raise Error(
            "the compiled build of sqlglot is installed and cannot be extended",
            sqlstate="58000",
            hint="uninstall sqlglotc: pip uninstall sqlglotc",
        ) from error


probe()
_DIALECT = Headwater()


@dataclass(frozen=True)
class Parsed:
    """A query as it was read: its tree, and what of ours is in it."""

    tree: exp.Expr
    clauses: Clauses
    calls: Calls
    relations: tuple[NamedRelation, ...]
    references: tuple[NamedRelation, ...]  # the names that mean objects of the catalog, no CTEs


def parse_tree(text: str) -> exp.Expr | SqlSyntaxError:
    """The tree of a query, or what sqlglot says against it."""
    try:
        read = read_query(text, tokenize(text))
    except SqlSyntaxError as error:
        return error
    return read if isinstance(read, SqlSyntaxError) else read.tree


def read_query(text: str, tokens: tuple[Token, ...]) -> Parsed | SqlSyntaxError:
    """A query as it is read, or what sqlglot says against it (Spark may still read it).

    Errors in clauses of ours are raised: these nobody else can read.
    """
    if _depth(text) > DEPTH_KEPT:
        return SqlSyntaxError("the query is nested too deeply to be understood")
    if any(token.text == "|>" for token in tokens):  # sqlglot makes other SELECTs of its steps
        return SqlSyntaxError("a query in steps is left to Spark")
    try:
        parser = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE)
        assert isinstance(parser, Headwater.Parser)
        parser.ours = ours = Ours(text, tokens)
        trees = parser.parse(_DIALECT.tokenize(_without_comments(text, tokens)), text)
    except (SqlglotError, RecursionError, ValueError, ArithmeticError) as error:
        return _complaint(text, error)
    except (AttributeError, TypeError, KeyError, IndexError, AssertionError) as error:
        return _complaint(text, error)  # sqlglot's parser on text it did not expect
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values):
        return SqlSyntaxError("the text is not one query")
    nodes = settle(trees[0])
    found = _relations(nodes)
    relations = tuple(relation for relation, _ in found)
    references = tuple(relation for relation, cte in found if not cte)
    return Parsed(trees[0], ours.clauses, ours.calls(nodes), relations, references)


def _relations(nodes: Iterable[exp.Expr]) -> list[tuple[NamedRelation, bool]]:
    """Every name where a table may stand, in the order of the text, and whether a CTE is meant.

    It hangs on its node too.
    """
    found = []
    for table in nodes:
        relation = table.meta.get(RELATION) if isinstance(table, exp.Table) else None
        if relation is None:
            continue
        assert isinstance(table, exp.Table)
        alias = table.args.get("alias")
        if alias is not None and isinstance(alias.this, exp.Identifier):
            place = Span(alias.this.meta["start"], alias.this.meta["end"] + 1)
            relation = replace(relation, alias=Name(alias.name, place))
            table.meta[RELATION] = relation
        found.append((relation, is_cte(table)))
    return sorted(found, key=lambda pair: pair[0].name.span)


def relation_of(table: exp.Table) -> NamedRelation | None:
    """What stands at a table's node: its name, alias, window, cut and version."""
    return table.meta.get(RELATION)


def named_table(name: str) -> exp.Table:
    """A table's node that no text has."""
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    table.meta[RELATION] = NamedRelation(Name(name, Span(0, 0)), None)
    return table


def given(node: exp.Expr) -> set[str]:
    """The arguments that a node was written with."""
    return {name for name, value in node.args.items() if value}


def _without_comments(text: str, tokens: tuple[Token, ...]) -> str:
    """The text with blanks for comments, which sqlglot does not read within `ORDER /* */ BY`; hints stay."""
    if "--" not in text and "/*" not in text:
        return text
    pieces, done = [], 0
    for token in tokens:
        between = text[done : token.start]
        comment = between.strip()
        if comment and not comment.startswith("/*+"):
            between = "".join(c if c == "\n" else " " for c in between)
        pieces += [between, text[token.start : token.end]]
        done = token.end
    return "".join(pieces)


def _depth(text: str) -> int:
    """How deep the brackets nest; those in strings are counted too, which does no harm."""
    depth = deepest = 0
    for character in _BRACKETS.findall(text):
        depth += 1 if character in "([" else -1
        deepest = max(depth, deepest)
    return deepest


def _complaint(text: str, error: Exception) -> SqlSyntaxError:
    details = getattr(error, "errors", None) or [{}]
    line, column = details[0].get("line"), details[0].get("col")
    near = details[0].get("highlight") or ""
    place = None
    if line and column:
        line_start = sum(len(part) + 1 for part in text.split("\n")[: line - 1])
        end = min(line_start + column, len(text))
        place = Span(max(end - len(near), 0), end).place(text)
        found = mistyped(text, end)
        if found is not None:
            token, hint = found
            return syntax_error(text, token, None, hint)
    message = f'syntax error at or near "{near}"' if near else "syntax error"
    return SqlSyntaxError(message, detail=str(details[0].get("description", error)), place=place)


def name_of(table: exp.Expr) -> Name | None:
    """A table's name as written, without backticks; None for functions, and tables that sqlglot made up."""
    parts = table.parts if isinstance(table, exp.Table) else []
    if not parts or any(type(p) is not exp.Identifier or "start" not in p.meta for p in parts):
        return None
    span = Span(parts[0].meta["start"], parts[-1].meta["end"] + 1)
    return Name(".".join(part.name for part in parts), span)


def is_cte(table: exp.Table) -> bool:
    """Whether the name means a CTE that is in scope where it stands."""
    if len(table.parts) != 1 or not isinstance(table.this, exp.Identifier):
        return False
    key = table.name.lower()
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        with_ = parent.args.get("with_")
        if isinstance(parent, exp.With):
            if key in _names_before(parent, child):
                return True
        elif isinstance(with_, exp.With) and with_ is not child and key in _names(with_):
            return True
        child, parent = parent, parent.parent
    return False


def _names(with_: exp.With) -> set[str]:
    return {cte.alias.lower() for cte in with_.expressions}


def _names_before(with_: exp.With, inside: exp.Expr) -> set[str]:
    """The CTEs that one CTE of the same WITH sees: those before it, and itself if recursive."""
    names: set[str] = set()
    for cte in with_.expressions:
        if cte is inside:
            return names | ({cte.alias.lower()} if with_.args.get("recursive") else set())
        names.add(cte.alias.lower())
    return names
