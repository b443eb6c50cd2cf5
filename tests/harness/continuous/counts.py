"""How often each construct ran in each tier and mode; a zero fails the run."""

from __future__ import annotations

from collections import Counter
from typing import Any

OPERATORS, FOLD, REEVALUATED = "operators", "fold on Spark", "re-evaluated"
COLUMNS = (OPERATORS, FOLD, REEVALUATED)

# What a tier cannot run, and why: the rest must run everywhere.
ONLY_REEVALUATED = frozenset(
    {
        "sum(DISTINCT)",  # no partial
        "median",
        "left join of streams",  # a row that matches nothing yet
        "grouping sets",  # no fold has them
        "subquery under OR",  # folded or not by what else is asked
    }
)
ONLY_ON_SPARK = frozenset(
    {
        "function that only Spark has",  # not on the whitelist
        "stream join",  # rows of pairs are found by Spark
        "derived table",  # the upper part is Spark's
        "CTE",
        "UNION ALL",
        "scalar subquery",
        *(f"{k} (SELECT … FROM a table)" for k in ("EXISTS", "NOT EXISTS", "IN", "NOT IN")),
        "a subquery twice",
        "EXISTS above the fold",
        "inner join with a table above the fold",
        "left join with a table above the fold",
        "semi join with a table above the fold",
        "anti join with a table above the fold",
    }
)
STREAMS = frozenset(
    {
        *("ties", "gaps", "out of order", "nulls", "NaN", "watermark", "range", "restart"),
        *("table changes", "advance", "integer time", "timestamp time"),
        *("created on empty", "created on stored rows"),
    }
)
WINDOWS = frozenset(
    {f"window {w}" for w in ("interval", "before", "rows", "A ROWS", "A, B ROWS", "landmark")}
    | {"window smaller than slide", "slide does not divide window"}
    | {f"SAMPLE {s}" for s in ("interval", "rows", "realtime")}
    | {f"EMIT {e}" for e in ("all", "changes", "inserts", "deletes")}
)
CALLS = frozenset(
    {
        *("count(*)", "count", "sum", "avg", "mean", "min", "max", "count(DISTINCT)", "count_if"),
        *("var_samp", "var_pop", "variance", "stddev_samp", "stddev_pop", "stddev", "std"),
        *("bool_and", "bool_or", "every", "some", "any"),
        *("first", "last", "first_value", "last_value"),
    }
)
CLAUSES = frozenset(
    {
        *(
            "filter and projection",
            "WHERE",
            "DISTINCT",
            "HAVING",
            "ORDER BY",
            "LIMIT",
            "FILTER",
            "*",
        ),
        *("PREV", "CURRENT_INSTANT", "no GROUP BY", "aggregate over one window"),
        *("function of the whitelist", "text functions", "integer functions"),
        *("window function above the fold", "set operation above the fold"),
        *(f"GROUP BY {how}" for how in ("text", "ordinal", "alias", "all")),
        *("stream join under aggregates", "self-join under two windows"),
        *(f"{k} join with a table below the fold" for k in ("inner", "left", "semi", "anti")),
    }
)
EVERYWHERE = STREAMS | WINDOWS | CALLS | CLAUSES


class Counts:
    """Constructs by tier."""

    def __init__(self) -> None:
        self.found: dict[str, Counter[str]] = {}
        self.cases = 0

    def add(self, case: Any, history: Any, tier: Any, name: str, mode: str) -> None:
        """A query ran in a database of one tier."""
        by_operators, on_spark = tier.ran[name]
        folded = mode == "fold" and bool(tier.query(name).plan.folds)
        column = REEVALUATED if tier.tier == "Spark" else OPERATORS
        if folded and tier.tier == "Spark":
            column = FOLD
        if folded and tier.tier != "Spark" and on_spark and not by_operators:
            column = FOLD
        for construct in case.constructs | history.constructs:
            self.found.setdefault(construct, Counter())[column] += 1
        self.cases += column == REEVALUATED

    def table(self) -> str:
        """The table to print."""
        lines = [f"{'construct':44}" + "".join(f"{c:>16}" for c in COLUMNS)]
        for construct in sorted(set(self.found) | EVERYWHERE):
            row = self.found.get(construct, Counter())
            lines.append(f"{construct:44}" + "".join(f"{row[c]:>16}" for c in COLUMNS))
        return "\n".join(lines)

    def missing(self) -> list[tuple[str, str]]:
        """What never ran where it can run."""
        wanted = [(construct, column) for construct in EVERYWHERE for column in COLUMNS]
        wanted += [
            (construct, column) for construct in ONLY_ON_SPARK for column in (FOLD, REEVALUATED)
        ]
        wanted += [(construct, REEVALUATED) for construct in ONLY_REEVALUATED]
        return sorted(
            (construct, column)
            for construct, column in wanted
            if not self.found.get(construct, Counter())[column]
        )
