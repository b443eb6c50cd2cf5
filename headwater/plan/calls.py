"""Function calls in a query: aggregates with their arguments, and functions of time or chance.

Names alone decide; a user's function of the same name is the caller's to know. Functions of time and chance
are looked for among the tokens, however they are written, also where a query is not understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from headwater.sql.cursor import CLOSING, OPENING
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.names import words
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query
from headwater.sql.text import Span

# Spark's aggregate functions. One that is missing here is evaluated over kept rows: slower, not wrong.
AGGREGATES = words(
    "ANY ANY_VALUE APPROX_COUNT_DISTINCT APPROX_PERCENTILE APPROX_TOP_K ARRAY_AGG AVG BIT_AND BIT_OR "
    "BIT_XOR BITMAP_AND_AGG BITMAP_CONSTRUCT_AGG BITMAP_OR_AGG BOOL_AND BOOL_OR COLLECT_LIST COLLECT_SET "
    "CORR COUNT COUNT_IF COUNT_MIN_SKETCH COVAR_POP COVAR_SAMP EVERY FIRST FIRST_VALUE GROUPING "
    "GROUPING_ID HISTOGRAM_NUMERIC HLL_SKETCH_AGG HLL_UNION_AGG KURTOSIS LAST LAST_VALUE LISTAGG MAX "
    "MAX_BY MEAN MEDIAN MIN MIN_BY MODE PERCENTILE PERCENTILE_APPROX PERCENTILE_CONT PERCENTILE_DISC "
    "REGR_AVGX REGR_AVGY REGR_COUNT REGR_INTERCEPT REGR_R2 REGR_SLOPE REGR_SXX REGR_SXY REGR_SYY "
    "SCHEMA_OF_JSON_AGG SKEWNESS SOME STD STDDEV STDDEV_POP STDDEV_SAMP STRING_AGG SUM TRY_AVG TRY_SUM "
    "VAR_POP VAR_SAMP VARIANCE"
)
TIME_FUNCTIONS = words(
    "CURRENT_TIMESTAMP NOW CURRENT_DATE CURDATE LOCALTIMESTAMP CURRENT_TIME LOCALTIME UNIX_TIMESTAMP"
)
_BARE_TIME = words("CURRENT_TIMESTAMP CURRENT_DATE LOCALTIMESTAMP CURRENT_TIME")
# Functions of chance, and of how Spark happens to read the rows.
CHANCE = words(
    "RAND RANDOM RANDN RANDSTR UUID SHUFFLE UNIFORM MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID "
    "INPUT_FILE_NAME INPUT_FILE_BLOCK_START INPUT_FILE_BLOCK_LENGTH REFLECT TRY_REFLECT JAVA_METHOD"
)
# What may give another answer over the same rows; IDENTIFIER calls a function by a name it computes.
VARYING = TIME_FUNCTIONS | CHANCE | words("IDENTIFIER")
_MOMENTS = ("NOW", "TODAY", "TOMORROW", "YESTERDAY")  # Spark reads these texts as times
_READS_A_TIME = words("DATE TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ CAST TRY_CAST")


@dataclass(frozen=True)
class SqlCall:
    """One call, with all that belongs to it."""

    name: str  # in upper case
    span: Span
    arguments: tuple[Span, ...]
    distinct: bool = False
    star: bool = False
    filter: Span | None = None
    ignore_nulls: bool = False
    windowed: bool = False  # OVER follows
    within: bool = False  # WITHIN GROUP follows


def calls_of(query: Query) -> list[SqlCall]:
    """All calls of a query, outer ones before those inside them; none if it was not understood."""
    if query.tree is None:
        return []
    heads = _heads(query.text)
    found = []
    for node in query.tree.walk(bfs=False):
        if _is_call(node) and has_span(node):
            call = _tree_call(node, heads)
            if call is not None:
                found.append(call)
    return sorted(found, key=lambda call: (call.span.start, -call.span.end))


def _is_call(node: exp.Expr) -> bool:
    """Whether a node calls a function; `any(x)` is one to Spark, unless a query stands in it."""
    if isinstance(node, exp.Any):
        return isinstance(node.this, exp.Paren)
    return isinstance(node, exp.Func) and not isinstance(node, exp.Connector)


def _heads(text: str) -> dict[int, str]:
    """Names that are called, or that need no parentheses, in upper case, by where they stand."""
    tokens = tokenize(text)
    return {
        token.start: token.upper
        for before, token, after in zip((tokens[-1], *tokens), tokens, tokens[1:], strict=False)
        if token.kind is Kind.WORD
        and before.text != "."
        and (after.text == "(" or token.upper in _BARE_TIME)
    }


def _tree_call(node: exp.Expr, heads: Mapping[int, str]) -> SqlCall | None:
    outer, span = _around(node)
    begins = any(
        has_span(part) and span_of(part).start == span.start for part in node.iter_expressions()
    )
    if span.start not in heads or begins:  # `f(x)::INT` and the branches of CASE begin with a call
        return None
    first = (
        node.expressions[0] if isinstance(node, exp.Anonymous) and node.expressions else node.this
    )
    distinct = first if isinstance(first, exp.Distinct) else None
    if distinct is None and isinstance(
        node.this, exp.Order
    ):  # WITHIN GROUP is kept in the argument
        distinct = node.this.this if isinstance(node.this.this, exp.Distinct) else None
    star = isinstance(node.this, exp.Star)
    inner = node.this if isinstance(node, exp.Any) else node
    parts = distinct.expressions if distinct is not None else inner.iter_expressions()
    within = any(isinstance(one, exp.WithinGroup) for one in outer) or isinstance(
        node.this, exp.Order
    )
    filters = [one.expression.this for one in outer if isinstance(one, exp.Filter)]
    return SqlCall(
        name=heads[span.start],
        span=span,
        arguments=() if star else _arguments(parts),
        distinct=distinct is not None,
        star=star,
        filter=span_of(filters[0]) if filters else None,
        ignore_nulls=any(isinstance(one, exp.IgnoreNulls) for one in outer),
        windowed=any(isinstance(one, exp.Window) for one in outer),
        within=within,
    )


_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Window)


def _around(node: exp.Expr) -> tuple[list[exp.Expr], Span]:
    """FILTER, IGNORE NULLS, WITHIN GROUP and OVER around a call; where all of it stands."""
    outer: list[exp.Expr] = []
    inner: exp.Expr = node
    while isinstance(inner.parent, _AROUND) and inner.parent.this is inner:
        inner = inner.parent
        outer.append(inner)
    return outer, span_of(inner)


def _arguments(parts: Iterable[exp.Expr]) -> tuple[Span, ...]:
    return tuple(sorted(span_of(part) for part in parts if has_span(part)))


def called(text: str) -> frozenset[str]:
    """The functions that a text may call, in upper case, however they are written: at worst too many.

    `` `now`() `` and `system.builtin.now()` are calls as well, and so is the text 'now' as a time.
    """
    found = set()
    for token, after in pairwise(tokenize(text)):
        if token.is_name and after.text == "(":
            found.add(token.name.upper())
        elif token.upper in _BARE_TIME or token.upper == "LOCALTIME":
            found.add(token.upper)
        elif token.kind is Kind.STRING and _holds_a_moment(token.text):
            found.add("NOW")
    return frozenset(found)


def called_among(text: str, names: Iterable[str]) -> set[str]:
    """Those of some functions, named in lower case, that a text may call: at worst too many."""
    calls = {name.lower() for name in called(text)}
    if "identifier" in calls:  # a name may be computed
        return {name for name in names if name in text.lower()}
    return calls & set(names)


def varying_calls(text: str) -> list[SqlCall]:
    """The calls of functions of time and chance, however they are written.

    `unix_timestamp(x)` is none: only without arguments it is the time.
    """
    tokens = tokenize(text)
    found: list[SqlCall] = []
    for index, token in enumerate(tokens[:-1]):
        name = token.name.upper() if token.is_name else ""
        is_call = tokens[index + 1].text == "("
        if name not in TIME_FUNCTIONS | CHANCE or not (is_call or token.upper in _BARE_TIME):
            continue
        first = index
        while first >= 2 and tokens[first - 1].text == ".":
            first -= 2
        if not is_call and (first != index or (index and tokens[index - 1].upper == "AS")):
            continue  # a column, or the name of one
        call = _written(tokens, index) if is_call else SqlCall(name, token.span, ())
        if name != "UNIX_TIMESTAMP" or not call.arguments:
            found.append(replace(call, name=name, span=Span(tokens[first].start, call.span.end)))
    return found


def moments(text: str) -> list[Span]:
    """Texts that Spark reads as a time of now: DATE 'today', CAST('now' AS TIMESTAMP), 'now'::DATE."""
    tokens = tokenize(text)
    found: list[Span] = []
    for index, token in enumerate(tokens[:-1]):
        if token.kind is not Kind.STRING or not _holds_a_moment(token.text):
            continue
        before = tokens[index - 1] if index else token
        if before.text == "(" and index > 1:
            before = tokens[index - 2]
        if before.upper in _READS_A_TIME or tokens[index + 1].text == "::":
            found.append(token.span)
    return found


def _holds_a_moment(literal: str) -> bool:
    return literal.lstrip("rR").strip("\"' \t\n").upper().startswith(_MOMENTS)


def _written(tokens: Sequence[Token], index: int) -> SqlCall:
    """A call as it is written: its name, whether it has arguments, and where it ends."""
    depth, close = 0, index + 1
    for close in range(index + 1, len(tokens)):
        depth += (tokens[close].text in OPENING) - (tokens[close].text in CLOSING)
        if depth == 0:
            break
    inside = Span(tokens[index + 1].end, tokens[close].start)
    arguments = (inside,) if close > index + 2 else ()
    return SqlCall(tokens[index].upper, Span(tokens[index].start, tokens[close].end), arguments)
