"""Did you mean."""

from __future__ import annotations

from headwater.sql.names import did_you_mean, nearest


def test_nearest_ignores_case_and_keeps_spelling() -> None:
    assert nearest("SELCT", ["Select", "delete"]) == "Select"
    assert nearest("xyz", ["Select", "delete"]) is None
    assert nearest("x", []) is None
    assert did_you_mean("positons", ["positions"]) == "did you mean positions?"
    assert did_you_mean("q", ["positions"]) is None
