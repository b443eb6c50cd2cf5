"""What clients of PostgreSQL write differently: `"name"`, `public.name`, `E'…'`, `x::int8`,
`extract(epoch from x)`, `ARRAY[1, 2]`, `x = ANY(ARRAY[1, 2])`, `x ~ 'pattern'`.

Headwater reads Spark's SQL, where double quotes hold a string and types have other names. Owns the
translation. A cast of a literal to the type that it has already is taken out, so that rows which drivers send
as `$1::INTEGER` are still plain rows and need no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from headwater.errors import Error
from headwater.server.wire import types
from headwater.server.wire.parameters import TEXTS, array_elements
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.literals import sql_text, string_value
from headwater.sql.text import EditedText

_DIFFERENT = re.compile(
    r"""["]|\b[eE]'|::|~|(?i:\bextract\s*\(\s*epoch\b|\bpublic\b|\barray\b|\b(?:any|some|all)\b)"""
)
_HEX = re.compile(r"'\\{1,2}x((?:[0-9a-fA-F]{2})*)'")  # the backslash may be escaped
_LONG_TYPES = (
    ("TIMESTAMP", "WITH", "TIME", "ZONE"),
    ("TIMESTAMP", "WITHOUT", "TIME", "ZONE"),
    ("TIME", "WITHOUT", "TIME", "ZONE"),
    ("DOUBLE", "PRECISION"),
    ("CHARACTER", "VARYING"),
)
SPARK = {
    "bool": "BOOLEAN",
    "bytea": "BINARY",
    "char": "STRING",
    "name": "STRING",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "oid": "BIGINT",
    "text": "STRING",
    "varchar": "STRING",
    "bpchar": "STRING",
    "json": "STRING",
    "jsonb": "STRING",
    "uuid": "STRING",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
}
# Spark's own names stay what they are: TIMESTAMP is a moment here, not a time without a zone.
_STAYS = frozenset(
    {"timestamp", "float", "double", "string", "binary", "tinyint", "decimal", "numeric", "time"}
)
_TEXTS = frozenset({"text", "varchar", "bpchar", "name", "char", "json", "jsonb", "uuid", "string"})
_NOTHING = "SELECT NULL WHERE FALSE"  # Spark has no empty list
_OF_ALL = frozenset({"ANY", "SOME", "ALL"})
_MEMBERS = frozenset({("=", "ANY"), ("=", "SOME"), ("<>", "ALL"), ("!=", "ALL")})
_BEFORE_A_NUMBER = frozenset("(,+-*/%=<>|&^") | {"<=", ">=", "<>", "!=", "||"}
_WORDS = frozenset({"SELECT", "WHERE", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "BY", "ON"})
_INTEGERS = frozenset({"int2", "int4", "int8", "oid"})
_MOMENTS = frozenset({"timestamptz", "timestamp", "date"})


def spelled(text: str) -> EditedText:
    """A text as Headwater reads it, with its places in the text that the client wrote."""
    edited = EditedText(text)
    if _DIFFERENT.search(text) is None:
        return edited
    try:
        tokens = tokenize(text)
    except Error:  # the parser says it better
        return edited
    casts: list[int] = []
    done: set[int] = set()  # arrays that became the list of an IN, and their casts
    for index, (token, after) in enumerate(pairwise(tokens)):
        if _is_schema(tokens, index):
            edited.replace(token.start, after.end, "")
        elif token.kind is Kind.STRING and token.text.startswith('"'):
            name = token.text[1:-1].replace('""', '"').replace("`", "``")
            edited.replace(token.start, token.end, f"`{name}`")
        elif token.upper == "E" and after.kind is Kind.STRING and after.start == token.end:
            edited.replace(token.start, token.end, " ")
        elif token.text == "::":
            casts.append(index)
        elif token.upper == "EPOCH" and after.upper == "FROM":
            _epoch(edited, tokens, index)
        elif token.upper in _OF_ALL and after.text == "(":
            done.update(_among(edited, tokens, index))
        elif token.upper == "ARRAY" and after.text == "[" and index not in done:
            _array(edited, tokens, index)
        elif token.text == "~":
            _pattern(edited, tokens, index)
    inserts = tokens[0].upper == "INSERT"
    for index in sorted(set(casts) - done):
        _cast(edited, tokens, index, inserts)
    return edited


