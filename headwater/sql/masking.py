"""Secrets in statements: texts and errors without the passwords that stand in them.

Owns which literals are secret: those of CREATE USER and ALTER USER, whatever follows the word PASSWORD,
options whose names say so, and passwords in addresses. A masked text is as long as the original, so that
places in the one are places in the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from headwater.errors import Error, Place, SqlSyntaxError
from headwater.sql.lexer import Kind, Token, tokenize

_SECRET_NAME = re.compile(r"PAS+W|PASSPHRASE|SECRET", re.IGNORECASE)  # misspelled too
_MAY_HOLD_ONE = re.compile(rf"\bUSER\b|{_SECRET_NAME.pattern}|://[^\s'\"]*@", re.IGNORECASE)
_IN_ADDRESS = re.compile(
    r"(?P<before>://[^:/@\s'\"]*:)(?P<secret>[^\s'\"]*)(?=@)"
    rf"|(?P<name>(?:{_SECRET_NAME.pattern})\w*=)(?P<value>[^&\s'\"]+)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\$\{env:\w+\}")
_UNREADABLE = re.compile(
    rf"(?:\bUSER\b|{_SECRET_NAME.pattern})[^'\"]*['\"](.*)", re.IGNORECASE | re.DOTALL
)


def masked(text: str) -> str:
    """The text with stars in place of passwords."""
    if _MAY_HOLD_ONE.search(text) is None:
        return text
    try:
        tokens = tokenize(text)
    except SqlSyntaxError:  # a quote that is never closed, for one: everything after it is hidden
        found = _UNREADABLE.search(text)
        if found is not None:
            text = text[: found.start(1)] + _stars(found.group(1))
        return _without_passwords(text, _stars)
    pieces, done = [], 0
    for token in _secrets(tokens):
        pieces += [text[done : token.start], _masked_literal(token)]
        done = token.end
    return _without_passwords("".join([*pieces, text[done:]]), _stars)


def without_passwords(text: str) -> str:
    """Addresses in a text without their passwords; names of environment variables stay."""
    return _without_passwords(text, lambda _: "…")


def _without_passwords(text: str, instead: Callable[[str], str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        before, secret = match["before"] or match["name"], match["secret"] or match["value"] or ""
        return before + (secret if _NAMED.fullmatch(secret) else instead(secret))

    return _IN_ADDRESS.sub(replaced, text)


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
    for name in ("message", "detail", "hint"):
        said = getattr(error, name)
        setattr(error, name, said and _without_passwords(said, _stars))
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
        if token.kind is Kind.STRING and (in_user or _is_secret_of(tokens[:index][-2:])):
            found.append(token)
    return found


def _is_secret_of(before: tuple[Token, ...]) -> bool:
    """Whether the tokens before a literal say that it is secret: `PASSWORD '…'`, `sasl_password = '…'`."""
    if not before:
        return False
    if before[-1].upper == "PASSWORD":
        return True
    return before[-1].text == "=" and _SECRET_NAME.search(before[0].text) is not None


def _masked_literal(token: Token) -> str:
    return token.text[0] + _stars(token.text[1:-1]) + token.text[-1]


def _stars(text: str) -> str:
    return "".join(c if c == "\n" else "*" for c in text)
