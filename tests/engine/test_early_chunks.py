"""The search for the number of early chunks, with simulated response times."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.early_chunks import LEAST_OF_FIRST, EarlyChunks

Response = Callable[[int], float]  # of m, in seconds


def model(fixed: float, pane: float, chunk: float) -> Response:
    """What is left of the pane, merging its chunks, and what every slide costs."""
    return lambda m: fixed + pane / m + chunk * m


def run(
    chunks: EarlyChunks,
    response: Response,
    slides: int,
    *,
    rows: int = 10_000,
    noise: float = 0.0,
    rng: random.Random | None = None,
) -> list[int]:
    """The m of each slide."""
    rng = rng or random.Random(0)
    used = []
    for _ in range(slides):
        used.append(chunks.m)
        chunks.observe(response(chunks.m) * rng.uniform(1 - noise, 1 + noise), rows)
    return used


def longest_search(period: int, most: int) -> int:
    """Each m up to the largest for a period and its first slide."""
    return (period + 1) * (most.bit_length() + 1)


def test_it_doubles_while_the_response_falls_then_returns_to_the_best() -> None:
    """The course of the paper's Fig. 8: up to one step too far, and back for good."""
    chunks = EarlyChunks(period=5, most=2048)
    used = run(chunks, model(0.001, 1.0, 4e-6), 200)
    assert list(dict.fromkeys(used)) == [2**n for n in range(11)]
    assert max(used) == 1024
    assert set(used[100:]) == {512}
    assert used.count(1) == used.count(2) == 6
    assert not chunks._searching


def test_it_may_start_with_several_chunks() -> None:
    """From 16 on it doubles or stays; a new search begins there again."""
    chunks = EarlyChunks(period=2, start=16)
    assert set(run(chunks, model(0.001, 0.0, 0.01), 20)) == {16, 32}
    assert chunks.m == 16
    run(chunks, model(0.001, 1.0, 0.0), 40, rows=100_000)
    assert chunks.m == 512
    with pytest.raises(ValueError, match="at least 1"):
        EarlyChunks(most=8, start=16)


@given(
    fixed=st.floats(0.0, 0.1),
    pane=st.floats(0.001, 1.0),
    chunk=st.floats(0.0, 0.05),
    period=st.integers(1, 10),
)
@settings(max_examples=200, deadline=None)
def test_it_ends_at_the_best_power_of_two(
    fixed: float, pane: float, chunk: float, period: int
) -> None:
    """Nothing tried is better by more than what is worthwhile, within a bounded search."""
    chunks, response = EarlyChunks(period, most=64), model(fixed, pane, chunk)
    run(chunks, response, longest_search(period, 64))
    assert not chunks._searching
    best = min(response(2**n) for n in range(7))
    # Two steps that are each not worthwhile may hide a little more.
    assert response(chunks.m) <= best / 0.95**2 + 1e-4


def test_without_a_gain_it_stays_at_one() -> None:
    """Where the pane costs nothing, chunks are only overhead."""
    chunks = EarlyChunks()
    assert run(chunks, model(0.1, 0, 0.01), 200)[-100:] == [1] * 100


def test_most_is_the_bound_and_a_chunk_has_a_row() -> None:
    """However much it would gain."""
    chunks = EarlyChunks(most=16)
    assert max(run(chunks, model(0, 1, 0), 300)) == 16
    few = EarlyChunks(most=64)
    assert max(run(few, model(0, 1, 0), 300, rows=5)) == 4


@pytest.mark.parametrize("seed", range(30))
def test_noise_does_not_make_it_waver(seed: int) -> None:
    """At ±20 % it settles near the best and stays there."""
    chunks, response, rng = EarlyChunks(), model(0.01, 1.0, 0.004), random.Random(seed)
    bound = longest_search(8, 64)
    run(chunks, response, bound, noise=0.2, rng=rng)
    settled = chunks.m
    assert set(run(chunks, response, 1000, noise=0.2, rng=rng)) == {settled}
    assert response(settled) <= 1.6 * min(response(2**n) for n in range(7)) < response(1) / 4


def test_single_slow_slides_do_not_decide() -> None:
    """Up to three of eight slides are much slower: the medians do not see them."""
    chunks, response, rng = EarlyChunks(), model(0.01, 1.0, 0.004), random.Random(3)
    for slide in range(200):
        spike = rng.choice([1, 3, 100]) if slide % 8 in (2, 4, 7) else 1
        chunks.observe(response(chunks.m) * spike, 10_000)
    assert chunks.m == 16


