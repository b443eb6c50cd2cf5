"""The choice of mode, with simulated costs."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.mode import EQUAL_S, FOLD, MODES, REEVALUATE, ModeChooser

Noise = Callable[[random.Random], float]
OTHER = {FOLD: REEVALUATE, REEVALUATE: FOLD}


def exact(rng: random.Random) -> float:
    return 1.0


def uniform(rng: random.Random) -> float:
    """±30 %."""
    return rng.uniform(0.7, 1.3)


def heavy_tailed(rng: random.Random) -> float:
    """±30 %, and one slide of twenty anything from three times dearer on."""
    spike = 3 * rng.paretovariate(1) if rng.random() < 0.05 else 1.0
    return rng.uniform(0.7, 1.3) * spike


class Play:
    """Slides with given costs."""

    def __init__(self, chooser: ModeChooser, noise: Noise = exact, seed: int = 0) -> None:
        self.chooser, self.noise, self.rng = chooser, noise, random.Random(seed)
        self.modes: list[str] = []
        self.trial_slides: list[int] = []
        self.slides_s = self.trials_s = 0.0

    def run(self, slides: int, *, fold: float, reevaluate: float) -> list[str]:
        """The mode of each slide, and that after them."""
        costs, began = {FOLD: fold, REEVALUATE: reevaluate}, len(self.modes)
        for _ in range(slides):
            plan = self.chooser.plan()
            assert plan[0] == self.chooser.mode
            assert len(set(plan)) == len(plan) <= 2
            self.modes.append(plan[0])
            self.slides_s += costs[plan[0]]
            if len(plan) == 2:
                self.trial_slides.append(len(self.modes))
                self.trials_s += costs[plan[1]]
            for mode in plan:
                self.chooser.observe(mode, costs[mode] * self.noise(self.rng))
        return [*self.modes[began:], self.chooser.mode]


def costs_with(cheap: str, ratio: float, cost: float = 0.01) -> dict[str, float]:
    return {cheap: cost, OTHER[cheap]: ratio * cost}


@pytest.mark.parametrize("noise", [exact, uniform, heavy_tailed])
@pytest.mark.parametrize("start", MODES)
@pytest.mark.parametrize("cheap", MODES)
def test_the_cheaper_mode_runs_within_twenty_slides(cheap: str, start: str, noise: Noise) -> None:
    """One side wins by two times: from either start, and without wavering afterwards."""
    for seed in range(25):
        play = Play(ModeChooser(start=start), noise, seed)
        play.run(20, **costs_with(cheap, 2.0))
        assert set(play.run(400, **costs_with(cheap, 2.0))) == {cheap}, seed


@given(
    cheap=st.sampled_from(MODES),
    start=st.sampled_from(MODES),
    ratio=st.floats(2.0, 500.0),
    cost=st.floats(0.001, 100.0),
    seed=st.integers(0, 1 << 30),
)
@settings(max_examples=150, deadline=None)
def test_any_clear_winner_is_found(
    cheap: str, start: str, ratio: float, cost: float, seed: int
) -> None:
    """However large the costs, at ±30 %."""
    play = Play(ModeChooser(start=start), uniform, seed)
    play.run(20, **costs_with(cheap, ratio, cost))
    assert set(play.run(100, **costs_with(cheap, ratio, cost))) == {cheap}


@pytest.mark.parametrize("ratio", [1, 2, 10, 100])
@pytest.mark.parametrize("noise", [exact, heavy_tailed])
def test_trials_cost_little_in_the_long_run(ratio: float, noise: Noise) -> None:
    """Under 5 %, also when the other mode is a hundred times dearer."""
    play = Play(ModeChooser(), noise)
    play.run(20_000, **costs_with(FOLD, ratio))
    assert 0 < play.trials_s < 0.05 * play.slides_s
    assert len(play.trial_slides) >= 8  # two series at least: it does look again


def test_a_dearer_mode_is_tried_less_often() -> None:
    """r times dearer, about r times less often."""
    counts = []
    for ratio in (10, 100):
        play = Play(ModeChooser())
        play.run(300_000, **costs_with(FOLD, ratio))
        counts.append(len(play.trial_slides))
    assert 2 <= counts[0] / counts[1] <= 10


def test_pauses_double_up_to_a_bound() -> None:
    """Each confirmed decision doubles the pause; it never ends."""
    play = Play(ModeChooser())
    play.run(40_000, **costs_with(FOLD, 1.0))
    slides = play.trial_slides
    pauses = [b - a for a, b in pairwise(slides) if b - a > 1]
    assert pauses[1] == pytest.approx(2 * pauses[0], rel=0.1)
    assert pauses[2] == pytest.approx(2 * pauses[1], rel=0.1)
    assert pauses[-1] == pauses[-2] == max(pauses)


@pytest.mark.parametrize("seed", range(10))
def test_equal_modes_hardly_take_turns(seed: int) -> None:
    """With noise, at equal costs: a handful of switches in ten thousand slides."""
    play = Play(ModeChooser(), heavy_tailed, seed)
    modes = play.run(10_000, fold=0.01, reevaluate=0.01)
    assert sum(a != b for a, b in pairwise(modes)) <= 4


def test_a_small_gain_is_not_worth_a_switch() -> None:
    """Hysteresis: 15 % cheaper stays where it is, from either side."""
    for start in MODES:
        play = Play(ModeChooser(start=start))
        assert set(play.run(2000, **costs_with(OTHER[start], 1.15))) == {start}


def test_a_gain_between_is_found_by_a_long_series() -> None:
    """A short series does not decide at a third dearer; a long one does."""
    play = Play(ModeChooser())
    play.run(20, fold=0.015, reevaluate=0.01)
    assert play.chooser.mode == REEVALUATE
    assert len(play.trial_slides) > 12


def test_less_than_a_tenth_of_a_millisecond_is_equal() -> None:
    """However many times it is."""
    play = Play(ModeChooser())
    assert set(play.run(500, fold=0.9 * EQUAL_S, reevaluate=0.01 * EQUAL_S)) == {FOLD}
    play = Play(ModeChooser())
    assert play.run(500, fold=2 * EQUAL_S, reevaluate=0.5 * EQUAL_S)[-1] == REEVALUATE


@pytest.mark.parametrize("noise", [exact, uniform, heavy_tailed])
def test_it_adapts_when_the_window_grows(noise: Noise) -> None:
    """The current mode's cost passes the other's: within a few slides a trial and the switch,
    though the next one was due much later."""
    for seed in range(20):
        play = Play(ModeChooser(start=REEVALUATE), noise, seed)
        play.run(2000, fold=0.05, reevaluate=0.01)
        assert play.chooser.mode == REEVALUATE
        modes = play.run(60, fold=0.05, reevaluate=0.2)
        assert modes[-1] == FOLD, seed


def test_a_cost_that_falls_brings_a_trial_too() -> None:
    """The load has changed: the other mode may have become the cheaper one."""
    play = Play(ModeChooser())
    play.run(3000, fold=0.05, reevaluate=0.1)
    trials = len(play.trial_slides)
    play.run(40, fold=0.02, reevaluate=0.001)
    assert len(play.trial_slides) > trials
    assert play.chooser.mode == REEVALUATE


def test_a_load_that_swings_does_not_bring_trials_all_the_time() -> None:
    """Trials that come early are bounded by their part of the cost."""
    play = Play(ModeChooser())
    for turn in range(1000):
        scale = 3 if turn % 2 else 1
        play.run(20, fold=0.01 * scale, reevaluate=0.5 * scale)
    assert set(play.modes) == {FOLD}
    assert play.trials_s < 0.07 * play.slides_s


def test_warm_up_does_not_count() -> None:
    """A first sample a thousand times dearer, of the start and of a trial, changes nothing."""
    chooser = ModeChooser()
    seen: dict[str, int] = dict.fromkeys(MODES, 0)
    for _ in range(20):
        for mode in chooser.plan():
            cost = {FOLD: 0.02, REEVALUATE: 0.01}[mode]
            chooser.observe(mode, cost if seen[mode] else 1000 * cost)
            seen[mode] += 1
    assert chooser.mode == REEVALUATE
    assert "fold 20 ms, reevaluate 10 ms a slide" in chooser.explain()
    chooser = ModeChooser()
    chooser.observe(FOLD, 9.0)
    assert "fold not measured" in chooser.explain()


def test_a_series_is_seven_samples_and_a_warm_up() -> None:
    """Where the result is clear; three samples when the other mode is hopeless."""
    for ratio, slides in ((0.5, 8), (1.0, 8), (2.0, 8), (10.0, 4)):
        play = Play(ModeChooser())
        play.run(20, fold=0.01, reevaluate=0.01 * ratio)
        assert len(play.trial_slides) == slides


def test_after_a_switch_only_the_new_mode_counts() -> None:
    """Samples of the old one are forgotten."""
    play = Play(ModeChooser())
    while play.chooser.mode == FOLD:
        play.run(1, fold=0.1, reevaluate=0.01)
    play.run(2, fold=0.1, reevaluate=0.02)
    assert "reevaluate 20 ms a slide" in play.chooser.explain()


def test_a_trial_waits_for_its_state() -> None:
    """While a trial gives no sample (its state is being built) it stays planned."""
    chooser = ModeChooser()
    for _ in range(100):
        chooser.observe(FOLD, 0.01)
    assert chooser.plan() == (FOLD, REEVALUATE)
    for _ in range(10):
        chooser.observe(FOLD, 0.01)
        chooser.observe(REEVALUATE, 0.001)
    assert chooser.mode == REEVALUATE


@pytest.mark.parametrize("wish", MODES)
def test_a_wish_is_kept(wish: str) -> None:
    """No trials and no switch, whatever the costs."""
    play = Play(ModeChooser(wish, start=OTHER[wish]))
    assert set(play.run(200, **costs_with(OTHER[wish], 100))) == {wish}
    assert play.trial_slides == []
    assert play.chooser.explain() == f"mode {wish}, no other is tried; {wish} 1e+03 ms a slide"


def test_explain_says_what_was_measured() -> None:
    """One line: mode, costs, trials, what comes next."""
    chooser = ModeChooser()
    unknown = "fold not measured, reevaluate not measured a slide"
    assert chooser.explain() == f"mode fold; {unknown}; 0 trials so far, next in 3 slides"
    play = Play(chooser)
    play.run(4, fold=0.01, reevaluate=0.02)
    assert chooser.explain().endswith("0 trials so far, trying reevaluate")
    play.run(20, fold=0.01, reevaluate=0.02)
    assert chooser.explain().startswith("mode fold; fold 10 ms, reevaluate 20 ms a slide; 1 trial")
    assert "\n" not in chooser.explain()


def test_unknown_modes_are_refused() -> None:
    """As wish, start or sample."""
    for arguments in (("incremental", FOLD), ("auto", "auto")):
        with pytest.raises(ValueError, match="fold, reevaluate"):
            ModeChooser(*arguments)
    with pytest.raises(ValueError, match="'auto'"):
        ModeChooser().observe("auto", 1.0)
