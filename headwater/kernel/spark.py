"""The Spark of this process: started in the background, watched, started again; all databases share it.

Owns the Java process, the SparkContext and their life: when it ends, everybody who asks is told at once,
and it is started again after a pause. A session that the program made itself is used as it is: no second Java
process, nothing of it is changed, it is never stopped. A statement that needs no Spark never waits for this
module.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import Error, KernelError, NotSupportedError, SparkEndedError
from headwater.kernel import aot, pyspark_state
from headwater.kernel.gateway import Gateway, start_gateway
from headwater.kernel.java import Java, find_java
from headwater.kernel.pyspark_state import master_of
from headwater.kernel.restarts import Restarts
from headwater.kernel.spark_settings import (
    default_memory_mb,
    factory_slots,
    local_master,
    session_settings,
    spark_settings,
)
from headwater.kernel.watch import EndOf
from headwater.settings import Settings

if TYPE_CHECKING:
    # For those who may not import PySpark.
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

TRAINING_DELAY_S = 60.0
LOOK_S = 0.25  # how often it is looked whether somebody stopped the context
LOST_PATIENCE_S = 5.0  # between an error that a dying process causes and its end
STOP_PATIENCE_S = 1.0  # between the stop of a context and the end of SparkSession.stop()
WAIT_S = 0.05  # after which a waiting statement looks whether it was cancelled

STARTING, RUNNING, RESTARTING = "starting", "running", "restarting"
NOT_STARTED, FAILED, ENDED = "not started", "failed", "ended"

_lives = itertools.count(1)
log = logging.getLogger("headwater.spark")


@dataclass(frozen=True)
class SparkStatus:
    """How Spark is: its state and since when, how often it was started again, and why it last ended."""

    state: str = NOT_STARTED
    since: float | None = None
    restarts: int = 0
    last_end: str | None = None
    next_start: float | None = None  # while it waits to be started again

    @property
    def ready(self) -> bool:
        """Whether statements can run on it now."""
        return self.state == RUNNING


class SparkProcess:
    """The one Spark of this process, over all its lives."""

    def __init__(
        self, settings: Settings, session: SparkSession | None, listener: Callable[[], None]
    ) -> None:
        """`session`: one that the program made; None to start our own."""
        self.settings = settings
        self.owned = session is None
        self.master = settings.text("master") if session is None else master_of(session)
        self.gateway: Gateway | None = None
        self.session: SparkSession | None = None
        self.error: Error | None = None  # once there is no Spark any more, and none to come
        self.life = 0  # the number of its session: what belongs to an earlier one is void
        self.status = SparkStatus(STARTING, time.time())
        self.stopping = False
        self._changed = threading.Condition()
        self._seats = 0  # slots that factories have
        self._listeners = [listener]
        self._restarts = Restarts()
        if session is not None:
            self._runs(session)
        threading.Thread(target=self._main, name="headwater-spark", daemon=True).start()

    # For those who use it

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Calls back, from another thread, whenever the state has changed."""
        with self._changed:
            self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Calls no more; the last one of a session that is not ours lets go of it."""
        with self._changed:
            self._listeners = [known for known in self._listeners if known != listener]

    def wait(
        self, timeout_s: float, check: Callable[[], None] = lambda: None
    ) -> tuple[SparkSession, int]:
        """The session and its life, as soon as it runs; `check` may raise while that takes."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while self.session is None:
                if self.error is not None:
                    raise self.error
                if time.monotonic() > until or self._pause_left() > timeout_s:
                    raise self._late(timeout_s)
                self._changed.wait(WAIT_S)
                check()
            return self.session, self.life

    def take_seats(self, wanted: int) -> int:
        """Slots for long-running tasks; as many as there are, so that other jobs have theirs."""
        with self._changed:
            if self.session is None and wanted > 0:
                return 0
            if wanted > 0:
                assert self.session is not None
                slots = self.session.sparkContext.defaultParallelism
                room = factory_slots(self.settings) if self.owned_local else slots // 2
                wanted = min(wanted, max(room - self._seats, 0))
            self._seats += wanted
            return wanted

    @property
    def owned_local(self) -> bool:
        """Whether it is our own, on this machine: then slots for factories are added."""
        return self.owned and self.master.startswith("local")

    def wait_settled(self, timeout_s: float) -> bool:
        """Whether it runs, or never will, within that time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self.session is not None or self.error is not None, timeout_s
            )

    def not_running(self) -> SparkEndedError | None:
        """The error for what will not wait; None if Spark runs or there is none to wait for."""
        with self._changed:
            if self.session is not None or self.error is not None:
                return None
            return SparkEndedError(f"Spark is {self.status.state}")

    def ended_since(self, life: int, error: BaseException) -> bool:
        """Whether a run of a life failed because Spark has ended; gives a dying process a moment."""
        with self._changed:
            if pyspark_state.looks_lost(error):
                self._changed.wait_for(lambda: self._is_over(life), LOST_PATIENCE_S)
            return self._is_over(life)

    def _is_over(self, life: int) -> bool:
        return self.life != life or self.session is None

    def ended_error(self) -> Error:
        """What a run is told that Spark's end has stopped."""
        with self._changed:
            if self.error is not None:
                return self.error
            return SparkEndedError(
                "Spark ended while the statement ran",
                detail=self.status.last_end,
                hint="it is started again by itself; nothing acknowledged is lost",
            )

    def _pause_left(self) -> float:
        upcoming = self.status.next_start
        return 0.0 if upcoming is None else upcoming - time.time()

    def _late(self, timeout_s: float) -> KernelError:
        status = self.status
        if status.state == STARTING:
            return KernelError(
                f"Spark did not start within {timeout_s:g} s",
                hint="raise start_timeout_s, or see what headwater doctor says",
            )
        wait = max(self._pause_left(), 0.0)
        return SparkEndedError(
            f"Spark has ended and is started again in {wait:.0f} s",
            detail=status.last_end,
            hint="headwater.spark says why; spark_restarts bounds how often it is started",
        )

    def new_session(self, root: SparkSession) -> SparkSession:
        """A session of our own beside the root, with settings of its own."""
        made = root.newSession()
        if not self.owned:  # ours has them from its start
            for name, value in session_settings(self.settings, self.master).items():
                if name.startswith("spark.hadoop.") or made.conf.isModifiable(name):
                    made.conf.set(name, value)
        return made

    # Its life

    def _main(self) -> None:
        while not self.stopping:
            why = self._lived()
            if why is None or not self._ended(why):
                return

    def _lived(self) -> str | None:
        """One life, from start to end: how it ended; None if there is nothing more to do."""
        failure = self._started() if self.session is None else None
        if failure is None:
            return self._watched()
        if self.life == 0:
            self._settle(FAILED, failure, None)
            return None
        return f"it could not be started again: {failure.message}"

    def _started(self) -> Error | None:
        """Starts a Java process and a session; what went wrong."""
        try:
            session = self._session()
        except Exception as error:  # PySpark raises whatever Java threw; the user gets one error
            failure = error if isinstance(error, Error) else self._start_failure(error)
            self._clear()
            return failure
        again = self.life > 0
        self._runs(session)
        if again:
            log.warning("Spark runs again")
        return None

    def _runs(self, session: SparkSession) -> None:
        with self._changed:
            restarts = self.status.restarts + (1 if self.life else 0)
            self.session, self.life = session, next(_lives)
            self.status = SparkStatus(RUNNING, time.time(), restarts, self.status.last_end)
        self._tell()

    def _settle(self, state: str, error: Error, why: str | None) -> None:
        """No Spark any more, and none to come."""
        with self._changed:
            self.session, self.error = None, error
            self.status = SparkStatus(state, time.time(), self.status.restarts, why)
        self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def _watched(self) -> str | None:
        """Waits for the end of Spark, and says how it ended; None if nobody needs to know."""
        session = self.session
        assert session is not None
        process = self.gateway.process if self.gateway else pyspark_state.java_process(session)
        end = EndOf(process) if process is not None else None
        try:
            while not self._over(session, end):
                if not self.owned and not self._listeners and self._let_go():
                    return None
        finally:
            if end is not None:
                end.close()
        if self.stopping:
            return None
        if process is None or process.returncode is None:
            self._let_stop(session)
            return "its context was stopped"
        return f"exit code {process.returncode}"

    def _let_stop(self, session: SparkSession) -> None:
        """Waits for whoever stops the session: that asks the Java process some more."""
        until = time.monotonic() + STOP_PATIENCE_S
        while pyspark_state.is_being_stopped(session) and time.monotonic() < until:
            time.sleep(WAIT_S)

    def _over(self, session: SparkSession, end: EndOf | None) -> bool:
        if end is None:
            time.sleep(LOOK_S)
        ended = end is not None and end.wait(LOOK_S)
        return ended or pyspark_state.is_stopped(session)

    def _let_go(self) -> bool:
        """If no open database uses it any more, the next one looks anew."""
        global _process
        with _lock:
            unused = not self._listeners
            if unused and _process is self:
                _process = None
            return unused

    def _ended(self, why: str) -> bool:
        """Tells everybody, and waits until it is time to start again; False if that is not to be."""
        if not self.owned:
            log.warning("the program's own Spark session has ended: %s", why)
            self._settle(ENDED, not_ours(why), why)
            return False
        if self._let_go():  # no database is open: the next one starts another
            self._clear()
            self._settle(ENDED, _given_up(why), why)
            return False
        limit = self.settings.integer("spark_restarts")
        longest_s = self.settings.number("spark_restart_pause_s")
        pause = self._restarts.pause_after_end(time.monotonic(), limit, longest_s)
        self._say_ended(why, pause)
        self._clear()
        if pause is None:
            self._settle(ENDED, _given_up(why), why)
            return False
        with self._changed:
            self._changed.wait_for(lambda: self.stopping, pause)
        return not self.stopping

    def _say_ended(self, why: str, pause: float | None) -> None:
        printed = self.gateway.last_error() if self.gateway else None
        said = why if printed is None else f"{why}: {printed}"
        again = "spark_restarts = 0" if pause is None else f"it is started again in {pause:.2g} s"
        log.warning("Spark has ended (%s); %s", said, again)
        now = time.time()
        state, next_start = (ENDED, None) if pause is None else (RESTARTING, now + pause)
        with self._changed:
            self.session = None
            self.status = SparkStatus(state, now, self.status.restarts, why, next_start)
        self._tell()

    def _clear(self) -> None:
        """Ends what is left of our Java process, and has PySpark forget it."""
        gateway, self.gateway = self.gateway, None
        if gateway is not None:
            gateway.stop()
            pyspark_state.forget(gateway.port)

    # Starting

    def _session(self) -> SparkSession:
        settings, first = self.settings, self.life == 0
        _check_master(self.master)
        java = find_java()
        memory_mb = settings.integer("driver_memory_mb") or default_memory_mb()
        confs = spark_settings(settings)
        cache = aot.flags(java, memory_mb) if settings.flag("aot_cache") else ()
        master = local_master(self.master, factory_slots(settings))
        gateway = start_gateway(
            java, memory_mb=memory_mb, master=master, spark_settings=confs, extra_flags=cache
        )
        self.gateway = gateway
        if first:
            atexit.register(_stop_at_exit, self)
        from pyspark.sql import SparkSession

        # PySpark prints every error as a JSON line on standard error; ours reach the user instead.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        gateway.wait_until_listening(settings.number("start_timeout_s"))
        callers = pyspark_state.running_session()
        if callers is not None:  # the program was faster than we: its session is used
            gateway.stop()
            self.gateway, self.owned = None, False
            self.master = master_of(callers)
            return callers
        with gateway.announced():
            builder = SparkSession.builder.master(master).appName("headwater")
            for name, value in confs.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
        pyspark_state.hush(session)
        if first and settings.flag("aot_cache") and not cache:
            _train_later(java, memory_mb)
        return session

    def _start_failure(self, error: Exception) -> KernelError:
        gateway = self.gateway
        if gateway is not None and gateway.process.poll() is not None:
            return gateway.failure("the Java process for Spark ended while it started")
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return KernelError(
            f"Spark could not start with master {self.master}",
            detail=first,
            hint="headwater doctor checks the machine; the master may be wrong or unreachable",
        )


