"""The engine: threads that fire queries when their tables have something new.

Owns: the registered queries, the scheduler's lock, and who waits for whom. Commits of tables only raise a
flag here; workers pull the rows, ask the scheduler what to fire, and fire it. An error inside a query
stops that query and nothing else; one that may pass, such as a full disk, until its next attempt. The
decisions are the scheduler's, the baskets' and the queries' own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal

from headwater.engine.arrivals import Arrivals
from headwater.engine.elsewhere import Elsewhere
from headwater.engine.flush import flush
from headwater.engine.hosted import Hosted
from headwater.engine.query import ContinuousQuery
from headwater.engine.retries import Retries
from headwater.engine.rounds import Rounds
from headwater.engine.scheduler import Scheduler
from headwater.engine.sharing import Sharing
from headwater.engine.update_query import UpdateQuery, monotonic_us
from headwater.engine.update_queue import choose
from headwater.engine.view import ContinuousView
from headwater.errors import SparkEndedError, StorageError
from headwater.kernel.kernel import without_waiting
from headwater.storage.disk import may_pass
from headwater.storage.streaming.seen import Needs, SeenTable

Act = Literal["pull", "fire", "retry"]

FLUSH_ATTEMPTS = 2  # the first may meet an error of the past
IDLE_S = 5.0
ARRIVAL_MARGIN_S = 0.0005
CLOSE_PATIENCE_S = 30.0
NO_TICK_BEFORE = -(1 << 63)


class Engine:
    """Fires continuous queries."""

    def __init__(self, workers: int, snapshot_s: Callable[[], float] = lambda: 60.0) -> None:
        self._snapshot_s = snapshot_s
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._quiet = threading.Condition(self._lock)
        self._scheduler = Scheduler()
        self._retries = Retries()
        self._rounds = Rounds()
        self._sharing = Sharing()
        self._queries: dict[str, Hosted] = {}
        self._readers: dict[int, set[str]] = {}  # by table: the queries that read it
        self._tables: dict[int, SeenTable] = {}
        self._arrivals: dict[int, Arrivals] = {}  # of tables that update queries read
        self._dirty: dict[int, float] = {}  # tables with something new, and since when
        self._since: dict[str, float] = {}  # by query: since when it was not pulled
        self._pulling: set[str] = set()
        self._running: set[str] = set()
        self._again: set[str] = set()  # to be pulled
        self._offered: set[str] = (
            set()
        )  # with instants to answer: fired before they are pulled again
        self._parked: set[str] = set()  # to be fired when Spark runs again
        self.spark_settled: Callable[[], bool] = lambda: True  # it runs, or never will
        self._spent: dict[str, float] = {}  # by query: processor time since it was last asked for
        self._rows_before = 0  # that queries took in which are gone
        self._hurrying = 0  # flushes under way: nothing is held back
        self._closing = False
        self._workers = [
            threading.Thread(target=self._serve, name=f"headwater-engine-{n}", daemon=True)
            for n in range(workers)
        ]
        self._started = False
        self._opened = False
        self._absent: dict[int, SeenTable] = {}
        self.on_failure: Callable[[Hosted], None] | None = None
        self.on_state: Callable[[Hosted], None] = lambda _query: None  # it stopped, or goes on
        self.on_change: Callable[[], None] = lambda: None  # a query came, or may go elsewhere
        self.staying: Callable[[Iterable[Hosted]], contextlib.AbstractContextManager[None]] = (
            lambda _queries: contextlib.nullcontext()
        )  # queries are here, and nowhere else, while inside
        self.flush_elsewhere: Callable[[Collection[str], float | None], set[str]] = (
            lambda _names, _until: set()
        )  # of these, the queries that another host has answered
        self.needs_elsewhere: Callable[[int], Iterable[Needs]] = lambda _table: ()

    # Queries

    def add(self, query: Hosted) -> None:
        """Registers a query that is attached to its tables; it runs from now on if it is to run."""
        name = query.name.casefold()
        if query.state == "running":
            query.share(self._sharing)
        with self._lock:
            if self._opened:
                self._start()
            if isinstance(query, UpdateQuery):
                numbers = [table.definition.id for table in query.tables]
                query.arrivals[:] = [self._arrivals.setdefault(n, Arrivals()) for n in numbers]
            if name in self._queries:
                self._unread(name)  # it takes the place of another, at once
            else:
                self._scheduler.add(name, priority=query.priority, max_wait=query.max_wait_s)
            self._queries[name] = query
            for table in query.tables:
                number = table.definition.id
                self._readers.setdefault(number, set()).add(name)
                self._tables[number] = table
                table.on_show = self._teller(number)
                self._dirty.setdefault(number, time.perf_counter())
            self._work.notify_all()
        self._let_go(query)
        self.on_change()

    def open(self, absent: Iterable[SeenTable]) -> None:
        """All queries of the catalog are there, but for those that read `absent`: firing may begin."""
        with self._lock:
            self._opened = True
            queries = list(self._queries.values())
            if queries:
                self._start()
        self.miss(absent)
        for query in queries:
            self._let_go(query)

    def miss(self, absent: Iterable[SeenTable]) -> None:
        """Tables that queries read which could not start: none of their rows is let go."""
        before, self._absent = self._absent, {table.definition.id: table for table in absent}
        for table in {**before, **self._absent}.values():
            self._let_go_of(table)

    def _start(self) -> None:
        if not self._started:
            self._started = True
            for worker in self._workers:
                worker.start()

    def _teller(self, number: int) -> Callable[[], None]:
        def tell() -> None:
            arrivals, table = self._arrivals.get(number), self._tables.get(number)
            if arrivals is not None and table is not None:
                arrivals.note(table.state.next_sequence, monotonic_us())
            with self._lock:
                self._dirty.setdefault(number, time.perf_counter())
                self._work.notify()

        return tell

    def remove(self, name: str) -> Hosted | None:
        """Forgets a query, after the firing under way."""
        query = self.hosted(name)
        if query is None:
            return None
        with self.staying([query]):
            return self._remove(name.casefold())

    def _remove(self, key: str) -> Hosted | None:
        with self._lock:
            query = self._queries.pop(key, None)
            if query is None:
                return None
            self._scheduler.remove(key)
            self._offered.discard(key)
            self._retries.forget(key)
            self._parked.discard(key)
            self._unread(key)
            self._wait_for(key)
            self._rounds.forget(key)
            self._spent.pop(key, None)
        self._rows_before += _rows_of([query])
        query.leave()
        for table in query.tables:
            self._let_go_of(table)
        return query

    def _unread(self, key: str) -> None:
        """A query reads its tables no more; holds the lock."""
        for number in [n for n, names in self._readers.items() if key in names]:
            self._readers[number].discard(key)
            if not self._readers[number]:
                del self._readers[number]
                self._tables.pop(number).on_show = None
                self._arrivals.pop(number, None)

    def hosted(self, name: str) -> Hosted | None:
        """The query or view of that name."""
        with self._lock:
            return self._queries.get(name.casefold())

    def find(self, name: str) -> ContinuousQuery | None:
        """The query of that name."""
        with self._lock:
            found = self._queries.get(name.casefold())
        return found if isinstance(found, ContinuousQuery) else None

    def find_update(self, name: str) -> UpdateQuery | None:
        """The update query of that name."""
        with self._lock:
            found = self._queries.get(name.casefold())
        return found if isinstance(found, UpdateQuery) else None

    def find_named(self, name: str) -> ContinuousQuery | UpdateQuery | None:
        """The query of that name, of either kind."""
        return self.find(name) or self.find_update(name)

    def find_view(self, name: str) -> ContinuousView | None:
        """The view of that name."""
        with self._lock:
            found = self._queries.get(name.casefold())
        return found if isinstance(found, ContinuousView) else None

    def all(self) -> list[ContinuousQuery]:
        """All queries, by name."""
        return [query for query in self.all_hosted() if isinstance(query, ContinuousQuery)]

    def updates(self) -> list[UpdateQuery]:
        """All update queries, by name."""
        return [query for query in self.all_hosted() if isinstance(query, UpdateQuery)]

    def named(self) -> list[ContinuousQuery | UpdateQuery]:
        """All queries of either kind."""
        return [*self.all(), *self.updates()]

    def views(self) -> list[ContinuousView]:
        """All views, by name."""
        return [view for view in self.all_hosted() if isinstance(view, ContinuousView)]

    def all_hosted(self) -> list[Hosted]:
        """All queries and views, by name."""
        with self._lock:
            return [self._queries[name] for name in sorted(self._queries)]

    def reading(self, table: SeenTable) -> list[Hosted]:
        """The queries and views that read a table."""
        return [query for query in self.all_hosted() if any(t is table for t in query.tables)]

    @property
    def rows_folded(self) -> int:
        """How many rows queries and views have taken in here."""
        return self._rows_before + _rows_of(self.all_hosted())

    def readers_of(self, table: int) -> list[str]:
        """The names of the queries that read a table."""
        with self._lock:
            return sorted(self._queries[n].name for n in self._readers.get(table, ()))

    def pause(self, query: Hosted) -> None:
        """No firing starts any more; what is complete waits."""
        with self.staying([query]):
            with self._lock:
                query.state = "paused"
                self._retries.forget(query.name.casefold())
                self._withdraw(query.name.casefold())
                self._wait_for(query.name.casefold())
            query.leave()

    def resume(self, query: Hosted) -> None:
        """Goes on where the query stands, also after an error."""
        with self.staying([query]):
            with self._lock:
                self._retries.forget(query.name.casefold())
                self._wait_for(query.name.casefold())
            query.attach()
            query.share(self._sharing)
            with self._lock:
                query.state, query.error, query.careful = "running", None, False
                now = time.perf_counter()
                self._dirty |= {table.definition.id: now for table in query.tables}
                self._work.notify_all()

    def lend(self, query: Hosted, place: Elsewhere) -> None:
        """Another host answers the query from now on; what it holds is put away."""
        key = query.name.casefold()
        with self._lock:
            query.elsewhere = place
            self._retries.forget(key)
            self._withdraw(key)
            self._parked.discard(key)
            self._wait_for(key)
        query.leave()
        try:
            query.lend()
        except BaseException:
            self.take_back(query)
            raise

    def take_back(self, query: Hosted) -> None:
        """The query is answered here again, from where its results say."""
        if query.state == "retrying":
            query.state = "running"
        query.attach()
        query.share(self._sharing)
        with self._lock:
            query.elsewhere = None
            now = time.perf_counter()
            self._dirty |= {table.definition.id: now for table in query.tables}
            self._work.notify_all()
        self._let_go(query)

    def let_go_of(self, table: SeenTable) -> None:
        """What is still needed of a table is asked again: its clock was set back."""
        self._let_go_of(table)

    def _withdraw(self, key: str) -> None:
        self._scheduler.withdraw(key)
        self._offered.discard(key)

    def _wait_for(self, key: str) -> None:
        while key in self._running or key in self._pulling:
            self._quiet.wait(0.1)

    # Work

    def spend(self, name: str, seconds: float) -> None:
        """A query has cost so much processor time."""
        with self._lock:
            self._spend(name.casefold(), seconds)

    def _spend(self, key: str, seconds: float) -> None:
        if key in self._queries:
            self._spent[key] = self._spent.get(key, 0.0) + seconds

    def take_spent(self) -> dict[str, float]:
        """The processor time that queries have cost here since the last call, by name in lower case."""
        with self._lock:
            spent, self._spent = self._spent, {}
        return spent

    def _serve(self) -> None:
        name, began = "", time.thread_time()
        while True:
            with self._lock:
                self._spend(name, time.thread_time() - began)
                task = self._next_task()
                if task is None:
                    return
            began = time.thread_time()
            act, name = task
            query = self._queries.get(name)
            if act == "retry":
                self._retry(name, query)
            elif act == "pull":
                self._pull(name, query)
            else:
                self._fire(name, query)

    def _next_task(self) -> tuple[Act, str] | None:
        """What to do next, with which query; None at the end. Holds the lock."""
        while not self._closing:
            tried = self._retries.take(time.monotonic())
            if tried is not None:
                self._pulling.add(tried)
                return "retry", tried
            for number, since in self._dirty.items():
                for name in self._readers.get(number, ()):
                    self._again.add(name)
                    self._since.setdefault(name, since)
            self._dirty.clear()
            for name in sorted(self._again):
                if name not in self._pulling | self._running | self._offered | self._parked:
                    self._again.discard(name)
                    if self._runs_here(name):
                        self._pulling.add(name)
                        self._rounds.begin(name)
                        return "pull", name
            now = time.monotonic()
            fired = self._scheduler.next(now)
            if fired is not None:
                fired = self._stalest(fired)
                self._offered.discard(fired)
                self._running.add(fired)
                return "fire", fired
            self._quiet.notify_all()
            self._work.wait(self._patience(now))
            self._look_at_wall()
        return None

    def _runs_here(self, name: str) -> bool:
        query = self._queries.get(name)
        return query is not None and query.state == "running" and query.elsewhere is None

    def _stalest(self, first: str) -> str:
        """Keys of all update queries compete: the one whose turn it is may give way (US10)."""
        names = [first, *sorted(self._offered - {first})]
        found = [(name, self._queries.get(name)) for name in names]
        rivals = {
            n: query for n, query in found if isinstance(query, UpdateQuery) and query.competes
        }
        if first not in rivals or len(rivals) < 2:
            return first
        chosen = choose([query.offer() for query in rivals.values()], monotonic_us())
        if chosen is None:
            return first
        name, count = str(chosen[0]), chosen[1]
        rivals[name].wanted = count
        if name != first:
            self._scheduler.give_way(first, name)
            self._offered.add(first)
        return name

    def _patience(self, now: float) -> float:
        """How long nothing can become due without a commit."""
        wake = self._scheduler.wake_at(now)
        waits = [IDLE_S] if wake is None else [max(wake - now, 0.0)]
        retry = self._retries.wake_at()
        waits += [] if retry is None else [max(retry - now, 0.0)]
        wall = time.time()
        for query in self._queries.values():
            due = self._arrival_due(query)
            if due is not None:
                waits.append(max(due / 1e6 - wall, 0.0) + ARRIVAL_MARGIN_S)
        return min(waits)

    def _arrival_due(self, query: Hosted) -> int | None:
        """When the next instant of a query over arrival times comes, in µs; None if data decides."""
        name = query.name.casefold()
        busy = name in self._offered | self._pulling | self._running | self._parked
        return query.wall_due if self._runs_here(name) and not busy else None

    def _look_at_wall(self) -> None:
        """Tables with arrival time whose next instant has come are told the time."""
        now = time.time_ns() // 1000
        for query in self._queries.values():
            due = self._arrival_due(query)
            if due is not None and due <= now:
                self._again.add(query.name.casefold())

    def _pull(self, name: str, query: Hosted | None) -> None:
        enough = early = False
        failure: BaseException | None = None
        try:
            if query is not None:
                self._tick(query)
                enough = query.pull(self._since.pop(name, None))
                early = not enough and query.wants_early
        except BaseException as error:
            failure = error
        with self._lock:
            self._pulling.discard(name)
            if failure is None and not enough:
                self._rounds.end(name)
            if failure is not None and query is not None:
                self._fail(query, failure)
            elif not (enough or early):
                self._is_well(name, query)
            elif self._queries.get(name) is query and query is not None:
                held_back = query.max_wait_s is not None and not self._hurrying
                self._scheduler.offer(name, time.monotonic(), enough=not held_back)
                if not held_back:
                    self._offered.add(name)
            self._quiet.notify_all()
            self._work.notify()

    def _retry(self, name: str, query: Hosted | None) -> None:
        """A query whose error may be over takes up its place again."""
        failure: BaseException | None = None
        try:
            if query is not None and query.state == "retrying":
                query.attach()
                query.share(self._sharing)
        except BaseException as error:
            failure = error
        with self._lock:
            self._pulling.discard(name)
            if query is not None and failure is not None:
                self._fail(query, failure)
            elif query is not None and query.state == "retrying":
                query.state, query.careful = "running", False
                self.on_state(query)
                self._again.add(name)
            self._quiet.notify_all()
            self._work.notify()

    def _is_well(self, name: str, query: Hosted | None) -> None:
        """Whatever failed before is over; holds the lock."""
        if query is not None and query.state == "running":
            if query.error is not None:
                query.error = None
                self.on_state(query)
            self._retries.forget(name)

    def _tick(self, query: Hosted) -> None:
        """Closes arrival times up to now, where an instant has come that no row has closed yet."""
        due = query.wall_due
        if due is None or due > time.time_ns() // 1000:
            return
        for table in query.tables:
            closed = table.state.time.closed
            if table.definition.by_arrival and (closed is None or closed < due):
                table.tick()

    def _fire(self, name: str, query: Hosted | None) -> None:
        started = time.monotonic()
        failure: BaseException | None = None
        waits = more = over = False
        try:
            if query is not None and query.state == "running" and query.elsewhere is None:
                with without_waiting():  # others that need no Spark have work for this thread
                    query.fire()
                self._put_away(query)
                self._let_go(query)
                if self._rounds.is_waited_for(name):
                    more = query.is_due()
                    over = not more
        except BaseException as error:
            waits = isinstance(error, SparkEndedError)
            may = query is not None and (waits or not (query.careful or may_pass(error)))
            failure = None if may and self._try_again(query, careful=not waits) else error
        with self._lock:
            self._running.discard(name)
            now = time.monotonic()
            if query is not None and failure is not None:
                self._fail(query, failure)
            elif query is not None and name in self._queries:
                self._is_well(name, query)
                self._go_on(name, more=more, over=over)
                if waits and not self.spark_settled():
                    self._parked.add(name)
            self._scheduler.finished(name, now, now - started)
            self._quiet.notify_all()
            self._work.notify()

    def _go_on(self, name: str, *, more: bool, over: bool) -> None:
        """After a firing: fires what its round has left, if that is waited for, or looks for more."""
        if more:
            self._scheduler.offer(name, time.monotonic(), enough=True)
            self._offered.add(name)
            return
        if over:
            self._rounds.end(name)
        self._again.add(name)

    def _put_away(self, query: Hosted) -> None:
        """A snapshot that finds no room is one less: the one before holds, the next comes in time."""
        try:
            query.put_away_if_due(self._snapshot_s())
        except (StorageError, OSError) as error:
            if not may_pass(error):
                raise

    def spark_changed(self) -> None:
        """Those that Spark's end has stopped go on where they were once it runs again, or fail."""
        with self._lock:
            if self.spark_settled():
                self._parked.clear()
                self._work.notify_all()

    def _try_again(self, query: Hosted | None, careful: bool) -> bool:
        """After an error in a firing: again; careful is by instant, so that good ones are answered."""
        assert query is not None
        query.careful = query.careful or careful
        try:
            query.attach()
        except Exception:  # the first error is told
            return False
        return True

    def _let_go(self, query: Hosted) -> None:
        """Tells the query's tables which of their rows are still needed, once all queries are there."""
        if self._opened:
            for table in query.tables:
                self._let_go_of(table)

    def _let_go_of(self, table: SeenTable) -> None:
        number, definition = table.definition.id, table.definition
        if definition.kind != "stream" and definition.range_ticks is None:
            return  # its rows stay
        with self._lock:  # as one step: a query that is added meanwhile says what it needs after it
            names = self._readers.get(number, ())
            known = [self._queries[n] for n in names if n in self._queries]
            readers = [query for query in known if query.elsewhere is None]
            others = list(self.needs_elsewhere(number))
            sequences = [reader.needed_sequence(number) for reader in readers]
            sequences += [other.sequence for other in others]
            sequences += [0] if number in self._absent else []
            table.hold_sequence(min((s for s in sequences if s is not None), default=None))
            if definition.kind == "stream":
                needs = [reader.needed_from(number) for reader in readers]
                needs += [other.from_tick for other in others]
                ticks = [need for need in needs if need is not None]
                all_known = len(ticks) == len(needs) and number not in self._absent
                table.keep_from(min(ticks, default=None) if all_known else None)
                return
            assert definition.range_ticks is not None
            limit = definition.range_ticks  # no window reaches beyond it
            places = [reader.held_after for reader in readers if reader.holds]
            held = [NO_TICK_BEFORE if place is None else place - limit for place in places]
            needs = [reader.needed_from(number) for reader in readers if reader.remembers]
            held += [NO_TICK_BEFORE if need is None else need for need in needs]
            held += [NO_TICK_BEFORE] if number in self._absent else []
            held += [other.held_tick for other in others if other.held_tick is not None]
            table.hold(min(held, default=None))

    def fail(self, query: Hosted, error: BaseException) -> None:
        """A query cannot go on here."""
        with self._lock:
            query.elsewhere = None
            self._fail(query, error)

    def _fail(self, query: Hosted, error: BaseException) -> None:
        """An error inside a query stops that query, for good or for a while; holds the lock."""
        name, passing = query.name.casefold(), may_pass(error)
        query.state, query.error = "retrying" if passing else "failed", error
        self.on_state(query)
        query.leave()
        if self._queries.get(name) is query:
            self._withdraw(name)
            if passing:
                self._retries.failed(name, time.monotonic())
        if not passing and self.on_failure is not None:
            self.on_failure(query)

    # Waiting

    def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until everything complete at the call has been answered; False if time ran out.

        What waits for its next attempt gets it now; what fails then goes on waiting.
        """
        return flush(self, timeout_s)

    def flush_here(self, names: Collection[str], until: float | None) -> set[str]:
        """Of these, the queries of this host that have answered what was there at the call.

        Those that do not run have answered what they can, after attempts that they get now.
        """
        with self._lock:
            known = {name for name in names if name in self._queries}
            if not self._started:
                return known
            self._hurrying += 1
            try:
                wanted = self._rounds.want(known)
                self._again.update(known)
                self._wait_for_rounds(wanted, until)
                for _ in range(FLUSH_ATTEMPTS):
                    if self._retries.wake_at() is not None:
                        self._retries.hurry(time.monotonic())
                        self._wait_for_rounds(wanted, until)
                return {name for name in wanted if self._is_answered(name, wanted[name])}
            finally:
                self._hurrying -= 1

    def _wait_for_rounds(self, wanted: Mapping[str, int], until: float | None) -> None:
        self._work.notify_all()
        waiting = list(wanted.items())
        while waiting:
            if self._is_settled(*waiting[-1]):
                waiting.pop()
                continue
            left = 0.5 if until is None else min(until - time.monotonic(), 0.5)
            if left <= 0:
                return
            self._quiet.wait(left)

    def _is_settled(self, name: str, number: int) -> bool:
        """Whether nothing of a round is to come: it is over, or the query does not run here."""
        if self._closing or self._rounds.is_over(name, number):
            return True
        if name in self._pulling or name in self._running:
            return False
        retry = self._retries.wake_at()
        return not self._runs_here(name) and (retry is None or retry > time.monotonic())

    def _is_answered(self, name: str, number: int) -> bool:
        query = self._queries.get(name)
        if query is not None and query.elsewhere is not None:
            return False
        return self._is_settled(name, number)

    def close(self) -> None:
        """Ends after the firings under way."""
        self.abandon()
        for query in self.all_hosted():
            with contextlib.suppress(Exception):  # a snapshot that cannot be written is one less
                if query.state == "running" and query.elsewhere is None:
                    query.put_away()
        for table in self._tables.values():
            table.on_show = None

    def abandon(self) -> None:
        """Ends after the firings under way; nothing is put away."""
        with self._lock:
            self._closing = True
            self._work.notify_all()
            self._quiet.notify_all()
        if self._started:
            for worker in self._workers:
                worker.join(CLOSE_PATIENCE_S)


def _rows_of(queries: Iterable[Hosted]) -> int:
    """How many rows queries have taken in; what several share counts once."""
    counters = {id(c): c for query in queries for c in query.all_counters}
    return sum(c.rows_in_line + c.rows_on_spark for c in counters.values())
