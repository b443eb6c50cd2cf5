"""Functions with state, without tables: state as bytes, life spans, remembered values (EQ8)."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine.sampling import Sampling
from headwater.engine.stateful import (
    LiveState,
    Remembered,
    StatefulCall,
    check_count,
    check_state,
    chunk_numbers,
    chunk_start,
    make_call,
    scanned,
)
from headwater.errors import BindError, DataError, NotSupportedError
from headwater.fold import snapshot
from headwater.plan.folds import Leaf, StateCall, StreamColumns
from headwater.plan.pieces import Piece, Rendering
from headwater.sql.extensions import WindowClause
from headwater.sql.statements.query import make_query
from headwater.sql.text import Name, Span

SCHEMA = pa.schema([("ts", pa.int64()), ("v", pa.int32()), ("_seq", pa.int64())])
NOWHERE = Span(0, 0)
LEAF = Leaf(
    0,
    Name("s", NOWHERE),
    "s",
    WindowClause("rows", NOWHERE, rows=3),
    StreamColumns("s", SCHEMA, ("ts", "v"), "ts", pa.int64()),
)


class Total:
    """A running sum."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, v: int) -> int:
        self.total += v
        return self.total


def counted(state: dict[str, Any], v: int) -> str:
    """How many came, and what."""
    state["n"] = state.get("n", 0) + 1
    return f"{state['n']}:{v}"


def piece_of(text: str) -> Piece:
    query = make_query(f"SELECT {text}")
    return Rendering(query.text, query.tree, ()).piece(Span(7, len(query.text)))


def call_of(function: Any, type_: pa.DataType | None = None, *arguments: str) -> StatefulCall:
    pieces = tuple(piece_of(argument) for argument in arguments or ("v",))
    plan = StateCall("f", "query", pieces, "c", type_ or pa.int32())
    return make_call(plan, LEAF, function, frozenset({"f"}))


def rows_of(values: list[int | None], first: int = 0) -> pa.Table:
    places = list(range(first, first + len(values)))
    return pa.table({"ts": places, "v": values, "_seq": places}, schema=SCHEMA)


def given(
    call: StatefulCall, values: list[int | None], begins: list[bool] | None = None
) -> list[Any]:
    rows = rows_of(values)
    mask = np.array(begins or [False] * len(values), np.bool_)
    return list(call.values(rows, mask, rows.column("ts")).to_pylist())


# State


def test_a_class_and_a_function_keep_state_between_calls() -> None:
    """An instance is called, a function gets a dict; a life span begins with a fresh one."""
    assert given(call_of(Total), [1, 2, 3]) == [1, 3, 6]
    assert given(call_of(counted, pa.string()), [7, 8]) == ["1:7", "2:8"]
    assert given(call_of(Total), [1, 2, 3, 4], [True, False, True, False]) == [1, 3, 3, 7]


def test_state_goes_on_from_bytes_wherever_the_class_is_defined() -> None:
    """A class inside a function, one with slots, one that is a list, and a dict come back as they were."""

    class Slots:
        __slots__ = ("seen",)

        def __init__(self) -> None:
            self.seen: list[int] = []

        def __call__(self, v: int) -> int:
            self.seen.append(v)
            return sum(self.seen)

    class Listed(list[int]):
        def __call__(self, v: int) -> int:
            self.append(v)
            return sum(self)

    for function in (Total, Slots, Listed, lambda state, v: state.setdefault(v, len(state))):
        one = LiveState.fresh(function)
        for value in (5, 6, 5):
            one.call(value)
        other = LiveState.load(function, one.dump())
        assert [other.call(v) for v in (6, 9)] == [one.call(v) for v in (6, 9)]


def test_state_is_read_back_under_the_function_as_it_is_now() -> None:
    """A class that was defined again takes up the state of the one before."""

    class Better(Total):
        def __call__(self, v: int) -> int:
            return 1000 + super().__call__(v)

    old = LiveState.fresh(Total)
    old.call(5)
    assert LiveState.load(Better, old.dump()).call(2) == 1007


class Locked(Total):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Picky:
    def __init__(self, size: int) -> None:
        self.size = size


class Silent:
    pass


@pytest.mark.parametrize(
    ("function", "life", "words"),
    [
        (Locked, "query", "cannot be pickled"),
        (Picky, "scan", "cannot be made: TypeError"),
        (Silent, "chunk", "has no __call__"),
    ],
)
def test_functions_that_cannot_keep_state_are_refused(function: Any, life: str, words: str) -> None:
    """The message says what is wrong; state that stays in memory need not pickle."""
    with pytest.raises((BindError, DataError), match=words):
        check_state("f", function, life)
    check_state("f", Locked, "chunk")


@pytest.mark.parametrize(("function", "takes"), [(Total, 1), (counted, 1), (max, 5)])
def test_the_number_of_arguments_is_checked(function: Any, takes: int) -> None:
    """Beside its state a function takes what its signature says; built-in ones are not asked."""
    check_count("f", function, takes)
    if function is not max:
        with pytest.raises(BindError, match="does not take 2 arguments") as caught:
            check_count("f", function, takes + 1)
        assert caught.value.sqlstate == "42883"


# Calls


def test_arguments_are_expressions_over_the_rows() -> None:
    """Columns in any case, constants and arithmetic; what only Spark can do is refused."""

    def shown(_state: dict[str, Any], *values: Any) -> str:
        return repr(values)

    call = call_of(shown, pa.string(), "V + 1", "'x'", "ts")
    assert given(call, [4, None]) == ["(5, 'x', 0)", "(None, 'x', 1)"]
    with pytest.raises(NotSupportedError, match="argument sha2"):
        call_of(shown, pa.string(), "sha2(v, 256)")


