"""Whether Spark reads a query's text as its tree says: sqlglot reads more than Spark does.

`CAST(a AS text)`, `arg_max(a, b)`, a comma before FROM, `AS 'name'`, NVL with one argument: a tree has no
trace of what is wrong with them. Owns the words, signs and numbers of arguments that are known to be Spark's.
Must never: judge a text; what is not known here is Spark's to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import exp

from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.names import words
from headwater.sql.spark_functions import ALLOWED
from headwater.sql.statements.query import Query

SIGNS = words("( ) [ ] , . + - * / % = == <> != < <= > >= <=> || :: & | ^ ~")
WORDS = words(
    """
    ALL AND ANTI AS ASC ASOF BETWEEN BOTH BY CASE CAST CROSS CUBE CURRENT CURRENT_DATE
    CURRENT_TIMESTAMP DESC DISTINCT DIV ELSE END ESCAPE EXCEPT EXISTS EXTRACT FALSE FILTER FIRST
    FOLLOWING FOR FROM FULL GROUP GROUPING HAVING IGNORE ILIKE IN INNER INTERSECT INTERVAL IS
    JOIN LAST LATERAL LEADING LEFT LIKE LIMIT LOCALTIMESTAMP MINUS NATURAL NOT NULL NULLS OFFSET
    ON OR ORDER OUTER OVER PARTITION PIVOT PRECEDING QUALIFY RANGE REGEXP RESPECT RIGHT RLIKE
    ROLLUP ROW ROWS SELECT SEMI SETS THEN TRAILING TRUE TRY_CAST UNBOUNDED UNION UNKNOWN UNPIVOT
    USING VIEW WHEN WHERE WINDOW WITH WITHIN
    BIGINT BINARY BOOLEAN BYTE DATE DEC DECIMAL DOUBLE FLOAT INT INTEGER LONG NUMERIC REAL SHORT
    SMALLINT STRING TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ TINYINT
    MICROSECOND MICROSECONDS MILLISECOND MILLISECONDS SECOND SECONDS MINUTE MINUTES HOUR HOURS
    DAY DAYS WEEK WEEKS MONTH MONTHS QUARTER YEAR YEARS DAYOFWEEK DOW DOY ISODOW
    """
)
CLAUSES = words("FROM WHERE GROUP HAVING ORDER QUALIFY LIMIT OFFSET UNION EXCEPT INTERSECT MINUS")
# Each with the words that may not stand right behind it.
APART: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        ",": CLAUSES | {")", "]", ""},
        "BY": frozenset({"DISTINCT"}),
        "FULL": words("INNER SEMI ANTI"),
        "LEFT": words("INNER"),
        "RIGHT": words("INNER SEMI ANTI"),
        "WITH": frozenset({"("}),
        **{word: frozenset({"IS"}) for word in ("NULL", "TRUE", "FALSE")},
    }
)
BEHIND_A_NUMBER = words("UNION EXCEPT INTERSECT MINUS") | {")", ";", ""}  # of LIMIT and OFFSET
OUTER_BEHIND = words("LEFT RIGHT FULL VIEW")
# How many arguments Spark takes where sqlglot takes more or fewer.
ARITIES: Mapping[str, int] = MappingProxyType(
    {"array_agg": 1, "collect_list": 1, "collect_set": 1, "ifnull": 2, "mod": 2, "nvl": 2}
)
EDGES = words("ANY_VALUE FIRST FIRST_VALUE LAST LAST_VALUE")
NOT_IN_CALLS = words("ORDER LIMIT HAVING")


@dataclass
class _Bracket:
    """What is open: a call, if a function's name stands before it."""

    function: str = ""
    commas: int = 0


def reads_as_spark(query: Query) -> bool:
    """Whether all of a query's text is known to be Spark's."""
    tree = query.tree
    if tree is None or any(map(_is_chained, tree.find_all(exp.In))):
        return False
    ours = query.spans
    tokens = [t for t in tokenize(query.text) if not any(s.start <= t.start < s.end for s in ours)]
    names = {one.meta["start"] for one in tree.find_all(exp.Identifier) if "start" in one.meta}
    return _Reader(tokens, names).is_known()


def _is_chained(test: exp.In) -> bool:
    """Whether IN with a subquery is an operand without parentheses, as of `a IN (SELECT …) IS NULL`."""
    outer = test.parent
    joined = isinstance(outer, exp.And | exp.Or | exp.Not)
    return isinstance(outer, exp.Binary | exp.Predicate | exp.Cast) and not joined


class _Reader:
    """Goes over the tokens of a text. `names`: where columns, tables and aliases start."""

    def __init__(self, tokens: Sequence[Token], names: set[int]) -> None:
        self._tokens = tokens
        # The keywords and signs; nothing for names and constants.
        self._words = [
            token.upper
            if token.kind in (Kind.WORD, Kind.SYMBOL) and token.start not in names
            else "a"
            for token in tokens
            if token.kind is not Kind.END
        ]
        self._words += ["", "", ""]
        self._names = names
        self._open: list[_Bracket] = []

    def is_known(self) -> bool:
        """Whether each token is, where it stands."""
        return all(map(self._is_known, range(len(self._words) - 3)))

    def _is_known(self, place: int) -> bool:
        token, word = self._tokens[place], self._words[place]
        if token.kind is Kind.STRING:
            return token.start not in self._names
        if word == "a":
            return True
        if token.kind is Kind.SYMBOL and not self._is_sign(place, word):
            return False
        if token.kind is Kind.WORD and not self._is_word(place, word):
            return False
        return self._words[place + 1] not in APART.get(word, ())

    def _is_word(self, place: int, word: str) -> bool:
        after = self._words[place + 1]
        called = after == "(" and word.lower() in ALLOWED
        if not called and word not in WORDS:
            return False
        if word in ("LIMIT", "OFFSET"):
            behind = self._words[place + 2]
            return behind in BEHIND_A_NUMBER or (word == "LIMIT" and behind == "OFFSET")
        if word == "FILTER":
            return after == "(" and self._words[place + 2] == "WHERE"
        if word == "OUTER":
            return place > 0 and self._words[place - 1] in OUTER_BEHIND
        inside = bool(self._open and self._open[-1].function)
        return not (inside and word in NOT_IN_CALLS)

    def _is_sign(self, place: int, sign: str) -> bool:
        if sign in ("(", "["):
            before = self._words[place - 1].lower() if place else ""
            named = before in ALLOWED and before.upper() not in WORDS - EDGES
            self._open.append(_Bracket(before if named else ""))
        elif sign == "," and self._open:
            self._open[-1].commas += 1
        elif sign in (")", "]"):
            return bool(self._open) and self._closes(place, self._open.pop())
        return sign in SIGNS

    def _closes(self, place: int, bracket: _Bracket) -> bool:
        """Whether a call has as many arguments as Spark wants."""
        count = bracket.commas + (self._words[place - 1] != "(")
        if bracket.function.upper() in EDGES and count == 2:
            return self._words[place - 1] in ("TRUE", "FALSE")
        return count == ARITIES.get(bracket.function, count)
