"""Reports of epochs that take longer than their budget."""

from __future__ import annotations

from headwater.engine.progress import Progress


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def progress_of(clock: Clock, budget_s: float | None = 1.0) -> Progress:
    """Progress over a clock; every thread has run the Spark jobs 7 and 8."""
    return Progress(budget_s, clock, lambda thread: [7, 8] if thread == 1 else [])


def test_an_epoch_within_its_budget_is_not_told_of() -> None:
    """Nothing to report, during or after."""
    clock = Clock()
    progress = progress_of(clock)
    with progress.firing(3, 1, 0.0), progress.at("fold 0"):
        clock.now = 1.0
        assert progress.report() is None
    assert progress.report() is None
    assert progress.overruns == 0


def test_the_part_that_holds_an_epoch_is_named_while_it_runs_and_after() -> None:
    """The part with the most time, with the Spark jobs of the firing's thread."""
    clock = Clock()
    progress = progress_of(clock)
    with progress.firing(3, 1, 0.0):
        with progress.at("fold 0"):
            clock.now = 0.2
        with progress.at("the upper part"):
            clock.now = 2.0
            found = progress.report()
            assert found == (
                "epoch 3 takes 2.00 s, its budget is 1 s; 1.80 s in the upper part (Spark jobs 7, 8)"
            )
    told = progress.report()
    assert told is not None
    assert told.startswith("epoch 3 took 2.00 s")
    assert progress.overruns == 1


def test_waiting_counts_from_when_the_epoch_could_be_answered() -> None:
    """A firing that begins late is over its budget because of the wait."""
    clock = Clock()
    clock.now = 5.0
    progress = progress_of(clock)
    with progress.firing(0, 2, 1.0):
        assert progress.report() == (
            "epoch 0 takes 4.00 s, its budget is 1 s; 4.00 s in waiting for its turn"
        )


def test_without_a_budget_nothing_is_over_it() -> None:
    """A query without a budget never reports."""
    clock = Clock()
    progress = progress_of(clock, None)
    with progress.firing(0, 1, 0.0), progress.at("fold 0"):
        clock.now = 100.0
    assert progress.report() is None
