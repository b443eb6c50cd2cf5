"""Both ends of a line: questions, answers, errors, its end, and notes that never wait."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from headwater.engine.elsewhere import HostGone
from headwater.errors import BindError
from headwater.factories.frames import Frame, received
from headwater.factories.line import Line, LineEnded
from tests.harness.patience import PATIENCE_S, until

BIG = pa.table({"v": pa.array(range(400_000), pa.int64())})  # more than a socket holds


@pytest.fixture
def ends() -> Iterator[tuple[Line, Line]]:
    """The driver's end and the factory's; nothing is served yet."""
    near, far = socket.socketpair()
    lines = Line(near, "far", 2, lambda: None), Line(far, "near", 2, lambda: None)
    yield lines
    for line in lines:
        line.close()
        line._jobs.put(None)  # its workers may not have begun yet


def _serve(*lines: Line) -> None:
    for line in lines:
        line.serve_in_background()


def test_answers_belong_to_their_questions(ends: tuple[Line, Line]) -> None:
    """Many at once, in any order, both ways, while each end asks back."""
    near, far = ends
    near.on("half", lambda f: Frame({"n": f.head["n"] // 2}))
    far.on("twice", lambda f: Frame({"n": far.ask("half", n=f.head["n"] * 4).head["n"]}, f.rows()))
    _serve(near, far)
    rows = pa.table({"v": [1, 2]})
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(near.ask, "twice", [rows], n=n) for n in range(200)]
    answers = [future.result() for future in asked]
    assert [answer.head["n"] for answer in answers] == [2 * n for n in range(200)]
    assert all(answer.rows() == [rows] for answer in answers)


def test_an_error_is_raised_where_it_was_asked(ends: tuple[Line, Line]) -> None:
    near, far = ends

    def refuse(_: Frame) -> None:
        raise BindError("there is no object 7", sqlstate="42704", hint="look")

    far.on("open", refuse)
    far.on("pulse", lambda _: None, here=True)
    _serve(near, far)
    with pytest.raises(BindError, match="no object 7") as caught:
        near.ask("open")
    assert (caught.value.sqlstate, caught.value.hint) == ("42704", "look")
    assert near.ask("pulse").head["answers"] > 0  # the line goes on


@pytest.mark.parametrize("who", ["asker", "answerer"])
def test_the_end_of_the_line_is_told_to_who_waits(ends: tuple[Line, Line], who: str) -> None:
    near, far = ends
    heard, free = threading.Event(), threading.Event()

    def think(_: Frame) -> None:
        heard.set()
        assert free.wait(PATIENCE_S)

    far.on("think", think)
    _serve(near, far)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(near.ask, "think")
        assert heard.wait(PATIENCE_S)
        (near if who == "asker" else far).close()
        with pytest.raises(LineEnded):
            asked.result(PATIENCE_S)
    free.set()
    assert near.ended.wait(PATIENCE_S)
    assert far.ended.wait(PATIENCE_S)
    for act in (lambda: near.ask("think"), lambda: near.tell("think")):
        with pytest.raises(HostGone):
            act()
    near.note(9)  # nobody is there to hear it


def test_the_end_is_told_once_also_if_both_ends_notice() -> None:
    near, far = socket.socketpair()
    ends: list[int] = []
    line = Line(near, "far", 1, lambda: ends.append(1))
    line.serve_in_background()
    with far:
        closers = [threading.Thread(target=line.close) for _ in range(8)]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join(PATIENCE_S)
    assert ends == [1]


def test_what_waits_for_a_worker_is_not_done_after_the_end() -> None:
    """Another life of the factory may be in its place by then."""
    near, far = socket.socketpair()
    asker, line = Line(near, "far", 1, lambda: None), Line(far, "near", 1, lambda: None)
    busy, free = threading.Event(), threading.Event()
    done: list[str] = []

    def append(frame: Frame) -> None:
        busy.set()
        assert free.wait(PATIENCE_S)
        done.append(frame.head["what"])

    line.on("append", append)
    _serve(line)
    asker.tell("append", what="under way")
    asker.tell("append", what="waiting")
    assert busy.wait(PATIENCE_S)
    until(lambda: line._jobs.qsize() == 1)
    workers = [t for t in threading.enumerate() if t.name == "headwater-near-0"]
    line.close()
    free.set()
    for worker in workers:
        worker.join(PATIENCE_S)
    asker.close()
    assert done == ["under way"]


def test_a_question_that_takes_too_long_is_given_up(ends: tuple[Line, Line]) -> None:
    near, far = ends
    free = threading.Event()
    far.on("think", lambda _: free.wait(PATIENCE_S) and None)  # type: ignore[func-returns-value]
    far.on("pulse", lambda _: None, here=True)
    _serve(near, far)
    with pytest.raises(LineEnded, match="does not answer"):
        near.ask("think", timeout_s=0.01)
    assert not near.ended.is_set()
    free.set()  # its answer belongs to nobody now
    assert near.ask("pulse")


def test_notes_come_in_the_order_of_frames_and_the_last_one_comes(ends: tuple[Line, Line]) -> None:
    near, far = ends
    heard: list[int] = []
    far.on("log", lambda f: heard.append(f.head["lsn"]), here=True)
    far.on("last", lambda _: Frame({"lsn": heard[-1]}), here=True)
    _serve(near, far)

    def write() -> None:
        for lsn in range(1, 3000):
            near.note(lsn)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        near.tell("log", lsn=0)  # competes for the socket
    writer.join(PATIENCE_S)
    until(lambda: bool(heard) and max(heard) == 2999)
    notes = [lsn for lsn in heard if lsn]
    assert notes == sorted(set(notes))


def test_a_note_never_waits_for_who_does_not_read() -> None:
    """The log's writer tells of each group; one that hangs must not hold it back."""
    near, far = socket.socketpair()
    with far:
        line = Line(near, "far", 0, lambda: None)
        for lsn in range(1, 5_000):
            line.note(lsn)  # would wait forever, were it one that waits
        assert line._told < 4_999  # it did not fit
        heard: list[int] = []

        def read() -> None:
            while (frame := received(far)) is not None:
                heard.append(frame.head.get("lsn", 0))

        reader = threading.Thread(target=read)
        reader.start()
        while line._told < 4_999:
            line.tell(
                "pulse"
            )  # what waited goes out whole before it, the newest once there is room
        line.close()
        reader.join(PATIENCE_S)
    notes = [lsn for lsn in heard if lsn]
    assert notes[-1] == 4_999
    assert notes == sorted(set(notes))


