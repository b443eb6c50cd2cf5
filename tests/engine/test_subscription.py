"""Readers of results: tokens, restarts, slow readers, ends and errors, many readers at once."""

from __future__ import annotations

import contextlib
import gc
import string
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from headwater.engine import results
from headwater.engine.emit import emitted
from headwater.engine.results import NewResult, ResultLog, ResultSet
from headwater.engine.subscription import Out, Pusher, Subscription, start_position
from headwater.engine.token import ResultToken, decode, encode
from headwater.errors import DataError, Error, KernelError, OverloadError
from headwater.sql.extensions import Emit
from tests.engine.test_results import MANY, SCHEMA, create, log_of, process
from tests.harness.patience import PATIENCE_S

QUERY, INCARNATION = 7, "f00d"
EMITS: tuple[Emit, ...] = ("all", "inserts", "deletes", "changes")

own = partial(decode, query_id=QUERY, incarnation=INCARNATION)


def rows(instant: int) -> pa.Table:
    """A result that shares rows with its neighbours; every fifth is empty."""
    numbers = [] if instant % 5 == 4 else list(range(instant // 2, instant // 2 + 4))
    table = {"v": numbers, "x": [n / 3 for n in numbers], "_t": [instant] * len(numbers)}
    return pa.table(table, schema=SCHEMA)


def fill(log: ResultLog, first: int, count: int) -> None:
    """Appends the results of `count` instants; the position is the instant."""
    log.append([NewResult(n, rows(n), n + 100) for n in range(first, first + count)])


def token_of(result: ResultSet) -> str:
    return encode(QUERY, INCARNATION, result.position, result.instant)


def token(position: int) -> str:
    return encode(QUERY, INCARNATION, position, position)


def subscribe(
    log: ResultLog,
    emit: Emit = "all",
    after: str | None = None,
    timeout: float | None = 0.0,
    on_close: Callable[[], None] | None = None,
) -> Subscription:
    """A subscription as a database makes it."""
    start = start_position(log, after, own, emit)
    return Subscription(
        log,
        emit=emit,
        start=start,
        time_of=lambda tick: tick,
        token_of=token_of,
        timeout=timeout,
        on_close=on_close,
    )


def expected(emit: Emit, instant: int) -> list[tuple[Any, ...]]:
    """What a reader gets for an instant."""
    before = rows(instant - 1) if instant else None
    out = emitted(emit, before, rows(instant), pa.scalar(instant, pa.int64()))
    return [tuple(row.values()) for row in out.to_pylist()]


def check(outs: list[Out], emit: Emit, first: int, end: int) -> None:
    """The results handed out are exactly those of these instants, in order."""
    assert [out.time for out in outs] == list(range(first, end))
    assert [out.rows() for out in outs] == [expected(emit, n) for n in range(first, end)]
    assert [out.token for out in outs] == [token(n) for n in range(first, end)]
    assert [out.epoch for out in outs] == [n + 100 for n in range(first, end)]


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("crash", [True, False])
def test_a_token_yields_exactly_the_following_results(
    tmp_path: Path, emit: Emit, crash: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was processed last, before or after a restart, in memory or on disk."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 3)
    with process(tmp_path / "data", crash) as opened:
        log = log_of(create(opened))
        fill(log, 0, 12)
        check(list(subscribe(log, emit, "earliest")), emit, 0, 12)
        with subscribe(log, emit, "earliest") as reader:
            processed = [next(reader) for _ in range(5)]
    with process(tmp_path / "data") as opened:
        log = log_of(opened.table("q"))
        fill(log, 12, 4)
        check(list(subscribe(log, emit, processed[-1].token)), emit, 5, 16)
        for position in range(16):
            check(list(subscribe(log, emit, token(position))), emit, position + 1, 16)


@pytest.mark.parametrize("emit", EMITS)
def test_without_after_it_starts_with_the_next_result(emit: Emit) -> None:
    """Results before the call are not handed out, but changes are counted from the last one."""
    log = log_of(None)
    fill(log, 0, 3)
    reader = subscribe(log, emit)
    fill(log, 3, 3)
    check(list(reader), emit, 3, 6)
    check(list(subscribe(log_of(None), emit)), emit, 0, 0)


@pytest.mark.parametrize("emit", EMITS)
def test_earliest_after_results_were_dropped(emit: Emit) -> None:
    """Where the result before the oldest kept one is gone, changes start one later."""
    log = log_of(None, keep=4)
    fill(log, 0, 10)
    check(list(subscribe(log, emit, "earliest")), emit, 6 if emit == "all" else 7, 10)
    one = log_of(None, keep=1)
    fill(one, 0, 10)
    check(list(subscribe(one, emit, "earliest")), emit, 9 if emit == "all" else 10, 10)


@pytest.mark.parametrize("emit", EMITS)
def test_a_token_whose_following_results_were_dropped(emit: Emit) -> None:
    """All that follows, or an error; never a gap."""
    log = log_of(None, keep=4)
    fill(log, 0, 10)
    check(list(subscribe(log, emit, token(6))), emit, 7, 10)
    oldest = 5 if emit == "all" else 6
    check(list(subscribe(log, emit, token(oldest))), emit, oldest + 1, 10)
    with pytest.raises(OverloadError, match="after the token were dropped") as caught:
        subscribe(log, emit, token(oldest - 1))
    assert caught.value.sqlstate == "55000"
    assert caught.value.detail == "kept are 4 results, from position 6"
    assert "results_kept" in str(caught.value.hint)


def test_tokens_of_results_that_are_not_there() -> None:
    """A token from the future, or of another instant (an older copy of the folder), is refused."""
    log = log_of(None)
    fill(log, 0, 3)
    for wrong in (token(3), token(-1), encode(QUERY, INCARNATION, 1, 99)):
        with pytest.raises(DataError) as caught:
            subscribe(log, "all", wrong)
        assert caught.value.sqlstate == "22023"
        assert caught.value.hint


@pytest.mark.parametrize("emit", EMITS)
def test_a_reader_that_falls_behind_gets_an_error(emit: Emit) -> None:
    """The query goes on; the reader is told which bound it fell out of, then it has ended."""
    log = log_of(None, keep=5)
    reader = subscribe(log, emit)
    fill(log, 0, 5)
    check([next(reader)], emit, 0, 1)
    fill(log, 5, 1)  # position 0 goes: the reader has seen it, also as what it compares with
    check([next(reader)], emit, 1, 2)
    fill(log, 6, 20)
    with pytest.raises(OverloadError, match="too slow") as caught:
        next(reader)
    assert caught.value.sqlstate == "55000"
    assert "results_kept" in str(caught.value.hint)
    assert reader.closed
    assert list(reader) == []


def test_a_timeout_ends_without_error() -> None:
    """No result in time: the iterator ends, once and for all."""
    log = log_of(None)
    fill(log, 0, 1)
    ended: list[int] = []
    reader = subscribe(log, "all", "earliest", timeout=0.001, on_close=lambda: ended.append(1))
    check(list(reader), "all", 0, 1)
    fill(log, 1, 1)
    assert list(reader) == []
    assert ended == [1]


def test_a_failed_query_raises_after_its_results() -> None:
    """Results before the failure come first; every reader gets the error."""
    log = log_of(None)
    fill(log, 0, 3)
    readers = [subscribe(log, "all", "earliest", timeout=None) for _ in range(2)]
    log.fail(KernelError("the run failed"))
    for reader in readers:
        check([next(reader) for _ in range(3)], "all", 0, 3)
        with pytest.raises(KernelError, match="the run failed"):
            next(reader)
        assert list(reader) == []


def test_a_dropped_query_ends_the_iteration() -> None:
    """A reader that waits for ever is woken and ends."""
    log = log_of(None)
    seen: list[Out] = []
    pusher = Pusher(subscribe(log, timeout=None), seen.append)
    fill(log, 0, 3)
    log.close()
    assert pusher.join(PATIENCE_S)
    assert pusher.error is None
    check(seen, "all", 0, 3)


def test_a_query_dropped_while_a_reader_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is only in the table went with it: the iteration ends, without an error."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 2)
    monkeypatch.setattr(results, "AHEAD_RESULTS", 2)
    with process(tmp_path / "data") as opened:
        log = log_of(create(opened))
        fill(log, 0, 10)
        reader = subscribe(log, "all", "earliest")
        check([next(reader)], "all", 0, 1)
        assert log._stored is not None

        def gone(_: object) -> pa.Table:
            raise Error("no such file")

        monkeypatch.setattr(log._stored, "_rows", gone)
        log.close()
        check(list(reader), "all", 1, 2)  # read together with the first


def test_closing_wakes_a_waiting_reader() -> None:
    """From another thread; what the caller wanted done at the end is done once."""
    log = log_of(None)
    ended: list[int] = []
    reader = subscribe(log, timeout=None, on_close=lambda: ended.append(1))
    pusher = Pusher(reader, [].append)
    pusher.close()
    assert not pusher.running
    reader.close()
    assert ended == [1]


def test_a_subscription_that_nobody_holds_is_closed() -> None:
    """`for out in db.subscribe(…): break` leaves nothing behind."""
    log = log_of(None)
    fill(log, 0, 2)
    ended: list[int] = []
    for _ in subscribe(log, "all", "earliest", on_close=lambda: ended.append(1)):
        break
    gc.collect()
    assert ended == [1]


def test_a_failing_callback_ends_its_subscription_alone() -> None:
    """The error is kept; the query and other readers go on."""
    log = log_of(None)
    seen: list[Out] = []

    def fail_at_two(out: Out) -> None:
        if out.time == 2:
            raise ValueError("no twos")

    failing = Pusher(subscribe(log, timeout=None), fail_at_two)
    with Pusher(subscribe(log, timeout=PATIENCE_S), seen.append) as steady:
        fill(log, 0, 5)
        assert failing.join(PATIENCE_S)
        assert isinstance(failing.error, ValueError)
        log.close()
        assert steady.join(PATIENCE_S)
    assert steady.error is None
    check(seen, "all", 0, 5)


def test_a_callback_may_close_its_own_subscription() -> None:
    """Closing from within a call does not wait for that call."""
    log = log_of(None)
    seen: list[object] = []
    made = threading.Event()

    def once(out: Out) -> None:
        assert made.wait(PATIENCE_S)
        seen.append(out.time)
        pusher.close()

    pusher = Pusher(subscribe(log, timeout=None), once)
    made.set()
    fill(log, 0, 5)
    assert pusher.join(PATIENCE_S)
    assert (seen, pusher.error) == ([0], None)


def test_many_readers_and_one_appender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight readers of every kind, from memory and from the table: each gets all, in order."""
    monkeypatch.setattr(results, "RECENT_RESULTS", 16)
    count = 300
    with process(tmp_path / "data") as opened:
        table = create(opened)
        log = log_of(table)
        seen: list[list[Out]] = [[] for _ in range(8)]
        pushers = [
            Pusher(subscribe(log, EMITS[n % 4], "earliest", PATIENCE_S), seen[n].append)
            for n in range(8)
        ]
        for first in range(0, count, 3):
            fill(log, first, 3)
            if first == 150:
                opened.store.seal(table)
        log.fail(KernelError("the end"))  # readers get there after everything before
        for pusher in pushers:
            assert pusher.join(PATIENCE_S)
            assert isinstance(pusher.error, KernelError)
        for n, outs in enumerate(seen):
            check(outs, EMITS[n % 4], 0, count)


def test_one_subscription_in_two_threads() -> None:
    """Each result is handed out once."""
    log = log_of(None)
    fill(log, 0, 200)
    reader = subscribe(log, "all", "earliest")
    taken: list[list[Out]] = [[], []]
    threads = [threading.Thread(target=lambda n=n: taken[n].extend(reader)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(out.time) for part in taken for out in part) == list(range(200))  # type: ignore[arg-type]


def test_threads_take_turns_at_one_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread takes a result, no other is on its way to the same one."""
    log = log_of(None)
    fill(log, 0, 2)
    both = threading.Barrier(2)
    met: list[int] = []
    read_from = log.read_from

    def meeting(position: int) -> list[ResultSet]:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.1)
            met.append(position)
        return read_from(position)

    monkeypatch.setattr(log, "read_from", meeting)
    reader = subscribe(log, "all", "earliest")
    threads = [threading.Thread(target=next, args=(reader,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []


def test_instants_that_are_timestamps() -> None:
    """`_t` of '-' rows and `out.time` are times where T is one."""
    stamp, begin = pa.timestamp("us", "UTC"), datetime(1970, 1, 1, tzinfo=UTC)
    schema = pa.schema([("v", pa.int64()), ("_t", stamp)])
    log = ResultLog(None, schema, keep=lambda: 10, keep_bytes=lambda: MANY)
    reader = Subscription(
        log,
        emit="changes",
        start=0,
        time_of=lambda tick: begin + timedelta(microseconds=tick),
        token_of=token_of,
        timeout=0.0,
    )
    one = pa.table([pa.array([1]), pa.array([5], stamp)], schema=schema)
    log.append([NewResult(5, one), NewResult(9, schema.empty_table())])
    outs = list(reader)
    assert [out.time for out in outs] == [begin + timedelta(microseconds=n) for n in (5, 9)]
    assert [out.rows() for out in outs] == [
        [(1, begin + timedelta(microseconds=5), "+")],
        [(1, begin + timedelta(microseconds=9), "-")],
    ]
    assert outs[0].arrow().column_names == ["v", "_t", "_op"]


# Tokens

NUMBERS = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**40), st.text(max_size=20), st.integers(0, 2**62), NUMBERS)
def test_tokens_come_back(query: int, incarnation: str, position: int, instant: int) -> None:
    """A token says what it was made of; it is safe in a URL and in SQL."""
    text = encode(query, incarnation, position, instant)
    assert decode(text, query, incarnation) == ResultToken(query, incarnation, position, instant)
    assert all(c.isascii() and (c.isalnum() or c in "-_") for c in text)


def test_tokens_are_short() -> None:
    """Short enough to read out: a query, a position of a million, an instant in µs."""
    assert len(encode(12, "1f2e3d4c", 1_000_000, 1_790_000_000_000_000)) <= 40


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=40), st.integers(0, 200)), st.characters())
def test_other_texts_are_no_tokens(found: str | int, letter: str) -> None:
    """Any text, and any token with one letter changed, is refused with a hint."""
    text = found
    if isinstance(found, int):
        right = token(123_456)
        place = found % len(right)
        if right[place] == letter:
            return
        text = right[:place] + letter + right[place + 1 :]
    with pytest.raises(DataError, match="is no token") as caught:
        own(str(text))
    assert caught.value.sqlstate == "22023"
    assert caught.value.hint


