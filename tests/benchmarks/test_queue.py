"""The benchmark of a view's queue at a tiny size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.queue.run import EVERY, SPIKE, Sizes, draw, measure


def test_the_queue_empties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is counted once, lengths are told every 100 inserts, and nothing waits at the end."""
    monkeypatch.chdir(tmp_path)
    sizes = Sizes((2,), 3 * EVERY, 20)
    run = measure(2, sizes)
    assert run["right"]
    assert run["last"] == 0
    assert sorted(number for number, _ in run["lengths"]) == [EVERY, 2 * EVERY, 3 * EVERY]
    assert run["longest"] == max(length for _, length in run["lengths"])
    pytest.importorskip("matplotlib")
    found = {"rows": sizes.rows, "inserts": sizes.inserts, "runs": {"2": run}}
    assert draw(found, tmp_path / "queue.png") is not None


def test_the_spike_is_in_the_middle() -> None:
    """A tenth of the inserts are larger."""
    sizes = Sizes((1,), 100, 5)
    rows = [sizes.of(number) for number in range(100)]
    assert rows.count(5 * SPIKE) == 10
    assert rows[44] == 5
    assert rows[45] == 5 * SPIKE
    assert rows[55] == 5
