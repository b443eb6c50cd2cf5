"""What clients of PostgreSQL write differently: `"name"` is a name, `E'…'` a string.

Headwater reads Spark's SQL, where double quotes hold a string and backslashes in strings always escape.
Owns the translation, which keeps every token at its place so that errors point right.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from headwater.sql.lexer import Kind, tokenize
from headwater.sql.parser import SHORT
from headwater.sql.text import EditedText

_DIFFERENT = re.compile(r"""["]|\b[eE]'""")


def to_headwater(text: str) -> str:
    """A text as Headwater reads it."""
    if _DIFFERENT.search(text) is None:
        return text
    return _remembered(text) if len(text) <= SHORT else _translated(text)


def _translated(text: str) -> str:
    edited = EditedText(text)
    tokens = tokenize(text)
    for token, after in pairwise(tokens):
        if token.kind is Kind.STRING and token.text.startswith('"'):
            name = token.text[1:-1].replace('""', '"').replace("`", "``")
            edited.replace(token.start, token.end, f"`{name}`".ljust(len(token.text)))
        elif token.upper == "E" and after.kind is Kind.STRING and after.start == token.end:
            edited.replace(token.start, token.end, " ")
    return edited.text


_remembered = lru_cache(maxsize=512)(_translated)
