"""sqlglot's view of a query: Spark's dialect with a few repairs.

Owns the only use of sqlglot in `sql/`. A tree is for understanding (which tables, aliases and
aggregates), never for making text: see `text`. Our own clauses are blanked before sqlglot reads
the query, so every position in the tree is a position in the query's text; what they said hangs
on the `exp.Table` nodes as `meta["window"]`, `meta["cut"]` and `meta["version"]`.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from headwater.errors import Error, SqlSyntaxError
from headwater.sql.cursor import syntax_error
from headwater.sql.lexer import Kind, tokenize
from headwater.sql.names import nearest, words
from headwater.sql.text import Span

DEPTH_KEPT = 60  # sqlglot recurses, many frames per level; deeper nesting is left to Spark
_BRACKETS = re.compile(r"[()\[\]]")
# A word close to one of these, where sqlglot stops, is taken for a mistyped keyword.
_CLAUSES = words("SELECT FROM WHERE GROUP ORDER HAVING JOIN LIMIT UNION ON BY SAMPLE EMIT")


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

    class Parser(SparkParser):
        """WINDOW is no clause where it is called as a function; unary plus is kept."""

        UNARY_PARSERS = {**SparkParser.UNARY_PARSERS, TokenType.PLUS: _plus}  # noqa: RUF012
        QUERY_MODIFIER_TOKENS = SparkParser.QUERY_MODIFIER_TOKENS - {TokenType.WINDOW}

        def _warn_unsupported(self) -> None:
            """Say nothing: `tree_error` tells, and a library must not write to the log."""


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


def parse_tree(text: str) -> exp.Expr | SqlSyntaxError:
    """The tree of a query, or what sqlglot says against it (Spark may still read it)."""
    if _depth(text) > DEPTH_KEPT:
        return SqlSyntaxError("the query is nested too deeply to be understood")
    try:
        tokens = _DIALECT.tokenize(text)
        trees = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except (SqlglotError, RecursionError, ValueError, ArithmeticError) as error:
        return _complaint(text, error)
    except (AttributeError, TypeError, KeyError, IndexError, AssertionError) as error:
        return _complaint(text, error)  # sqlglot's parser on text it did not expect
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values):
        return SqlSyntaxError("the text is not one query")
    return trees[0]


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
        mistyped = _mistyped(text, end)
        if mistyped is not None:
            return mistyped
    message = f'syntax error at or near "{near}"' if near else "syntax error"
    return SqlSyntaxError(message, detail=str(details[0].get("description", error)), place=place)


def _mistyped(text: str, position: int) -> SqlSyntaxError | None:
    """The error for a mistyped keyword at the position, or right before it."""
    before = [token for token in tokenize(text) if token.start < position][-2:]
    for token in reversed(before):
        near = nearest(token.text, _CLAUSES) if token.kind is Kind.WORD else None
        if near and near != token.upper and abs(len(near) - len(token.text)) <= 1:
            return syntax_error(text, token, None, f"did you mean {near}?")
    return None


def span_of(table: exp.Table) -> Span | None:
    """Where a table's name stands in the text; None for tables that sqlglot made up."""
    parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
    if not parts or any("start" not in part.meta for part in parts):
        return None
    return Span(parts[0].meta["start"], parts[-1].meta["end"] + 1)


def dotted(table: exp.Table) -> str:
    """The name of a table as written, without backticks."""
    return ".".join(part.name for part in table.parts)


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
