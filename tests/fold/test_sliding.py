"""Sliding windows against evaluating each window anew: every structure, every aggregate."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import DataError
from headwater.fold import snapshot
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.columns import Column
from headwater.fold.dense import DenseTwoStack
from headwater.fold.lookup import Lookup
from headwater.fold.merges import SlidingMerge
from headwater.fold.pane import Panes, Window
from headwater.fold.sliding import SlidingWindow, choose
from headwater.fold.subtract import SubtractOnEvict
from headwater.fold.two_level import TwoLevel
from headwater.fold.undo_log import UndoLogTwoStack
from tests.fold.brute import ALL_TYPES, check, functions_for, grouped, random_array

STRUCTURES: dict[str, Callable[[Aggregation, int], SlidingMerge]] = {
    "dense": lambda a, _: DenseTwoStack(a),
    "undo-log": lambda a, _: UndoLogTwoStack(a),
    "two-level": TwoLevel,
    "subtract": lambda a, _: SubtractOnEvict(a),
}


def window_with(name: str, aggregation: Aggregation, panes: int) -> SlidingWindow:
    window = SlidingWindow(aggregation, panes)
    window._merges = [STRUCTURES[name](aggregation, panes)]
    return window


def aggregates_for(rng: random.Random, name: str, type_: pa.DataType) -> list[Aggregate]:
    functions = functions_for(type_)
    if name == "subtract":
        exact = not pa.types.is_floating(type_)
        functions = [f for f in functions if f in ("count", "sum", "avg", "count_distinct")]
        functions = functions if exact else ["count", "count_distinct"]
    chosen = rng.sample(functions, min(len(functions), rng.choice([1, 3, 20])))
    return [
        Aggregate("count", None, pa.null(), "rows"),
        *(Aggregate(f, 0, type_, f) for f in chosen),
    ]


def slide_at_random(seed: int, name: str) -> None:
    """Chunks with gaps, ties and empty stretches; windows of any size; a restart in the middle."""
    rng = random.Random(f"{seed} {name}")
    type_, key_types = rng.choice(ALL_TYPES), rng.choices(ALL_TYPES, k=rng.choice([0, 1, 1, 2]))
    aggregates = aggregates_for(rng, name, type_)
    fields = [pa.field(f"k{i}", t) for i, t in enumerate(key_types)]
    aggregation = Aggregation(fields, aggregates)
    span = Window(rng.choice([1, 3, 10, 25, 60]), rng.random() < 0.5)
    panes = Panes(rng.choice([1, 2, 5, 7]), (span,))
    count = rng.choice([20, 60, 150])
    clock = (
        np.cumsum(
            np.array([rng.choice([0, 0, 0, 1, 1, 2, 2, rng.choice([3, 40])]) for _ in range(count)])
        )
        - 30
    )
    nulls = rng.choice([0, 0.3])
    keys = [random_array(rng, t, count, 0.1) for t in key_types]
    columns = [random_array(rng, type_, count, nulls)]
    window = window_with(name, aggregation, panes.count(span))
    waiting = [(pane, rows.tolist()) for pane, rows in _parts(rng, panes, clock)]
    first = panes.first_instant(int(clock[0]))
    instants = list(range(first, int(clock[-1]) + 80, panes.slide))
    restart = rng.choice(instants)
    for instant in instants:
        held = panes.of_window(span, instant)
        window.evict(held.start)
        while waiting and waiting[0][0] < held.stop:
            pane, rows = waiting.pop(0)
            if pane < held.start:
                continue
            take = pa.array(rows)
            order = (clock[rows], np.array(rows))
            partial = window.fold(
                [k.take(take) for k in keys], [Column(columns[0].take(take))], order
            )
            window.push(pane, partial)
        if instant == restart:
            data = snapshot.dump(window, position=instant)
            window = window_with(name, aggregation, 3)
            assert snapshot.load(window, data) == instant
        if rng.random() > 25 / len(instants) and instant != restart:
            continue
        low, high = span.first_tick(instant), span.last_tick(instant)
        inside = np.flatnonzero((clock >= low) & (clock <= high)).tolist()
        check(window.result(), len(keys), grouped(aggregates, keys, inside, columns))


def _parts(rng: random.Random, panes: Panes, clock: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The rows of each pane, some in several parts."""
    parts = []
    for pane, rows in panes.split(clock):
        numbers = np.arange(len(clock))[rows]
        parts += [
            (pane, part) for part in np.array_split(numbers, rng.choice([1, 1, 2])) if len(part)
        ]
    return parts


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("first", range(0, 20, 5))
def test_every_window_equals_its_rows_evaluated(first, name):
    for seed in range(first, first + 5):
        slide_at_random(seed, name)


