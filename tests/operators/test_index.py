"""The index of rows by slot against a dictionary of sets."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from headwater.operators import index as module
from headwater.operators.index import Index


@pytest.mark.parametrize("seed", range(20))
def test_finds_the_live_rows_of_slots(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_WASTE", 4)
    chance, index, next_number = random.Random(seed), Index(), 0
    alive = np.zeros(10_000, np.bool_)
    model: dict[int, set[int]] = defaultdict(set)
    for _ in range(60):
        count = chance.choice([0, 1, 2, 30])
        slots = [chance.randrange(chance.choice([2, 5, 40])) for _ in range(count)]
        numbers = list(range(next_number, next_number + count))
        next_number += count
        alive[numbers] = True
        index.add(np.array(slots, np.int64), np.array(numbers, np.int64), alive)
        for slot, number in zip(slots, numbers, strict=True):
            model[slot].add(number)
        for slot in chance.sample(range(40), 20):
            for number in [n for n in model[slot] if chance.random() < 0.4]:
                alive[number] = False
                model[slot].remove(number)
        asked = [chance.randrange(-1, 60) for _ in range(chance.randrange(30))]
        most = chance.choice([None, 1, 3, 7, 1000])
        pieces = list(index.find(np.array(asked, np.int64), alive, most))
        assert all(0 < len(p) == len(n) <= (most or 10**9) for p, n in pieces)
        found = sorted(
            (a, b) for p, n in pieces for a, b in zip(p.tolist(), n.tolist(), strict=True)
        )
        wanted = sorted((place, n) for place, slot in enumerate(asked) for n in model[slot])
        assert found == wanted


def test_a_slot_whose_rows_come_and_go_keeps_few_entries() -> None:
    index, alive = Index(), np.zeros(20_000, np.bool_)
    slot = np.zeros(1, np.int64)
    for number in range(6_000):
        alive[number] = True
        alive[number - 3 if number > 2 else -1] = False
        index.add(slot, np.array([number]), alive)
    assert sum(len(n) for _, n in index.find(slot, alive)) == 3
    assert index.nbytes < 400_000


def test_entries_of_dead_rows_go_when_they_are_looked_at() -> None:
    index, alive = Index(), np.ones(20_000, np.bool_)
    index.add(np.zeros(20_000, np.int64), np.arange(20_000), alive)
    alive[10:] = False
    for _ in range(2):
        assert sum(len(n) for _, n in index.find(np.zeros(1, np.int64), alive)) == 10
    assert index._lengths.values[-1] == 10


@pytest.mark.parametrize("seed", range(10))
def test_rows_that_are_popped_have_left(seed: int) -> None:
    chance, index, alive = random.Random(seed), Index(), np.ones(10_000, np.bool_)
    model: dict[int, set[int]] = defaultdict(set)
    next_number, known = 0, set[int]()
    for _ in range(40):
        slots = [chance.randrange(8) for _ in range(chance.choice([0, 1, 2, 30]))]
        for number, slot in enumerate(slots, start=next_number):
            model[slot].add(number)
        index.add(
            np.array(slots, np.int64), np.arange(next_number, next_number + len(slots)), alive
        )
        next_number += len(slots)
        for slot in chance.sample(range(8), 2):
            for number in [n for n in model[slot] if chance.random() < 0.1]:
                alive[number] = False
                model[slot].remove(number)
        known |= {*slots}
        asked = chance.sample(sorted(known), chance.randint(0, len(known)))
        counts = [chance.choice([1, 2, 9]) for _ in asked]
        if not asked:
            continue
        places, numbers = index.pop(np.array(asked), np.array(counts), alive)
        for place, slot in enumerate(asked):
            given = set(numbers[places == place].tolist())
            assert len(given) == min(counts[place], len(model[slot]))
            assert given <= model[slot]
            model[slot] -= given
