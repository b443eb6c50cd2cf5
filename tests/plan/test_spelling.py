"""How a query is written says nothing: blanks, comments, letter case and backticks do not change its plan."""

from __future__ import annotations

import random
import re

import pytest

from headwater.errors import Error
from headwater.sql.lexer import Kind, Token, tokenize
from tests.plan.catalog import STANDARD, STREAMS, schema
from tests.plan.compact import lines_of, plan_lines, plan_of
from tests.plan.pairs import Pair, all_pairs

PAIRS = [pair for pair in all_pairs() if "/*+" not in pair.query]  # a hint is not a comment
SPELLINGS = 2  # of each query
BLANKS = [
    " ",
    " ",
    "\n",
    "\t",
    "  ",
    " /* x */ ",
    "/* GROUP BY 'q */",
    " -- it's; a comment\n",
    "/**/ ",
]
NAMES = {*STREAMS, *STANDARD, "_seq", "_late"}
NAMES |= {name for columns in (STREAMS | STANDARD).values() for name in schema(columns).names}


def respelled(text: str, chance: random.Random) -> str:
    """The same query in other letters."""
    tokens = [token for token in tokenize(text) if token.kind is not Kind.END]
    parts = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        parts.append(_word(token, after, chance))
        apart = after is not None and after.start > token.end
        parts.append(chance.choice(BLANKS) if apart or chance.random() < 0.2 else "")
    return "".join(parts).rstrip()


def _word(token: Token, after: Token | None, chance: random.Random) -> str:
    if token.kind is not Kind.WORD:
        return token.text
    called = after is not None and after.text == "("
    if token.text.lower() in NAMES and not called and chance.random() < 0.3:
        return f"`{token.text}`"
    way = chance.choice([str.upper, str.lower, str.title, str])
    return way(token.text)


def spelled_alike(text: str, show: str) -> list[str]:
    """The plan in small letters, without backticks and comments; its folds in the order of the text."""
    try:
        query, plan = plan_of(text, show)
    except Error as error:
        return ["".join(error.message.lower().split())]
    lines = lines_of(query, plan, show)
    folds = sorted(plan.folds, key=lambda fold: fold.block.span.start)
    ranks = {str(fold.number): str(rank) for rank, fold in enumerate(folds)}
    renamed = [
        re.sub(r"\bfold([ _])(\d+)", lambda m: f"fold{m[1]}{ranks[m[2]]}", line) for line in lines
    ]
    return sorted("".join(line.lower().replace("`", "").split()) for line in renamed)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.place)
def test_spelling_changes_nothing(pair: Pair) -> None:
    chance = random.Random(pair.place)
    expected = spelled_alike(pair.query, pair.show)
    for _ in range(SPELLINGS):
        text = respelled(pair.query, chance)
        assert spelled_alike(text, pair.show) == expected, text


def test_words_of_a_clause_may_stand_apart() -> None:
    edges = "SELECT first( /* x */ v ) FROM s [LANDMARK] SAMPLE 2 ROWS"
    assert "AS `first(v)`" in plan_lines(edges, "whole")[-1]
    plain = (
        "SELECT k, sum(v) FROM s [LANDMARK] GROUP BY k HAVING sum(v) > 1 ORDER BY k SAMPLE 2 ROWS"
    )
    apart = "SELECT k,sum(v)FROM s[LANDMARK]GROUP /* x */ BY k HAVING sum(v)>1 ORDER -- x\nBY k SAMPLE 2 ROWS"
    assert spelled_alike(apart, "types whole") == spelled_alike(plain, "types whole")


def test_a_plan_that_differs_is_seen() -> None:
    one, other = "SELECT sum(v) FROM s", "SELECT max(v) FROM s"
    assert spelled_alike(one, "") != spelled_alike(other, "")
