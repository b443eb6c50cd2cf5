"""Which query lives where: factories are started, queries lent to them, and taken back when one ends.

Owns: the seats of the factories, the thread that moves queries, and the one that tells what has changed.
Queries begin in the driver's own host; as soon as a factory is there they move over, a little after the last
statement that made or changed one. Whoever needs a query here calls it back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.engine.elsewhere import HostGone
from headwater.engine.hosted import Hosted
from headwater.engine.query import ContinuousQuery
from headwater.engine.sharing import signature
from headwater.engine.view import ContinuousView, ViewCut
from headwater.execute.context import Context
from headwater.factories.frames import Frame, received
from headwater.factories.functions import sendable
from headwater.factories.line import Line
from headwater.factories.plain import schema_to_json
from headwater.factories.seat import Lent, Seat, flush
from headwater.factories.task import DriverAddress, run, versions
from headwater.kernel.factory_job import cancel_factory, run_factory
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.seen import Needs

if TYPE_CHECKING:
    from headwater.kernel.spark import SparkSession

SETTLE_S = 0.05  # after the last change, before queries move
LOOK_S = 0.25
PULSE_S = 1.0
HELLO_S = 60.0
LINE_WORKERS = 4
PAUSES_S = (0.0, 0.1, 0.5, 2.0, 5.0)  # before a factory that ended is started again
CLOSE_PATIENCE_S = 30.0
END_PATIENCE_S = 2.0

log = logging.getLogger("headwater.factories")


class Factories:
    """The factories of one database."""

    def __init__(self, context: Context, count: int) -> None:
        self._context = context
        self._changed = threading.Condition()
        self._touched = time.monotonic()  # when something last came or changed
        self._dirty: set[int] = set()  # tables whose blocks have changed
        self._staying: Counter[str] = Counter()  # that somebody works with here
        self._moving = threading.RLock()  # one move at a time
        self._closing = False
        self._started = False
        self.seats = [Seat(number + 1, context) for number in range(count)]
        self._reasons: dict[str, str] = {}  # by query: why it stays here
        self._threads: list[threading.Thread] = []

    # Life

    def start(self) -> None:
        """Factories come as soon as Spark runs and a query is there for them."""
        context = self._context
        context.engine.on_change = self._touch
        context.engine.needs_elsewhere = self._needs
        context.engine.flush_elsewhere = self._flush
        context.engine.moves = lambda: sum(seat.moves for seat in self.seats)
        context.engine.staying = self.staying
        context.kernel.on_spark.append(self._touch)
        self._spawn("headwater-coordinator", self._coordinate)

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take_seats(self) -> None:
        """As many factories as there is room for in this Spark."""
        room = self._context.kernel.take_seats(len(self.seats))
        if room < len(self.seats):
            log.warning("%d of %d factories: Spark has no more room", room, len(self.seats))
            self.seats = self.seats[:room]
        if self.seats:
            self._begin()
        else:
            self._closing = True

    def _begin(self) -> None:
        """The first query is there: tasks are started."""
        self._started = True
        context = self._context
        self._folder = tempfile.mkdtemp(prefix="headwater-line-")
        path = os.path.join(self._folder, "driver")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen()
        self._listeners, place = [listener], ("", 0)
        if not context.kernel.is_local:  # executors on other machines
            place = (context.kernel.driver_host, 0)
            self._listeners.append(socket.create_server(place))
            place = (place[0], self._listeners[-1].getsockname()[1])
        self._address = DriverAddress(path, *place, secrets.token_hex(16))
        context.streams.on_group(self._note)
        context.streams.read_from = self._read_from
        context.streams.on_image = self._blocks_changed
        context.catalog.keep_written()
        context.catalog.on_change = self._touch_told
        context.settings.on_set = lambda _name: self._touch_told()
        for one in self._listeners:
            self._spawn("headwater-hellos", partial(self._accept, one))
        self._spawn("headwater-news", self._tell_news)
        self._spawn("headwater-pulses", self._feel_pulses)
        for seat in self.seats:
            self._spawn(f"headwater-job-{seat.number}", partial(self._keep_job, seat))

    def close(self) -> None:
        """Factories put their state away and end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        with self._moving:
            for seat in self.seats:
                if seat.line is not None:
                    with contextlib.suppress(Exception):
                        seat.line.ask("stop", timeout_s=CLOSE_PATIENCE_S)
                for lent in list(seat.lent.values()):
                    lent.end()
                seat.forget_all()
        if self._started:
            context = self._context
            context.streams.on_group(None)
            context.streams.read_from = lambda: None
            context.streams.on_image = None
            for listener in self._listeners:
                with contextlib.suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)
                listener.close()
            shutil.rmtree(self._folder, ignore_errors=True)
        for thread in self._threads:
            thread.join(CLOSE_PATIENCE_S)
        if self._started:
            self._context.kernel.return_seats(len(self.seats))

    # Tasks

    def _keep_job(self, seat: Seat) -> None:
        """Runs the factory's job again and again, until the database is closed."""
        failures = 0
        while not self._closing:
            if not self._context.kernel.ready:
                with self._changed:
                    self._changed.wait(LOOK_S)
                continue
            began = time.monotonic()
            seat.incarnation += 1
            work = partial(run, self._address, seat.number, seat.incarnation)
            try:
                session, _ = self._context.kernel.stream_session({})
                self._run_job(session, seat, work)
            except Exception as error:  # whatever ended it, another one is started
                if not self._closing:
                    log.warning("%s ended: %s", seat.name, str(error).splitlines()[0][:200])
            self._touch()
            failures = failures + 1 if time.monotonic() - began < 60 else 0
            with self._changed:
                pause = PAUSES_S[min(failures, len(PAUSES_S) - 1)]
                self._changed.wait_for(lambda: self._closing, pause)

    def _run_job(
        self, session: SparkSession, seat: Seat, work: Callable[[], Iterator[int]]
    ) -> None:
        ended = threading.Event()

        def watch() -> None:
            """A task that does not end with its line is cancelled."""
            while not ended.wait(LOOK_S):
                if self._closing and seat.line is None and not ended.wait(CLOSE_PATIENCE_S / 2):
                    with contextlib.suppress(Exception):
                        cancel_factory(session, seat.number)
                    return

        threading.Thread(target=watch, name=f"headwater-watch-{seat.number}", daemon=True).start()
        try:
            run_factory(session, seat.number, work)
        finally:
            ended.set()

    def _accept(self, listener: socket.socket) -> None:
        while not self._closing:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._greet, args=(connection,), name="headwater-hello", daemon=True
            ).start()

    def _greet(self, connection: socket.socket) -> None:
        """A task says hello; whoever does not know the secret is not heard."""
        connection.settimeout(HELLO_S)
        try:
            hello = received(connection)
        except (OSError, ValueError):
            hello = None
        seat = None if hello is None else self._seat_of(hello)
        if hello is None or seat is None or self._closing:
            connection.close()
            return
        connection.settimeout(None)
        context = self._context
        line = Line(connection, seat.name, LINE_WORKERS, self._touch)
        with self._moving, contextlib.suppress(HostGone):
            lsn = context.streams.durable_lsn
            seat.prepare(line, hello.head["pid"], lsn)
            line.tell(
                "welcome",
                folder=str(context.folder.path),
                settings={n: context.settings[n] for n in sorted(context.settings.explicit)},
                lsn=lsn,
                shared_memory=context.kernel.is_local,
            )
            line.serve_in_background()
            seat.line = line  # not before: the welcome is the first that it hears
            line.note(context.streams.durable_lsn)
        self._touch()

    def _seat_of(self, hello: Frame) -> Seat | None:
        head = hello.head
        if not secrets.compare_digest(str(head.get("secret")), self._address.secret):
            return None
        if head["versions"] != versions():
            log.warning("a factory has other versions: %s, here %s", head["versions"], versions())
            return None
        for seat in self.seats:
            if seat.number == head["number"] and seat.incarnation == head["incarnation"]:
                return None if seat.line is not None else seat
        return None

    # News

    def _note(self, lsn: int) -> None:
        """Called by the log's writer: never waits."""
        for seat in self.seats:
            line = seat.line
            if line is not None:
                line.note(lsn)

    def _read_from(self) -> int | None:
        marks = [mark for seat in self.seats if (mark := seat.reads_from) is not None]
        return min(marks, default=None)

    def _blocks_changed(self, number: int) -> None:
        with self._changed:
            self._dirty.add(number)
            self._changed.notify_all()

    def _touch(self) -> None:
        with self._changed:
            self._touched = time.monotonic()
            self._changed.notify_all()

    def _touch_told(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _tell_news(self) -> None:
        """Blocks, the catalog, settings and functions, as they change."""
        while not self._closing:
            with self._changed:
                self._changed.wait(LOOK_S)
                dirty, self._dirty = self._dirty, set()
            for number in dirty:
                table = self._context.streams.find(number)
                for seat in self.seats if table is not None else ():
                    assert table is not None
                    seat.tell_image(table)
            self.tell_news()

    def _feel_pulses(self) -> None:
        """In a thread of its own: whoever tells a factory that hangs something may wait for it."""
        while not self._closing:
            with self._changed:
                self._changed.wait_for(lambda: self._closing, PULSE_S)
            for seat in self.seats:
                self._feel(seat)

    def tell_news(self) -> None:
        """What queries elsewhere depend on, besides rows."""
        for seat in self.seats:
            with contextlib.suppress(HostGone), seat.telling:
                self._tell_rest(seat)

    def _tell_rest(self, seat: Seat) -> None:
        """What a factory must know to make queries: told again when it has changed."""
        line, context = seat.line, self._context
        if line is None:
            return
        catalog = context.catalog.position
        if seat.told.get("catalog") != catalog:
            seat.told["catalog"] = catalog
            columns = {
                n: [schema_to_json(t.schema), str(t.folder)] for n, t in context.tables.items()
            }
            line.tell("standard", columns=columns)
            line.tell("catalog", lsn=catalog)
        if seat.told.get("settings") != context.settings.changes:
            seat.told["settings"] = context.settings.changes
            values = {name: context.settings[name] for name in sorted(context.settings.explicit)}
            line.tell("settings", values=values)
        functions = tuple(context.functions.items())
        if seat.told.get("functions") != functions:
            seat.told["functions"] = functions
            line.tell("functions", data=sendable(context.functions)[0])

    def _feel(self, seat: Seat) -> None:
        """A factory that does not answer is ended: Spark does not notice that it hangs."""
        line, pulse = seat.line, seat.pulse
        if line is None or line.ended.is_set():
            return
        if pulse is not None and pulse[0] is line:
            if time.monotonic() - pulse[1] > self._context.settings.number("factory_timeout_s"):
                log.warning("%s does not answer and is started again", seat.name)
                with contextlib.suppress(OSError):
                    os.kill(seat.pid, signal.SIGKILL)
                line.close()
            return

        def ask() -> None:
            with contextlib.suppress(HostGone):
                line.ask("pulse")
            if seat.pulse is mine:
                seat.pulse = None

        seat.pulse = mine = (line, time.monotonic())
        threading.Thread(target=ask, name=f"headwater-pulse-{seat.number}", daemon=True).start()

    # Moves

    def _coordinate(self) -> None:
        while not self._closing:
            with self._changed:
                self._changed.wait(self._wait_s())
            try:
                with self._moving:
                    for seat in self.seats:
                        self._bury(seat)
                    if time.monotonic() - self._touched >= SETTLE_S:
                        self._place()
            except Exception:
                log.exception("queries could not be moved")
                time.sleep(LOOK_S)

    def _wait_s(self) -> float:
        settled = self._touched + SETTLE_S - time.monotonic()
        return settled if settled > 0 else LOOK_S

    def _bury(self, seat: Seat) -> None:
        """A factory whose line has ended: what it had is answered here."""
        line = seat.line
        if line is None or not line.ended.is_set():
            return
        lent, seat.lent = list(seat.lent.values()), {}
        for one in lent:
            one.end()
        _wait_for_end(seat.pid)
        with seat.moving([one.query for one in lent]):
            for one in lent:
                self._take_back(one)
            seat.forget_all()

    def _take_back(self, lent: Lent) -> None:
        try:
            if self._context.engine.hosted(lent.query.name) is lent.query:
                self._context.engine.take_back(lent.query)
        except Exception as error:  # it is told as any error of the query is
            self._context.engine.fail(lent.query, error)
        finally:
            lent.went()

    def _place(self) -> None:
        """Lends to the factories what can go and is still here."""
        if self._closing:
            return
        found = [q for q in self._context.engine.all_hosted() if self._may_go(q)]
        if not found:
            return
        if not self._started:
            if self._context.kernel.ready:
                self._take_seats()
            return
        seats = [seat for seat in self.seats if seat.line is not None]
        if len(seats) < len(self.seats):
            return  # all of them come soon: then the load is spread
        for group in _groups(found):
            self._lend(_best(seats, group), group)

    def _may_go(self, query: Hosted) -> bool:
        if query.elsewhere is not None or query.state != "running":
            return False
        if query.name.casefold() in self._staying.keys() | self._reasons.keys():
            return False
        if isinstance(query, ContinuousView):
            return query.cut is not ViewCut.STORED
        item = self._item(query)
        if isinstance(query, ContinuousQuery) and query.functions:
            return item is not None and not item.passes  # only this process has its state
        return item is not None

    def settle(self, timeout_s: float) -> bool:
        """Waits until whatever can live in a factory does; for tests and benchmarks."""
        until = time.monotonic() + timeout_s
        kernel = self._context.kernel
        while (
            self.seats
            and not self._closing
            and any(map(self._may_go, self._context.engine.all_hosted()))
        ):
            if time.monotonic() > until or (kernel.settled and not kernel.ready):
                return False
            time.sleep(0.005)
        with self._moving:  # the last one is on its way
            return True

    def _item(self, query: Hosted) -> CatalogObject | None:
        passing = self._context.passing.get(query.name.casefold())
        return passing or self._context.catalog.find(query.name)

    def _lend(self, seat: Seat, group: Sequence[Hosted]) -> None:
        """Moves queries into a factory; those that cannot go stay, and say why."""
        line = seat.line
        items = [self._item(query) for query in group]
        if line is None or None in items:
            return
        numbers = [item.id for item in items if item is not None]
        passing = [asdict(item) for item in items if item is not None and item.passes]
        with seat.moving(group):
            self._lend_all(seat, line, group, numbers, passing)

    def _lend_all(
        self,
        seat: Seat,
        line: Line,
        group: Sequence[Hosted],
        numbers: Sequence[int],
        passing: Sequence[dict[str, Any]],
    ) -> None:
        engine, lent = self._context.engine, list[Lent]()
        try:
            with seat.telling:
                self._tell_rest(seat)
            for query in group:
                for table in query.tables:
                    found = self._context.streams.find(table.definition.id)
                    assert found is not None
                    seat.follow(found)
            for query, number in zip(group, numbers, strict=True):
                one = Lent(seat, query, number)
                engine.lend(query, one)
                lent.append(one)
                seat.lent[query.name.casefold()] = one
            line.ask("open", numbers=numbers, passing=passing)
            for one in lent:
                one.came()
        except Exception as error:
            for query in group:
                if not isinstance(error, HostGone):
                    self._reasons[query.name.casefold()] = str(error)
                    log.warning("%s stays here: %s", query.name, error)
            self._bring_back(seat, lent)

    def recall(self, queries: Iterable[Hosted]) -> None:
        """Brings queries back: what is done with them next is done here."""
        wanted = list(queries)
        if not any(query.elsewhere is not None for query in wanted):
            return
        with self._moving:
            for seat in self.seats:
                mine = [one for one in seat.lent.values() if one.query in wanted]
                if mine:
                    self._call_back(seat, mine)

    def _call_back(self, seat: Seat, mine: Sequence[Lent]) -> None:
        self._bring_back(seat, _sharing(mine, list(seat.lent.values())))
        seat.forget_unread()
        self._touch()

    def _bring_back(self, seat: Seat, lent: Sequence[Lent]) -> None:
        """The factory puts them away, if it can, and they are answered here."""
        with seat.moving([one.query for one in lent]):
            if seat.line is not None and lent:
                try:
                    seat.line.ask("release", names=[one.query.name for one in lent])
                except HostGone:
                    pass  # its results say how far each has come
                except Exception as error:  # it may have released some: none of them counts there
                    log.warning("%s is ended, it keeps what it was lent: %s", seat.name, error)
                    seat.line.close()
            for one in lent:
                one.end()
                seat.lent.pop(one.query.name.casefold(), None)
            for one in lent:
                self._take_back(one)

    @contextlib.contextmanager
    def staying(self, queries: Iterable[Hosted]) -> Iterator[None]:
        """While inside, these queries are here."""
        wanted = list(queries)
        names = {query.name.casefold() for query in wanted}
        with self._moving:
            self._staying.update(names)
        try:
            self.recall(wanted)
            yield
        finally:
            with self._moving:
                self._staying -= Counter(names)
                for name in names:
                    self._reasons.pop(name, None)
            self._touch()

    # What the engine asks

    def _needs(self, number: int) -> list[Needs]:
        found = [seat.needs_of(number) for seat in self.seats]
        return [needs for needs in found if needs is not None]

    def _flush(self, until: float | None) -> bool:
        left = -1 if until is None else max(until - time.monotonic(), 0.0)
        if self._moving.acquire(timeout=left):  # a query that is on its way is in neither host
            self._moving.release()
        return flush(self.seats, until)

    def numbers(self) -> dict[str, int]:
        """What each host has done, for `headwater.metrics`."""
        found = {
            "here.rows": self._context.engine.rows_folded,
            "here.cpu_us": time.process_time_ns() // 1000,
        }
        for seat in self.seats:
            if seat.line is not None:
                with contextlib.suppress(HostGone):
                    said: dict[str, Any] = seat.line.ask("numbers", timeout_s=LOOK_S * 4).head
                    head = f"factory.{seat.number}."
                    found |= {head + name: said[name] for name in ("rows", "cpu_us")}
        return found


def _best(seats: Sequence[Seat], group: Sequence[Hosted]) -> Seat:
    """The factory that has folds which these could share; else the one with the fewest queries."""
    wanted = set().union(*(shared_folds(query) for query in group))

    def order(seat: Seat) -> tuple[int, int]:
        known = [shared_folds(lent.query) for lent in seat.lent.values()] if wanted else []
        return -sum(bool(folds & wanted) for folds in known), len(seat.lent)

    return min(seats, key=order)


def shared_folds(query: Hosted) -> frozenset[object]:
    """What the folds of a query must have in common with another's to be one."""
    if not isinstance(query, ContinuousQuery):
        return frozenset()
    found = [signature(spec, query.tables, query.sampling) for spec in query.specs]
    return frozenset(one for one in found if one is not None)


def _groups(queries: Sequence[Hosted]) -> list[list[Hosted]]:
    """Views that have a pipeline in common move together; others alone."""
    groups: list[list[Hosted]] = []
    pipelines: dict[str, list[Hosted]] = {}
    for query in queries:
        if not isinstance(query, ContinuousView):
            groups.append([query])
            continue
        known = [g for p in query.pipelines if (g := pipelines.get(p.number)) is not None]
        group = known[0] if known else []
        for other in known[1:]:
            if other is not group:
                group += other
                groups.remove(other)
        if not known:
            groups.append(group)
        group.append(query)
        for member in group:
            assert isinstance(member, ContinuousView)
            pipelines |= {pipeline.number: group for pipeline in member.pipelines}
    return groups


def _sharing(mine: Sequence[Lent], every: Sequence[Lent]) -> list[Lent]:
    """What has to come back with them: views whose groups are the same."""
    for group in _groups([one.query for one in every]):
        if any(one.query in group for one in mine):
            mine = [*mine, *(one for one in every if one.query in group and one not in mine)]
    return list(mine)


def _wait_for_end(pid: int) -> None:
    """Until a process that has lost its line is gone; it must write no snapshot any more."""
    until = time.monotonic() + END_PATIENCE_S
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
