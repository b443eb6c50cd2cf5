"""Panes against counting ticks one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.fold.pane import Panes, Window

WINDOWS = st.tuples(st.integers(0, 40), st.booleans()).map(lambda w: Window(max(w[0], w[1]), w[1]))
LAYOUTS = st.builds(Panes, st.integers(1, 17), st.lists(WINDOWS, min_size=1, max_size=3).map(tuple))


def ticks_of(window: Window, instant: int) -> set[int]:
    return {
        t for t in range(instant - window.size, instant + 1) if t < instant or not window.before
    }


@settings(deadline=None, max_examples=150)
@given(LAYOUTS, st.integers(-60, 60))
def test_windows_are_made_of_whole_panes(panes, period):
    instant = period * panes.slide
    for window in panes.windows:
        held = panes.of_window(window, instant)
        ticks = {t for pane in held for t in range(*panes.bounds(pane))}
        assert ticks == ticks_of(window, instant)
        assert len(held) == panes.count(window)


@settings(deadline=None, max_examples=150)
@given(LAYOUTS)
def test_every_tick_is_in_one_pane_and_boundaries_are_needed(panes):
    ticks = np.arange(-100, 100)
    numbers = panes.panes_of(ticks)
    assert numbers.tolist() == [panes.pane_of(t) for t in ticks.tolist()]
    assert (np.diff(numbers) >= 0).all()
    edges = {t for k in range(-160, 160) for w in panes.windows for t in _edges(w, k * panes.slide)}
    for tick, number in zip(ticks.tolist(), numbers.tolist(), strict=True):
        start, end = panes.bounds(number)
        assert start <= tick < end
        assert (tick in edges) == (tick == start)


def _edges(window: Window, instant: int) -> tuple[int, int]:
    return window.first_tick(instant), window.last_tick(instant) + 1


@settings(deadline=None, max_examples=150)
@given(LAYOUTS, st.integers(-50, 50))
def test_who_holds_a_pane_and_until_when(panes, pane):
    instants = range(-100 * panes.slide, 100 * panes.slide + 1, panes.slide)
    for window in panes.windows:
        holding = [i for i in instants if pane in panes.of_window(window, i)]
        assert list(panes.instants(pane, window)) == holding
    held = [i for i in instants if any(pane in panes.of_window(w, i) for w in panes.windows)]
    assert panes.needed(pane) == bool(held)
    if held:
        assert pane < panes.first_needed(held[-1] + panes.slide)
        assert pane >= panes.first_needed(held[-1])


@settings(deadline=None, max_examples=100)
@given(LAYOUTS, st.lists(st.integers(-50, 50), max_size=30), st.booleans())
def test_split_gives_each_row_to_its_pane_in_order(panes, ticks, ordered):
    array = np.array(sorted(ticks) if ordered else ticks, np.int64)
    parts = panes.split(array)
    assert [pane for pane, _ in parts] == sorted({panes.pane_of(t) for t in ticks})
    rows = np.arange(len(array))
    for pane, part in parts:
        assert rows[part].tolist() == [r for r in rows.tolist() if panes.pane_of(array[r]) == pane]
        assert isinstance(part, slice) or not ordered


def test_a_closed_window_of_whole_slides_makes_the_instant_a_pane_of_its_own():
    panes = Panes(10, (Window(30),))
    assert panes.bounds(panes.pane_of(20)) == (20, 21)
    assert panes.bounds(panes.pane_of(21)) == (21, 30)
    assert Panes(10, (Window(30, before=True),)).offsets == [0]


def test_the_paper_s_figure_one():
    """posreports [INTERVAL 4 SECONDS] … SAMPLE INTERVAL 2 SECONDS."""
    panes, window = Panes(2, (Window(4),)), Window(4)
    held = panes.of_window(window, 6)
    assert (panes.bounds(held[0])[0], panes.bounds(held[-1])[1]) == (2, 7)
    assert (panes.first_instant(-1), panes.first_instant(1), panes.first_instant(2)) == (0, 2, 2)
    assert panes.next_instant(4) == 6


def test_microseconds_of_this_century_and_the_ends_of_time():
    panes = Panes(1_000_000, (Window(3_600_000_000),))
    ticks = np.array([1_794_787_200_123_456, -(2**63), 2**63 - 1])
    assert panes.panes_of(ticks).tolist() == [panes.pane_of(t) for t in ticks.tolist()]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="holds nothing"):
        Window(0, before=True)
    with pytest.raises(ValueError, match="slide"):
        Panes(0, (Window(1),))
    with pytest.raises(ValueError, match="multiple"):
        Panes(2, (Window(1),)).of_window(Window(1), 3)
