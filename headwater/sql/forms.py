"""Texts that differ in their values only: `a = 5` and `a = 7` have one form, `a = $1`.

Owns: which numbers and strings of a text are values. Only such that are compared, alone or in a list, and
that every reader reads alike: a literal after a word (`DATE '…'`, `LIMIT 5`, `ORDER BY 1`) or with a suffix
is a part of the form. Must never: look into the text beyond its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.sql.lexer import Kind, Token

MOST_VALUES = 16
_BEFORE = frozenset(
    ["=", "==", "<=>", "<", ">", "<=", ">=", "<>", "!=", "(", ",", "BETWEEN", "AND"]
)


class Form(NamedTuple):
    """The tokens of a text with `$1`, `$2`, … for its values; and which of those are strings."""

    text: str
    strings: tuple[bool, ...]


def form_of(tokens: Sequence[Token]) -> tuple[Form, tuple[str, ...]] | None:
    """The form of a SELECT, and its values as they are written; None if it has none, or too many."""
    if tokens[0].upper != "SELECT":
        return None
    pieces: list[str] = []
    values: list[str] = []
    before = ""
    for token in tokens:
        if before in _BEFORE and _is_value(token):
            values.append(token.text)
            pieces.append(f"${len(values)}")
        else:
            pieces.append(token.text)
        before = token.upper
    if not 0 < len(values) <= MOST_VALUES:
        return None
    return Form(" ".join(pieces), tuple(text[0] == "'" for text in values)), tuple(values)


def _is_value(token: Token) -> bool:
    if token.kind is Kind.NUMBER:
        return token.text.isdecimal()
    return token.kind is Kind.STRING and token.text[0] == "'" and "\\" not in token.text