def test_a_function_without_arguments_counts_rows() -> None:
    """No argument at all: one call per row."""

    def count(state: dict[str, int]) -> int:
        state["n"] = state.get("n", 0) + 1
        return state["n"]

    plan = StateCall("f", "query", (), "c", pa.int64())
    assert given(make_call(plan, LEAF, count, frozenset()), [1, 1, 1]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("value", "type_", "found"),
    [
        (7, pa.string(), "7"),
        (True, pa.int32(), 1),
        (2.0, pa.int32(), 2),
        (pa.scalar(3), pa.int64(), 3),
        (np.float32(1.5), pa.float64(), 1.5),
        (None, pa.int32(), None),
    ],
)
def test_values_become_the_declared_type(value: Any, type_: pa.DataType, found: Any) -> None:
    """As those of other Python functions: converted where nothing is lost."""
    assert given(call_of(lambda _state, _v: value, type_), [1]) == [found]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda _state, v: 10 // v, "function f failed for the row at 1: ZeroDivisionError"),
        (lambda _state, v: v or "x", "function f failed for the row at 1: 'x' is no int32"),
        (lambda _state, v: v or 2**40, "function f failed for the row at 1: 1099511627776 is no"),
    ],
)
def test_errors_name_the_function_and_the_row(function: Any, words: str) -> None:
    """An exception or a value that does not fit: which function, and T of the row."""
    with pytest.raises(DataError) as caught:
        given(call_of(function), [1, 0, 2])
    assert words in caught.value.message
    assert caught.value.sqlstate == "38000"


def test_a_scan_is_in_order_and_fresh_each_time() -> None:
    """Rows are called by (T, _seq) whatever their order, and come back in their own."""
    call = call_of(Total)
    rows = rows_of([1, 2, 4]).take(pa.array([2, 0, 1]))
    for _ in range(2):
        ticks, sequences = np.array([2, 0, 1]), np.array([2, 0, 1])
        found = scanned(rows, [call], ticks, sequences, "ts")
        assert found.column("c").to_pylist() == [7, 1, 3]


# Chunks


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("kind", ["interval", "realtime"])
def test_a_chunk_starts_where_its_number_does(kind: Any, before: bool) -> None:
    """The first tick of a chunk has its number, the tick before it has another."""
    sampling = Sampling(kind, 5)
    for tick in range(-12, 13):
        start = chunk_start(sampling, before, tick)
        numbers = chunk_numbers(sampling, before, np.array([start - 1, start, tick]), 0)
        assert numbers[0] != numbers[1] == numbers[2]


def test_an_instant_sees_its_chunk_as_the_newest() -> None:
    """By time: BEFORE is [i − step, i), else (i − step, i]; by rows: so many up to the place."""
    ticks = np.arange(10, 21)
    by_time = Sampling("interval", 10)
    assert chunk_numbers(by_time, True, ticks, 20).tolist() == [1] * 10 + [2]
    assert chunk_numbers(by_time, False, ticks, 20).tolist() == [1] + [2] * 10
    by_rows = Sampling("rows", 3)
    assert chunk_numbers(by_rows, False, ticks[:7], 9).tolist() == [0, 1, 1, 1, 2, 2, 2]
    assert chunk_numbers(by_rows, False, ticks[:4], 3).tolist() == [-1, 0, 0, 0]


# Remembered values


@pytest.mark.parametrize("by_chunk", [True, False])
def test_values_are_the_same_however_rows_come(by_chunk: bool) -> None:
    """Taken in random parts, trimmed and kept in between, each row has the value of one long run."""
    choose = random.Random(5)
    values = [choose.randint(0, 9) for _ in range(60)]
    chunks = np.arange(60) // 7
    sequences = np.array(choose.sample(range(100), 60))  # disorder: not by T
    wanted, total = [], 0
    for place, value in enumerate(values):
        total = value + (0 if by_chunk and place % 7 == 0 else total)
        wanted.append(total)
    calls, done = Remembered([call_of(Total)], by_chunk), 0
    while done < 60:
        part = slice(done, min(done + choose.randint(1, 9), 60))
        rows = rows_of(values[part], done)
        calls.take(rows, "ts", np.arange(60)[part], sequences[part], chunks[part])
        done = part.stop
        shown = np.arange(max(done - 15, 0), done)
        window = rows_of([0] * len(shown))
        found = calls.add_to(window, sequences[shown]).column("c").to_pylist()
        assert found == [wanted[n] for n in shown]
        calls.trim(sequences[shown], done)
        assert len(calls.ticks) < 15 + 7 + 1
        if choose.random() < 0.3 and not by_chunk:
            calls = restored(calls)


def restored(calls: Remembered) -> Remembered:
    """The same after a snapshot."""
    found = Remembered([call_of(Total)], by_chunk=False)
    snapshot.load(found, snapshot.dump(calls, 5))
    return found


def test_rows_without_a_call_are_null() -> None:
    """A window over rows from before the calls began."""
    calls = Remembered([call_of(Total)], by_chunk=False)
    window, sequences = rows_of([1, 1]), np.array([3, 4])
    assert calls.add_to(window, sequences).column("c").to_pylist() == [None, None]
    calls.take(rows_of([5]), "ts", np.array([0]), np.array([4]), np.array([0]))
    assert calls.add_to(window, sequences).column("c").to_pylist() == [None, 5]


def test_state_that_stops_pickling_is_named() -> None:
    """What a function puts into its state later may not pickle: the snapshot says so."""
    calls = Remembered([call_of(lambda state, v: state.update(f=lambda: v) or v)], by_chunk=False)
    calls.take(rows_of([1]), "ts", np.array([0]), np.array([0]), np.array([0]))
    with pytest.raises(DataError, match="state of function f cannot be pickled"):
        calls.state()
