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
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from headwater.errors import Error, SparkEndedError
from headwater.kernel.cancellation import Cancellation
from headwater.kernel.failure import Mapper, translate
from headwater.kernel.functions import UserFunction
from headwater.kernel.pyspark_state import is_stopped, master_of, running_session
from headwater.kernel.relation import STRICT, Relation, Staging, frame_of
from headwater.kernel.spark import FAILED, SparkProcess, SparkStatus, not_ours, spark_process
from headwater.plan.calls import called_among
from headwater.settings import MEBIBYTE, Settings
from headwater.sql.caller import current
from headwater.sql.types import name_of, quoted, result_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL_OUTPUT_BYTES = 64 * MEBIBYTE
TIME_ZONE = "spark.sql.session.timeZone"
CANCEL_PERIOD_S = 0.05
CANCEL_PATIENCE_S = 10.0
SQL_ON_FILES = "spark.sql.runSQLOnFiles"  # ``SELECT * FROM csv.`/path` ``: never for a reader
RUNS = 2  # of one statement: again if Spark ended under it, but not if it ends under it each time
SHOWN = 200  # characters of a text, where Spark's own pages name its jobs
JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

T = TypeVar("T")

_tags = itertools.count()
_thread = threading.local()


@contextlib.contextmanager
def without_waiting() -> Iterator[None]:
    """While inside, a run of this thread does not wait for Spark: SparkEndedError if it does not run."""
    before, _thread.hurries = getattr(_thread, "hurries", False), True
    try:
        yield
    finally:
        _thread.hurries = before


@dataclass(frozen=True)
class Work:
    """What to run: the text for Spark, the relations in it, and how to report errors about it."""

    sql: str
    relations: Mapping[str, Relation] = field(default_factory=dict)
    original: str | None = None
    original_position: Mapper | None = None
    functions: frozenset[str] = frozenset()  # functions needed besides those in the text
    bodies: Mapping[str, UserFunction] = field(default_factory=dict)  # functions as it calls them
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

    called = called_among(text, functions) if functions else set()
    for name in functions:
        if name in called or name in also:
            need(name)
    return list(found)


@dataclass
class _Lane:
    """One Spark session with its own temporary views and functions."""

    session: SparkSession
    life: int  # of Spark: a lane ends with it
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
        frame = frame_of(self.session, relation)
        frame.createOrReplaceTempView(quoted(name))
        self.views[name] = relation


