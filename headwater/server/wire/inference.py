"""Which types the parameters of a statement have, where the client leaves that to the server.

A guess by the words around `$n`, from the columns of the tables in the statement: the place in INSERT …
VALUES, a comparison with a column, a cast, LIMIT. What nothing is known of is text. Owns the guess;
must never refuse a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from headwater.errors import Error
from headwater.server.wire import types
from headwater.server.wire.spelling import type_words
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.scripts import Asked
from headwater.sql.statements import Delete, Insert, Query, Statement, Update

COMPARISONS = frozenset(
    {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%"}
)
BETWEEN = frozenset({"BETWEEN", "AND", "LIKE"})
MOST_PARAMETERS = 65_535  # PostgreSQL's bound: the protocol counts them in two bytes
MOST_DIGITS = 9
WITH_TABLE = (Insert, Update, Delete)
TEXT = types.BY_NAME["text"].oid
BIGINT = types.BY_NAME["int8"].oid
Columns = Callable[[str], pa.Schema | None]


def parameter_types(asked: Asked, given: Sequence[int], columns: Columns) -> tuple[int, ...]:
    """One type per parameter: what the client said, else what the statement suggests."""
    tokens = tokenize(asked.text)
    numbers = _numbers(tokens)
    count = max(max(numbers.values(), default=0), len(given))
    found = list(given) + [0] * (count - len(given))
    if all(found):
        return tuple(found)
    try:
        statement: Statement | None = asked.statement()
    except Error:  # it may be one with values in place of its parameters
        statement = None
    known = _columns(statement, tokens, columns)
    placed = _inserted(statement, tokens, columns) if isinstance(statement, Insert) else {}
    for index, number in numbers.items():
        if not found[number - 1]:
            found[number - 1] = placed.get(index) or _around(tokens, index, known) or 0
    return tuple(oid or TEXT for oid in found)


def cast_types(written: str, given: Sequence[int]) -> tuple[int, ...]:
    """What the client said, and what its casts `$n::type` say in its own words; 0 where nothing does.

    Spark's words say less: its TIMESTAMP is a timestamptz, a client's is none.
    """
    tokens = tokenize(written)
    numbers = {i: n for i, n in _numbers(tokens).items() if tokens[i + 1].text == "::"}
    found = [*given, *[0] * (max(numbers.values(), default=0) - len(given))]
    for index, number in numbers.items():
        found[number - 1] = found[number - 1] or _cast(tokens, index + 2) or 0
    return tuple(found)


def _numbers(tokens: Sequence[Token]) -> dict[int, int]:
    """The number of each parameter by its place; one beyond all that a client can send is none."""
    marked = [(i, t.text[1:]) for i, t in enumerate(tokens) if t.kind is Kind.PARAMETER]
    found = {
        index: int(text) for index, text in marked if text.isdecimal() and len(text) <= MOST_DIGITS
    }
    return {index: number for index, number in found.items() if 0 < number <= MOST_PARAMETERS}


def _cast(tokens: Sequence[Token], index: int) -> int | None:
    """The type whose name begins at a place."""
    words = type_words(tokens, index)
    spelled = types.spelled(" ".join(words)) if words else None
    after = tokens[min(index + len(words), len(tokens) - 1)]
    return None if spelled is None else spelled.array if after.text == "[" else spelled.oid


def _columns(
    statement: Statement | None, tokens: Sequence[Token], columns: Columns
) -> dict[str, int]:
    """The types of all columns of the tables in a statement, by name."""
    if isinstance(statement, Query):
        names = [str(relation.name) for relation in statement.relations]
    else:
        first = [str(statement.table)] if isinstance(statement, WITH_TABLE) else []
        names = [*first, *(token.name for token in tokens if token.is_name)]
    found: dict[str, int] = {}
    for name in dict.fromkeys(names):
        schema = columns(name)
        for field in schema if schema is not None else ():
            found.setdefault(field.name.lower(), types.pg_type(field.type).oid)
    return found


def _inserted(statement: Insert, tokens: Sequence[Token], columns: Columns) -> dict[int, int]:
    """The types of parameters that stand alone in the rows of an INSERT, by their place."""
    schema = columns(str(statement.table))
    if schema is None:
        return {}
    names = schema.names if statement.columns is None else statement.columns
    by_name = {f.name.lower(): types.pg_type(f.type).oid for f in schema}
    oids = [by_name.get(name.lower(), 0) for name in names]
    return _in_rows(tokens, oids, statement.query_span.start)


def _in_rows(tokens: Sequence[Token], oids: Sequence[int], start: int) -> dict[int, int]:
    found: dict[int, int] = {}
    depth = column = 0
    for index, token in enumerate(tokens):
        if token.start < start:
            continue
        if token.text == "(":
            depth += 1
            column = 0 if depth == 1 else column
        elif token.text == ")":
            depth -= 1
        elif token.text == "," and depth == 1:
            column += 1
        elif token.kind is Kind.PARAMETER and depth == 1 and column < len(oids):
            alone = tokens[index - 1].text in ("(", ",") and tokens[index + 1].text in (")", ",")
            if alone:
                found[index] = oids[column]
    return found


def _around(tokens: Sequence[Token], index: int, known: Mapping[str, int]) -> int | None:
    before = tokens[index - 1] if index else tokens[-1]
    after = tokens[index + 1]
    if after.text == "::" or (after.upper == "AS" and tokens[index - 2].upper == "CAST"):
        return _cast(tokens, index + 2)
    if before.upper in ("LIMIT", "OFFSET", "FIRST"):
        return BIGINT
    if before.text in COMPARISONS or before.upper in BETWEEN:
        found = _column_before(tokens, index - 2, known)
        if found is not None:
            return found
    if after.text in COMPARISONS and tokens[index + 2].is_name:
        return _column_after(tokens, index + 2, known)
    if before.text in ("(", ","):
        return _in_list(tokens, index, known)
    return None


def _column_before(tokens: Sequence[Token], index: int, known: Mapping[str, int]) -> int | None:
    """The column that a comparison's left side ends with; AND goes back to its BETWEEN."""
    for place in range(index, max(index - 6, -1), -1):
        token = tokens[place]
        if token.upper in ("BETWEEN", "NOT") or token.kind is Kind.PARAMETER:
            continue
        return known.get(token.name.lower()) if token.is_name else None
    return None


def _column_after(tokens: Sequence[Token], index: int, known: Mapping[str, int]) -> int | None:
    while tokens[index + 1].text == "." and tokens[index + 2].is_name:
        index += 2
    return known.get(tokens[index].name.lower())


def _in_list(tokens: Sequence[Token], index: int, known: Mapping[str, int]) -> int | None:
    """The column before IN, for `column IN ($1, $2)`."""
    place = index - 1
    while place > 1 and (tokens[place].text == "," or tokens[place].kind is Kind.PARAMETER):
        place -= 1
    if tokens[place].text != "(" or tokens[place - 1].upper != "IN":
        return None
    return _column_before(tokens, place - 2, known)