@pytest.mark.large
@pytest.mark.parametrize("name", STRUCTURES)
def test_many_windows_equal_their_rows_evaluated(name):
    for seed in range(100, 600):
        slide_at_random(seed, name)


def numbers(
    rng: np.random.Generator, groups: int, rows: int, type_=None
) -> tuple[pa.Array, Column]:
    values = pa.array(rng.standard_normal(rows)) if type_ else pa.array(rng.integers(-99, 99, rows))
    return pa.array(rng.integers(0, groups, rows)), Column(values)


NAMES = ("sum", "min", "max", "avg")


def aggregation_of(type_: pa.DataType, names: tuple[str, ...] = NAMES) -> Aggregation:
    aggregates = [Aggregate(name, 0, type_, name, nullable=False) for name in names]
    return Aggregation([pa.field("k", pa.int64())], aggregates)


@pytest.mark.parametrize("name", ["dense", "undo-log", "two-level"])
def test_floats_continue_bit_by_bit_after_a_restart(name):
    rng = np.random.default_rng(1)
    aggregation = aggregation_of(pa.float64(), ("sum", "avg", "stddev"))
    window = window_with(name, aggregation, 16)
    other = None
    for pane in range(120):
        chunk = numbers(rng, 20, 50, pa.float64())
        for one in filter(None, (window, other)):
            one.evict(pane - 15)
            one.push(pane, one.fold([chunk[0]], [chunk[1]]))
        if pane == 53:
            other = window_with(name, aggregation, 16)
            snapshot.load(other, snapshot.dump(window))
        if other is not None:
            assert window.result().equals(other.result())


def test_the_choice_is_named():
    floats, counts = (
        aggregation_of(pa.float64()),
        aggregation_of(pa.int64(), ("sum", "count", "avg")),
    )
    assert choose(floats, 512, 1000).name == "dense two-stack"
    assert choose(floats, 512, 100_000).name == "undo-log two-stack"
    assert choose(floats, 8192, 10).name == "two-level (blocks of 90)"
    assert choose(floats, 512, 100_000, steady=True).name == "two-level (blocks of 22)"
    assert choose(counts, 8192, 100_000).name == "subtract-on-evict"
    assert SlidingWindow(counts, 8).structure == "subtract-on-evict"


def test_a_window_that_grows_changes_its_structure(monkeypatch):
    monkeypatch.setattr("headwater.fold.sliding.DENSE_BYTES", 40_000)
    monkeypatch.setattr("headwater.fold.sliding.FLAT_PANES", 40)
    rng = np.random.default_rng(2)
    aggregation = aggregation_of(pa.int64())
    window, seen, names, low = SlidingWindow(aggregation, 10, 4), [], [], 0
    for pane in range(300):
        keep = 10 if pane < 50 else 100 if pane < 200 else 15
        chunk = numbers(rng, 4 if pane < 30 else 60, 30)
        seen.append(chunk)
        low = max(low, pane - keep + 1)
        window.evict(low)
        window.push(pane, window.fold([chunk[0]], [chunk[1]]))
        names.append(window.structure.split(" ")[0])
        live = seen[low:]
        keys = [pa.concat_arrays([k for k, _ in live])]
        columns = [pa.concat_arrays([c.array for _, c in live])]
        rows = list(range(len(keys[0])))
        check(window.result(), 1, grouped(aggregation.aggregates, keys, rows, columns))
    assert list(dict.fromkeys(names)) == ["dense", "undo-log", "two-level"]
    assert len(window._merges) == 1