class Kernel:
    """Spark for one database."""

    def __init__(
        self, settings: Settings, staging_folder: Path, given: SparkSession | None = None
    ) -> None:
        """`given`: the program's own session, to be used; without one it is found, or Spark started."""
        self._settings = settings
        self._given = given
        self.on_spark: list[Callable[[], None]] = []  # called when Spark's state has changed
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
            shared_memory=self._master(given or running_session()).startswith("local"),
        )

    def _master(self, callers: SparkSession | None) -> str:
        return self._settings.text("master") if callers is None else master_of(callers)

    def start(self) -> None:
        """Starts Spark in the background."""
        with self._lock:
            self._process = spark_process(self._settings, self._tell, self._given)

    def _tell(self) -> None:
        for listener in self.on_spark:
            listener()

    @property
    def ready(self) -> bool:
        """Whether Spark runs."""
        return self.status.ready

    @property
    def status(self) -> SparkStatus:
        """How Spark is."""
        process = self._process
        return SparkStatus() if process is None else process.status

    @property
    def settled(self) -> bool:
        """Whether Spark runs, or has failed and will not run: there is nothing to wait for."""
        process = self._process
        return process is None or process.wait_settled(0.0)

    def wait_ready(self, timeout_s: float) -> bool:
        """Whether Spark runs, or has failed to start, within that time."""
        process = self._process
        return process is not None and process.wait_settled(timeout_s)

    def stream_session(self, confs: Mapping[str, str]) -> tuple[SparkSession, int]:
        """A session of its own for one source, with these settings, and the life of Spark's it ends with."""
        process, session, life = self._started(Cancellation())
        made = process.new_session(session)
        for name, value in {**confs, **self._session_settings()}.items():
            made.conf.set(name, value)
        return made, life

    def program_session(self) -> SparkSession:
        """The session of the program's own Spark code: the one it made, else ours that `builder` gives."""
        process, session, _ = self._started(Cancellation())
        session = session if process.owned else self._given or session
        if is_stopped(session):  # a moment ago: it is looked for now and then
            raise process.ended_error() if process.owned else not_ours("its context was stopped")
        return session

    def frame(self, relation: Relation) -> DataFrame:
        """A relation as a frame of the program's session; its files must stay as long as it is used."""
        session = self.program_session()
        try:
            return frame_of(session, relation, STRICT)
        except Exception as error:
            raise error if isinstance(error, Error) else translate(error, "") from None

    @property
    def is_local(self) -> bool:
        """Whether Spark's tasks run on this machine."""
        return self._master(self._given or running_session()).startswith("local")

    @property
    def driver_host(self) -> str:
        """Where executors find this process."""
        process = self._process
        assert process is not None
        assert process.session is not None
        return str(process.session.sparkContext.getConf().get("spark.driver.host", "127.0.0.1"))

    def take_seats(self, wanted: int) -> int:
        """Slots for factories, of those that Spark has beside its cores; how many there are."""
        process = self._process
        return 0 if process is None else process.take_seats(wanted)

    def return_seats(self, count: int) -> None:
        """Factories have ended."""
        if self._process is not None:
            self._process.take_seats(-count)

    def ended_since(self, life: int, error: BaseException) -> bool:
        """Whether an error comes of the end of a life of Spark's, and another one is to come."""
        process = self._process
        return process is not None and process.ended_since(life, error) and process.error is None

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
        with contextlib.suppress(Exception):  # it may end at any moment
            return sorted(process.session.sparkContext.statusTracker().getJobIdsForGroup(group))
        return []

    def close(self) -> None:
        """Lets go of staged rows; Spark itself stays for other databases of this process."""
        self.staging.close()
        with self._lock:
            if self._process is not None:
                self._process.remove_listener(self._tell)

    def run(self, work: Work, cancellation: Cancellation | None = None) -> pa.Table:
        """The result of a query as Arrow."""

        def act(frame: DataFrame) -> tuple[list[str], pa.Table]:
            return frame.columns, _arrow_friendly(frame).toArrow()

        names, table = self._on_frame(work, cancellation, act)
        return table.rename_columns(names).cast(result_schema(table.rename_columns(names).schema))

    def map_batches(self, work: Work, function: BatchFunction, schema: pa.Schema) -> pa.Table:
        """What a function makes of a query's batches, in Spark's Python workers."""
        columns = ", ".join(f"{quoted(field.name)} {name_of(field.type)}" for field in schema)
        return self._on_frame(
            work, None, lambda frame: frame.mapInArrow(function, columns).toArrow().cast(schema)
        )

    def analyse(self, work: Work) -> list[tuple[str, str]]:
        """The names and types (Spark's own words) that a query would have, without running it."""
        return self._on_frame(
            work,
            None,
            lambda frame: [(f.name, type_text(f.dataType)) for f in frame.schema.fields],
        )

    def explain(self, work: Work, mode: str = "formatted") -> str:
        """Spark's plan of a query, as text."""
        import io

        def act(frame: DataFrame) -> str:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                frame.explain(mode=mode)
            return printed.getvalue()

        return self._on_frame(work, None, act)

    def check_function(self, function: UserFunction, work: Work) -> None:
        """Lets Spark read a function's definition once, without keeping it; `work` has what it needs."""

        def act(frame: DataFrame) -> None:
            function.register(frame.sparkSession)
            frame.sparkSession.sql(f"DROP TEMPORARY FUNCTION IF EXISTS `{function.name}`")
            self._forget_in_lanes(function.name)

        self._on_frame(work, None, act)

    def _forget_in_lanes(self, name: str) -> None:
        with self._lock:
            self._functions = {n: f for n, f in self._functions.items() if n != name.lower()}

    def write(
        self, work: Work, folder: Path, cancellation: Cancellation | None = None
    ) -> list[Path]:
        """Has Spark write a query's result as Parquet files into a new folder; the files' paths."""
        small = sum(_size(f) for r in work.relations.values() for f in r.files) < SMALL_OUTPUT_BYTES
        tries = itertools.count()

        def act(frame: DataFrame) -> None:
            if next(tries):
                shutil.rmtree(folder, ignore_errors=True)  # left by a Spark that ended meanwhile
            (frame.coalesce(1) if small else frame).write.mode("error").parquet(str(folder))

        self._on_frame(work, cancellation, act)
        for path in list(folder.iterdir()):
            if path.suffix != ".parquet":
                path.unlink()  # checksums and the mark of success: nobody reads them
        return sorted(folder.glob("*.parquet"))

    def _on_frame(
        self, work: Work, cancellation: Cancellation | None, act: Callable[[DataFrame], T]
    ) -> T:
        """What an act makes of a query; again if Spark ended under it. Acts have no effect till they end."""
        cancellation = cancellation or Cancellation()
        for left in reversed(range(RUNS)):
            try:
                with self._frame(work, cancellation) as frame:
                    return act(frame)
            except SparkEndedError:
                if not left or getattr(_thread, "hurries", False):
                    raise
        raise AssertionError("the last run returns or raises")

    @contextlib.contextmanager
    def _frame(self, work: Work, cancellation: Cancellation) -> Iterator[DataFrame]:
        """Takes a lane, lets Spark analyse the text, and translates what goes wrong."""
        process, session, life = self._started(cancellation)
        lane = self._take_lane(cancellation)
        try:
            if lane is None or lane.life != life:
                lane = _Lane(process.new_session(session), life)
            with self._cancellable(lane.session, work.sql, cancellation, process.owned):
                functions = {**self._functions, **work.bodies}
                lane.prepare(work, functions, self._session_settings(work.time_zone))
                frame = lane.session.sql(work.sql)
                cancellation.check()
                yield frame
        except Error:
            raise
        except Exception as error:
            cancellation.check()
            if process.ended_since(life, error):
                raise process.ended_error() from None
            raise translate(error, work.original or work.sql, work.original_position) from None
        finally:
            self._lanes.put(lane)

    def _started(self, cancellation: Cancellation) -> tuple[SparkProcess, SparkSession, int]:
        """Spark, its session and life, once it runs."""
        hurries = getattr(_thread, "hurries", False)
        with self._lock:
            process = self._process
            if process is None or (not hurries and self._may_begin_anew(process)):
                process = spark_process(self._settings, self._tell, self._given)
                self._process = process
        not_running = process.not_running() if hurries else None
        if not_running is not None:
            raise not_running
        return process, *process.wait(self._settings.number("start_timeout_s"), cancellation.check)

    def _may_begin_anew(self, process: SparkProcess) -> bool:
        """Whether a Spark that is no more may be followed by another: one of ours that never ran, or the
        program's next session."""
        if process.error is None:
            return False
        if process.owned:
            return process.status.state == FAILED
        self._given = None
        return running_session() is not None

    def _take_lane(self, cancellation: Cancellation) -> _Lane | None:
        while True:
            try:
                return self._lanes.get(timeout=CANCEL_PERIOD_S)
            except queue.Empty:
                cancellation.check()

    def _session_settings(self, time_zone: str | None = None) -> dict[str, str]:
        confs = {TIME_ZONE: time_zone or self._settings.text("time_zone"), SQL_ON_FILES: "true"}
        confs |= {n: v for n, v in self._settings.spark.items() if n.startswith("spark.sql.")}
        return confs if current().is_admin else confs | {SQL_ON_FILES: "false"}

    @contextlib.contextmanager
    def _cancellable(
        self, session: SparkSession, text: str, cancellation: Cancellation, owned: bool
    ) -> Iterator[None]:
        """While inside, cancelling ends the Spark jobs of this thread, also those not yet started."""
        context = session.sparkContext
        before = {} if owned else {n: context.getLocalProperty(n) for n in JOB_PROPERTIES}
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
        context.setJobGroup(tag, f"headwater: {' '.join(text[:SHOWN].split())}")
        self._groups[threading.get_ident()] = tag
        try:
            with cancellation.on_cancel(cancel):
                yield
        finally:
            done.set()
            with contextlib.suppress(Exception):  # Spark may have ended
                context.removeJobTag(tag)
                for name, value in before.items():  # the program's jobs come from this thread, too
                    context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None unsets it


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def type_text(type_: Any) -> str:
    """A Spark type as SQL text, field names quoted (`simpleString` leaves the quotes out)."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, ArrayType):
        return f"array<{type_text(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"map<{type_text(type_.keyType)}, {type_text(type_.valueType)}>"
    if isinstance(type_, StructType):
        fields = (f"`{f.name.replace('`', '``')}`: {type_text(f.dataType)}" for f in type_.fields)
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
