"""Pauses between attempts."""

from __future__ import annotations

from headwater.connectors.runner import FIRST_PAUSE_S, LONGEST_PAUSE_S, Pauses


def test_pauses_double_up_to_a_bound_and_begin_anew() -> None:
    pauses = Pauses()
    found = [pauses.next_s() for _ in range(12)]
    assert found[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert found == sorted(found)
    assert found[-1] == LONGEST_PAUSE_S
    pauses.begin_anew()
    assert pauses.next_s() == FIRST_PAUSE_S
