"""DELETE and UPDATE by operators: what is understood, what is left to Spark, and what becomes of rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.expression.terms import Terms
from headwater.plan.change import change_plan

SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("b", pa.int64()),
        ("s", pa.string()),
        ("p", pa.struct([("x", pa.int32())])),
    ]
)
ROWS = pa.table(
    {
        "a": [1, 2, None],
        "b": [10, None, 30],
        "s": ["u", "v", None],
        "p": [{"x": 1}, {"x": 2}, None],
    },
    schema=SCHEMA,
)


def planned(text: str, *targets: str):  # type: ignore[no-untyped-def]
    fields = [SCHEMA.field(name) for name in targets]
    return change_plan(text, SCHEMA, "q", fields, Terms(frozenset({"mine"})))


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("SELECT 1 FROM t AS q", [True, True, True]),
        ("SELECT 1 FROM t AS q WHERE a > 1", [False, True, False]),
        ("SELECT 1 FROM t AS q WHERE q.A = 1 OR s IS NULL", [True, False, True]),
        ("SELECT 1 FROM t AS q WHERE NULL", None),
        ("SELECT 1 FROM t AS q WHERE a IN (SELECT 1)", None),
        ("SELECT 1 FROM t AS q WHERE EXISTS (SELECT 1 FROM u)", None),
        ("SELECT 1 FROM t AS q WHERE other.a = 1", None),
        ("SELECT 1 FROM t AS q WHERE p.x = 1", [True, False, False]),
        ("SELECT 1 FROM t AS q WHERE mine(a) = 1", None),
        ("SELECT 1 FROM t AS q WHERE rand() < 0.5", None),
        ("SELECT 1 FROM t AS q WHERE current_timestamp() > TIMESTAMP '2020-01-01 00:00:00'", None),
        ("SELECT 1 FROM t AS q WHERE a", None),
        ("SELECT 1 FROM t AS q WHERE a = 1 ORDER BY a", None),
        ("SELECT 1 FROM t AS q WHERE a = 1 GROUP BY a", None),
        ("SELECT DISTINCT 1 FROM t AS q", None),
    ],
)
def test_which_rows_are_meant(text: str, chosen: list[bool] | None) -> None:
    plan = planned(text)
    assert (None if plan is None else plan.chosen(ROWS).to_pylist()) == chosen


@pytest.mark.parametrize(
    ("value", "column", "found"),
    [
        ("a + 1", "a", [2, 3, None]),
        ("a + 1", "b", [2, 3, None]),  # cast as it is stored
        ("NULL", "s", [None, None, None]),
        ("5", "s", ["5", "5", "5"]),
        ("upper(s)", "s", ["U", "V", None]),
        ("coalesce(b, a)", "b", [10, 2, 30]),
        ("q.b", "b", [10, None, 30]),
        ("'x'", "a", "left"),  # an error, which Spark's types tell
        ("named_struct('x', 1)", "p", "left"),
        ("(SELECT max(a) FROM t)", "a", "left"),
        ("DEFAULT", "a", "left"),
        ("rand()", "b", "left"),
        ("a AS b", "a", "left"),
    ],
)
def test_what_becomes_of_a_column(value: str, column: str, found: object) -> None:
    plan = planned(f"SELECT {value} FROM t AS q", column)
    assert ("left" if plan is None else plan.changed(ROWS).column(column).to_pylist()) == found


def test_new_values_are_made_of_the_old_ones() -> None:
    plan = planned("SELECT b, a FROM t AS q", "a", "b")
    assert plan is not None
    new = plan.changed(ROWS)
    assert new.column("a").to_pylist() == [10, None, 30]
    assert new.column("b").to_pylist() == [1, 2, None]
    assert new.schema.names == SCHEMA.names