def test_keys_that_left_are_forgotten(monkeypatch):
    monkeypatch.setattr("headwater.fold.sliding.WORTH_CLEANING", 20)
    monkeypatch.setattr("headwater.fold.distinct.WORTH_KEEPING", 20)
    for name in STRUCTURES:
        names = ("sum", "count_distinct") if name == "subtract" else (*NAMES, "count_distinct")
        aggregation = aggregation_of(pa.int64(), names)
        window, sizes = window_with(name, aggregation, 9), []
        for pane in range(200):
            keys, values = pa.array([pane, pane + 1, pane]), Column(pa.array([pane, 7, -pane]))
            window.evict(pane - 8)
            window.push(pane, window.fold([keys], [values]))
            live = range(max(0, pane - 8), pane + 1)
            keys = [pa.array([k for p in live for k in (p, p + 1, p)])]
            columns = [pa.array([v for p in live for v in (p, 7, -p)])]
            rows = list(range(len(columns[0])))
            check(window.result(), 1, grouped(aggregation.aggregates, keys, rows, columns))
            sizes.append(len(window.lookup))
        assert max(sizes) < 60
        assert len(window._distinct[0]._lookup) < 80


def test_two_windows_share_partials_and_keys():
    aggregation, lookup = aggregation_of(pa.int64()), Lookup([pa.int64()])
    windows = [SlidingWindow(aggregation, size, lookup=lookup) for size in (3, 8)]
    rng = np.random.default_rng(3)
    seen = []
    for pane in range(40):
        chunk = numbers(rng, 5, 10)
        seen.append(chunk)
        partials = [
            windows[0].fold([chunk[0].slice(s, 5)], [Column(chunk[1].array.slice(s, 5))])
            for s in (0, 5)
        ]
        for window, size in zip(windows, (3, 8), strict=True):
            window.evict(pane - size + 1)
            for partial in partials:
                window.push(pane, partial)
            live = seen[-size:]
            keys = [pa.concat_arrays([k for k, _ in live])]
            columns = [pa.concat_arrays([c.array for _, c in live])]
            rows = list(range(len(keys[0])))
            check(window.result(), 1, grouped(aggregation.aggregates, keys, rows, columns))


def test_an_overflow_leaves_with_its_pane():
    for name in STRUCTURES:
        window = window_with(name, aggregation_of(pa.int64(), ("sum",)), 4)
        for pane, value in enumerate([2**62, 2**62, 5, 6]):
            window.push(pane, window.fold([pa.array([1])], [Column(pa.array([value]))]))
        with pytest.raises(DataError):
            window.result()
        window.evict(1)
        assert window.result()["sum"].to_pylist() == [2**62 + 11]


def test_results_do_not_change_afterwards():
    for name in STRUCTURES:
        window = window_with(name, aggregation_of(pa.int64(), ("sum", "count")), 4)
        chunk = [pa.array([1, 2])], [Column(pa.array([10, 20]))]
        window.push(0, window.fold(*chunk))
        table = window.result()
        before = table.to_pylist()
        for pane in range(1, 6):
            window.push(pane, window.fold(*chunk))
            window.evict(pane - 1)
        assert table.to_pylist() == before


def test_panes_out_of_order_are_refused():
    window = SlidingWindow(aggregation_of(pa.int64()), 4)
    partial = window.fold([pa.array([1])], [Column(pa.array([1]))])
    window.push(5, partial)
    with pytest.raises(ValueError, match="comes after"):
        window.push(4, partial)
    window.evict(9)
    with pytest.raises(ValueError, match="evicted"):
        window.push(8, partial)


