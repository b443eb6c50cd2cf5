"""Runs of simulated traffic that are large enough to need every rule, and small enough for tests.

Ten minutes of a road of a few miles, as full as late in the third hour, with an accident every other
minute. The oracle reads 40 000 reports in about a second.
"""

from __future__ import annotations

from headwater.examples.linearroad.traffic import Scenario, historical_tolls, reports

SMALL = Scenario(duration_s=540, start_s=9000, segments=5, accidents_per_hour=40, accident_s=180)
TWO_ROADS = Scenario(
    expressways=2, duration_s=600, start_s=7200, segments=5, accidents_per_hour=30, accident_s=180
)
Rows = list[tuple[int, ...]]
Tolls = list[tuple[int, int, int, int]]


def run_of(scenario: Scenario) -> tuple[Rows, Tolls]:
    """The reports of a scenario and the history of its cars, as plain rows."""
    history = historical_tolls(scenario.vehicle_count, scenario.expressways, scenario.seed)
    columns = [column.to_pylist() for column in reports(scenario).columns]
    paid = [column.to_pylist() for column in history.columns]
    return list(zip(*columns, strict=True)), list(zip(*paid, strict=True))
