"""What a syntax error is most likely about: a mistyped keyword, or a clause of other systems.

Owns those guesses. Must never: decide that a text is wrong; whoever read it has said so.
"""

from __future__ import annotations

from headwater.errors import Error, SqlSyntaxError
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.names import nearest, words

# A word close to one of these, where a reader stops, is taken for a mistyped keyword.
CLAUSES = words("SELECT FROM WHERE GROUP ORDER HAVING JOIN LIMIT UNION ON BY SAMPLE EMIT")
CHANGES = words("INSERT UPDATE DELETE MERGE")
RETURNING = "RETURNING is not supported yet: read the rows with a SELECT"


def mistyped(text: str, position: int) -> tuple[Token, str] | None:
    """A mistyped keyword at the position, or right before it, and what was meant."""
    before = [token for token in tokenize(text) if token.start < position][-2:]
    for token in reversed([token for token in before if len(token.text) > 1]):
        near = nearest(token.text, CLAUSES) if token.kind is Kind.WORD else None
        if near and near != token.upper and abs(len(near) - len(token.text)) <= 1:
            return token, f"did you mean {near}?"
    return None


def hinted(error: Error, text: str) -> Error:
    """The error of a statement; a syntax error that says no cure gets the likely one."""
    if isinstance(error, SqlSyntaxError) and error.hint is None:
        error.hint = _hint(error, text)
    return error


def _hint(error: SqlSyntaxError, text: str) -> str | None:
    try:
        tokens = [token for token in tokenize(text) if token.kind is Kind.WORD]
    except SqlSyntaxError:  # a quote that is never closed
        return None
    changes = bool(tokens) and tokens[0].upper in CHANGES
    if changes and any(token.upper == "RETURNING" for token in tokens):
        return RETURNING
    if error.place is None or error.place.text != text:
        return None
    found = mistyped(text, error.place.end)
    return found[1] if found else None
