"""Random expressions over columns, written for Spark and for DuckDB from the same random numbers.

Functions come from two lists: those that mean the same to DuckDB, and the whitelist of what is computed in
line. A query with one of the whitelist's is judged by Spark alone. Both are drawn from random numbers of
their own, so that the shapes of queries do not depend on the lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.harness.continuous.differences import SparkText
from tests.harness.continuous.streams import DECIMALS, INTEGERS
from tests.harness.whitelist import WHITELIST, Entry

OF_TEXT = (
    "lower({a})", "upper({a})", "trim({a})", "rtrim({a} || ' ')", "reverse({a})", "left({a}, 1)",
    "right({a}, 2)", "replace({a}, 'b', 'xy')", "lpad({a}, 3, 'xy')", "rpad({a}, 3, '-')", "repeat({a}, 2)",
    "nullif({a}, 'a')", "translate({a}, 'ab', 'xy')", "CASE WHEN {a} > 'a' THEN {a} ELSE 'z' END",
    "concat_ws('-', {a}, 'x')", "split_part({a}, 'b', 1)", "CAST(length({a}) AS STRING)",
)  # fmt: skip
OF_INTEGER = (
    "abs({a})", "nullif({a}, 1)", "greatest({a}, 2)", "least({a}, 3)", "if({a} > 1, {a}, 0)",
    "CAST({a} > 2 AS INT)", "length(CAST({a} AS STRING))", "CAST(CAST({a} AS DOUBLE) AS INT)",
)  # fmt: skip
# What no table of the oracle has, from a small whole number.
MADE = {
    "TIMESTAMP": "timestamp_seconds({a} * 1234567)",
    "DATE": "CAST(timestamp_seconds({a} * 7654321) AS DATE)",
    "TIMESTAMP_NTZ": "CAST(timestamp_seconds({a} * 4567891) AS TIMESTAMP_NTZ)",
}
NEVER_RAISE = tuple(entry for entry in WHITELIST if not entry.can_raise)


@dataclass(frozen=True)
class Place:
    """A column that an expression may read: `alias.name`, or `name` where that is clear."""

    text: str
    type: str


class Expressions:
    """Writes expressions; notes which constructs it used."""

    def __init__(
        self,
        random: Random,
        text: SparkText,
        constructs: set[str],
        functions: Random,
        spark_only: bool = False,
        listed: bool = False,
    ) -> None:
        self.random, self.text, self.constructs = random, text, constructs
        self.functions = functions  # which ones are drawn
        self.spark_only = spark_only  # whether functions may come that are only Spark's
        self.listed = listed  # whether those of the whitelist may come, which DuckDB may not have

    def pick(self, places: list[Place], *types: str) -> str | None:
        """A column of one of the types."""
        found = [place.text for place in places if place.type in types]
        return self.random.choice(found) if found else None

    def used(self, construct: str, text: str) -> str:
        """Notes a construct."""
        self.constructs.add(construct)
        return text

    def of_whitelist(self, places: list[Place], count: int) -> list[str]:
        """Functions of the whitelist over columns, if they may come."""
        found: list[str] = []
        while self.listed and len(found) < count:
            entry = self.functions.choice(NEVER_RAISE)
            operands = self._operands(entry, places)
            if operands is not None:
                filled = entry.template.format(**dict(zip("abc", operands, strict=False)))
                found.append(self.used("function of the whitelist", f"({filled})"))
        return found

    def _operands(self, entry: Entry, places: list[Place]) -> list[str] | None:
        """Columns of the types that an entry may have, or None."""
        small = self.pick_own([p for p in places if p.text.endswith("k")], "INT") or "3"
        found: list[str] = []
        for type_ in self.functions.choice(entry.types):
            made = MADE[type_].format(a=small) if type_ in MADE else None
            operand = self.pick_own(places, type_) or made
            if operand is None:
                return None
            found.append(operand)
        return found

    def pick_own(self, places: list[Place], *types: str) -> str | None:
        """A column of one of the types, from the functions' random numbers."""
        found = [place.text for place in places if place.type in types]
        return self.functions.choice(found) if found else None

    def number(self, places: list[Place]) -> str:
        """An integer."""
        a = self.pick(places, *INTEGERS) or "1"
        kind = self.random.randint(0, 9)
        constant = self.random.randint(1, 5)
        if kind == 0:
            return self.used("arithmetic", f"{a} + {constant}")
        if kind == 1:
            return self.used("arithmetic", f"{a} * {constant} - 1")
        if kind == 2:
            return self.used(
                "CASE", f"CASE WHEN {a} > {constant} THEN 1 WHEN {a} < 0 THEN -1 ELSE 0 END"
            )
        if kind == 3:
            return self.used("coalesce", f"coalesce({a}, {constant})")
        if kind == 4:
            return self.used("modulo", f"{a} % {constant + 1}")
        if kind == 5:
            return self.used("DIV", self.text.divided(f"abs({a})", str(constant + 1)))
        if kind == 6:
            s = self.pick(places, "STRING")
            return self.used("length", f"length({s})") if s else a
        if kind == 7 and self.spark_only:
            t = self.pick(places, "TIMESTAMP")
            return self.used("hour, in a time zone", f"hour({t})") if t else a
        if kind == 8:
            return self.used("integer functions", self.functions.choice(OF_INTEGER).format(a=a))
        return a

    def double(self, places: list[Place]) -> str:
        """A floating point number."""
        d = self.pick(places, "DOUBLE") or self.pick(places, *INTEGERS) or "1"
        kind = self.random.randint(0, 5)
        if kind == 0:
            return self.used("arithmetic", f"{d} * 2")
        if kind == 1:
            return self.used("division", f"{self.number(places)} / 4")
        return d

    def decimal(self, places: list[Place]) -> str | None:
        """A decimal, if there is a column."""
        m = self.pick(places, *DECIMALS)
        if m is None:
            return None
        self.constructs.add("decimals")
        kind = self.random.randint(0, 4)
        return f"{m} + 1.25" if kind == 0 else f"{m} * 3" if kind == 1 else m

    def string(self, places: list[Place]) -> str:
        """A text."""
        s = self.pick(places, "STRING") or "'q'"
        self.constructs.add("strings")
        kind = self.random.randint(0, 7)
        if kind == 0:
            return self.used("concat", f"{s} || '-'")
        if kind == 1:
            return self.used("substring", f"substring({s}, 1, 1)")
        if kind in (2, 4) and self.spark_only:
            return self.used("function that only Spark has", f"md5({s})")
        if kind == 3:
            return self.used("coalesce", f"coalesce({s}, '?')")
        if kind in (5, 6):
            return self.used("text functions", self.functions.choice(OF_TEXT).format(a=s))
        return s

    def any(self, places: list[Place]) -> str:
        """An expression of any type."""
        kind = self.random.randint(0, 5)
        if kind <= 1:
            return self.number(places)
        if kind == 2:
            return self.double(places)
        if kind == 3:
            return self.decimal(places) or self.number(places)
        if kind == 4:
            return self.string(places)
        plain = self.random.choice(places).text
        return next(iter(self.of_whitelist(places, 1)), plain)

    def key(self, places: list[Place]) -> str:
        """An expression with few values."""
        kind = self.random.randint(0, 6)
        k = self.pick([p for p in places if p.text.endswith("k")], "INT") or "1"
        if kind <= 2:
            return k
        if kind == 3:
            return self.string(places)
        if kind == 4:
            i = self.pick(places, *INTEGERS) or k
            return self.used("modulo", f"{i} % 3")
        if kind == 5:
            return self.pick(places, "DOUBLE") or k
        return self.pick(places, "BOOLEAN", *DECIMALS) or k

    def condition(self, places: list[Place], depth: int = 0) -> str:
        """A condition."""
        kind = self.random.randint(0, 13 if depth < 2 else 9)
        constant = self.random.randint(-1, 4)
        if kind <= 2:
            op = self.random.choice(["=", "<", ">=", "<>", "<="])
            return f"{self.number(places)} {op} {constant}"
        if kind == 3:
            d = self.pick(places, "DOUBLE")
            return f"{d} > {constant}.5" if d else "1 = 1"
        if kind == 4:
            s = self.string(places)
            pattern = self.random.choice(["a%", "%b", "_"])
            return self.used("LIKE", f"{s} LIKE '{pattern}'")
        if kind == 5:
            column = self.random.choice(places).text
            column = next(iter(self.of_whitelist(places, 1)), column)
            return self.used("IS NULL", f"{column} IS {self.random.choice(['', 'NOT '])}NULL")
        if kind == 6:
            return self.used("IN", f"{self.number(places)} IN (0, 1, {constant + 2})")
        if kind == 7:
            return self.used("BETWEEN", f"{self.number(places)} BETWEEN -2 AND {constant + 3}")
        if kind == 8:
            return self.used("<=>", self.text.same(self.number(places), str(constant)))
        if kind == 9:
            m = self.pick(places, *DECIMALS)
            b = self.pick(places, "BOOLEAN")
            return f"{m} < 2.5" if m else b or "1 = 1"
        if kind == 10:
            return self.used("NOT", f"NOT ({self.condition(places, depth + 1)})")
        word = "AND" if kind <= 12 else "OR"
        left, right = self.condition(places, depth + 1), self.condition(places, depth + 1)
        return self.used(word, f"({left} {word} {right})")
