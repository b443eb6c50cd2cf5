"""The life of the factories' tasks: Spark runs them, they say hello, their pulse is felt, they end.

Owns: the jobs, the door at which tasks say hello, and the seats that they take. A task that ended is started
again, one that hangs is ended. Which queries a factory has is not known here: whoever moves them holds
`moving`, and no task comes meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.engine.elsewhere import HostGone
from headwater.execute.context import Context
from headwater.factories.frames import Frame, received
from headwater.factories.line import Line
from headwater.factories.process import TaskProcess, peer_of
from headwater.factories.seat import Seat
from headwater.factories.task import DriverAddress, run, versions
from headwater.kernel.cache import remove_scratch, scratch_folder
from headwater.kernel.factory_job import cancel_factory, run_factory

if TYPE_CHECKING:
    from headwater.kernel.spark import SparkSession

LOOK_S = 0.25
PULSE_S = 1.0
HELLO_S = 60.0
HELLO_BYTES = 1 << 16  # who sends more is no task of ours
LINE_WORKERS = 4
PAUSES_S = (0.0, 0.1, 0.5, 2.0, 5.0)  # before a factory that ended is started again
LONG_LIFE_S = 60.0  # one that lived so long is started again at once
CLOSE_PATIENCE_S = 30.0
END_PATIENCE_S = 2.0

log = logging.getLogger("headwater.factories")


class FactoryJobs:
    """The Spark jobs of the factories of one database."""

    def __init__(self, context: Context, count: int) -> None:
        self._context = context
        self.seats = [Seat(number + 1, context) for number in range(count)]
        self.moving = threading.RLock()  # one move at a time, and no task comes or goes meanwhile
        self.started = False
        self.on_change: Callable[[], None] = lambda: None  # a task has come, or ended
        self.on_end: Callable[[Seat], None] = lambda _seat: None  # what it had is to be taken back
        self.on_pulse: Callable[[Seat, Mapping[str, float], float], None] = lambda *_told: None
        self._closing = threading.Event()  # nothing is started any more
        self._closed = threading.Event()  # every line has ended
        self._listeners: list[socket.socket] = []
        self._greeting: set[socket.socket] = set()  # that have not said hello yet
        self._threads: list[threading.Thread] = []

    @property
    def closing(self) -> bool:
        """Whether the database is being closed."""
        return self._closing.is_set()

    def there(self) -> list[Seat]:
        """The factories that have come and not ended."""
        return [seat for seat in self.seats if seat.is_there]

    # Begin

    def take_room(self) -> bool:
        """There are as many factories as this Spark has room for; False if that is none."""
        room = self._context.kernel.take_seats(len(self.seats))
        if room < len(self.seats):
            log.warning("%d of %d factories: Spark has no more room", room, len(self.seats))
            self.seats = self.seats[:room]
        if not self.seats:
            self._closing.set()
        return bool(self.seats)

    def begin(self) -> None:
        """Starts the factories."""
        self.started = True
        self._open_door()
        for listener in self._listeners:
            self._spawn("headwater-hellos", partial(self._accept, listener))
        self._spawn("headwater-pulses", self._feel_pulses)
        for seat in self.seats:
            self._spawn(f"headwater-job-{seat.number}", partial(self._keep_job, seat))

    def _open_door(self) -> None:
        self._folder = scratch_folder(Path(tempfile.gettempdir()))
        path = os.path.join(self._folder, "driver")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen()
        self._listeners, place = [listener], ("", 0)
        kernel = self._context.kernel
        if not kernel.is_local:  # executors on other machines
            self._listeners.append(socket.create_server((kernel.driver_host, 0)))
            place = (kernel.driver_host, self._listeners[-1].getsockname()[1])
        self._address = DriverAddress(path, *place, secrets.token_hex(16))

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    # Jobs

    def _keep_job(self, seat: Seat) -> None:
        """Runs the factory's job again and again, until the database is closed."""
        failures = 0
        while not self.closing:
            if not self._context.kernel.ready:
                self._closing.wait(LOOK_S)
                continue
            began = time.monotonic()
            seat.incarnation += 1
            work = partial(run, self._address, seat.number, seat.incarnation)
            try:
                session, _ = self._context.kernel.stream_session({})
                self._run_job(session, seat, work)
            except Exception as error:  # whatever ended it, another one is started
                if not self.closing:
                    log.warning("%s ended: %s", seat.name, str(error).splitlines()[0][:200])
            self.on_change()
            failures = failures + 1 if time.monotonic() - began < LONG_LIFE_S else 0
            self._closing.wait(PAUSES_S[min(failures, len(PAUSES_S) - 1)])

    def _run_job(
        self, session: SparkSession, seat: Seat, work: Callable[[], Iterator[int]]
    ) -> None:
        ended = threading.Event()
        seat.cancel = partial(cancel_factory, session, seat.number)
        name = f"headwater-watch-{seat.number}"
        threading.Thread(target=self._watch, args=(seat, ended), name=name, daemon=True).start()
        try:
            run_factory(session, seat.number, work)
        finally:
            ended.set()

    def _watch(self, seat: Seat, ended: threading.Event) -> None:
        """When the database closes, a task that has not come is cancelled, and one that does not go."""
        while not self.closing:
            if ended.wait(LOOK_S):
                return
        if seat.came == seat.incarnation:
            ended.wait(CLOSE_PATIENCE_S / 2)
        while not ended.wait(LOOK_S):  # again: it may have been on its way to Spark
            with contextlib.suppress(Exception):
                seat.cancel()

    def wait_for_end(self, seat: Seat) -> None:
        """Until the process of a factory that has lost its line is gone: it must write no more snapshots."""
        process = seat.process
        if not self._context.kernel.is_local:
            with contextlib.suppress(Exception):  # Spark may be gone too
                seat.cancel()
        if not process.has_ended(END_PATIENCE_S):
            process.kill()
            process.has_ended(END_PATIENCE_S)

    # Hellos

    def _accept(self, listener: socket.socket) -> None:
        while not self.closing:
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if not self._closing.wait(LOOK_S):  # out of descriptors, for a while
                    log.warning("a factory could not be let in: %s", error)
                continue
            threading.Thread(
                target=self._greet, args=(connection,), name="headwater-hello", daemon=True
            ).start()

    def _greet(self, connection: socket.socket) -> None:
        """A task says hello; whoever does not know the secret is not heard."""
        self._greeting.add(connection)
        try:
            hello = None if self.closing else self._hello(connection)
            welcome = hello is not None and self._welcome(connection, hello)
        finally:
            self._greeting.discard(connection)
        if not welcome:
            connection.close()
        self.on_change()

    def _hello(self, connection: socket.socket) -> Frame | None:
        connection.settimeout(HELLO_S)
        try:
            hello = received(connection, HELLO_BYTES)
            connection.settimeout(None)
        except (OSError, ValueError):
            return None
        said = None if hello is None else str(hello.head.get("secret"))
        if said is None or not secrets.compare_digest(said, self._address.secret):
            return None
        assert hello is not None
        if hello.head["versions"] != versions():
            log.warning("a factory has other versions than here: %s", hello.head["versions"])
            return None
        return hello

    def _welcome(self, connection: socket.socket, hello: Frame) -> bool:
        """It takes its seat, unless another life of it has come: the older one is over then."""
        with self.moving:
            seat = self._seat_of(hello)
            if seat is None or self.closing:
                return False
            self.on_end(seat)
            if seat.line is not None:
                return False
            self._take_seat(seat, connection, hello)
        return True

    def _seat_of(self, hello: Frame) -> Seat | None:
        number, incarnation = hello.head["number"], hello.head["incarnation"]
        found = (s for s in self.seats if (s.number, s.incarnation) == (number, incarnation))
        return next(found, None)

    def _take_seat(self, seat: Seat, connection: socket.socket, hello: Frame) -> None:
        context = self._context
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asking = context.settings.integer("engine_threads")  # for views, which may ask for tables
        line = Line(connection, seat.name, LINE_WORKERS + asking, self.on_change)
        lsn = context.streams.durable_lsn
        seat.prepare(line, TaskProcess(peer_of(connection, hello.head["pid"])), lsn)
        seat.came = seat.incarnation
        try:
            line.tell(
                "welcome",
                folder=str(context.folder.path),
                settings={n: context.settings[n] for n in sorted(context.settings.explicit)},
                lsn=lsn,
                shared_memory=context.kernel.is_local,
            )
        except HostGone:
            line.close()
            seat.forget_all()
            return
        line.serve_in_background()
        seat.line = line  # not before: the welcome is the first that it hears
        line.note(context.streams.durable_lsn)

    # Pulses

    def _feel_pulses(self) -> None:
        """In a thread of its own: whoever tells a factory that hangs something may wait for it."""
        while not self._closed.wait(PULSE_S):
            for seat in self.seats:
                self._feel(seat)

    def _feel(self, seat: Seat) -> None:
        """A factory that does not answer is ended: Spark does not notice that it hangs."""
        line, pulse = seat.line, seat.pulse
        if line is None or line.ended.is_set():
            return
        if pulse is not None and pulse[0] is line:
            if time.monotonic() - pulse[1] > self._context.settings.number("factory_timeout_s"):
                log.warning("%s does not answer and is started again", seat.name)
                seat.process.kill()
                line.close()
            return
        seat.pulse = mine = (line, time.monotonic())
        name = f"headwater-pulse-{seat.number}"
        threading.Thread(target=self._ask_pulse, args=(seat, mine), name=name, daemon=True).start()

    def _ask_pulse(self, seat: Seat, mine: tuple[Line, float]) -> None:
        line = mine[0]
        with contextlib.suppress(HostGone):
            spent = line.ask("pulse").head["spent"]
            now = time.monotonic()
            self.on_pulse(seat, spent, now - seat.pulsed)
            seat.pulsed = now
        if seat.pulse is mine:
            seat.pulse = None

    # End

    def end(self) -> None:
        """Nothing is started any more; lines stay until `close`."""
        self._closing.set()

    def stop(self) -> None:
        """Factories put their state away; one that does not is ended."""
        stopping = [
            threading.Thread(target=_stop, args=(seat,), name=f"headwater-stop-{seat.number}")
            for seat in self.there()
        ]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()

    def close(self) -> None:
        """After the lines: the door is shut, the jobs end."""
        self._closed.set()
        if not self.started:
            return
        for one in [*self._listeners, *self._greeting]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for listener in self._listeners:
            listener.close()
        remove_scratch(self._folder)
        for thread in self._threads:
            thread.join(CLOSE_PATIENCE_S)
        self._context.kernel.return_seats(len(self.seats))


def _stop(seat: Seat) -> None:
    line = seat.line
    if line is None:
        return
    try:
        line.ask("stop", timeout_s=CLOSE_PATIENCE_S)
    except HostGone:
        seat.process.kill()
    except Exception as error:
        log.warning("%s could not put everything away: %s", seat.name, error)
