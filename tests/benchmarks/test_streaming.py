"""The benchmark beside plain Structured Streaming at a tiny size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.streaming import ours
from benchmarks.streaming.run import ASKED, OPERATORS, PLAIN, SPARK, targets_of

ROWS = 50


@pytest.mark.parametrize("way", [OPERATORS, ASKED])
def test_windows_over_files_hold_every_row(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A window has the rows of its files, and what it cost is told."""
    ours.main(tmp_path, way, 2, ROWS, 3, 1)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    answers = {int(end): count for end, (count, _) in found["answers"].items()}
    assert answers == {0: 0, 10: ROWS, 20: 2 * ROWS, 30: 2 * ROWS}
    assert found["processor_ms"] > 0


def test_what_is_dearer_than_plain_misses_its_target() -> None:
    costs = {PLAIN: 10.0, OPERATORS: 4.0, SPARK: 11.0, ASKED: 10.0}
    found = {way: {"processor_ms": cost, "slide_ms": cost} for way, cost in costs.items()}
    assert [target.met for target in targets_of("tumbling", found)] == ["met", "missed", "missed"]
