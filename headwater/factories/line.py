"""One end of the line between the driver and a factory: frames out, questions and answers, frames in.

Owns: the socket, the threads that serve it, and the questions that wait for an answer. Frames arrive in the
order in which they were sent. What only has to be noted is done by the thread that reads; what takes time,
or asks back, is done by others.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.engine.elsewhere import HostGone
from headwater.factories.frames import Frame, encoded, error_from_json, error_to_json, received

MOST_PARTS = 512  # of one system call

log = logging.getLogger("headwater.factories")

Answer = Frame | None
Work = Callable[[Frame], Answer]


class LineEnded(HostGone):
    """The other end is gone."""


class Line:
    """One end of a line."""

    def __init__(
        self, connection: socket.socket, name: str, workers: int, on_end: Callable[[], None]
    ) -> None:
        self._connection = connection
        self.name = name
        self._on_end = on_end
        self._sending = threading.Lock()
        self._waiting: deque[memoryview] = deque()  # of a note that did not fit at once
        self._newest = self._told = 0  # positions in the log: the last one known, and told
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._asked: dict[int, Future[Frame]] = {}
        self._handlers: dict[str, tuple[Work, bool]] = {}
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._workers = workers
        self.ended = threading.Event()

    def on(self, kind: str, work: Work, *, here: bool = False) -> None:
        """How frames of a kind are served; `here`: by the thread that reads, in order."""
        self._handlers[kind] = (work, here)

    def serve_in_background(self) -> None:
        """Reads frames in a thread of its own."""
        threading.Thread(target=self.serve, name=f"headwater-line-{self.name}", daemon=True).start()

    def serve(self) -> None:
        """Reads frames until the line ends."""
        for number in range(self._workers):
            name = f"headwater-{self.name}-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        try:
            while (frame := received(self._connection)) is not None:
                self._take(frame)
        except OSError:
            pass
        finally:
            self.close()

    def _take(self, frame: Frame) -> None:
        answered = frame.head.get("answers")
        if answered is not None:
            with self._lock:
                future = self._asked.pop(answered, None)
            if future is not None:
                future.set_result(frame)
            return
        work, here = self._handlers[frame.kind]
        if here:
            self._do(work, frame)
        else:
            self._jobs.put(lambda: self._do(work, frame))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self.ended.is_set():  # whoever asked is gone, and another may be in its place
                job()
        self._jobs.put(None)

    def _do(self, work: Work, frame: Frame) -> None:
        asked = frame.head.get("asks")
        try:
            answer = work(frame) or Frame({})
        except BaseException as error:
            answer = Frame({"error": error_to_json(error)})
            if asked is None and not self.ended.is_set():  # nobody else would know of it
                log.warning("what %s told could not be taken in: %s", self.name, error)
                self.close()
        if asked is not None:
            with contextlib.suppress(LineEnded):
                self._send(Frame({**answer.head, "answers": asked}, answer.tables, answer.data))

    def tell(
        self, kind: str, tables: Sequence[pa.Table] = (), data: bytes = b"", **head: Any
    ) -> None:
        """Sends a frame that nobody answers."""
        self._send(Frame({"kind": kind, **head}, tables, data))

    def ask(
        self,
        kind: str,
        tables: Sequence[pa.Table] = (),
        data: bytes = b"",
        timeout_s: float | None = None,
        **head: Any,
    ) -> Frame:
        """Sends a question and waits for its answer; an error that came of it is raised here."""
        return self.begin(kind, tables, data, **head)(timeout_s)

    def begin(
        self, kind: str, tables: Sequence[pa.Table] = (), data: bytes = b"", **head: Any
    ) -> Callable[[float | None], Frame]:
        """Sends a question; what is given waits so long for its answer."""
        number, future = next(self._numbers), Future[Frame]()
        with self._lock:
            self._asked[number] = future
        try:
            self._send(Frame({"kind": kind, "asks": number, **head}, tables, data))
        except BaseException:
            self._forget(number)
            raise
        return partial(self._answer, number, future)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._asked.pop(number, None)

    def _answer(self, number: int, future: Future[Frame], timeout_s: float | None) -> Frame:
        try:
            if self.ended.is_set() and not future.done():
                raise LineEnded(f"{self.name} has ended")
            answer = future.result(timeout_s)
        except TimeoutError:
            raise LineEnded(f"{self.name} does not answer") from None
        finally:
            self._forget(number)
        failure: Mapping[str, Any] | None = answer.head.get("error")
        if failure is not None and failure["type"] == LineEnded.__name__:
            raise LineEnded(f"{self.name} has ended")
        if failure is not None and failure["type"] == HostGone.__name__:
            raise HostGone(failure["message"])
        if failure is not None:
            raise error_from_json(dict(failure))
        return answer

    def note(self, lsn: int) -> None:
        """The log is durable up to here. Never waits: of many notes the last one goes out."""
        self._newest = max(self._newest, lsn)
        self._pump()

    def _pump(self) -> None:
        """Sends the newest note, unless another thread is sending: that one does it afterwards."""
        while self._newest > self._told and self._sending.acquire(blocking=False):
            try:
                newest = self._newest
                note = b"".join(map(bytes, encoded(Frame({"kind": "log", "lsn": newest}))))
                if self._waiting or not self._try(note):
                    return  # the other end reads slowly: the next frame, or the pulse, goes on
                self._told = newest
            finally:
                self._sending.release()

    def _try(self, data: bytes) -> bool:
        """Sends what fits; the rest waits for the next frame. False if nothing did."""
        try:
            sent = self._connection.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True  # the end of the line is told to those who read it
        if sent < len(data):
            self._waiting.append(memoryview(data)[sent:])
        return True

    def _send(self, frame: Frame) -> None:
        parts = [memoryview(part) for part in encoded(frame)]
        with self._sending:
            self._write([*self._waiting, *parts])
            self._waiting.clear()
        self._pump()

    def _write(self, parts: list[memoryview]) -> None:
        try:
            while parts:
                sent = self._connection.sendmsg(parts[:MOST_PARTS])
                parts = _after(parts, sent)
        except OSError as error:
            raise LineEnded(f"{self.name} has ended") from error

    def close(self) -> None:
        """Ends the line; whoever waits for an answer is told. May be called again."""
        with self._lock:
            if self.ended.is_set():
                return
            self.ended.set()
            asked, self._asked = list(self._asked.values()), {}
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        gone = Frame({"error": error_to_json(LineEnded(f"{self.name} has ended"))})
        for future in asked:
            future.set_result(gone)
        self._jobs.put(None)
        self._on_end()


def _after(parts: list[memoryview], sent: int) -> list[memoryview]:
    """What is left of buffers after so many bytes."""
    for place, part in enumerate(parts):
        size = part.nbytes
        if sent < size:
            return [part.cast("B")[sent:], *parts[place + 1 :]]
        sent -= size
    return []
