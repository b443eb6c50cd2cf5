"""A table fed at five times what a query can process: updates stay fresh, append does not (US2)."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

import headwater
from benchmarks.upstream.overload import COST_S, Overload, overloaded
from headwater.engine import update_query


def _check(found: Overload, seconds: float, ratio: float) -> None:
    assert found.stored == found.inserted > 100 * seconds
    assert found.counts_add_up
    assert found.ratio(seconds) >= ratio
    assert found.mean("every", 0.5 * seconds, seconds) > found.mean("every", 0, 0.5 * seconds)


def test_updates_stay_fresh_under_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Staleness is many times lower and does not rise; the counts add up and the table has every row."""
    quick = update_query.results_of_rows

    def slowly(spec: Any, batch: Any, held: Any) -> pa.Table:
        time.sleep(len(batch) * COST_S)  # not a wait for progress: it is the cost of the rows
        return quick(spec, batch, held)

    monkeypatch.setattr(update_query, "results_of_rows", slowly)
    with headwater.connect(settings={"eager_spark": False}) as db:
        _check(overloaded(db, 5.0, "2 * price"), 5.0, 3.0)


@pytest.mark.large
def test_updates_stay_fresh_beside_a_slow_python_function() -> None:
    """The same with a function that Spark runs, for a minute: ten times fresher, without a trend."""
    with headwater.connect() as db:
        found = overloaded(db, 60.0)
        _check(found, 60.0, 10.0)
        assert found.trend(60.0) <= 1.5  # of a minute: one slow moment is a large part of seconds