def test_a_token_has_one_spelling() -> None:
    """Every other letter at every place, and anything added, makes it no token."""
    right = token(123_456)
    letters = string.ascii_letters + string.digits + "-_"
    wrong = [right[:n] + c + right[n + 1 :] for n in range(len(right)) for c in letters]
    wrong += [right + c for c in "=\n A"] + [" " + right, right[:-1], right[1:], ""]
    for text in set(wrong) - {right}:
        with pytest.raises(DataError, match="is no token"):
            own(text)


def test_tokens_of_other_queries_are_refused() -> None:
    """Another query, and a query of the same name that was made again."""
    with pytest.raises(DataError, match="another query") as caught:
        own(encode(8, INCARNATION, 1, 1))
    assert (caught.value.sqlstate, bool(caught.value.hint)) == ("22023", True)
    with pytest.raises(DataError, match="earlier query") as caught:
        own(encode(QUERY, "beef", 1, 1))
    assert (caught.value.sqlstate, bool(caught.value.hint)) == ("22023", True)


def test_results_are_taken_together_up_to_a_bound() -> None:
    """What is there comes in one piece, whole results only; nothing is left out or given twice."""
    log = ResultLog(None, SCHEMA, keep=lambda: 100, keep_bytes=lambda: 1 << 30)
    fill(log, 0, 10)
    with subscribe(log, after="earliest") as reader:
        assert reader.waiting == 10
        first = reader.take(5)
        assert [out.time for out in first] == [0, 1]
        assert reader.waiting == 8
        assert [out.time for out in reader.take(1000)] == list(range(2, 10))
        assert reader.take(1000) == []
        fill(log, 10, 1)
        assert [out.time for out in reader.take(1)] == [10]
