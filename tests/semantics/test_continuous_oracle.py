"""The oracle of the whole product (DC4, DC5, ST5, ST6): random streams and random continuous queries.

By operators = Spark fold = Spark re-evaluation = DuckDB on the window, at every instant, also over a restart.
Spark re-evaluation is the judge; what DuckDB may say differently is in `harness/continuous/differences.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.continuous.counts import Counts
from tests.harness.continuous.differences import DIFFERENCES
from tests.harness.continuous.runner import actions_text, make_scenario, run_seed

QUERIES = 10  # over each stream
MOST_DIFFERENCES = 20


def run(seeds: range, folder: Path) -> Counts:
    """Scenario by scenario; fails with what is needed to see the first disagreement again."""
    counts = Counts()
    for seed in seeds:
        problems = run_seed(seed, QUERIES, folder / str(seed), counts)
        if problems:
            said = "\n\n".join(map(str, problems))
            pytest.fail(f"{said}\n\n{actions_text(make_scenario(seed, QUERIES))}", pytrace=False)
    return counts


def report(counts: Counts) -> None:
    """Prints how often each construct ran in each tier; a zero means that nothing was shown."""
    print("\n" + counts.table())
    assert not counts.missing(), f"never ran: {counts.missing()}"


@pytest.mark.timeout(900)
def test_every_tier_says_the_same(tmp_path: Path) -> None:
    """DC4: ten cases over a stream, in every tier that can run them."""
    assert run(range(1), tmp_path).found


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_construct_runs_in_every_tier(tmp_path: Path) -> None:
    """DC4: 140 cases over fourteen streams, every construct in every tier that can run it."""
    report(run(range(14), tmp_path))


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_tier_says_the_same_20_000_times(tmp_path: Path) -> None:
    """DC4: the same with 20 000 cases."""
    report(run(range(100, 2100), tmp_path))


def test_differences_are_few() -> None:
    """The list of what DuckDB says differently stays short."""
    assert len(DIFFERENCES) <= MOST_DIFFERENCES
