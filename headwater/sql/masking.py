"""Secrets in statements: texts and errors without the passwords that stand in them.

Owns which literals are secret: those of CREATE USER and ALTER USER, and whatever follows the word
PASSWORD. A masked text is as long as the original, so that places in the one are places in the other.
"""

from __future__ import annotations

import re

from headwater.errors import Error, Place, SqlSyntaxError
from headwater.sql.lexer import Kind, Token, tokenize

_MAY_HOLD_ONE = re.compile(r"\b(?:USER|PASSWORD)\b", re.IGNORECASE)
_UNREADABLE = re.compile(r"\b(?:USER|PASSWORD)\b[^'\"]*['\"](.*)", re.IGNORECASE | re.DOTALL)


def masked(text: str) -> str:
    """The text with stars in place of passwords."""
    if _MAY_HOLD_ONE.search(text) is None:
        return text
    try:
        tokens = tokenize(text)
    except SqlSyntaxError:  # a quote that is never closed, for one: everything after it is hidden
        found = _UNREADABLE.search(text)
        return text if found is None else text[: found.start(1)] + _stars(found.group(1))
    pieces, done = [], 0
    for token in _secrets(tokens):
        pieces += [text[done : token.start], _masked_literal(token)]
        done = token.end
    return "".join([*pieces, text[done:]])


def hide_secrets(error: Error, text: str) -> Error:
    """The error of a text, without the passwords of it."""
    if _MAY_HOLD_ONE.search(text) is None:
        return error
    try:
        secrets = _secrets(tokenize(text))
    except SqlSyntaxError:
        secrets = []
    for token in secrets:
        for name in ("message", "detail", "hint"):
            said = getattr(error, name)
            if said and token.text in said:
                setattr(error, name, said.replace(token.text, _masked_literal(token)))
    error.args = (error.message,)
    if error.place is not None:
        error.place = Place(masked(error.place.text), error.place.start, error.place.end)
    return error


def _secrets(tokens: tuple[Token, ...]) -> list[Token]:
    found, in_user = [], False
    for index, token in enumerate(tokens):
        if index == 0 or tokens[index - 1].text == ";":
            words = [t.upper for t in tokens[index : index + 4]]
            in_user = words[0] in ("CREATE", "ALTER") and "USER" in words
        if token.kind is Kind.STRING and (in_user or tokens[index - 1].upper == "PASSWORD"):
            found.append(token)
    return found


def _masked_literal(token: Token) -> str:
    return token.text[0] + _stars(token.text[1:-1]) + token.text[-1]


def _stars(text: str) -> str:
    return "".join(c if c == "\n" else "*" for c in text)
