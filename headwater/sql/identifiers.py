"""Which names occur in a text: a quick over-approximation of what it may refer to.

The catalog looks up every name found here, so a name that is really a column or an alias costs a
lookup and nothing else; a table that a text refers to is never missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.text import Span


def identifiers(text: str, span: Span | None = None) -> frozenset[str]:
    """The names in a text, or in a span of it, in lower case; `a.b.c` also as `a.b` and `a.b.c`."""
    return identifiers_in(tokenize(text if span is None else span.of(text)))


def identifiers_in(tokens: Iterable[Token]) -> frozenset[str]:
    """The names among tokens, in lower case, with the dotted names they form."""
    found: set[str] = set()
    path: list[str] = []
    joined = False  # the last token was a dot after a name
    for token in tokens:
        if token.is_name:
            path = [*path, token.name.lower()] if joined else [token.name.lower()]
            found.add(path[-1])
            found.update(".".join(path[:end]) for end in range(2, len(path) + 1))
            joined = False
        elif token.text == "." and path and not joined:
            joined = True
        else:
            path, joined = [], False
    return frozenset(found)


def cte_names(text: str) -> frozenset[str]:
    """All names that stand as `name AS (` or `name (…) AS (`, in lower case."""
    tokens = tokenize(text)
    found: set[str] = set()
    for index, token in enumerate(tokens):
        if token.upper != "AS" or tokens[min(index + 1, len(tokens) - 1)].text != "(":
            continue
        before = index - 1
        if before > 0 and tokens[before].text == ")":
            while before > 0 and tokens[before].text != "(":
                before -= 1
            before -= 1
        if before >= 0 and tokens[before].is_name and tokens[before].kind is not Kind.END:
            found.add(tokens[before].name.lower())
    return frozenset(found)
