"""Queries over whole tables as trees of nodes: pairs in `circuits/*.sql`, and what is left to Spark.

A pair is a query and its tree as EXPLAIN shows it; `python -m tests.plan.test_relational FILE…` puts the tree
in the place of a line `?`, to be read and judged before it is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.expression.terms import PLAIN, Terms
from headwater.plan.relational.build import QueryBuilder
from headwater.plan.relational.describe import described
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.prune import Pruner
from headwater.plan.relational.top import with_tops
from headwater.sql.statements.query import make_query
from headwater.sql.types import name_of
from tests.plan.catalog import FixedTables
from tests.plan.pairs import Pair, read_pairs

FOLDER = Path(__file__).parent / "circuits"
PAIRS = [pair for path in sorted(FOLDER.glob("*.sql")) for pair in read_pairs(path)]


def some_type(function: str, types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Types of aggregates, roughly: the operators have the table."""
    if function.startswith(("count", "approx_count")):
        return pa.int64()
    if function in ("avg", "median", "percentile"):
        return pa.float64()
    return None if function == "mode" else types[0]


def tree_lines(query: str) -> list[str]:
    """The tree of a query, or why there is none; then its columns."""
    try:
        built = QueryBuilder(FixedTables(), PLAIN, some_type).query(make_query(query).tree)
    except NotKept as refused:
        return [f"Spark: {refused.reason}"]
    needed = {column.name for column in built.shown} | {one.name for one in built.order}
    root = Pruner(with_tops(built.node), frozenset(needed)).root
    shown = [f"{column.shown or '_'} {name_of(column.type)}" for column in built.shown]
    sign = "±" if root.changes else "+"
    return [*described(root), f"{sign} {', '.join(shown)}"]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.place)
def test_pair(pair: Pair) -> None:
    assert tree_lines(pair.query) == [line.rstrip() for line in pair.plan]


def test_a_name_that_a_user_function_took_is_no_aggregate() -> None:
    tree = make_query("SELECT k, std(v) AS d FROM s GROUP BY k").tree
    QueryBuilder(FixedTables(), PLAIN, some_type).query(tree)
    with pytest.raises(NotKept, match="std is a user's function"):
        QueryBuilder(FixedTables(), Terms(frozenset({"std"})), some_type).query(tree)


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 60


def fill(path: Path) -> None:
    """Puts trees in the place of lines `?`."""
    text = path.read_text()
    for pair in read_pairs(path):
        if pair.plan == ["?"]:
            made = "\n".join(tree_lines(pair.query))
            text = text.replace(f"{pair.query};\n?", f"{pair.query};\n{made}", 1)
    path.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fill(Path(name))
