"""Runs SQL text over relations on Spark, for many callers at once.

A kernel belongs to one database. It keeps a few *lanes*, each a Spark session of its own with its
own temporary views and functions, so that two callers may give one name to different relations. A
run takes a lane, registers what changed, lets Spark analyse the text, and collects the result as
Arrow or has Spark write it as Parquet files.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import CancelledError, Error, KernelError
from headwater.kernel.failure import Mapper, translate
from headwater.kernel.functions import UserFunction
from headwater.kernel.relation import Relation, Staging
from headwater.kernel.spark import SparkProcess, spark_process
from headwater.settings import MEBIBYTE, Settings
from headwater.sql.caller import current
from headwater.sql.types import name_of, quoted, result_schema
from headwater.storage.footer import check_footers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL_OUTPUT_BYTES = 64 * MEBIBYTE
TIME_ZONE = "spark.sql.session.timeZone"
CANCEL_PERIOD_S = 0.05
CANCEL_PATIENCE_S = 10.0
SQL_ON_FILES = "spark.sql.runSQLOnFiles"  # ``SELECT * FROM csv.`/path` ``: never for a reader

_ROW_ADDRESS = ("_metadata.file_name AS _file", "_metadata.row_index AS _row")
_NO_ADDRESS = ("'' AS _file", "0L AS _row")

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_tags = itertools.count()


class Cancellation:
    """A flag that a caller may raise from another thread while a run is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self._ends: list[Callable[[], None]] = []
        self._finishes = False
        self.requested = False
        self.reason = "the statement was cancelled"

    def cancel(self, reason: str | None = None) -> None:
        """Asks the run to stop."""
        with self._lock:
            self.requested = True
            self.reason = reason or self.reason
            actions = list(self._actions)
        for action in actions:
            action()

    def finish(self) -> None:
        """Asks a run without an end, a reader of results, to end in order; others go on."""
        with self._lock:
            self._finishes = True
            ends = list(self._ends)
        for end in ends:
            end()

    @contextlib.contextmanager
    def on_finish(self, end: Callable[[], None]) -> Iterator[None]:
        """While inside, `end` is called when the run is asked to end in order."""
        with self._lock:
            self._ends.append(end)
            finishes = self._finishes
        try:
            if finishes:
                end()
            yield
        finally:
            with self._lock:
                self._ends.remove(end)

    def check(self) -> None:
        """CancelledError if the run was asked to stop."""
        if self.requested:
            raise CancelledError(self.reason)

    @contextlib.contextmanager
    def on_cancel(self, action: Callable[[], None]) -> Iterator[None]:
        """While inside, `action` is called when the run is asked to stop."""
        with self._lock:
            self._actions.append(action)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._actions.remove(action)


@dataclass(frozen=True)
class Work:
    """What to run: the text for Spark, the relations in it, and how to report errors about it."""

    sql: str
    relations: Mapping[str, Relation] = field(default_factory=dict)
    original: str | None = None
    original_position: Mapper | None = None
    functions: frozenset[str] = frozenset()  # functions needed besides those in the text
    time_zone: str | None = None  # None: the one that is set


def needed_functions(
    text: str, also: Iterable[str], functions: Mapping[str, UserFunction]
) -> list[str]:
    """The functions that a text may call, each after those that it calls itself."""
    found: dict[str, None] = {}
    started: set[str] = set()

    def need(name: str) -> None:
        if name in functions and name not in started:
            started.add(name)
            for inside in sorted(getattr(functions[name], "identifiers", ())):
                need(inside)
            found[name] = None

    for name in functions:
        if name in text or name in also:
            need(name)
    return list(found)


@dataclass
class _Lane:
    """One Spark session with its own temporary views and functions."""

    session: SparkSession
    views: dict[str, Relation] = field(default_factory=dict)
    functions: dict[str, UserFunction | None] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def prepare(
        self, work: Work, functions: Mapping[str, UserFunction], confs: Mapping[str, str]
    ) -> None:
        self._configure(confs)
        for name, relation in work.relations.items():
            if self.views.get(name) != relation:
                self._register(name, relation)
        text = work.sql.lower()
        for name in [n for n in self.views if n not in work.relations and n in text]:
            self.session.catalog.dropTempView(name)
            del self.views[name]
        for name in needed_functions(text, work.functions, functions):
            if self.functions.get(name) is not functions[name]:
                functions[name].register(self.session)
                self.functions[name] = functions[name]
        for name in [n for n in self.functions if n not in functions]:
            self.session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS `{name}`")
            del self.functions[name]

    def _configure(self, confs: Mapping[str, str]) -> None:
        """Settings first: what Spark has analysed keeps the time zone of that moment."""
        if self.settings.get(TIME_ZONE) != confs[TIME_ZONE]:
            for name, relation in list(self.views.items()):
                if relation.where is not None or relation.computed:
                    self.session.catalog.dropTempView(name)
                    del self.views[name]
            self.functions = dict.fromkeys(self.functions)  # registered again when they are needed
        for name, value in confs.items():
            if self.settings.get(name) != value:
                self.session.conf.set(name, value)
                self.settings[name] = value

    def _register(self, name: str, relation: Relation) -> None:
        schema = relation.spark_schema()
        if relation.files:
            check_footers(relation.files)
            frame = self.session.read.schema(schema).parquet(*relation.files)
        else:
            frame = self.session.createDataFrame([], schema)
        if relation.with_rows:
            frame = frame.selectExpr("*", *_ROW_ADDRESS if relation.files else _NO_ADDRESS)
        if relation.where is not None:
            frame = frame.where(relation.where)
        if relation.columns is not None:
            computed = [f"{text} AS {quoted(name)}" for name, text in relation.computed]
            frame = frame.selectExpr(*[quoted(column) for column in relation.columns], *computed)
        frame.createOrReplaceTempView(f"`{name}`")
        self.views[name] = relation


