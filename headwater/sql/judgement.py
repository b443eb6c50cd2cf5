"""What a text asks of Spark that takes an admin: functions, options, scripts, names that are computed.

Owns how a text is searched: by tokens, so that comments, quotes and line breaks hide nothing. Every name
before a parenthesis is a function that was judged (`spark_functions`), a user's own, a word of the grammar
or the name of something with a list of columns; what is none of these is not run. It must never take a
text for harmless because it cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headwater.sql.cursor import CLOSING, OPENING
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.names import words
from headwater.sql.spark_functions import ADMIN_ONLY, ALLOWED, OPERATORS, WITH_OPTIONS

# Words of the grammar that a parenthesis may follow, ours among them. None is a function of Spark's.
GRAMMAR = words(
    """
    ALL ANALYZE AND ANY AS BETWEEN BOTH BY CASE CHARACTER COLUMNS COPY CROSS CUBE CURRENT_INSTANT
    DEC DELETE DESC DESCRIBE DISTINCT DIV ELSE ESCAPE EXCEPT EXCLUDE EXISTS EXPLAIN EXTEND FILTER
    FOR FROM GEOGRAPHY GEOMETRY GROUP HAVING ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN
    LATERAL LEADING LIKE LIMIT MINUS NATURAL NEAR NOT NULLS NUMERIC OFFSET ON OR OUTER OVER PARTITION
    PERIOD PIVOT PLACING PREV QUALIFY REGEXP REPEATABLE RLIKE ROLLUP SELECT SET SETS SOME STDIN STDOUT STREAM
    SUBSCRIBE TABLE TABLESAMPLE THEN TIMESTAMPADD TIMESTAMPDIFF TO TRAILING TRY_CAST UNION UNPIVOT
    UPDATE USING VALID VALUES VARCHAR VARYING WHEN WHERE WITH XOR
    """
)
_QUERY_WORDS = words("FROM SELECT TABLE VALUES WITH (")
_LAST_WORD = re.compile(r"\w+$", re.ASCII)
_LONGEST_NAME = 80  # characters before a parenthesis that are looked at without tokens
_NO_NAMES = (",", "(", "=", "+", "-", "*", "/", "<", ">")
_UNUSUAL = ("--", "/*", "`", '"', "$")
_UNUSUAL_WORDS = ("IDENTIFIER", "USING")
_PLAIN_NAME = re.compile(r"'\w+(?:\.\w+)*'")
_PLAIN_KEY = re.compile(r"""'\w+'|"\w+\"""")
_PLAIN_HINT = re.compile(r"/\*\+[\w\s,.`]*(?:\([\w\s,.`]*\)[\w\s,.`]*)*\*/")
_CONSTANT = (Kind.STRING, Kind.NUMBER)
_HARMLESS = {word.lower() for word in GRAMMAR} | (ALLOWED - WITH_OPTIONS.keys())


@dataclass(frozen=True)
class JudgedName:
    """Something in a text that not everybody may ask for: in words, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Judgement:
    """What a text asks for that takes an admin, and the names in it that no function of Spark's has."""

    admin_only: tuple[JudgedName, ...] = ()
    unknown: tuple[Token, ...] = ()


def judged(text: str) -> Judgement:
    """The judgement of a text."""
    if _is_harmless(text):
        return Judgement()
    tokens = tokenize(text)
    found = [*_of_texts(text, tokens)]
    unknown: list[Token] = []
    for index, (token, after) in enumerate(pairwise(tokens)):
        if after.text == "(":
            found += _of_call(tokens, index, unknown)
        if token.upper == "USING" and after.text != "(" and not after.is_name:
            found.append(JudgedName("a script", "TRANSFORM … USING starts a program on the server"))
    return Judgement(tuple(dict.fromkeys(found)), tuple(unknown))


def _is_harmless(text: str) -> bool:
    """Whether a text is so plain that no look at its tokens is needed: most are, and long ones of rows."""
    upper = text.upper()
    if any(map(text.__contains__, _UNUSUAL)) or any(map(upper.__contains__, _UNUSUAL_WORDS)):
        return False
    at = text.find("(")
    while at >= 0:
        before = text[max(at - _LONGEST_NAME, 0) : at].rstrip()
        if not before.endswith(_NO_NAMES):
            word = _LAST_WORD.search(before)
            if word is None or word.group().lower() not in _HARMLESS:
                return False
        at = text.find("(", at + 1)
    return True


def _of_texts(text: str, tokens: Sequence[Token]) -> Iterator[JudgedName]:
    """Hints with more than names in them, and characters that no grammar has."""
    if "/*+" in text:
        ends = [0, *(token.end for token in tokens)]
        gaps = [text[end : token.start] for end, token in zip(ends, tokens, strict=False)]
        hints = ((gap, hint.start()) for gap in gaps for hint in re.finditer(r"/\*\+", gap))
        if any(_PLAIN_HINT.match(gap, start) is None for gap, start in hints):
            yield JudgedName("this hint", "a hint names tables and numbers, nothing else")
    if any(t.kind is Kind.SYMBOL and not t.text.isascii() for t in tokens):
        yield JudgedName("a text with characters that are no SQL", "another reader may skip them")