def _epoch(edited: EditedText, tokens: Sequence[Token], index: int) -> None:
    """`extract(epoch from x)`: seconds since 1970, which Spark gives for a cast."""
    if index < 2 or [t.upper for t in tokens[index - 2 : index]] != ["EXTRACT", "("]:
        return
    depth = 0
    for token in tokens[index + 2 :]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            edited.replace(tokens[index - 2].start, tokens[index + 1].end, "CAST(CAST(")
            edited.replace(token.start, token.end, " AS TIMESTAMP) AS DOUBLE)")
            return


def _is_schema(tokens: Sequence[Token], index: int) -> bool:
    """`public.` before a name: everything is in that schema."""
    text = tokens[index].text
    named = text.lower() == "public" or text == '"public"'
    return named and tokens[index + 1].text == "." and (not index or tokens[index - 1].text != ".")


def _array(edited: EditedText, tokens: Sequence[Token], index: int) -> None:
    """`ARRAY[a, b]`; the inner lists of `ARRAY[[1], [2]]` are arrays, too."""
    place, close = index + 1, _closing(tokens, index + 1)
    while place <= close:
        token, before = tokens[place], tokens[place - 1]
        outermost = place == index + 1
        if token.text == "[" and (outermost or before.text in ("[", ",")):
            end = _closing(tokens, place)
            edited.replace(token.start, token.end, "(" if outermost else "array(")
            edited.replace(tokens[end].start, tokens[end].end, ")")
        inner = token.upper == "ARRAY" and tokens[place + 1].text == "["  # has its own turn
        place = (_closing(tokens, place + 1) if inner else place) + 1


def _among(edited: EditedText, tokens: Sequence[Token], index: int) -> tuple[int, ...]:
    """`= ANY(array of values)` is IN, `<> ALL(array of values)` is NOT IN; the places it has taken."""
    comparison, opening = tokens[index - 1], index + 2
    if (comparison.text, tokens[index].upper) not in _MEMBERS or not index:
        return ()
    if tokens[opening].kind is Kind.STRING:
        return _among_texts(edited, tokens, index)
    is_array = tokens[opening].upper == "ARRAY" and tokens[opening + 1].text in ("[", "(")
    last = _closing(tokens, opening + 1) if is_array else 0
    close = _after_cast(tokens, last + 1)
    if not last or tokens[close].text != ")":
        return ()
    word = "IN" if comparison.text == "=" else "NOT IN"
    nothing = _NOTHING if last == opening + 2 else ""
    word = _apart(edited, comparison.start, tokens[opening + 1].end, f"{word} (")
    edited.replace(comparison.start, tokens[opening + 1].end, word + nothing)
    edited.replace(tokens[last].start, tokens[close].end, ")")
    return opening, last + 1


def _after_cast(tokens: Sequence[Token], place: int) -> int:
    """The place after `::type[]`, if that stands at one."""
    if tokens[place].text != "::":
        return place
    place += 1 + len(type_words(tokens, place + 1))
    return place + 2 * ([token.text for token in tokens[place : place + 2]] == ["[", "]"])


def _among_texts(edited: EditedText, tokens: Sequence[Token], index: int) -> tuple[int, ...]:
    """`= ANY('{1,2}')`: an array as PostgreSQL writes it; the place of its cast."""
    comparison, array = tokens[index - 1], tokens[index + 2]
    text, close = string_value(array.text), tokens[_after_cast(tokens, index + 3)]
    if text is None or close.text != ")":
        return ()
    try:
        elements = [sql_text(element) for element in array_elements(text)]
    except ValueError:  # Spark says what is wrong with it
        return ()
    word = "IN" if comparison.text == "=" else "NOT IN"
    word = _apart(edited, comparison.start, close.end, f"{word} (")
    edited.replace(comparison.start, close.end, f"{word}{', '.join(elements) or _NOTHING})")
    return (index + 3,)


