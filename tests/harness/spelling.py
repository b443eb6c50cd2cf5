"""The same statement, written otherwise: other case, blanks, line breaks and comments between its tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.statements.setting import SetSetting
from headwater.sql.text import Span

GAPS = (" ", "\n", "\t ", "\r\n", " /* SELECT ; ' */ ", " -- INSERT '\n", "/* a /* b */ c */", "  ")
LOOSE = frozenset("(),=;")  # symbols that blanks may stand beside
CASES = (str.upper, str.lower, str.title, str.swapcase)


def written_otherwise(text: str, chance: Random) -> str:
    """The text with every gap between tokens, and the case of every bare word, changed."""
    tokens = tokenize(text)
    parts = [chance.choice(("", *GAPS))]
    for token, after in pairwise(tokens):
        parts.append(_token(token, chance))
        apart = token.end < after.start
        loose = token.text in LOOSE or after.text in LOOSE
        if apart or loose or after.kind is Kind.END:
            parts.append(chance.choice(GAPS if apart else ("", *GAPS)))
    return "".join(parts)


def _token(token: Token, chance: Random) -> str:
    plain = token.kind is Kind.WORD and token.text.isascii()
    return chance.choice(CASES)(token.text) if plain else token.text


def meaning(value: Any, text: str = "") -> Any:
    """What a statement says, however it is written: without places, names in lower case."""
    if isinstance(value, Span):
        return tuple(_read(token) for token in tokenize(value.of(text))[:-1])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        text = getattr(value, "text", text)
        raw = {"value"} if isinstance(value, SetSetting) else set()  # its parts say what it is
        fields = (
            {f.name for f in dataclasses.fields(value)} - {"text", "offset", "known", "facts"} - raw
        )
        return type(value).__name__, {name: meaning(getattr(value, name), text) for name in fields}
    if isinstance(value, Mapping):
        return {str(key).casefold(): meaning(each, text) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [meaning(each, text) for each in value]
    if isinstance(value, frozenset | set):
        return sorted(str(meaning(each, text)) for each in value)
    return str(value).casefold()


def _read(token: Token) -> str:
    return token.text.casefold() if token.kind is Kind.WORD else token.text