def _of_call(tokens: Sequence[Token], index: int, unknown: list[Token]) -> Iterator[JudgedName]:
    """What is wrong with the token at an index as the name of a function."""
    token = tokens[index]
    if token.kind is Kind.STRING:
        yield JudgedName("a text as a function", "a function has a name")
        return
    if not token.is_name:
        return
    name = token.name.lower()
    is_word = token.kind is Kind.WORD
    if token.upper == "IDENTIFIER":
        yield from _of_identifier(tokens, index)
    elif name in ADMIN_ONLY:
        if not _has_columns(tokens, index):
            yield JudgedName(name, ADMIN_ONLY[name])
    elif name in WITH_OPTIONS:
        yield from _of_options(tokens, index, name)
    elif name in ALLOWED or name in OPERATORS or (is_word and token.upper in GRAMMAR):
        return
    elif not _has_columns(tokens, index):
        unknown.append(token)


def _of_identifier(tokens: Sequence[Token], index: int) -> Iterator[JudgedName]:
    """IDENTIFIER: a plain name in quotes, which is not called."""
    rest = [token.text for token in tokens[index + 2 : index + 5]]
    plain = len(rest) == 3 and _PLAIN_NAME.fullmatch(rest[0]) is not None
    if not plain or rest[1] != ")" or rest[2] == "(":
        yield JudgedName("IDENTIFIER of more than a plain name", "it may name any function or file")


def _of_options(tokens: Sequence[Token], index: int, name: str) -> Iterator[JudgedName]:
    """Options of a function: a map of constants, whose keys were judged."""
    place, keys = WITH_OPTIONS[name]
    arguments = _arguments(tokens, index + 1)
    if any(argument[-1:] and argument[-1].text == "*" for argument in arguments):
        yield JudgedName(f"{name} of *", "whether it has options must be plain to see")
    for options in arguments[place:]:
        given = _keys(options)
        if given is None:
            why = "options are a map of constants"
            yield JudgedName(f"{name} with these options", why)
            continue
        for key in sorted(set(given) - keys):
            yield JudgedName(f"{name} with the option {key}", f"others: {', '.join(sorted(keys))}")


def _arguments(tokens: Sequence[Token], opening: int) -> list[list[Token]]:
    """The arguments of a call, by its opening parenthesis; one of no tokens if there are none."""
    found: list[list[Token]] = [[]]
    depth = 1
    for token in tokens[opening + 1 :]:
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if not depth:
            break
        if token.text == "," and depth == 1:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _keys(argument: Sequence[Token]) -> list[str] | None:
    """The keys of `map('key', 'value', …)` in lower case; None if the argument is anything else."""
    if len(argument) < 3 or argument[0].upper != "MAP" or argument[1].text != "(":
        return None
    parts = _arguments(argument, 1)
    length = sum(map(len, parts)) + len(parts) - 1 + len("map()") - 2
    if len(parts) % 2 or len(argument) != length or any(len(part) != 1 for part in parts):
        return None
    keys, values = [part[0] for part in parts[::2]], [part[0] for part in parts[1::2]]
    plain = all(_PLAIN_KEY.fullmatch(key.text) for key in keys)
    constant = all(v.kind in _CONSTANT or v.upper in ("TRUE", "FALSE") for v in values)
    return [key.text[1:-1].lower() for key in keys] if plain and constant else None


def _has_columns(tokens: Sequence[Token], index: int) -> bool:
    """Whether a name is no call but has a list of columns: `AS t(a, b)`, `WITH t(a) AS (SELECT …)`."""
    start = index
    while start >= 2 and tokens[start - 1].text == ".":
        start -= 2
    before = tokens[start - 1].upper if start else ""
    if before == "CALL" and start == 1:
        return True  # a procedure, which we run ourselves
    columns = _arguments(tokens, index + 1)
    if any(len(column) != 1 or not column[0].is_name for column in columns):
        return False
    if before in ("AS", ")", "INTO") or (before == "COPY" and start == 1):
        return True
    if before == "TABLE" and start >= 2 and tokens[start - 2].upper == "INTO":
        return True
    return _is_named_query(tokens, index + 1 + 2 * len(columns) + 1)


def _is_named_query(tokens: Sequence[Token], index: int) -> bool:
    """Whether `AS (SELECT …` stands there, as after the name and the columns of a CTE."""
    rest = [token.upper for token in tokens[index : index + 8]]
    if rest[:3] == ["MAX", "RECURSION", "LEVEL"]:
        rest = rest[4:]
    return (
        rest[:2] == ["AS", "("]
        and len(rest) > 3
        and rest[2] in _QUERY_WORDS
        and rest[3] not in (",", ")")
    )
