"""Fig. 13 on the engine: what the paper's text says of one key with a row per tick that costs a tick."""

from __future__ import annotations

import pytest

from benchmarks.upstream.traces import in_turn
from benchmarks.upstream.windows import close_costs, run_updates

RESULTS = 30


@pytest.mark.parametrize("size", [4, 8])
def test_staleness_of_tumbling_windows(size: int) -> None:
    """LAZY is stale for C_t·ω of each ω ticks, EAGER for C_t: ω/2 and 1/(2ω) on average (§6.3)."""
    trace = in_turn(2 * RESULTS * size, 1, 1)
    lazy, eager = (run_updates(trace, size, size, kind, 1, RESULTS) for kind in ("lazy", "eager"))
    assert lazy == pytest.approx(size / 2, rel=0.05)
    assert eager == pytest.approx(1 / (2 * size), rel=0.05)


def test_staleness_of_windows_that_slide_by_one() -> None:
    """EAGER finishes one window after the other as it closes; LAZY needs as long again for each."""
    size, trace = 6, in_turn(4 * RESULTS * 6, 1, 1)
    lazy, eager = (run_updates(trace, size, 1, kind, 1, RESULTS) for kind in ("lazy", "eager"))
    assert eager == pytest.approx(size / 2, rel=0.05)
    assert lazy > 2 * eager


def test_the_close_is_measured_for_each_size() -> None:
    """A window's result is stored in what is measured, and nothing else."""
    points = close_costs((20, 50), repeats=2)
    assert [point["size"] for point in points] == [20, 50]
    assert all(point[kind] > 0 for point in points for kind in ("lazy", "eager"))