def cost_per_slide(name: str, panes: int, slides: int) -> float:
    """Mean seconds per slide, the best of three stretches."""
    rng = np.random.default_rng(4)
    names = ("sum", "count") if name == "subtract" else NAMES
    window = window_with(name, aggregation_of(pa.int64(), names), panes)
    window._change_structure = lambda: None
    partials = [window.fold([k], [c]) for k, c in (numbers(rng, 100, 1000) for _ in range(16))]
    for pane in range(panes):
        window.push(pane, partials[pane % 16])
    best, pane = float("inf"), panes
    for _ in range(3):
        start = time.thread_time()
        for _ in range(slides):
            window.evict(pane - panes + 1)
            window.push(pane, partials[pane % 16])
            window.result()
            pane += 1
        best = min(best, (time.thread_time() - start) / slides)
    return best


@pytest.mark.parametrize("name", ["two-level", "subtract"])
def test_the_mean_cost_of_a_slide_does_not_depend_on_the_number_of_panes(name):
    """As chosen for many panes; the two-stacks are flat over whole turns, which take longer to run."""
    assert cost_per_slide(name, 4096, 300) < 2 * cost_per_slide(name, 8, 300)


@pytest.mark.large
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_mean_cost_over_whole_turns_does_not_depend_on_the_number_of_panes(name):
    assert cost_per_slide(name, 4096, 2 * 4096) < 1.5 * cost_per_slide(name, 8, 4096)


def test_two_level_merges_few_panes_in_its_worst_slide(monkeypatch):
    """Counted, not timed: entries of panes written by one slide at 1024 panes, blocks of 32."""
    merged = [0]
    for part in (Aggregation.merge, Aggregation.merge_at):

        def counting(self, *arguments, part=part):
            merged[0] += 1
            part(self, *arguments)

        monkeypatch.setattr(Aggregation, part.__name__, counting)
    for name, bound in (("two-level", 32 + 8), ("dense", 1024 + 8)):
        window = window_with(name, aggregation_of(pa.int64()), 1024)
        window._change_structure = lambda: None
        partial = window.fold([pa.array([1])], [Column(pa.array([1]))])
        worst = 0
        for pane in range(3 * 1024):
            merged[0] = 0
            window.evict(pane - 1023)
            window.push(pane, partial)
            if pane > 1024:
                worst = max(worst, merged[0])
        assert bound / 2 < worst <= bound, name


def arrays_in(state):
    """The vectors of a state, each once."""
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, list | tuple):
        return {name: array for inner in state for name, array in arrays_in(inner).items()}
    return {id(state): state} if isinstance(state, np.ndarray) else {}


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_snapshot_takes_no_second_copy_of_the_panes(name):
    """What is held for a snapshot is the running merge; it stays as it was while the window slides on."""
    names = ("sum", "count") if name == "subtract" else ("sum", "max", "count")
    window = window_with(name, aggregation_of(pa.int64(), names), 64)
    rng = np.random.default_rng(5)

    def slide(pane):
        chunk = numbers(rng, 400, 1000)
        window.evict(pane - 63)
        window.push(pane, window.fold([chunk[0]], [chunk[1]]))

    for pane in range(150):
        slide(pane)
    state = window.state()
    held = snapshot.detached(state)
    there = arrays_in(state)
    own = [array for key, array in arrays_in(held).items() if key not in there]
    assert sum(a.nbytes for a in own) < sum(a.nbytes for a in there.values()) / 5
    before = io.BytesIO()
    snapshot.write(before, held)
    for pane in range(150, 260):
        slide(pane)
        window.result()
    after = io.BytesIO()
    snapshot.write(after, held)
    assert after.getvalue() == before.getvalue()