def test_closing_frees_who_waits_to_send() -> None:
    """The other end hangs with a full socket: whoever sends to it comes free when the line is closed."""
    near, far = socket.socketpair()
    with far:
        line = Line(near, "far", 0, lambda: None)
        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(line.ask, "rows", [BIG])]
            until(line._sending.locked)  # and it stays so: nobody reads
            waiting.append(pool.submit(line.ask, "pulse", timeout_s=PATIENCE_S))
            waiting.append(pool.submit(line.tell, "news"))  # type: ignore[arg-type]
            line.note(5)
            stuck = not any(future.done() for future in waiting)
            line.close()
            assert stuck
            for future in waiting:
                with pytest.raises(LineEnded):
                    future.result(PATIENCE_S)


def test_a_note_that_cannot_be_taken_in_ends_the_line(
    ends: tuple[Line, Line], caplog: pytest.LogCaptureFixture
) -> None:
    """A factory that has lost its place in the log would else stand still and answer every pulse."""
    near, far = ends

    def lose(_: Frame) -> None:
        raise OSError("its segment is gone")

    far.on("log", lose, here=True)
    _serve(near, far)
    near.note(7)
    assert near.ended.wait(PATIENCE_S)
    assert "its segment is gone" in caplog.text


def test_what_is_not_a_frame_ends_the_line() -> None:
    near, far = socket.socketpair()
    line = Line(near, "far", 0, lambda: None)
    with far, contextlib.suppress(ValueError):
        far.sendall(b"\x02\x00\x00\x00" + bytes(8) + b"{x")
        line.serve()
    assert line.ended.is_set()