class Kernel:
    """Spark for one database."""

    def __init__(self, settings: Settings, staging_folder: Path) -> None:
        self._settings = settings
        self._process: SparkProcess | None = None
        self._lock = threading.Lock()
        self._lanes: queue.LifoQueue[_Lane | None] = queue.LifoQueue()
        for _ in range(settings.integer("spark_lanes")):
            self._lanes.put(None)
        self._functions: dict[str, UserFunction] = {}
        self._groups: dict[int, str] = {}  # by thread: the group of its last Spark jobs
        self.staging = Staging(
            staging_folder,
            lambda: settings.integer("staging_mb") * MEBIBYTE,
            shared_memory=settings.text("master").startswith("local"),
        )

    def start(self) -> None:
        """Starts Spark in the background."""
        with self._lock:
            self._process = spark_process(self._settings)

    @property
    def ready(self) -> bool:
        """Whether Spark has started."""
        process = self._process
        return process is not None and process.session is not None

    def wait_ready(self, timeout_s: float) -> bool:
        """Whether Spark has started, or failed to, within that time."""
        process = self._process
        return process is not None and process.ready.wait(timeout_s)

    def stream_session(self, confs: Mapping[str, str]) -> SparkSession:
        """A session of its own for one source, with these settings; public API only."""
        session = self._started().session
        assert session is not None
        made = session.newSession()
        for name, value in {**confs, **self._session_settings()}.items():
            made.conf.set(name, value)
        return made

    def add_function(self, function: UserFunction) -> None:
        """Makes a function known to every later run; replaces one of the same name."""
        with self._lock:
            self._functions = {**self._functions, function.name.lower(): function}

    def remove_function(self, name: str) -> None:
        """Forgets a function."""
        with self._lock:
            self._functions = {n: f for n, f in self._functions.items() if n != name.lower()}

    def jobs_of(self, thread: int | None) -> list[int]:
        """The numbers of the Spark jobs of a thread's run, the one under way or the last."""
        group, process = self._groups.get(thread or 0), self._process
        if group is None or process is None or process.session is None:
            return []
        return sorted(process.session.sparkContext.statusTracker().getJobIdsForGroup(group))

    def close(self) -> None:
        """Lets go of staged rows; Spark itself stays for other databases of this process."""
        self.staging.close()

    def run(self, work: Work, cancellation: Cancellation | None = None) -> pa.Table:
        """The result of a query as Arrow."""
        with self._frame(work, cancellation) as frame:
            names = frame.columns
            table = _arrow_friendly(frame).toArrow()
        return table.rename_columns(names).cast(result_schema(table.rename_columns(names).schema))

    def map_batches(self, work: Work, function: BatchFunction, schema: pa.Schema) -> pa.Table:
        """What a function makes of a query's batches, in Spark's Python workers."""
        columns = ", ".join(f"{quoted(field.name)} {name_of(field.type)}" for field in schema)
        with self._frame(work, None) as frame:
            return frame.mapInArrow(function, columns).toArrow().cast(schema)

    def analyse(self, work: Work) -> list[tuple[str, str]]:
        """The names and types (Spark's own words) that a query would have, without running it."""
        with self._frame(work, None) as frame:
            return [(f.name, _type_text(f.dataType)) for f in frame.schema.fields]

    def explain(self, work: Work, mode: str = "formatted") -> str:
        """Spark's plan of a query, as text."""
        import io

        printed = io.StringIO()
        with self._frame(work, None) as frame, contextlib.redirect_stdout(printed):
            frame.explain(mode=mode)
        return printed.getvalue()

    def check_function(self, function: UserFunction, relations: Mapping[str, Relation]) -> None:
        """Lets Spark read a function's definition once, without keeping it."""
        inside: frozenset[str] = getattr(function, "identifiers", frozenset())
        work = Work("SELECT 1", relations, functions=inside)
        with self._frame(work, None) as frame:
            function.register(frame.sparkSession)
            frame.sparkSession.sql(f"DROP TEMPORARY FUNCTION IF EXISTS `{function.name}`")
            self._forget_in_lanes(function.name)

    def _forget_in_lanes(self, name: str) -> None:
        with self._lock:
            self._functions = {n: f for n, f in self._functions.items() if n != name.lower()}

    def write(
        self, work: Work, folder: Path, cancellation: Cancellation | None = None
    ) -> list[Path]:
        """Has Spark write a query's result as Parquet files into a new folder; the files' paths."""
        small = sum(_size(f) for r in work.relations.values() for f in r.files) < SMALL_OUTPUT_BYTES
        with self._frame(work, cancellation) as frame:
            (frame.coalesce(1) if small else frame).write.mode("error").parquet(str(folder))
        for path in list(folder.iterdir()):
            if path.suffix != ".parquet":
                path.unlink()  # checksums and the mark of success: nobody reads them
        return sorted(folder.glob("*.parquet"))

    @contextlib.contextmanager
    def _frame(self, work: Work, cancellation: Cancellation | None) -> Iterator[DataFrame]:
        """Takes a lane, lets Spark analyse the text, and translates what goes wrong."""
        cancellation = cancellation or Cancellation()
        process = self._started()
        lane = self._take_lane(process, cancellation)
        try:
            with self._cancellable(lane.session, cancellation):
                lane.prepare(work, self._functions, self._session_settings(work.time_zone))
                frame = lane.session.sql(work.sql)
                cancellation.check()
                yield frame
        except Error:
            raise
        except Exception as error:
            cancellation.check()
            process.check_alive()
            raise translate(error, work.original or work.sql, work.original_position) from None
        finally:
            self._lanes.put(lane)

    def _started(self) -> SparkProcess:
        with self._lock:
            if self._process is None or self._process.error is not None:
                self._process = spark_process(self._settings)
            process = self._process
        process.wait(self._settings.number("start_timeout_s"))
        process.check_alive()
        return process

    def _take_lane(self, process: SparkProcess, cancellation: Cancellation) -> _Lane:
        while True:
            try:
                lane = self._lanes.get(timeout=CANCEL_PERIOD_S)
                break
            except queue.Empty:
                cancellation.check()
        if lane is None:
            session = process.session
            if session is None:
                self._lanes.put(None)
                raise KernelError("Spark is not running")
            try:
                lane = _Lane(session.newSession())
            except BaseException:
                self._lanes.put(None)
                raise
        return lane

    def _session_settings(self, time_zone: str | None = None) -> dict[str, str]:
        confs = {TIME_ZONE: time_zone or self._settings.text("time_zone"), SQL_ON_FILES: "true"}
        confs |= {n: v for n, v in self._settings.spark.items() if n.startswith("spark.sql.")}
        return confs if current().is_admin else confs | {SQL_ON_FILES: "false"}

    @contextlib.contextmanager
    def _cancellable(self, session: SparkSession, cancellation: Cancellation) -> Iterator[None]:
        """While inside, cancelling ends the Spark jobs of this thread, also those not yet started."""
        context = session.sparkContext
        tag = f"headwater-{next(_tags)}"
        done = threading.Event()

        def cancel() -> None:
            threading.Thread(target=repeat, name="headwater-cancel", daemon=True).start()

        def repeat() -> None:
            until = time.monotonic() + CANCEL_PATIENCE_S
            while not done.is_set() and time.monotonic() < until:
                context.cancelJobsWithTag(tag)
                done.wait(CANCEL_PERIOD_S)

        context.addJobTag(tag)
        context.setJobGroup(tag, "headwater")
        self._groups[threading.get_ident()] = tag
        try:
            with cancellation.on_cancel(cancel):
                yield
        finally:
            done.set()
            context.removeJobTag(tag)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _type_text(type_: Any) -> str:
    """A Spark type as SQL text, field names quoted (`simpleString` leaves the quotes out)."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, ArrayType):
        return f"array<{_type_text(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"map<{_type_text(type_.keyType)}, {_type_text(type_.valueType)}>"
    if isinstance(type_, StructType):
        fields = (f"`{f.name.replace('`', '``')}`: {_type_text(f.dataType)}" for f in type_.fields)
        return f"struct<{', '.join(fields)}>"
    return str(type_.simpleString())


def _arrow_friendly(frame: DataFrame) -> DataFrame:
    """The frame with columns as text whose types Arrow has none for (VARIANT, months, …)."""
    from pyspark.sql.functions import col, to_json
    from pyspark.sql.types import CalendarIntervalType, VariantType, YearMonthIntervalType

    odd = (CalendarIntervalType, YearMonthIntervalType, VariantType)
    if not any(isinstance(f.dataType, odd) for f in frame.schema.fields):
        return frame
    frame = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))]) if _repeats(frame) else frame
    columns = []
    for f in frame.schema.fields:
        column = col("`" + f.name.replace("`", "``") + "`")
        if isinstance(f.dataType, VariantType):
            column = to_json(column).alias(f.name)
        elif isinstance(f.dataType, odd):
            column = column.cast("string").alias(f.name)
        columns.append(column)
    return frame.select(*columns)


def _repeats(frame: DataFrame) -> bool:
    names = [name.lower() for name in frame.columns]
    return len(set(names)) < len(names)
