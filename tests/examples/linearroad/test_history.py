"""The historical tolls: ten weeks of each car."""

from __future__ import annotations

from headwater.examples.linearroad.traffic import historical_tolls


def test_one_row_for_each_car_and_day() -> None:
    """69 days of each car, each with a toll on one of the expressways."""
    rows = historical_tolls(10, expressways=3).to_pylist()
    assert [(r["vid"], r["day"]) for r in rows] == [(v, d) for v in range(10) for d in range(1, 70)]
    assert {r["xway"] for r in rows} == {0, 1, 2}
    assert {r["toll"] for r in rows} <= set(range(100))
    assert len({r["toll"] for r in rows}) > 90


def test_any_part_can_be_made_alone() -> None:
    """Tolls depend on seed, car and day only."""
    whole = historical_tolls(10, expressways=3, seed=5)
    part = historical_tolls(4, expressways=3, seed=5, first_vehicle=6)
    assert whole.slice(6 * 69).equals(part)
    assert not historical_tolls(10, expressways=3, seed=6).equals(whole)
