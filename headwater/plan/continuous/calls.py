"""Function calls in a block's text: aggregates with their arguments, and functions of time or chance.

Works on tokens: a call is a name before a parenthesis, with what may follow it (FILTER, IGNORE NULLS,
OVER). Names alone decide; a user's function of the same name is the caller's to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headwater.sql.cursor import CLOSING, OPENING
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.names import words
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
class Call:
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


def calls_in(text: str, span: Span) -> list[Call]:
    """All calls in a span, outer ones before those inside them."""
    tokens = tokenize(text)
    first = next((i for i, t in enumerate(tokens) if t.start >= span.start), len(tokens) - 1)
    found: list[Call] = []
    for index in range(first, len(tokens) - 1):
        token = tokens[index]
        if token.start >= span.end:
            break
        if _names_a_call(tokens, index):
            found.append(_call(tokens, index))
        elif token.upper in _BARE_TIME and tokens[index - 1].text != ".":
            found.append(Call(token.upper, token.span, ()))
    return found


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


def varying_calls(text: str) -> list[Call]:
    """The calls of functions of time and chance, however they are written.

    `unix_timestamp(x)` is none: only without arguments it is the time.
    """
    tokens = tokenize(text)
    found: list[Call] = []
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
        call = _call(tokens, index) if is_call else Call(name, token.span, ())
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


def _names_a_call(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    after = tokens[index + 1].text == "(" and tokens[index - 1].text != "."
    return (
        after and token.kind is Kind.WORD and token.upper not in words("IN AND OR NOT OVER AS ON")
    )


def _call(tokens: Sequence[Token], index: int) -> Call:
    close = _closing(tokens, index + 1)
    begin, distinct = index + 2, False
    if tokens[begin].upper in ("DISTINCT", "ALL") and begin < close:
        distinct = tokens[begin].upper == "DISTINCT"
        begin += 1
    star = close - begin == 1 and tokens[begin].text == "*"
    arguments = () if star else tuple(_arguments(tokens, begin, close))
    end, where, ignore, windowed, within = close + 1, None, False, False, False
    while True:
        word = tokens[end].upper
        if word == "FILTER" and tokens[end + 1].text == "(":
            last = _closing(tokens, end + 1)
            where = Span(tokens[end + 3].start, tokens[last - 1].end)
            end = last + 1
        elif word in ("IGNORE", "RESPECT") and tokens[end + 1].upper == "NULLS":
            ignore = word == "IGNORE"
            end += 2
        elif word == "WITHIN" and tokens[end + 1].upper == "GROUP":
            within = True
            end = _closing(tokens, end + 2) + 1
        elif word == "OVER":
            windowed = True
            end = _closing(tokens, end + 1) + 1 if tokens[end + 1].text == "(" else end + 2
        else:
            break
    span = Span(tokens[index].start, tokens[end - 1].end)
    return Call(
        tokens[index].upper, span, arguments, distinct, star, where, ignore, windowed, within
    )


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].text in OPENING:
            depth += 1
        elif tokens[index].text in CLOSING:
            depth -= 1
            if depth == 0:
                return index
    return len(tokens) - 1


def _arguments(tokens: Sequence[Token], begin: int, end: int) -> Iterator[Span]:
    depth, first = 0, begin
    for index in range(begin, end + 1):
        token = tokens[index]
        if index == end or (depth == 0 and token.text == ","):
            if first < index:
                yield Span(tokens[first].start, tokens[index - 1].end)
            first = index + 1
        elif token.text in OPENING:
            depth += 1
        elif token.text in CLOSING:
            depth -= 1
