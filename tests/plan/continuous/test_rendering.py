"""Names of ours are replaced as tokens."""

from __future__ import annotations

from headwater.plan.continuous.folds import INSTANT, fold_view
from headwater.plan.continuous.rendering import at_instant, orders_rows, with_columns, with_names


def test_a_name_is_not_replaced_within_a_longer_one() -> None:
    """Nor in a string, a quoted name or a comment."""
    text = " UNION ALL ".join(f"SELECT '{fold_view(n)}' FROM {fold_view(n)}" for n in range(12))
    text += f" -- {fold_view(1)}"
    found = with_names(text, {fold_view(n): f"{fold_view(n)}_0" for n in range(12)})
    for number in range(12):
        assert found.count(f"FROM {fold_view(number)}_0 ") == 1
        assert f"'{fold_view(number)}'" in found
    assert found.endswith(f"-- {fold_view(1)}")


def test_a_column_is_not_replaced_within_a_longer_one() -> None:
    """By its alias and its name, quoted or not."""
    text = "s._prev1_x + s._prev1_xy + s.`_prev1_x` + as._prev1_x + a.s._prev1_x + 's._prev1_x'"
    found = with_columns(text, {("s", "_prev1_x"): "_c0"})
    assert found == "_c0 + s._prev1_xy + _c0 + as._prev1_x + a.s._prev1_x + 's._prev1_x'"


def test_the_instant_is_not_replaced_in_a_string() -> None:
    """Only where it is called."""
    found = at_instant(f"SELECT {INSTANT}, '{INSTANT}', x_{INSTANT}", "5L")
    assert found == f"SELECT 5L, '{INSTANT}', x_{INSTANT}"


def test_order_by_is_seen_as_words() -> None:
    """Across a line, a comment and cases; not in a string, a name or a comment."""
    for text in ("ORDER BY x", "order\n by x", "ORDER /* rows */ BY x", "Sort\tBy x"):
        assert orders_rows(f"SELECT x FROM t {text}"), text
    for text in ("'ORDER BY'", "`ORDER BY`", "x -- ORDER BY x", "order_by"):
        assert not orders_rows(f"SELECT {text}"), text
