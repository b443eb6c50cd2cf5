"""Statistics in the shape that Delta readers take."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.storage.statistics import misfit, null_count

POINT = pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])
SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "p": POINT,
        "a": pa.list_(POINT),
        "s": pa.string(),
        "d": pa.date32(),
        "n": pa.decimal128(5, 2),
        "f": pa.float64(),
        "b": pa.bool_(),
    }
)


def test_a_struct_has_the_counts_of_its_fields() -> None:
    rows: list[Any] = [None, {"x": 1, "y": None}, {"x": None, "y": {"z": "a"}}]
    column = pa.chunked_array([pa.array(rows, POINT), pa.array([], POINT)])
    assert null_count(column) == {"x": 2, "y": {"z": 2}}
    assert null_count(column.slice(1)) == {"x": 1, "y": {"z": 1}}


def test_an_array_has_the_count_of_its_own_nulls() -> None:
    assert null_count(pa.chunked_array([pa.array([None, [], [None]], pa.list_(POINT))])) == 1


FITS: list[dict[str, Any]] = [
    {},
    {"nullCount": {"i": 3, "p": {"x": 1, "y": {"z": 0}}, "a": 0, "f": 1}},
    {"minValues": {"i": -(1 << 31), "s": "", "d": "0001-01-01"}, "maxValues": {"p": {"x": 1}}},
]
MISFITS: list[tuple[str, dict[str, Any]]] = [
    ("numRecords", {"numRecords": "3"}),
    ("nullCount.p", {"nullCount": {"p": 0}}),
    ("nullCount.p.y", {"nullCount": {"p": {"y": 0}}}),
    ("nullCount.i", {"nullCount": {"i": {"x": 0}}}),
    ("nullCount.i", {"nullCount": {"i": True}}),
    ("nullCount.i", {"nullCount": {"i": -1}}),
    ("nullCount.q", {"nullCount": {"q": 0}}),
    ("minValues.i", {"minValues": {"i": 1 << 31}}),
    ("maxValues.i", {"maxValues": {"i": "1"}}),
    ("maxValues.s", {"maxValues": {"s": 1}}),
    ("minValues.f", {"minValues": {"f": float("nan")}}),
    ("minValues.a", {"minValues": {"a": 1}}),
]


@pytest.mark.parametrize("given", FITS)
def test_statistics_that_fit(given: dict[str, Any]) -> None:
    assert misfit({"numRecords": 3, **given}, SCHEMA) is None


@pytest.mark.parametrize(("where", "given"), MISFITS)
def test_a_misfit_is_named(where: str, given: dict[str, Any]) -> None:
    assert misfit({"numRecords": 3, **given}, SCHEMA) == where
