"""`headwater demo --tour`."""

from __future__ import annotations

import pytest

from headwater.cli import tour


def test_the_tour(capsys: pytest.CaptureFixture[str]) -> None:
    """`--tour` shows each of its statements with an answer."""
    assert tour.main() == 0
    text = capsys.readouterr().out
    assert text.count("rows, ") >= len(tour.STEPS)
    assert "did you mean speed" in text