def test_one_step_that_gains_nothing_is_passed_two_are_not() -> None:
    """A flat stretch may be noise; a longer one ends the search."""
    chunks = EarlyChunks(most=8)
    run(chunks, {1: 1.0, 2: 0.98, 4: 0.5, 8: 0.6}.__getitem__, 100)
    assert chunks.m == 4
    chunks = EarlyChunks(most=8)
    used = run(chunks, {1: 1.0, 2: 0.98, 4: 0.97, 8: 0.1}.__getitem__, 100)
    assert (chunks.m, max(used)) == (1, 4)


def test_it_searches_again_when_the_load_has_changed() -> None:
    """More rows, fewer rows, a slower or a faster machine: the new best is found in time."""
    chunks = EarlyChunks()
    bound = longest_search(8, 64) + 3 * 9
    run(chunks, model(0.01, 1.0, 0.004), bound)
    assert chunks.m == 16
    run(chunks, model(0.01, 0.05, 0.004), bound, rows=500)
    assert chunks.m == 4
    run(chunks, model(0.01, 1.0, 0.004), bound, rows=10_000)
    assert chunks.m == 16
    run(chunks, model(0.01, 20.0, 0.004), bound)
    assert chunks.m == 64
    run(chunks, model(0.01, 0.05, 0.004), bound)
    assert chunks.m == 4


def test_a_smaller_change_keeps_what_was_found() -> None:
    """By less than two times."""
    chunks = EarlyChunks()
    run(chunks, model(0.01, 1.0, 0.004), 200)
    assert set(run(chunks, model(0.018, 1.8, 0.0072), 200, rows=18_000)) == {16}


def test_a_change_during_the_search_begins_it_anew() -> None:
    """Medians of different loads are not compared."""
    chunks = EarlyChunks()
    run(chunks, model(0, 1, 0.004), 30)
    assert chunks.m == 8
    used = run(chunks, model(0, 10, 0.004), 20, rows=100_000)
    assert 1 in used


def test_empty_panes_are_passed_over() -> None:
    """They cost nothing, so they would look like the best."""
    chunks = EarlyChunks()
    run(chunks, model(0.01, 1.0, 0.004), 200)
    for _ in range(100):
        chunks.observe(0.00001, 0)
    assert chunks.m == 16
    assert chunks.due(700)


def test_rows_are_due_by_the_chunk() -> None:
    """An m-th of the rows that a pane is expected to have; with one chunk never."""
    chunks = EarlyChunks(period=1)
    assert not chunks.due(1 << 40)
    for _ in range(2):
        chunks.observe(1.0, 1000)
    assert chunks.m == 2
    assert not chunks.due(499)
    assert chunks.due(500)
    for _ in range(2):
        chunks.observe(0.5, 1000)
    assert (chunks.m, chunks.due(249), chunks.due(250)) == (4, False, True)


def test_of_the_first_pane_an_mth_is_left() -> None:
    """It is as large as what has come of it: chunks grow with it, few of them, and none is tiny."""
    chunks = EarlyChunks(start=16)
    folded = waiting = folds = 0
    for _ in range(150_000):
        waiting += 1
        if chunks.due(waiting, folded):
            assert waiting >= LEAST_OF_FIRST
            folded, waiting, folds = folded + waiting, 0, folds + 1
    assert waiting <= 150_000 / 16
    assert folds <= 60
    assert not EarlyChunks().due(1 << 40, 1 << 40)


def test_the_expected_rows_are_a_moving_average() -> None:
    """They follow the load in a few panes, and a single odd one moves them little."""
    chunks = EarlyChunks(period=1, most=2)
    for rows in (1000, 1000, 1000, 2000):
        chunks.observe(1.0 / chunks.m, rows)
    assert chunks.m == 2
    assert (chunks.due(624), chunks.due(625)) == (False, True)


def test_arguments_that_cannot_be_are_refused() -> None:
    """Bounds of the constructor."""
    for arguments in ((0, 64, 0.05), (8, 0, 0.05), (8, 64, 1.0), (8, 64, -0.1)):
        with pytest.raises(ValueError, match="at least 1"):
            EarlyChunks(*arguments)
