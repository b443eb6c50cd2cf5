"""Conditions as predicates of the storage, and the ranges that they leave, against brute force."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from headwater.expression.bind import Refusal, bind
from headwater.expression.predicate import (
    EVERYTHING,
    And,
    Comparison,
    Constant,
    IsNull,
    Not,
    Or,
    Predicate,
    Range,
    predicate_of,
    ranges_of,
)
from headwater.expression.terms import PLAIN, Terms
from headwater.plan.bounds import time_ranges
from headwater.sql import dialect
from headwater.sql.types import TIMESTAMP
from tests.expression.evaluation import bound

SCHEMA = pa.schema(
    {"t": pa.int64(), "i": pa.int32(), "y": pa.int8(), "f": pa.float32(), "d": pa.float64(),
     "s": pa.string(), "b": pa.bool_(), "m": pa.decimal128(10, 2)}
)  # fmt: skip


def predicate(text: str) -> Predicate | None:
    found = bound(text, SCHEMA)
    return None if found is None else predicate_of(found)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("t = 1", Comparison("t", "=", 1, pa.int64())),
        ("1 < y", Comparison("y", ">", 1, pa.int8())),
        ("y <> 1L", Comparison("y", "!=", 1, pa.int8())),
        ("d < 1", Comparison("d", "<", 1.0, pa.float64())),
        ("b", Comparison("b", "=", True, pa.bool_())),
        ("NOT s IS NULL", Not(IsNull("s"))),
        ("i = NULL", Constant(None)),
        ("i = 1 + 1", Comparison("i", "=", 2, pa.int32())),
        ("i IN (1)", Comparison("i", "=", 1, pa.int32())),
    ],
)
def test_a_condition_is_a_predicate(text: str, wanted: Predicate) -> None:
    """In the column's own type, the column on the left."""
    assert predicate(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "i = 1.0",
        "y = 1000",
        "f > 1",
        "f > 1.5F",
        "m = 1",
        "i <=> 1",
        "i = t",
        "length(s) = 1",
        "i + 1 = 2",
    ],
)
def test_more_than_a_predicate(text: str) -> None:
    """What the storage does not compare itself."""
    assert bound(text, SCHEMA) is not None
    assert predicate(text) is None


COMPARISONS = st.builds(
    lambda op, value: Comparison("t", op, value, pa.int64()),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.integers(-5, 5),
)
LEAVES = st.one_of(
    COMPARISONS,
    st.sampled_from([Constant(True), Constant(False), Constant(None), IsNull("t"), IsNull("s")]),
    st.just(Comparison("i", "=", 1, pa.int32())),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        parts.map(Not),
        st.lists(parts, min_size=1, max_size=3).map(lambda found: And(tuple(found))),
        st.lists(parts, min_size=1, max_size=3).map(lambda found: Or(tuple(found))),
    ),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(PREDICATES)
def test_no_row_lies_outside_the_ranges(asked: Predicate) -> None:
    """Any row that the predicate takes lies in a range; ranges ascend and do not touch."""
    rows = pa.table(
        {"t": pa.array(range(-7, 8)), "i": pa.array([1, 0, 1] * 5, pa.int32()), "s": ["x"] * 15}
    )
    found = ranges_of(asked, "t", int)
    for tick in rows.filter(asked.arrow())["t"].to_pylist():
        inside = [r for r in found if r.within(Range(tick, tick)) is not None]
        assert len(inside) == 1, (asked, found)
    for first, second in pairwise(found):
        assert first.high is not None
        assert second.low is not None
        assert first.high < second.low


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("t BETWEEN 1 AND 2 OR t BETWEEN 8 AND 9", (Range(1, 2), Range(8, 9))),
        ("t BETWEEN 1 AND 5 OR t BETWEEN 3 AND 9", (Range(1, 9),)),
        ("t NOT BETWEEN 3 AND 6 AND t > 0", (Range(0, 3), Range(6, None))),
        ("(t < 2 AND f(x)) OR (t > 8 AND g(y))", (Range(None, 2), Range(8, None))),
        ("t < 2 OR f(x)", EVERYTHING),
        ("t IN (1, 7, 3)", (Range(1, 1), Range(3, 3), Range(7, 7))),
        ("t = 1 AND t = 2", ()),
        ("u.t = 1", EVERYTHING),
        ("x.T = 1 AND NOT (x.t <> 1)", (Range(1, 1),)),
        ("t = 1 AND NOT f(x)", (Range(1, 1),)),
    ],
)
def test_ranges_of_a_where(where: str, wanted: tuple[Range, ...]) -> None:
    """What the WHERE of a query says of the time of a table's rows."""
    tree = dialect.parse_tree(f"SELECT * FROM x WHERE {where}")
    assert isinstance(tree, exp.Select)
    table = tree.find(exp.Table)
    assert table is not None
    assert time_ranges(table, ("t", pa.int64()), int, PLAIN) == wanted


def test_a_day_is_one_of_the_sessions_zone() -> None:
    """DATE beside a TIMESTAMP is a midnight; TIMESTAMP text is read in the zone."""

    def constant(text: str, zone: str) -> str:
        tree = dialect.parse_tree(f"SELECT c > {text}")
        assert isinstance(tree, exp.Select)
        found = bind(tree.expressions[0], lambda _: ("c", TIMESTAMP), Terms(time_zone=zone))
        assert not isinstance(found, Refusal)
        made = predicate_of(found)
        assert isinstance(made, Comparison)
        return str(made.value)

    assert constant("DATE '2024-07-01'", "UTC") == "2024-07-01 00:00:00+00:00"
    assert constant("DATE '2024-07-01'", "Europe/Berlin") == "2024-06-30 22:00:00+00:00"
    assert (
        constant("TIMESTAMP '2024-07-01 10:00:00'", "Europe/Berlin") == "2024-07-01 08:00:00+00:00"
    )


def test_a_refusal_has_a_reason_and_a_place() -> None:
    """Whoever explains a plan can say why Spark is asked."""
    text = "SELECT i + unknown"
    tree = dialect.parse_tree(text)
    assert isinstance(tree, exp.Select)
    found = bind(
        tree.expressions[0], lambda column: ("i", pa.int32()) if column.name == "i" else None
    )
    assert isinstance(found, Refusal)
    assert "column" in found.reason
    assert found.span is not None
    assert found.span.of(text) == "unknown"
