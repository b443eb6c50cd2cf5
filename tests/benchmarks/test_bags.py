"""Comparing two results as bags: order and names do not count, types only as far as they must."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from benchmarks.bags import difference

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
MINE = pa.table(
    {
        "k": [1, 2, None],
        "at": pa.array([WHEN, None, WHEN], pa.timestamp("us", "UTC")),
        "mean": [0.5, None, 1e9],
        "price": pa.array([Decimal("0.10"), None, Decimal("2.50")], pa.decimal128(10, 2)),
        "name": ["a", None, "c"],
    }
)


def test_order_and_names_do_not_count() -> None:
    assert difference(MINE, MINE.take([2, 0, 1]).rename_columns(list("abcde"))) is None


def test_a_peer_may_give_text_or_numbers_for_times() -> None:
    text = pa.table(
        {
            "k": ["1", "2", None],
            "at": ["2026-01-02 03:04:05.678", None, "2026-01-02 03:04:05.678"],
            "mean": ["0.5000000000001", None, "1.0E9"],
            "price": ["0.1", None, "2.500"],
            "name": ["a", None, "c"],
        }
    )
    assert difference(MINE, text) is None
    micros = int(WHEN.timestamp() * 1_000_000)
    assert difference(MINE, text.set_column(1, "at", pa.array([micros, None, micros]))) is None


@pytest.mark.parametrize(
    ("column", "value"),
    [("k", 7), ("at", WHEN.replace(year=2025)), ("mean", 0.5001), ("price", None), ("name", "b")],
)
def test_one_value_is_found(column: str, value: object) -> None:
    place = MINE.column_names.index(column)
    values = [value, *MINE.column(column).to_pylist()[1:]]
    other = MINE.set_column(place, column, pa.array(values, MINE.schema.field(column).type))
    found = difference(MINE, other)
    assert found is not None
    assert found.startswith(f"{column}: ")


def test_shapes() -> None:
    assert difference(MINE, MINE.slice(1)) == "3 rows of ours, 2 of theirs"
    assert difference(MINE, MINE.select(["k"])) == "5 columns of ours, 1 of theirs"
    twice = pa.table({"k": [1, 1, 2]})
    assert difference(twice, pa.table({"k": [1, 2, 2]})) is not None
    assert difference(MINE.slice(0, 0), MINE.slice(0, 0)) is None
