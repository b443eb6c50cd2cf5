"""The one place that ties the parts together: `connect` and `Database`."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import headwater.pandas_later  # noqa: F401  (first: parts make arrays as they are loaded)

# isort: split
import pyarrow as pa

from headwater.engine.engine import Engine
from headwater.errors import ClosedError, Error, NotSupportedError
from headwater.execute import (
    connectors,
    continuous,
    flush,
    following,
    frames,
    functions,
    indexes,
    insert,
    insert_frame,
    kept_views,
    query,
    relations,
    subscriptions,
    tables,
    transaction,
    users,
)
from headwater.execute.answers import Answer
from headwater.execute.context import Context, Running
from headwater.execute.discretion import told
from headwater.execute.handlers import HANDLERS
from headwater.execute.query_results import Out, Pusher, Subscription, output_of
from headwater.execute.relations import RelationColumns
from headwater.factories.coordinator import Factories
from headwater.kernel.cancellation import Cancellation, UnderWay
from headwater.kernel.given_frame import given_frame
from headwater.kernel.kernel import Kernel
from headwater.kernel.spark import SparkStatus
from headwater.kernel.spark_settings import factory_slots
from headwater.result import Result
from headwater.settings import Settings
from headwater.sql import scripts
from headwater.sql.caller import CURRENT, Caller, acting_for
from headwater.sql.extensions import Emit
from headwater.sql.kinds import command_of
from headwater.sql.masking import masked
from headwater.sql.mistakes import hinted
from headwater.sql.parameters import Parameters, bind, bind_values, unbound, value_text
from headwater.sql.permissions import judgement_of, permitted, text_refusal
from headwater.sql.scripts import Asked
from headwater.sql.statements.base import Statement
from headwater.sql.statements.call import Call
from headwater.sql.statements.insert import Insert
from headwater.sql.statements.query import Query
from headwater.sql.statements.subscribe import Subscribe, parse_target
from headwater.sql.statements.user import Role
from headwater.storage.catalog import Catalog
from headwater.storage.disk import as_known, failures_told
from headwater.storage.folder import DataFolder
from headwater.storage.secret import kept_secret
from headwater.storage.streaming.store import StreamStore

if TYPE_CHECKING:
    from headwater.kernel.spark import DataFrame, SparkSession

T = TypeVar("T")
CLOSE_PATIENCE_S = 10.0  # how long close() waits for the statements that it cancels
# What completion offers of a database.
FOR_PROGRAMS = (
    "advance", "cancel", "catalog_names", "close", "create_function", "execute", "flush", "insert", "script",
    "seal", "spark", "spark_ready", "spark_status", "sql", "subscribe", "table",
)  # fmt: skip


def connect(
    path: str | Path = ":memory:",
    *,
    master: str | None = None,
    settings: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
) -> Database:
    """Opens a data folder (made if it is not there); ":memory:" is a temporary one.

    Spark starts in the background; statements that need none do not wait for it. A program that has a
    Spark session of its own keeps it as it is: sessions beside it are used. `spark` names it.
    """
    given = dict(settings or {})
    if master is not None:
        given["master"] = master
    return Database(path, Settings(given), spark)


class _StatementSettings(NamedTuple):
    """The settings that every statement asks for."""

    changes: int  # of the settings, when these were taken
    time_zone: str
    limit_s: float
    users_limit_s: float


class Database:
    """An open database. Threads may share it."""

    @failures_told()
    def __init__(
        self, path: str | Path, settings: Settings, spark: SparkSession | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._under_way = UnderWay()
        self._settings = _StatementSettings(-1, "", 0.0, 0.0)
        self._closed = True  # until it is open: what fails below is closed here, not by __del__
        folder = DataFolder(path)
        with contextlib.ExitStack() as undo:
            undo.callback(folder.close)
            kernel = Kernel(settings, folder.staging, spark)
            undo.callback(kernel.close)
            if settings.flag("eager_spark"):
                kernel.start()
            folder.check_catalog()
            catalog = Catalog(folder.catalog)
            undo.callback(catalog.close)
            tables.clear_left_overs(folder, catalog)
            streams = StreamStore(folder.path, catalog, settings)
            undo.callback(streams.close, seal=False)
            engine = Engine(
                settings.integer("engine_threads"), lambda: settings.number("snapshot_s")
            )
            engine.spark_settled = lambda: kernel.settled
            kernel.on_spark.append(engine.spark_changed)
            self._context = Context(settings, folder, catalog, kernel, streams, engine)
            undo.callback(self._context.frames.close)
            self._origin = partial(frame_of_rows, weakref.ref(self))
            tables.open_tables(self._context)
            functions.open_functions(self._context)
            indexes.open_indexes(self._context)
            undo.callback(continuous.close_queries, self._context)
            kept_views.open_views(self._context)
            continuous.open_queries(self._context)
            following.open_following(self._context)
            self._factories = Factories(self._context, factory_slots(settings))
            undo.callback(self._factories.close)
            if self._factories.seats:
                self._factories.start()
                self._context.tell_functions = self._factories.tell_news
                self._context.numbers.append(self._factories.numbers)
            undo.callback(connectors.close_connectors, self._context)
            connectors.open_connectors(self._context)
            undo.pop_all()
        self._closed = False
        atexit.register(close_at_exit, weakref.ref(self))

    def sql(self, text: str, parameters: Parameters | None = None) -> Result:
        """Runs a statement (or several, separated by `;`); the result of the last one.

        `parameters`: values for `?` or `$1`, `$2`, …, in their order, or for `$name`, by name.
        """
        if parameters is None:
            results = list(self.script(text))
            return results[-1] if results else Result("EMPTY")
        edited = bind_values(text, parameters)
        try:
            scanned = self._scanned(text, parameters)
            return self.sql(edited.text) if scanned is None else scanned
        except Error as error:
            raise unbound(error, edited) from None

    def _scanned(self, text: str, parameters: Parameters) -> Result | None:
        """The rows of a plain scan, which is read once for all values; None if it is more than that."""
        if isinstance(parameters, Mapping):
            return None
        slots = bind(text, [f"${number}" for number in range(1, len(parameters) + 1)])
        script = scripts.read(slots.text)
        if len(script) != 1 or not self._is_query(script[0]):
            return None
        values = tuple(value_text(value) for value in parameters)
        return self.scan_with_values(script[0], values, Cancellation(), Caller("admin"))

    def _is_query(self, asked: Asked) -> bool:
        """Whether a statement is a query even without values for its parameters."""
        try:
            return isinstance(self.parsed(asked), Query)
        except Error:  # with values it may be one
            return False

    def execute(self, text: str, parameters: Parameters | None = None) -> Result:
        """The same as `sql`, under the name that other databases have for it."""
        return self.sql(text, parameters)

    def script(self, text: str, *, follow: bool = False) -> Iterator[Result]:
        """Runs statements one by one; stops at the first error, which is placed in the whole text.

        `follow`: SUBSCRIBE gives a result for each instant, until it is cancelled.
        """
        for asked in scripts.read(text):
            try:
                if follow and isinstance(self.parsed(asked), Subscribe):
                    _, results = self.follow(asked)
                    yield from (Result("SUBSCRIBE", rows) for rows in results)
                else:
                    yield self.statement(asked)
            except Error as error:
                raise moved(error, asked, text) from None

    def add_numbers(self, numbers: Callable[[], Mapping[str, int]]) -> Callable[[], None]:
        """Has `headwater.metrics` show a listener's numbers too; returns what takes that back."""
        self._context.numbers.append(numbers)
        return lambda: self._context.numbers.remove(numbers)

    def follow(
        self,
        asked: str | Asked | Subscribe,
        cancellation: Cancellation | None = None,
        role: Role | None = None,
    ) -> tuple[pa.Schema, Iterator[pa.Table]]:
        """The columns of a SUBSCRIBE statement, and its results as they come, until it is cancelled."""
        self._check_open()
        statement = asked if isinstance(asked, Subscribe) else self.parsed(asked)
        assert isinstance(statement, Subscribe)
        caller, text = Caller(role or "admin"), statement.text
        with self.acting_for(caller, text):
            subscription = subscriptions.follow(self._context, statement)
        results = self._followed(subscription, cancellation or Cancellation(), caller, text)
        return subscription.schema, results

    def _followed(
        self, subscription: Subscription, cancellation: Cancellation, caller: Caller, text: str
    ) -> Iterator[pa.Table]:
        """The results of a reader as they come, until somebody cancels it or has it end."""
        self._under_way.begin(cancellation)
        try:
            close = subscription.close
            with subscription, cancellation.on_cancel(close), cancellation.on_finish(close):
                try:
                    for out in subscription:
                        yield out.arrow()
                except (Error, OSError) as error:
                    raise self.told(error, caller, text) from None
            cancellation.check()
        finally:
            self._under_way.end(cancellation)

    @contextlib.contextmanager
    def acting_for(self, caller: Caller, text: str) -> Iterator[None]:
        """While inside, this thread acts for a caller, who may see the errors that leave it."""
        token = CURRENT.set(caller)
        try:
            yield
        except (Error, OSError) as error:
            shown = told(hinted(as_known(error), text), self._context.folder.path, text)
            if shown is error:
                raise
            raise shown from None
        finally:
            CURRENT.reset(token)

    def told(self, error: Error | OSError, caller: Caller, text: str) -> Error:
        """An error of a caller's text as the caller may see it."""
        with acting_for(caller):
            return told(as_known(error), self._context.folder.path, text)

    def statement(
        self,
        asked: str | Asked,
        cancellation: Cancellation | None = None,
        role: Role | None = None,
        *,
        user: str = "",
        limit_s: float = 0.0,
    ) -> Result:
        """Runs one statement, without a semicolon; another thread may cancel it alone.

        `role`: it is refused, and so is what it calls, unless the role may run it. `user`: whose it
        is. `limit_s`: how long it may take, if that is less than the settings say.
        """
        caller, asked = Caller(role or "admin", user, limit_s), as_asked(asked)
        return self._act(caller, asked.text, cancellation, lambda c: self._run(asked, c, role=role))

    def scan_with_values(
        self, asked: Asked, values: tuple[str, ...], cancellation: Cancellation, caller: Caller
    ) -> Result | None:
        """The rows of a plain scan with values for `$1`, `$2`, …; None if it is another statement."""
        statement = self.parsed(asked)
        assert isinstance(statement, Query)

        def act(c: Cancellation) -> Result | None:
            self.authorise(statement, caller.role)
            running = Running(self._context, asked.text, c)
            result = query.scan_with_values(running, statement, values)
            if result is not None:
                result.framed = self._origin
            return result

        return self._act(caller, asked.text, cancellation, act)

    def _act(
        self,
        caller: Caller,
        text: str,
        cancellation: Cancellation | None,
        act: Callable[[Cancellation], T],
    ) -> T:
        """Acts for a caller; `cancel` and `close` reach it, and it may not take too long."""
        cancellation = cancellation or Cancellation()
        with self.acting_for(caller, text):
            self._under_way.begin(cancellation, *self._limit(caller))
            try:
                return act(cancellation)
            finally:
                self._under_way.end(cancellation)

    def _limit(self, caller: Caller) -> tuple[float, str]:
        """How many seconds a statement of the caller may take, 0 for any, and what tells that."""
        settings = self._statement_settings()
        users_limit_s = 0.0 if caller.role == "admin" else settings.users_limit_s
        if not (settings.limit_s or users_limit_s or caller.limit_s):
            return 0.0, ""
        limits = {
            "statement_timeout_s": settings.limit_s,
            "statement_timeout_users_s": users_limit_s,
            "statement_timeout": caller.limit_s,  # PostgreSQL's name, which sessions set
        }
        seconds, name = min((s, n) for n, s in limits.items() if s)
        return seconds, f"the statement took longer than {name} = {seconds:g}"

    def _statement_settings(self) -> _StatementSettings:
        """The settings that every statement asks for, as they are now."""
        known, settings = self._settings, self._context.settings
        if known.changes != settings.changes:
            known = self._settings = _StatementSettings(
                settings.changes,
                settings.text("time_zone"),
                settings.number("statement_timeout_s"),
                settings.number("statement_timeout_users_s"),
            )
        return known

    def _run(
        self, asked: Asked, cancellation: Cancellation, depth: int = 0, role: Role | None = None
    ) -> Result:
        statement = self.parsed(asked)
        if role is not None:
            self.authorise(statement, role)
        running = Running(self._context, asked.text, cancellation)
        if isinstance(statement, Call):

            def run(text: str) -> Result:
                return self._run(scripts.read_one(text), cancellation, depth + 1, role)

            return functions.call(running, statement, run, depth)
        handler = HANDLERS.get(type(statement))
        if handler is None:
            raise NotSupportedError(f"{command_of(statement)} is not supported yet")
        result = handler(running, statement)
        result.framed = self._origin
        return result

    def parsed(self, asked: str | Asked) -> Statement:
        """The statement that a text is, with times in this database's zone."""
        self._check_open()
        return as_asked(asked).statement(self._statement_settings().time_zone)

    # For sessions of the server

    @property
    def users(self) -> users.Users:
        """Who may log in."""
        return users.Users(self._context.catalog)

    @property
    def login_secret(self) -> bytes:
        """What the salts of unknown users come from: the same whenever this folder is opened."""
        return kept_secret(self._context.folder.path)

    def has_given_admin(self) -> None:
        """An admin can log in whom the catalog does not know: nobody needs to be warned."""
        self._context.admin_given = True

    def authorise(self, statement: Statement, role: Role) -> None:
        """An error if the role may not run a statement."""
        refusal = permitted(role, statement, self._context.functions)
        if refusal is not None:
            raise refusal

    def authorise_text(self, text: str, role: Role) -> None:
        """An error if the role may not have Spark run a text, whatever statement it belongs to."""
        refusal = text_refusal(role, text, self._context.functions)
        if refusal is not None:
            raise refusal

    def known_answer(self, text: str) -> Answer | None:
        """The answer that a text asks for, if it is known and every role may have it."""
        found = self._context.answers.find(text)
        return found if found is not None and found.for_everybody else None

    def share_answer(self, asked: Asked, text: str) -> None:
        """A query was run that came as `text`: where its answer is known by now, that text finds it too."""
        statement = self.parsed(asked)
        answer = self._context.answers.find(statement.text)
        if answer is not None and not judgement_of(statement).admin_only:
            answer.for_everybody = True
            if self._context.answers.find(text) is not answer:
                self._context.answers.keep(text, answer)

    def columns(
        self,
        asked: str | Asked,
        cancellation: Cancellation | None = None,
        role: Role | None = None,
    ) -> pa.Schema:
        """The columns that a query gives."""
        asked = as_asked(asked)
        statement = self.parsed(asked)
        assert isinstance(statement, Query)

        def act(c: Cancellation) -> pa.Schema:
            return query.columns_of_query(Running(self._context, asked.text, c), statement)

        return self._act(Caller(role or "admin"), asked.text, cancellation, act)

    def held_insert(
        self,
        statement: Insert,
        cancellation: Cancellation | None = None,
        role: Role | None = None,
    ) -> tuple[str, pa.Table]:
        """The table that an INSERT means, and the rows that it would add; nothing is written."""
        text = statement.text

        def act(c: Cancellation) -> tuple[str, pa.Table]:
            return transaction.held_insert(Running(self._context, text, c), statement)

        return self._act(Caller(role or "admin"), text, cancellation, act)

    def columns_of_table(self, table: str) -> pa.Schema:
        """The columns of a table that rows can be added to."""
        self._check_open()
        return self._context.writable(table).schema

    def checked_rows(self, table: str, rows: pa.Table) -> pa.Table:
        """Rows in a table's own types, checked; nothing is written."""
        self._check_open()
        return transaction.checked_rows(self._context, table, rows)

    def check_together(self, tables: Iterable[str]) -> None:
        """Refuses tables to which rows cannot be added together."""
        transaction.check_together(self._context, list(tables))

    @failures_told()
    def insert_together(self, rows: Mapping[str, pa.Table]) -> int:
        """Adds rows to several tables, durable and visible together; the number of rows."""
        self._check_open()
        return transaction.add_together(self._context, rows)

    def relations(self) -> list[RelationColumns]:
        """What stands in FROM, with its columns."""
        self._check_open()
        return relations.relations(self._context)

    def relation(self, name: str) -> RelationColumns | None:
        """The table, view or query of that name, with its columns."""
        self._check_open()
        return relations.relation(self._context, name)

    def setting(self, name: str) -> int | float | bool | str:
        """The value of a setting."""
        return self._context.settings[name]

    # For programs on Spark

    @property
    def spark(self) -> SparkSession:
        """The session that DataFrames from here belong to: the program's own, else Headwater's."""
        self._check_open()
        return self._context.kernel.program_session()

    def table(self, name: str) -> DataFrame:
        """A table, view, query's last result or select as a DataFrame of Spark's, all of one instant.

        Its rows stay files that Spark reads. They are there until the database is closed, or until
        `frames_held` newer frames were made.
        """

        def act(cancellation: Cancellation) -> DataFrame:
            self._check_open()
            return frames.table_frame(Running(self._context, name, cancellation), name)

        return self._act(Caller("admin"), name, None, act)

    def frame_of_rows(self, rows: pa.Table) -> DataFrame:
        """Rows as a DataFrame of Spark's, by way of a file."""
        self._check_open()
        return frames.frame_of_rows(self._context, rows)

    @failures_told()
    def insert(self, table: str, rows: Any, batch_id: str | None = None) -> int:
        """Adds rows (Arrow, pandas, polars, dicts or tuples); returns once they are durable.

        The number of rows added: 0 if a batch of this id was there already. Of a DataFrame of Spark's,
        executors write the rows.
        """
        self._check_open()
        target, frame = self._context.writable(table), given_frame(rows)
        if frame is None:
            return insert.add_rows(target, rows, batch_id)

        def act(cancellation: Cancellation) -> int:
            running = Running(self._context, "", cancellation)
            return insert_frame.insert_frame(running, target, frame, batch_id)

        return self._act(Caller("admin"), "", None, act)

    @failures_told()
    def advance(self, table: str, time: Any) -> None:
        """Punctuation: no more rows with T ≤ `time` will come; closes all instants up to it."""
        self._check_open()
        self._context.streaming_table(table).advance(time)

    @failures_told()
    def create_function(
        self,
        name: str,
        function: Any,
        *,
        returns: str,
        kind: str = "scalar",
        state: str | None = None,
    ) -> None:
        """Makes a Python function usable in SQL for as long as this database is open.

        `state`: a scalar function keeps state that lives for the "query", the "chunk" or the "scan".
        """
        self._check_open()
        functions.create_python_function(self._context, name, function, returns, kind, state)
        continuous.wake_dormant(self._context)
        kept_views.wake_views(self._context)

    @failures_told()
    def flush(self) -> None:
        """Waits until everything acknowledged and complete has been processed; closes nothing.

        An error names queries, views, sources and sinks that have failed.
        """
        self._check_open()
        flush.flush_all(self._context)

    @failures_told()
    def subscribe(
        self,
        query: str,
        *,
        emit: Emit | None = None,
        after: str | None = None,
        timeout: float | None = 5.0,
        callback: Callable[[Out], object] | None = None,
        conflate_by: Sequence[str] = (),
    ) -> Subscription | Pusher:
        """The results of a query as they come: the name of a query, view or table, or a select.

        `after`: None for results completed from now on, "earliest" for all kept ones, or the token
        of the last result that was processed. The iterator ends when `timeout` seconds pass
        without a result. With a callback, a thread calls it for each result. `conflate_by`: key
        columns; of the results that came since it last asked, a reader gets the newest row per key.
        """
        self._check_open()
        target = parse_target(query)
        limit = timeout if callback is None else None
        found = subscriptions.subscribe(self._context, target, emit, after, limit, conflate_by)
        return found if callback is None else Pusher(found, callback)

    @failures_told()
    def seal(self) -> None:
        """Moves all recent rows into blocks now, and waits until every index has caught up.

        Never needed for durability or for reads: inserts are durable when they return.
        """
        self._check_open()
        self._context.streams.seal_all()
        self._context.streams.index_all()

    def cancel(self) -> None:
        """Cancels the statements under way, from another thread."""
        self._under_way.cancel()

    def catalog_names(self) -> dict[str, list[str]]:
        """Names of tables and their columns, for completion."""
        context = self._context
        found = {}
        for item in context.catalog.all("table", "streaming table", "stream", "materialized view"):
            table = context.tables.get(item.id) or context.streams.find(item.id)
            if table is not None:
                found[item.name] = list(table.schema.names)
        for known in context.engine.named():
            if not known.name.startswith(("_", "(")):
                found[known.name] = list(output_of(known).names)
        return found

    @property
    def spark_ready(self) -> bool:
        """Whether Spark runs."""
        return self._context.kernel.ready

    @property
    def spark_status(self) -> SparkStatus:
        """How Spark is: its state, how often it was started again, why it last ended."""
        return self._context.kernel.status

    @failures_told()
    def close(self) -> None:
        """Closes the database; Spark stays for others of this process."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._under_way.close(CLOSE_PATIENCE_S)
        context = self._context
        with contextlib.ExitStack() as rest:  # a full disk may fail the first; the lock must go
            rest.callback(context.folder.close)
            rest.callback(context.kernel.close)
            rest.callback(context.frames.close)
            rest.callback(context.catalog.close)
            rest.callback(context.streams.close, seal=not context.folder.temporary)
            connectors.close_connectors(context)
            self._factories.close()
            continuous.close_queries(context)
            for table in context.tables.values():
                table.collect_garbage()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the database is closed", hint="connect again")

    def __dir__(self) -> list[str]:
        """What programs use; servers know the rest."""
        return sorted(FOR_PROGRAMS)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        open_still = not getattr(self, "_closed", True) and hasattr(self, "_context")
        if open_still and not sys.is_finalizing():
            self.close()


def frame_of_rows(reference: weakref.ref[Database], rows: pa.Table) -> DataFrame:
    """Rows of a result as a DataFrame, as long as the database that gave it is there."""
    database = reference()
    if database is None:
        raise ClosedError("the database is closed", hint="connect again")
    return database.frame_of_rows(rows)


def close_at_exit(reference: weakref.ref[Database]) -> None:
    """Closes a database that its program forgot to close, while threads and files still work."""
    database = reference()
    if database is not None:
        database.close()


def moved(error: Error, piece: Asked, text: str) -> Error:
    """The error of a statement, placed in the whole text."""
    place = error.place
    if place is not None and place.text in (piece.text, masked(piece.text)):
        error.place = type(place)(masked(text), place.start + piece.start, place.end + piece.start)
    return error


def as_asked(asked: str | Asked) -> Asked:
    """The one statement that a text is."""
    return scripts.read_one(asked) if isinstance(asked, str) else asked
