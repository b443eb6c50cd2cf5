"""Characters → tokens, by the rules of Spark's own lexer.

Owns what a string, a number, a name and a comment are. sqlglot's tokenizer is not used for
statements: it folds several words into one token, turns `1L` into three, swallows the rest of
`SHOW …` and reads `'it''s'` as two strings, where we need every token at its exact place and
need it fast for long lists of VALUES. The lexer never changes a token's text: `literals` gives
values.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from headwater.errors import Place, SqlSyntaxError
from headwater.sql.text import Span

# The tokens of the last few texts: one text is looked at by several readers while one statement is
# carried out. Statements that come again are `scripts`' to remember.
KEPT_CHARACTERS = 20_000
KEPT_TEXTS = 32


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    PARAMETER = "parameter"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """One token: its kind, its text exactly as written, and where it stands."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where the token stands."""
        return Span(self.start, self.end)

    @property
    def upper(self) -> str:
        """The word in upper case; other tokens as they are, so that no string equals a keyword."""
        return self.text.upper() if self.kind is Kind.WORD else self.text

    @property
    def is_name(self) -> bool:
        """Whether the token can be a name."""
        return self.kind is Kind.WORD or self.kind is Kind.QUOTED

    @property
    def name(self) -> str:
        """The name without backticks."""
        if self.kind is Kind.QUOTED:
            return self.text[1:-1].replace("``", "`")
        return self.text


_NUMBER_SUFFIX = r"(?:[bB][dD]|[dDfF])?(?!\w)"
_PATTERN = re.compile(
    rf"""\s*(?:
    (?P<comment>--(?:\\\n|[^\r\n])*)
  | (?P<bracketed>/\*)
  | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
  | (?P<number>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?{_NUMBER_SUFFIX}
      | \d+(?:(?:[eE][+-]?\d+)?{_NUMBER_SUFFIX} | [lLsSyY](?!\w)))
  | (?P<word>\w+)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
  | (?P<parameter>\$\w+|\?)
  | (?P<symbol><=>|<>|!=|==|<=|>=|\|\||\|>|->|=>|::|:=|\S)
  )""",
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "word": Kind.WORD,
    "quoted": Kind.QUOTED,
    "string": Kind.STRING,
    "raw": Kind.STRING,
    "dollar": Kind.STRING,
    "number": Kind.NUMBER,
    "parameter": Kind.PARAMETER,
    "symbol": Kind.SYMBOL,
}
_UNCLOSED = {"'": "string", '"': "string", "`": "backtick"}
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def tokenize(text: str) -> tuple[Token, ...]:
    """All tokens of the text, without comments; the last one is END."""
    return _kept(text) if len(text) <= KEPT_CHARACTERS else _tokenize(text)


def _tokenize(text: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    position, match_at = 0, _PATTERN.match
    while match := match_at(text, position):
        group = match.lastgroup or ""
        if group == "tag":
            group = "dollar"
        start, position = match.span(group)
        if group == "bracketed":
            is_hint = text.startswith("/*+", start)
            position = _hint_end(text, start) if is_hint else _comment_end(text, start)
        elif group != "comment":
            found = text[start:position]
            if group == "symbol" and found in _UNCLOSED:
                raise _unclosed(text, start, _UNCLOSED[found])
            tokens.append(Token(_KINDS[group], found, start, position))
    tokens.append(Token(Kind.END, "", len(text), len(text)))
    return tuple(tokens)


_kept = lru_cache(maxsize=KEPT_TEXTS)(_tokenize)


def _comment_end(text: str, start: int) -> int:
    """The end of a bracketed comment; these nest, as in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if not depth:
            return edge.end()
    raise _unclosed(text, start, "comment")


def _hint_end(text: str, start: int) -> int:
    """The end of a hint, `/*+ … */`: Spark reads tokens in it, so that `*/` in a string does not end it."""
    position, match_at = start + len("/*+"), _PATTERN.match
    while match := match_at(text, position):
        group = match.lastgroup or ""
        first, position = match.span("dollar" if group == "tag" else group)
        if text.startswith("*/", first):
            return first + len("*/")
        if group == "bracketed":
            position = _comment_end(text, first)
        elif group == "symbol" and text[first] in _UNCLOSED:
            raise _unclosed(text, first, _UNCLOSED[text[first]])
    raise _unclosed(text, start, "comment")


def _unclosed(text: str, start: int, what: str) -> SqlSyntaxError:
    close = {"string": "a quote", "backtick": "a backtick", "comment": "*/"}[what]
    return SqlSyntaxError(
        f"unclosed {what}",
        hint=f"the {what} that starts here has no end; close it with {close}",
        place=Place(text, start, len(text)),
    )
