"""ORDER BY by operators: Spark's order for every type, and a stable sort against plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cmp_to_key
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater
from headwater.fold.order import OrderKey, order_rows
from tests.expression.evaluation import Oracle, compiled
from tests.expression.test_expression import EDGES, ROWS, name

NULLS = {True: "NULLS FIRST", False: "NULLS LAST"}


def key(text: str, schema: pa.Schema, descending: bool, nulls_first: bool) -> OrderKey:
    """An order key of an expression."""
    expression = compiled(text, schema)
    assert expression is not None
    return OrderKey(expression, descending, nulls_first)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with headwater.connect(":memory:") as db:
        oracle = Oracle(db, ROWS)
        yield oracle
        oracle.close()


@pytest.mark.parametrize("type_", EDGES)
def test_every_type_has_sparks_order(oracle: Oracle, type_: str) -> None:
    """Both directions, NULLs at both ends: rows in Spark's order, ties by their number."""
    column = name(type_, "b")
    wanted = []
    for descending, nulls_first in product((False, True), repeat=2):
        order = f"{column} {'DESC' if descending else 'ASC'} {NULLS[nulls_first]}, n"
        wanted.append(f"(SELECT collect_list(n) FROM (SELECT n FROM t ORDER BY {order}))")
    answer = oracle.query(f"SELECT {', '.join(f'{q} AS c{i}' for i, q in enumerate(wanted))}")
    for number, (descending, nulls_first) in enumerate(product((False, True), repeat=2)):
        ours = order_rows(ROWS, [key(column, ROWS.schema, descending, nulls_first)])
        assert ours["n"].to_pylist() == answer.column(number)[0].as_py(), (descending, nulls_first)


def test_several_keys_limit_and_offset(oracle: Oracle) -> None:
    """Expressions as keys, in two directions, with a part of the rows."""
    sql = "a_string DESC NULLS FIRST, b_double % 2 NULLS LAST, a_int, n LIMIT 17 OFFSET 30"
    schema = ROWS.schema
    keys = [
        key("a_string", schema, True, True),
        key("CASE WHEN b_double = 0 THEN b_double ELSE b_double / 2 END", schema, False, False),
        key("a_int", schema, False, True),
        key("n", schema, False, True),
    ]
    sql = sql.replace("b_double % 2", "CASE WHEN b_double = 0 THEN b_double ELSE b_double / 2 END")
    wanted = oracle.query(f"SELECT n FROM t ORDER BY {sql}")
    assert order_rows(ROWS, keys, limit=17, offset=30)["n"].to_pylist() == wanted["n"].to_pylist()


def rank(value: Any) -> Any:
    """A number's place: NaN behind all others, -0.0 at 0.0."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def brute(rows: list[dict[str, Any]], keys: list[tuple[str, bool, bool]]) -> list[int]:
    """The order by comparing rows one by one."""

    def compare(one: dict[str, Any], other: dict[str, Any]) -> int:
        for column, descending, nulls_first in keys:
            a, b = one[column], other[column]
            if a is None or b is None:
                if (a is None) != (b is None):
                    return -1 if (a is None) == nulls_first else 1
                continue
            if rank(a) != rank(b):
                return -1 if (rank(a) < rank(b)) != descending else 1
        return 0

    return [row["n"] for row in sorted(rows, key=cmp_to_key(compare))]


INTEGERS = [None, -3, 0, 1, 1, 2, -(2**63), 2**63 - 1]
DOUBLES = [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 1.5]
TEXTS = [None, "", "a", "b", "\uffee", "😀"]


@settings(max_examples=200, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.integers(0, 80),
    st.lists(st.tuples(st.sampled_from("ids"), st.booleans(), st.booleans()), max_size=3),
    st.one_of(st.none(), st.integers(0, 9)),
    st.one_of(st.just(0), st.integers(0, 9)),
)
def test_the_sort_is_stable(
    random: Random,
    row_count: int,
    keys: list[tuple[str, bool, bool]],
    limit: int | None,
    offset: int,
) -> None:
    """Equal rows stay in their order, with and without LIMIT, whatever the keys."""
    table = pa.table(
        {
            "n": pa.array(range(row_count), pa.int64()),
            "i": pa.array(random.choices(INTEGERS[random.randrange(2) :], k=row_count), pa.int64()),
            "d": pa.array(
                random.choices(DOUBLES[random.randrange(2) :], k=row_count), pa.float64()
            ),
            "s": pa.array(random.choices(TEXTS[random.randrange(2) :], k=row_count), pa.string()),
        }
    )
    ours = order_rows(table, [key(c, table.schema, d, n) for c, d, n in keys], limit, offset)
    end = row_count if limit is None else offset + limit
    assert ours["n"].to_pylist() == brute_text(table.to_pylist(), keys)[offset:end]
    assert ours.schema == table.schema


def brute_text(rows: list[dict[str, Any]], keys: list[tuple[str, bool, bool]]) -> list[int]:
    """Brute force, with text as its UTF-8 bytes."""
    coded = [{**row, "s": None if row["s"] is None else row["s"].encode()} for row in rows]
    return brute(coded, keys)
