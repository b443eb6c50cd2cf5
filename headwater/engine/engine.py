"""The engine: threads around the query machine.

Owns: the registered queries, the lock over the machine, and the threads that do what it says. Commits of
tables only raise a flag here; workers ask the machine what to do, pull rows and fire queries without the
lock, and tell it how that ended. An error inside a query stops that query and nothing else; one that may
pass, such as a full disk, until its next attempt. What is decided is the machine's.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from headwater.engine.arrivals import Arrivals
from headwater.engine.elsewhere import Elsewhere
from headwater.engine.flush import flush
from headwater.engine.hosted import Hosted, LoggedQuery
from headwater.engine.machine import Found, Pull, QueryMachine, Retry, State, Task, Trouble, Wait
from headwater.engine.query import ContinuousQuery
from headwater.engine.sharing import Sharing
from headwater.engine.update_query import UpdateQuery, monotonic_us
from headwater.engine.update_queue import choose
from headwater.engine.view import ContinuousView
from headwater.errors import Error, SparkEndedError, StorageError
from headwater.kernel.kernel import without_waiting
from headwater.storage.disk import may_pass
from headwater.storage.streaming.seen import EVERYTHING, Needs, SeenTable

CLOSE_PATIENCE_S = 30.0


class Engine:
    """Fires continuous queries."""

    def __init__(self, workers: int, snapshot_s: Callable[[], float] = lambda: 60.0) -> None:
        self._snapshot_s = snapshot_s
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._quiet = threading.Condition(self._lock)
        self._machine = QueryMachine()
        self._sharing = Sharing()
        self._queries: dict[str, Hosted] = {}
        self._tables: dict[int, SeenTable] = {}
        self._arrivals: dict[int, Arrivals] = {}  # of tables that update queries read
        self._spent: dict[str, float] = {}  # by query: processor time since it was last asked for
        self._rows_before = 0  # that queries took in which are gone
        self._closing = False
        self._workers = [
            threading.Thread(target=self._serve, name=f"headwater-engine-{n}", daemon=True)
            for n in range(workers)
        ]
        self._started = False
        self._opened = False
        self._absent: dict[int, SeenTable] = {}
        self.spark_settled: Callable[[], bool] = lambda: True  # it runs, or never will
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
        before = self.hosted(name)
        for part in query.parts:
            self.add(part)
        self._remove_parts(() if before is None else before.parts, query.parts)
        if query.state == "running":
            query.share(self._sharing)
        if isinstance(query, ContinuousView):
            query.on_well = partial(self._well, query)
            query.on_free = partial(self._look_again, query)
        with self._lock:
            if self._opened:
                self._start()
            if isinstance(query, UpdateQuery):
                query.arrivals[:] = map(self._arrivals_of, query.tables)
            written = query.writes
            self._machine.added(
                name,
                {table.definition.id for table in query.tables if not query.parts},
                state=query.state,
                writes=None if written is None else written.definition.id,
                priority=query.priority,
                max_wait=query.max_wait_s,
                once=query.once,
            )
            self._queries[name] = query  # it may take the place of another, at once
            self._forget_unread()
            for table in query.tables:
                number = table.definition.id
                self._tables[number] = table
                table.on_show = self._teller(number)
                self._machine.rows(number, time.perf_counter())
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

    def _arrivals_of(self, table: SeenTable) -> Arrivals:
        """When the rows of a table came, for all who ask; holds the lock."""
        found = Arrivals(by_wall=table.definition.by_arrival)
        return self._arrivals.setdefault(table.definition.id, found)

    def _teller(self, number: int) -> Callable[[], None]:
        def tell() -> None:
            arrivals, table = self._arrivals.get(number), self._tables.get(number)
            if arrivals is not None and table is not None:
                state = table.state
                arrivals.note(state.next_sequence, state.time.closed, monotonic_us())
            with self._lock:
                self._machine.rows(number, time.perf_counter())
                self._work.notify()

        return tell

    def remove(self, name: str) -> Hosted | None:
        """Forgets a query, after the firing under way."""
        query = self.hosted(name)
        if query is None:
            return None
        with self.staying([query]):
            self._remove_parts(query.parts)
            return self._remove(name.casefold())

    def _remove_parts(self, parts: Iterable[Hosted], others: Iterable[Hosted] = ()) -> None:
        """Forgets parts of a view, but for the names that others have taken."""
        taken = {part.name.casefold() for part in others}
        for part in parts:
            if part.name.casefold() not in taken:
                self._remove(part.name.casefold())

    def _remove(self, key: str) -> Hosted | None:
        with self._lock:
            query = self._queries.pop(key, None)
            if query is None:
                return None
            self._machine.removed(key)
            self._forget_unread()
            self._wait_for(key)
            self._spent.pop(key, None)
        self._rows_before += _rows_of([query])
        query.leave()
        for table in query.tables:
            self._let_go_of(table)
        return query

    def _forget_unread(self) -> None:
        """Tables that nobody reads tell nobody; holds the lock."""
        for number in [n for n in self._tables if not self._machine.readers_of(n)]:
            self._tables.pop(number).on_show = None
            self._arrivals.pop(number, None)

    def hosted(self, name: str) -> Hosted | None:
        """The query or view of that name."""
        with self._lock:
            return self._queries.get(name.casefold())

    def find(self, name: str) -> ContinuousQuery | None:
        """The query of that name."""
        found = self.hosted(name)
        return found if isinstance(found, ContinuousQuery) else None

    def find_named(self, name: str) -> LoggedQuery | None:
        """The query of that name, of either kind."""
        found = self.hosted(name)
        return found if isinstance(found, LoggedQuery) else None

    def find_view(self, name: str) -> ContinuousView | None:
        """The view of that name."""
        found = self.hosted(name)
        return found if isinstance(found, ContinuousView) else None

    def all(self) -> list[ContinuousQuery]:
        """All queries, by name."""
        return [query for query in self.wholes() if isinstance(query, ContinuousQuery)]

    def updates(self) -> list[UpdateQuery]:
        """All update queries, by name."""
        return [query for query in self.all_hosted() if isinstance(query, UpdateQuery)]

    def named(self) -> list[LoggedQuery]:
        """All queries of either kind, by name."""
        return [query for query in self.wholes() if isinstance(query, LoggedQuery)]

    def views(self) -> list[ContinuousView]:
        """All views, by name."""
        return [view for view in self.wholes() if isinstance(view, ContinuousView)]

    def wholes(self) -> list[Hosted]:
        """All queries and views, by name; their parts are not among them."""
        return [query for query in self.all_hosted() if query.mine is None]

    def parts(self) -> list[Hosted]:
        """All parts of queries and views, by name."""
        return [query for query in self.all_hosted() if query.mine is not None]

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
            return sorted(self._queries[n].name for n in self._machine.readers_of(table))

    def pause(self, query: Hosted) -> None:
        """No firing starts any more; what is complete waits."""
        with self.staying([query]):
            for each in (query, *query.parts):
                self._stand_still(each)
                each.leave()

    def _stand_still(self, query: Hosted) -> None:
        """The query is paused, and nothing of it is under way."""
        key = query.name.casefold()
        with self._lock:
            self._machine.paused(key)
            query.state = "paused"
            self._wait_for(key)

    def resume(self, query: Hosted) -> None:
        """Goes on where the query stands, also after an error."""
        with self.staying([query]):
            for each in (query, *query.parts):
                self._resume(each)

    def _resume(self, query: Hosted) -> None:
        self._stand_still(query)
        try:
            query.attach()
            query.share(self._sharing)
        except Exception as error:
            self.fail(query, error)
            raise
        with self._lock:
            self._machine.resumed(query.name.casefold())
            query.state, query.error = "running", None
            self._work.notify_all()

    @contextlib.contextmanager
    def standing_still(self, queries: Sequence[Hosted]) -> Iterator[None]:
        """The queries do nothing meanwhile, and take up their places anew."""
        with self.staying(queries):
            going = [query for query in queries if query.state in ("running", "retrying")]
            for query in going:
                self.pause(query)
            try:
                yield
            finally:
                for query in going:
                    with contextlib.suppress(Error):  # it has failed: the others go on
                        self.resume(query)

    def lend(self, query: Hosted, place: Elsewhere) -> None:
        """Another host answers the query from now on; what it holds is put away."""
        key = query.name.casefold()
        with self._lock:
            query.elsewhere = place
            self._machine.lent(key)
            self._wait_for(key)
        query.leave()
        try:
            query.lend()
        except BaseException:
            self.take_back(query)
            raise

    def take_back(self, query: Hosted) -> None:
        """The query is answered here again, from where its results say."""
        query.attach()
        query.share(self._sharing)
        with self._lock:
            query.elsewhere = None
            self._machine.taken_back(query.name.casefold())
            query.state = self._machine.state_of(query.name.casefold())
            self._work.notify_all()
        self._let_go(query)

    def told(self, query: Hosted, state: State, error: BaseException | None) -> None:
        """The host that answers a query says how it stands."""
        with self._lock:
            if self._queries.get(query.name.casefold()) is query:
                self._machine.told(query.name.casefold(), state)
            query.state, query.error = state, error
        if state == "failed" and self.on_failure is not None:
            self.on_failure(query)

    def _well(self, query: Hosted) -> None:
        """A view that had failed was read without an error."""
        with self._lock:
            if self._queries.get(query.name.casefold()) is query:
                self._machine.well(query.name.casefold())
                self._work.notify()
            query.state, query.error = "running", None
            self.on_state(query)

    def _look_again(self, query: Hosted) -> None:
        """A view that a reader had halted may fold on."""
        with self._lock:
            for table in query.tables:
                self._machine.rows(table.definition.id, time.perf_counter())
            self._work.notify()

    def let_go_of(self, table: SeenTable) -> None:
        """What is still needed of a table is asked again: its clock was set back."""
        self._let_go_of(table)

    def _wait_for(self, key: str) -> None:
        while self._machine.is_busy(key):
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
        while (work := self._next_work(name, began)) is not None:
            task, query = work
            name, began = task.name, time.thread_time()
            if isinstance(task, Pull):
                self._pull(query, task)
            elif isinstance(task, Retry):
                self._retry(query)
            else:
                query.careful = task.careful
                self._fire(query)

    def _next_work(self, before: str, began: float) -> tuple[Task, Hosted] | None:
        """What to do next with which query, after what the one before has cost; None at the end."""
        with self._lock:
            self._spend(before, time.thread_time() - began)
            while not self._closing:
                now, wall_us = time.monotonic(), time.time_ns() // 1000
                task = self._machine.next(now, wall_us, self._stalest)
                if not isinstance(task, Wait):
                    return task, self._queries[task.name]
                self._work.wait(task.seconds)
        return None

    def _stalest(self, first: str, others: Sequence[str]) -> str:
        """Keys of all update queries compete: the one whose turn it is may give way (US10)."""
        if not isinstance(self._queries[first], UpdateQuery):
            return first
        due = [(name, self._queries[name]) for name in (first, *sorted(others))]
        rivals = {n: query for n, query in due if isinstance(query, UpdateQuery) and query.competes}
        if first not in rivals or len(rivals) < 2:
            return first
        chosen = choose([query.offer() for query in rivals.values()], monotonic_us())
        if chosen is None:
            return first
        name = str(chosen[0])
        rivals[name].wanted = chosen[1]
        return name

    def _pull(self, query: Hosted, task: Pull) -> None:
        found: Found = "nothing"
        mark = None
        try:
            self._tick(query)
            if query.pull(task.since):
                found, mark = "due", query.due_until() if task.marked else None
            elif query.wants_early:
                found = "early"
            elif query.is_halted:
                found = "halted"
        except BaseException as error:
            self._ended(query, error)
            return
        with self._lock:
            now = time.monotonic()
            self._machine.pulled(task.name, found, now, query.wall_due, mark)
            if found == "nothing":
                self._is_well(query)
            self._wake()

    def _retry(self, query: Hosted) -> None:
        """A query whose error may be over takes up its place again."""
        try:
            query.attach()
            query.share(self._sharing)
        except BaseException as error:
            self._ended(query, error)
            return
        with self._lock:
            self._machine.retried(query.name.casefold())
            if self._show_state(query):
                self.on_state(query)
            self._wake()

    def _is_well(self, query: Hosted) -> None:
        """Whatever failed before is over; holds the lock."""
        if query.state == "running" and query.error is not None:
            query.error = None
            self.on_state(query)

    def _tick(self, query: Hosted) -> None:
        """Closes arrival times up to now, where an instant has come that no row has closed yet."""
        due = query.wall_due
        if due is None or due > time.time_ns() // 1000:
            return
        for table in query.tables:
            closed = table.state.time.closed
            if table.definition.by_arrival and (closed is None or closed < due):
                table.tick()

    def _fire(self, query: Hosted) -> None:
        started = time.monotonic()
        trouble: Trouble | None = None
        try:
            with without_waiting():  # others that need no Spark have work for this thread
                query.fire()
        except BaseException as error:
            trouble = _trouble(error)
            if not self._goes_on(query, trouble):
                self._ended(query, error, time.monotonic() - started)
                return
        else:
            try:
                self._put_away(query)
                self._let_go(query)
            except BaseException as error:  # the results are delivered: care would not help
                self._ended(query, error, time.monotonic() - started)
                return
        with self._lock:
            now = time.monotonic()
            self._machine.fired(
                query.name.casefold(),
                now,
                now - started,
                query.answered_until,
                without_spark=trouble == "no spark" and not self.spark_settled(),
            )
            self._is_well(query)
            self._wake()

    def _goes_on(self, query: Hosted, trouble: Trouble) -> bool:
        """After an error in a firing: whether the query has taken up its place for another one."""
        with self._lock:
            if not self._machine.tries_again(query.name.casefold(), trouble):
                return False
        try:
            query.attach()
        except Exception:  # the first error is told
            return False
        return True

    def _ended(self, query: Hosted, error: BaseException, cost_s: float = 0.0) -> None:
        """What was under way with a query has raised an error."""
        with self._lock:
            self._fail(query, error, cost_s)
            self._wake()

    def _wake(self) -> None:
        """Something has changed: there may be work, or nothing left to wait for; holds the lock."""
        self._quiet.notify_all()
        self._work.notify()

    def _show_state(self, query: Hosted) -> bool:
        """The query shows what the machine has decided; whether it is still registered."""
        key = query.name.casefold()
        known = self._queries.get(key) is query
        if known:
            query.state = self._machine.state_of(key)
        return known

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
                self._machine.spark_settled()
                self._work.notify_all()

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
            readers = [self._queries[name] for name in self._machine.readers_of(number)]
            needs = [query.needs(table) for query in readers if query.elsewhere is None]
            needs += self.needs_elsewhere(number)
            needs += [EVERYTHING] if number in self._absent else []
            sequences = [need.sequence for need in needs if need.sequence is not None]
            table.hold_sequence(min(sequences, default=None))
            if definition.kind == "stream":
                ticks = [need.from_tick for need in needs if need.from_tick is not None]
                all_known = len(ticks) == len(needs)
                table.keep_from(min(ticks, default=None) if all_known else None)
                return
            held = [need.held_tick for need in needs if need.held_tick is not None]
            table.hold(min(held, default=None))

    def fail(self, query: Hosted, error: BaseException) -> None:
        """A query cannot go on here."""
        with self._lock:
            query.elsewhere = None
            self._wait_for(query.name.casefold())
            self._fail(query, error)
            self._wake()

    def _fail(self, query: Hosted, error: BaseException, cost_s: float = 0.0) -> None:
        """An error inside a query stops that query, for good or for a while; holds the lock."""
        key, passing = query.name.casefold(), may_pass(error)
        query.state, query.error = "retrying" if passing else "failed", error
        if self._machine.is_busy(key) or key in self._queries:
            self._machine.failed(key, time.monotonic(), passing=passing, cost=cost_s)
            self._show_state(query)  # it may have been paused meanwhile
        self.on_state(query)
        query.leave()
        if query.state == "failed" and self.on_failure is not None:
            self.on_failure(query)

    # Waiting

    def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until what was acknowledged and complete at the call is answered; False if time ran out.

        What comes meanwhile is not waited for. What waits for its next attempt gets it now; what fails then
        goes on waiting.
        """
        return flush(self, timeout_s)

    def flush_here(self, names: Collection[str], until: float | None) -> set[str]:
        """Of these, the queries of this host that have answered what was there at the call.

        Those that do not run have answered what they can, after attempts that they get now.
        """
        with self._lock:
            known = {name for name in names if self._is_here(name)}
            if not self._started:
                return known
            waited = self._machine.flush_begins(known)
            self._work.notify_all()
            try:
                while not waited.done and not self._closing:
                    left = 0.5 if until is None else min(until - time.monotonic(), 0.5)
                    if left <= 0:
                        break
                    self._quiet.wait(left)
                return {n for n in known - waited.goals.keys() if self._is_here(n)}
            finally:
                self._machine.flush_ends(waited)

    def _is_here(self, name: str) -> bool:
        query = self._queries.get(name)
        return query is not None and query.elsewhere is None

    def close(self) -> None:
        """Ends after the firings under way."""
        self.abandon()
        for query in self.all_hosted():
            with contextlib.suppress(Exception):  # a snapshot that cannot be written is one less
                if query.state == "running" and query.elsewhere is None:
                    query.put_away()
                query.keeper.settle()
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
    return sum(c.rows_by_operators + c.rows_on_spark for c in counters.values())


def _trouble(error: BaseException) -> Trouble:
    """What an error in a firing means for what comes next."""
    if isinstance(error, SparkEndedError):
        return "no spark"
    return "passing" if may_pass(error) else "lasting"