def _pattern(edited: EditedText, tokens: Sequence[Token], index: int) -> None:
    """`x ~ 'p'`, `x !~ 'p'`, and with `*` without regard to case."""
    token, before, after = tokens[index], tokens[index - 1], tokens[index + 1]
    if not index or before.text in _BEFORE_A_NUMBER or before.upper in _WORDS:
        return  # ~x is a number
    negated = before.text == "!" and before.end == token.start
    start = before.start if negated else token.start
    loose = after.text == "*" and after.start == token.end
    pattern = tokens[index + 2] if loose else after
    if pattern.kind is not Kind.STRING or (loose and pattern.text[0] != "'"):
        return
    end = after.end if loose else token.end
    edited.replace(start, end, _apart(edited, start, end, "NOT RLIKE" if negated else "RLIKE"))
    if loose:
        edited.replace(pattern.start, pattern.start + 1, f"{pattern.text[0]}(?i)")


def _apart(edited: EditedText, start: int, end: int, word: str) -> str:
    """A word in the place of a symbol, with blanks where it would join what stands beside it."""
    before, after = edited.original[start - 1 : start], edited.original[end : end + 1]
    joined = word if before.isspace() else f" {word}"
    return joined if after.isspace() or word.endswith("(") else f"{joined} "


def _closing(tokens: Sequence[Token], index: int) -> int:
    """Where the bracket that opens at a place is closed; 0 if it is not."""
    depth = 0
    for place in range(index, len(tokens)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens[place].text, 0)
        if not depth:
            return place
    return 0


def _cast(edited: EditedText, tokens: Sequence[Token], index: int, inserts: bool) -> None:
    """`x::type`, with PostgreSQL's name of the type."""
    words = type_words(tokens, index + 1)
    end = tokens[index + len(words)].end if words else tokens[index].end
    found = types.spelled(" ".join(words)) if words else None
    after = [token.text for token in tokens[index + len(words) + 1 :][:2]]
    if found is not None and after == ["[", "]"]:
        name = SPARK.get(found.name, words[0])
        edited.replace(tokens[index].start, tokens[index + len(words) + 2].end, f"::ARRAY<{name}>")
        return
    if found is None or after[0] in ("[", "("):
        return
    if _literal(edited, tokens, index, found.name, inserts):
        edited.replace(tokens[index].start, end, "")
    elif words[0].lower() not in _STAYS or len(words) > 1:
        edited.replace(tokens[index].start, end, f"::{SPARK.get(found.name, words[0])}")


def type_words(tokens: Sequence[Token], index: int) -> list[str]:
    """The words of a type's name from a place on; none if there is no name."""
    for words in _LONG_TYPES:
        if tuple(token.upper for token in tokens[index : index + len(words)]) == words:
            return list(words)
    token = tokens[index]
    return [token.name] if token.is_name else []


def _literal(
    edited: EditedText, tokens: Sequence[Token], index: int, type_: str, inserts: bool
) -> bool:
    """Whether what is cast is a literal of that type; a time in quotes becomes one."""
    value, before = tokens[index - 1], tokens[index - 2] if index > 1 else tokens[-1]
    if value.kind is Kind.STRING and before.upper in ("TIMESTAMP", "DATE", "TIMESTAMP_NTZ", "X"):
        return inserts or (before.upper == "TIMESTAMP" and type_ == "timestamptz")
    if value.kind is Kind.STRING and value.text.startswith("'"):
        if type_ in _MOMENTS:
            return _moment(edited, value, before, type_)
        if type_ == "bytea":
            return _bytes(edited, value)
        return type_ in _TEXTS
    if value.kind is Kind.NUMBER and type_ == "int4" and value.text.isdigit():
        return int(value.text) < 1 << 31
    if value.kind is Kind.NUMBER:
        return inserts and (type_ in _INTEGERS or type_ in ("float8", "numeric", "float4"))
    if value.upper == "NULL":
        return inserts
    return value.upper in ("TRUE", "FALSE") and type_ == "bool"


def _bytes(edited: EditedText, value: Token) -> bool:
    """`'\\x00ff'::bytea` as a literal of our own."""
    found = _HEX.fullmatch(value.text)
    if found is not None:
        edited.replace(value.start, value.end, f"X'{found.group(1)}'")
    return found is not None


def _moment(edited: EditedText, value: Token, before: Token, type_: str) -> bool:
    """`'2026-11-16'::timestamptz` as a literal of our own."""
    try:
        found = TEXTS[type_](value.text[1:-1])
    except ValueError:
        return False
    start = before.start if before.upper == "E" and before.end == value.start else value.start
    if start == value.start:
        edited.replace(value.start, value.end, found)
    return start == value.start