_lock = threading.Lock()
_process: SparkProcess | None = None


def spark_process(
    settings: Settings, listener: Callable[[], None], given: SparkSession | None = None
) -> SparkProcess:
    """The Spark of this process: the one that runs, else the program's own, else one is started.

    `listener`: called back when its state changes. `given`: the session that the program wants to be used.
    """
    global _process
    with _lock:
        if given is not None:
            _check_usable(given)
        if _process is not None and _process.error is None:
            _check_master_of(_process.master, settings)
            _process.add_listener(listener)
            return _process
        session = given if given is not None else pyspark_state.running_session()
        if session is not None:
            _check_master_of(master_of(session), settings)
        _process = SparkProcess(settings, session, listener)
        return _process


def _check_usable(session: SparkSession) -> None:
    if not type(session).__module__.startswith("pyspark.sql.session"):
        raise NotSupportedError(
            "a Spark Connect session cannot be used",
            hint="give a session of the same process: SparkSession.builder.master(…).getOrCreate()",
        )
    if pyspark_state.is_stopped(session):
        raise KernelError("the Spark session was stopped", sqlstate="55000", hint="make another")


def _check_master_of(master: str, settings: Settings) -> None:
    wanted = settings.text("master")
    if "master" in settings.explicit and wanted != master:
        raise KernelError(
            f"this process already runs Spark with master {master}",
            sqlstate="55006",
            hint=f"connect with master={master!r}, or use another process for {wanted}",
        )


