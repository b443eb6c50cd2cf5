"""Semi and anti joins by operators take the rows that EXISTS and IN mean, whatever stands beside the key."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headwater.compile.block import probe_name
from headwater.compile.fold import make_spec, refuse_types
from headwater.expression.terms import PLAIN
from headwater.fold.probe import Probe
from tests.plan.catalog import STANDARD, schema
from tests.plan.compact import plan_of

Row = dict[str, Any]
KEYS = ["a", "b", "c", None]
NUMBERS = [0, 1, 2, 3, None]


def same(one: Any, other: Any) -> bool:
    """`=` that is true."""
    return one is not None and one == other


def more(one: Any, other: Any) -> bool:
    """`>` that is true."""
    return one is not None and other is not None and one > other


TESTS: dict[str, tuple[bool, Callable[[Row, Row], bool]]] = {
    "EXISTS (SELECT 1 FROM t WHERE t.k = s.k)": (True, lambda s, t: same(t["k"], s["k"])),
    "NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k)": (False, lambda s, t: same(t["k"], s["k"])),
    "EXISTS (SELECT * FROM t WHERE k = s.k AND x > v)": (
        True,
        lambda s, t: same(t["k"], s["k"]) and more(t["x"], s["v"]),
    ),
    "NOT EXISTS (SELECT k FROM t WHERE s.k = k AND x > v)": (
        False,
        lambda s, t: same(t["k"], s["k"]) and more(t["x"], s["v"]),
    ),
    "NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND v > 1)": (
        False,
        lambda s, t: same(t["k"], s["k"]) and more(s["v"], 1),
    ),
    "EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.x = s.v AND name > 'a')": (
        True,
        lambda s, t: same(t["k"], s["k"]) and same(t["x"], s["v"]) and more(t["name"], "a"),
    ),
    "v IN (SELECT x FROM t WHERE name > 'a')": (
        True,
        lambda s, t: same(t["x"], s["v"]) and more(t["name"], "a"),
    ),
}


def rows_of(chance: random.Random, count: int) -> tuple[list[Row], list[Row]]:
    """Rows of s and of t."""
    pick = chance.choice
    ours = [{"k": pick(KEYS), "v": pick(NUMBERS), "n": number} for number in range(count)]
    theirs = [
        {"k": pick(KEYS), "name": pick(KEYS), "x": pick(NUMBERS)}
        for _ in range(chance.randint(0, 6))
    ]
    return ours, theirs


@pytest.mark.parametrize("condition", TESTS)
def test_rows_that_are_taken(condition: str) -> None:
    wanted, matches = TESTS[condition]
    text = (
        f"SELECT k, v, _seq FROM s [INTERVAL 1 MINUTE] WHERE {condition} SAMPLE INTERVAL 1 SECOND"
    )
    whole = plan_of(text)[1].whole_fold
    assert whole is not None
    pipeline = make_spec(whole, PLAIN, refuse_types).pipeline
    assert pipeline is not None
    for seed in range(20):
        ours, theirs = rows_of(random.Random(seed), 12)
        stream = pa.table(
            {
                "k": pa.array([row["k"] for row in ours], pa.string()),
                "v": pa.array([row["v"] for row in ours], pa.int32()),
                "_seq": pa.array([row["n"] for row in ours], pa.int64()),
            }
        )
        table = pa.Table.from_pylist(theirs, schema=schema(STANDARD["t"]))
        probes = {probe_name(name, keys): Probe(table, keys) for name, keys in pipeline.probes}
        found = pipeline.prepare(stream, probes).column("0._seq").to_pylist()
        there = [any(matches(row, other) for other in theirs) for row in ours]
        assert found == [row["n"] for row, one in zip(ours, there, strict=True) if one == wanted]
