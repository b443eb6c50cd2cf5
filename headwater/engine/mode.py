"""The choice between folding and re-evaluation, from measured cost.

Owns: which of the two modes a continuous query runs in, and when the other one is tried beside
it. Must never: measure or run anything itself. DC8; DataCell §4.1 shows that re-evaluation wins
where a window holds few basic windows or the merge costs as much as the query.

Both modes give the same result, so a trial runs beside the current mode and only its cost is
looked at. One series of a few trial slides decides:

* The medians of both modes are compared; the first sample after a switch or of a series is
  warm-up. If a short series is not clear, it goes on to a long one.
* The other mode must be cheaper by a margin, so that equal modes do not take turns.
* After a series comes a pause that is a multiple of what the series has cost: the dearer the
  other mode, the rarer its trials. The multiple doubles each time the decision is confirmed.
* When the current mode's cost has changed by two times, a trial comes earlier, if trials have
  not cost more than their part so far or the other mode was cheaper than what is paid now.
"""

from __future__ import annotations

from collections import deque
from statistics import median

FOLD = "fold"
REEVALUATE = "reevaluate"
MODES = (FOLD, REEVALUATE)

EQUAL_S = 1e-4  # costs closer than this are equal
FIRST_TRIAL = 3  # slides before the first trial, warm-up included
HOPELESS_SERIES = 3  # samples that end a trial if all of them
HOPELESS = 4.0  # are so many times dearer
SHORT_SERIES = 7  # samples of a trial series that may decide
LONG_SERIES = 13  # samples that must
CLEARLY_CHEAPER = 0.6  # a short series decides below this ratio of costs,
CLEARLY_DEARER = 0.9  # and above this one
CHEAPER = 0.8  # a long series switches below this ratio
FIRST_PAUSE = 4  # a pause in multiples of the series' cost
SURE_PAUSE = 20  # the same when the other mode was at least SURE times dearer
SURE = 1.5
LONGEST_PAUSE = 256
TRIAL_PART = 0.05  # of the cost of slides that trials may take when they come earlier
CHANGE = 2.0  # the current cost has changed when its median has by this factor


class ModeChooser:
    """Delivers from the cheaper mode and tries the other one now and then."""

    def __init__(self, wish: str = "auto", start: str = FOLD) -> None:
        """`wish`: "auto", or the mode to stay in. `start`: the first mode of "auto"."""
        if wish not in ("auto", *MODES) or start not in MODES:
            raise ValueError(f"a mode is one of {', '.join(MODES)}, or auto as a wish")
        self._fixed = wish != "auto"
        self._mode = wish if self._fixed else start
        self._known: dict[str, float] = {}  # the last median of each mode
        self._samples: deque[float] = deque(maxlen=LONG_SERIES)  # of the current mode
        self._trial: list[float] | None = None  # costs of a running series, warm-up first
        self._pause = FIRST_PAUSE
        self._slides_left = FIRST_TRIAL
        self._baseline: float | None = None  # the current mode's cost at the last decision
        self._warm = False
        self._spent_s = 0.0
        self._slides_s = 0.0
        self._trial_count = 0

    @property
    def mode(self) -> str:
        """Which mode's result is delivered now."""
        return self._mode

    def plan(self) -> tuple[str, ...]:
        """Which modes to run at the next slide: the current one first, then one on trial."""
        return (self._mode,) if self._trial is None else (self._mode, self._other)

    def observe(self, mode: str, cost_s: float) -> None:
        """What one slide cost in a mode; building the state for a trial is not counted."""
        if mode not in MODES:
            raise ValueError(f"a mode is one of {', '.join(MODES)}, not {mode!r}")
        if mode == self._mode:
            self._observe_current(cost_s)
        elif self._trial is not None:
            self._observe_trial(cost_s)

    def cost(self, mode: str) -> float | None:
        """The last median cost of a slide in a mode; None before it was measured."""
        return self._known.get(mode)

    def explain(self) -> str:
        """One line for EXPLAIN: the mode, measured costs, trials so far."""
        costs = [f"{mode} {_milliseconds(self._known.get(mode))}" for mode in MODES]
        if self._fixed:
            return f"mode {self._mode}, no other is tried; {costs[MODES.index(self._mode)]} a slide"
        if self._trial is not None:
            next_trial = f"trying {self._other}"
        else:
            next_trial = f"next in {max(0, self._slides_left)} slides"
        trials = f"{self._trial_count} trial{'' if self._trial_count == 1 else 's'} so far"
        return f"mode {self._mode}; {', '.join(costs)} a slide; {trials}, {next_trial}"

    # Steps

    @property
    def _other(self) -> str:
        return REEVALUATE if self._mode == FOLD else FOLD

    def _observe_current(self, cost_s: float) -> None:
        if self._warm:
            self._samples.append(cost_s)
            cost = self._known[self._mode] = median(self._samples)
            self._slides_s += min(cost_s, CHANGE * cost)  # spikes leave no room for trials
        self._warm = True
        if self._fixed or self._trial is not None:
            return
        self._slides_left -= 1
        if self._slides_left <= 0 or self._should_hurry():
            self._trial = []

    def _should_hurry(self) -> bool:
        """Whether the current cost has changed so that a trial should come before its time."""
        baseline = self._baseline
        if baseline is None or len(self._samples) < LONG_SERIES:
            return False
        now = self._known[self._mode]
        low, high = sorted((baseline, now))
        if high <= CHANGE * low or high - low <= EQUAL_S:
            return False
        other = self._known.get(self._other)
        overtaken = now > baseline and other is not None and now > other
        return overtaken or self._spent_s <= TRIAL_PART * self._slides_s

    def _observe_trial(self, cost_s: float) -> None:
        """One sample of a series; decide once it says enough."""
        assert self._trial is not None
        self._trial.append(cost_s)
        self._spent_s += cost_s
        samples = self._trial[1:]
        if len(samples) < HOPELESS_SERIES or not self._samples:
            return
        current = median(tuple(self._samples)[-len(samples) :])
        switch = _verdict(current, samples)
        if switch is not None:
            self._decide(current, median(samples), switch=switch)

    def _decide(self, current: float, other: float, *, switch: bool) -> None:
        """A series is over."""
        assert self._trial is not None
        series_s, self._trial = other * len(self._trial), None
        self._trial_count += 1
        self._known[self._mode], self._known[self._other] = current, other
        if switch:
            self._mode = self._other
            self._samples.clear()
            self._warm = False
            self._baseline, current = other, other
            self._pause = FIRST_PAUSE
        else:
            sure = self._pause < SURE_PAUSE and other > SURE * current
            self._baseline = current
            self._pause = SURE_PAUSE if sure else min(2 * self._pause, LONGEST_PAUSE)
        self._slides_left = self._slides_until_trial(series_s, current)

    def _slides_until_trial(self, series_s: float, current: float) -> int:
        """So many slides that the series is a small part of what they cost."""
        least = SHORT_SERIES + 1
        slides = series_s / current if current > 0 else least
        return round(self._pause * max(slides, least))


def _verdict(current: float, samples: list[float]) -> bool | None:
    """Whether to switch to the mode with these samples; None if more are needed."""
    if min(samples) > HOPELESS * current:
        return False
    if len(samples) < SHORT_SERIES:
        return None
    other = median(samples)
    if current - other <= EQUAL_S or other > CLEARLY_DEARER * current:
        return False
    if len(samples) >= LONG_SERIES:
        return other < CHEAPER * current
    return True if other < CLEARLY_CHEAPER * current else None


def _milliseconds(seconds: float | None) -> str:
    return "not measured" if seconds is None else f"{seconds * 1000:.3g} ms"