def not_ours(why: str) -> KernelError:
    """What is told once the session of the program has ended."""
    return KernelError(
        "the Spark session of the program has ended",
        detail=why,
        hint="make another: the next statement uses it; we do not start a session that is not ours",
    )


def _given_up(why: str) -> KernelError:
    return KernelError(
        "Spark has ended",
        detail=why,
        hint="nothing acknowledged is lost; start the program again, or set spark_restarts",
    )


def _train_later(java: Java, memory_mb: int) -> None:
    """Makes the class cache when this process ends, or after a minute if it goes on."""
    once = threading.Lock()

    def train() -> None:
        if once.acquire(blocking=False):
            aot.train_in_background(java, memory_mb)

    later = threading.Timer(TRAINING_DELAY_S, train)
    later.daemon = True
    later.start()
    atexit.register(train)


def _check_master(master: str) -> None:
    """Fails at once where a standalone master cannot be reached; Spark itself tries for a minute."""
    if not master.startswith("spark://"):
        return
    last: OSError | None = None
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return
        except (OSError, ValueError) as error:
            last = error if isinstance(error, OSError) else OSError(str(error))
    raise KernelError(
        f"the Spark master {master} cannot be reached",
        sqlstate="08001",
        detail=str(last),
        hint="check the address and that the master runs, or leave master out to run locally",
    )


def _stop_at_exit(process: SparkProcess) -> None:
    process.stopping = True
    gateway = process.gateway
    if gateway is None:
        return
    _hush()
    local = process.master.startswith("local")
    if not local and process.session is not None and gateway.process.poll() is None:
        with contextlib.suppress(Exception):  # the process is ending; the cluster frees the rest
            process.session.stop()
    gateway.stop(patience_s=0.0 if local else 5.0)
    shutil.rmtree(gateway.folder, ignore_errors=True)


def _hush() -> None:
    """Keeps PySpark and py4j from printing stack traces about a Java process of ours that ended."""
    # The starting thread may be importing PySpark at this moment: take it only if it is there.
    server = getattr(sys.modules.get("pyspark.accumulators"), "AccumulatorTCPServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    pyspark_state.ignore_py4j()
