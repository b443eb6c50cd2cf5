"""How DuckDB differs from Spark, and the texts that make it say the same.

Spark is the judge. A query is written twice from the same random numbers, once by `SparkText` and once by
`DuckText`; every place where they differ is a method here. The rows that come back differ in what
`DIFFERENCES` says, which `same` in `compare.py` lets pass, and in nothing else.
"""

from __future__ import annotations

DIFFERENCES: tuple[str, ...] = (
    "sum of integers is HUGEINT, not BIGINT: compared by value",
    "avg of decimals is DOUBLE, not DECIMAL(p+4, s+4): compared within half a unit of its last digit",
    "decimal arithmetic has other precisions: compared by value",
    "floor and ceil of DOUBLE stay DOUBLE: cast to BIGINT",
    "integer division is //, not DIV",
    "<=> is IS NOT DISTINCT FROM",
    "NULLs come last in ascending order: NULLS FIRST or LAST is always written",
    "first and last follow the order of rows: arg_min and arg_max by (T, _seq) are written",
    "bool_and and bool_or have fewer names: every, some and any are written so",
    "mean and std are written avg and stddev_samp",
    "count_if over no rows is NULL, not 0: count(CASE …) is written",
    "LEFT SEMI JOIN and LEFT ANTI JOIN are SEMI JOIN and ANTI JOIN",
    "variance of NaN is an error: such cases are not compared with DuckDB",
    "substring, || and LIKE are the same; CAST of numbers to STRING only of integers",
    "sum(DISTINCT x) and median are the same",
    "TIMESTAMP '…' has no zone: TIMESTAMPTZ '…' is written; both read it in the zone of the session",
    "current_date() is of the wall's clock: the date of the instant is written",
)


class SparkText:
    """The texts of the query that Headwater gets."""

    duck = False

    def window(self, table: str, number: int, text: str) -> str:
        """A windowed table."""
        return f"{table} [{text}]"

    def previous(self, alias: str, column: str, steps: int) -> str:
        """PREV of a column."""
        inner = f"{alias}.{column}" if alias else column
        return f"PREV({inner})" if steps == 1 else f"PREV({inner}, {steps})"

    def instant(self) -> str:
        """The instant."""
        return "CURRENT_INSTANT()"

    def today(self) -> str:
        """The date of the instant, in the time zone of the query."""
        return "current_date()"

    def moment(self, text: str) -> str:
        """A text as a moment, in the time zone of the query."""
        return f"TIMESTAMP '{text}'"

    def nulls(self, descending: bool, first: bool) -> str:
        """NULLS FIRST or LAST, where it is not the default."""
        return "" if first != descending else f" NULLS {'FIRST' if first else 'LAST'}"

    def edge(self, function: str, value: str, alias: str, time: str, there: bool) -> str:
        """first(x) or last(x)."""
        return f"{function}({value}){' IGNORE NULLS' if there else ''}"

    def aggregate(self, name: str) -> str:
        """The name of an aggregate."""
        return name

    def counted(self, condition: str) -> str:
        """count_if."""
        return f"count_if({condition})"

    def same(self, left: str, right: str) -> str:
        """Equality that takes NULL for a value."""
        return f"{left} <=> {right}"

    def divided(self, left: str, right: str) -> str:
        """Integer division."""
        return f"{left} DIV {right}"

    def rounded(self, function: str, value: str) -> str:
        """floor or ceil."""
        return f"{function}({value})"

    def join(self, kind: str) -> str:
        """The words of a join."""
        return {"semi": "LEFT SEMI", "anti": "LEFT ANTI"}.get(kind, kind.upper()) + " JOIN"

    def clauses(self, text: str) -> str:
        """SAMPLE and EMIT."""
        return f" {text}"


class DuckText(SparkText):
    """The texts of the same query over tables w0, w1, … that hold the rows of its windows."""

    duck = True

    def window(self, table: str, number: int, text: str) -> str:
        """The table of the window's rows."""
        return f"w{number}"

    def previous(self, alias: str, column: str, steps: int) -> str:
        """A column that the model computed."""
        return f"{alias}.prev{steps}_{column}" if alias else f"prev{steps}_{column}"

    def instant(self) -> str:
        """A literal that the model fills in."""
        return "$instant"

    def today(self) -> str:
        """A literal that the model fills in."""
        return "$today"

    def moment(self, text: str) -> str:
        """A moment with a zone."""
        return f"TIMESTAMPTZ '{text}'"

    def nulls(self, descending: bool, first: bool) -> str:
        """Always written."""
        return f" NULLS {'FIRST' if first else 'LAST'}"

    def edge(self, function: str, value: str, alias: str, time: str, there: bool) -> str:
        """By the order of rows; arg_min itself leaves NULLs out."""
        kind = "arg_min" if function.startswith("first") else "arg_max"
        suffix = "" if there else "_null"
        return f"{kind}{suffix}({value}, {alias}._rank)"

    def aggregate(self, name: str) -> str:
        """DuckDB's name."""
        return {
            "every": "bool_and",
            "some": "bool_or",
            "any": "bool_or",
            "mean": "avg",
            "std": "stddev_samp",
        }.get(name, name)

    def counted(self, condition: str) -> str:
        """count_if is NULL over no rows."""
        return f"count(CASE WHEN {condition} THEN 1 END)"

    def same(self, left: str, right: str) -> str:
        """Equality that takes NULL for a value."""
        return f"{left} IS NOT DISTINCT FROM {right}"

    def divided(self, left: str, right: str) -> str:
        """Integer division."""
        return f"{left} // {right}"

    def rounded(self, function: str, value: str) -> str:
        """floor or ceil as an integer."""
        return f"CAST({function}({value}) AS BIGINT)"

    def join(self, kind: str) -> str:
        """The words of a join."""
        return kind.upper() + " JOIN"

    def clauses(self, text: str) -> str:
        """There are none."""
        return ""
