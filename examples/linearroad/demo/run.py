"""`headwater demo`: a minute of Linear Road, live in the terminal.

A worker thread has the database, makes the application and reads its figures; a second one asks
questions about the past; the console's server shows the same in a browser; the main thread draws and
listens for Ctrl-C.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.live import Live

from headwater.cli.running import interrupts

from .figures import Figures
from .screen import (
    RoadState,
    ScreenQuestion,
    ScreenStep,
    line,
    question_line,
    screen,
    starting,
    summary,
)

if TYPE_CHECKING:
    from headwater.database import Database

    from .application import Application, Drive

SECONDS = 60.0  # with the start
GRACE_S = 120.0  # longer at most, where the start takes long: a slow machine sees it too
LEAST_S = 10.0  # of traffic, however long the start took
LOOK_S, TICK_S = 0.5, 0.05
SPARK_S = 30.0  # after which the first statement waits for it, or tells why it did not start
LINE_S = 5.0  # between two lines where there is no terminal
FIRST_QUESTION_S, NEXT_QUESTION_S = 8.0, 2.0
LEAVE_S = 15.0  # how long the database has to close
NEXT = "Next: [bold]headwater demo --tour[/bold], [bold]headwater sql ./data[/bold], docs/guide/."


def main(
    *,
    seconds: float | None = SECONDS,
    master: str | None = None,
    drive: Drive | None = None,
    console: Console | None = None,
    browser: bool = True,
    port: int | None = None,
) -> int:
    """Shows so many seconds of it, the start included; None: until Ctrl-C. 1 if nothing came in time.

    `browser`: in a browser too, at a port of this machine; while it is looked at there, it goes on.
    """
    out = console or Console(highlight=False)
    demo = Demo(seconds, drive, master, browser=browser, port=port)
    with interrupts(demo.stop):
        demo.start()
        try:
            redrawn = out.is_terminal and not out.is_dumb_terminal
            (_watch_screen if redrawn else _watch_lines)(demo, out)
        finally:
            demo.stop()
    state = demo.last_state
    if demo.error is None and state.reports:
        out.print(summary(state))
    elif demo.error is None:
        out.print("It ended before the first report; --seconds gives it longer.")
    if demo.address:
        out.print(f"It was at {demo.address}; --keep-running keeps it there.", soft_wrap=True)
    demo.leave()
    if demo.error is not None:
        raise demo.error
    out.print(NEXT)
    return 0 if state.reports or not demo.timed_out else 1


def _watch_screen(demo: Demo, out: Console) -> None:
    with Live(get_renderable=demo.picture, console=out, refresh_per_second=4):
        while not demo.over():
            demo.stopping.wait(LOOK_S)
        demo.stop()


def _watch_lines(demo: Demo, out: Console) -> None:
    lines = _Lines(demo, out)
    while not demo.over():
        demo.stopping.wait(LOOK_S)
        lines.tell()
    lines.tell()


class _Lines:
    """Prints what is new, for where there is no terminal."""

    def __init__(self, demo: Demo, out: Console) -> None:
        self._demo, self._out = demo, out
        self._steps = 0
        self._address = ""
        self._line_s = 0.0
        self._questions: set[ScreenQuestion] = set()

    def tell(self) -> None:
        """Steps and questions once each, and the figures now and then."""
        state, steps = self._demo.last_state, self._demo.steps
        if self._address != state.address:
            self._address = state.address
            self._say(f"in the browser: {state.address}")
        for step in steps[self._steps :]:
            self._say(f"{step.began_s:5.1f} s  {step.name}")
            self._steps += 1
        for question in state.questions:
            if question not in self._questions:
                self._questions.add(question)
                self._say(question_line(question))
        if state.reports and state.elapsed_s - self._line_s >= LINE_S:
            self._line_s = state.elapsed_s
            self._say(line(state))

    def _say(self, text: str) -> None:
        self._out.print(text, markup=False, soft_wrap=True)


class Demo:
    """One showing."""

    def __init__(
        self,
        seconds: float | None,
        drive: Drive | None,
        master: str | None,
        *,
        browser: bool = False,
        port: int | None = None,
    ) -> None:
        self._seconds, self._drive, self._master = seconds, drive, master
        self._browser, self._port = browser, port
        self._watchers: Callable[[], int] = lambda: 0
        self.address = ""  # of the browser's page
        self._started_s = time.time()
        self._ended_s: float | None = None
        self._flowing_s: float | None = None
        self._figures = Figures(RoadState(duration_s=seconds), self._started_s)
        self._cancel: Callable[[], None] = lambda: None
        self._worker = threading.Thread(target=self._work, name="headwater-demo", daemon=True)
        self.stopping = threading.Event()
        self.steps: list[ScreenStep] = []
        self.error: BaseException | None = None
        self.timed_out = False  # it ended by itself

    def start(self) -> None:
        """Begins, in the background."""
        self._worker.start()

    def stop(self) -> None:
        """Ends the showing; the figures stay as they are."""
        if self._ended_s is None:
            self._ended_s = time.time()
        self.stopping.set()

    def leave(self) -> None:
        """Waits until the database is closed."""
        self._cancel()
        self._worker.join(LEAVE_S)

    def over(self) -> bool:
        """Whether it is time to end."""
        if self.stopping.is_set() or self._seconds is None:
            return self.stopping.is_set()
        end, latest = self._started_s + self._seconds, self._started_s + self._seconds + GRACE_S
        if self._flowing_s is not None:
            latest = max(end, self._flowing_s + LEAST_S)
        self.timed_out = time.time() >= latest and not self._watchers()
        return self.timed_out

    @property
    def last_state(self) -> RoadState:
        """The figures now, or when it ended."""
        now = self._ended_s or time.time()
        found = self._figures.state(now)
        over = self._seconds is not None and now > self._started_s + self._seconds
        return replace(found, address=self.address, watched=over and self._watchers() > 0)

    def picture(self) -> RenderableType:
        """What a terminal shows now."""
        if self._flowing_s is None:
            return starting(time.time() - self._started_s, self.steps, self.address)
        return screen(self.last_state)

    def _failed(self, error: BaseException) -> None:
        """Keeps an error for the main thread; what was cancelled at the end is none."""
        if not self.stopping.is_set():
            self.error = error
            self.stop()

    def _work(self) -> None:
        try:
            self._open()
        except BaseException as error:
            self._failed(error)

    def _open(self) -> None:
        self._begin("loading Headwater")
        # Takes a moment, in which something is shown.
        from headwater.database import connect

        from .application import Application, Drive

        drive = self._drive or Drive()
        self._figures.drives(drive.speed)
        with connect(":memory:", master=self._master) as db, ExitStack() as beside:
            self._cancel = db.cancel
            if self._browser:
                self._show_in_browser(db, beside)
            self._wait_for_spark(db)
            if self.stopping.is_set():
                return
            application = Application(db, drive, self._figures)
            application.create(self._begin)
            application.start()
            self._begin("traffic flows")
            self._flowing_s = time.time()
            self._flow(application, db)

    def _show_in_browser(self, db: Database, beside: ExitStack) -> None:
        from .page import console, page_of

        def road() -> object:
            state, flows = self.last_state, self._flowing_s is not None
            return page_of(state, self._figures.accidents, self.steps, flowing=flows)

        try:
            shown = beside.enter_context(console(db, self._port, road))
        except OSError as error:
            self._begin(f"not in the browser: {error.strerror or error}")
            return
        self._watchers = lambda: shown.server.watchers
        self.address = f"http://{shown.host}:{shown.port}/#/road"

    def _wait_for_spark(self, db: Database) -> None:
        """A statement would wait as well, but Ctrl-C would not end that; nor would it be shown."""
        self._begin("Spark starts")
        until = time.time() + SPARK_S
        while not db.spark_ready and time.time() < until and not self.stopping.wait(TICK_S):
            pass

    def _begin(self, step: str) -> None:
        self.steps.append(ScreenStep(step, time.time() - self._started_s))

    def _flow(self, application: Application, db: Database) -> None:
        asking = threading.Thread(target=self._ask, args=[db], name="headwater-asks", daemon=True)
        asking.start()
        try:
            while not self.stopping.wait(LOOK_S):
                application.look()
        except BaseException as error:
            self._failed(error)
        finally:
            db.cancel()
            application.close()
            asking.join(LEAVE_S)

    def _ask(self, db: Database) -> None:
        from .questions import Questions

        questions, pause = Questions(db, lambda: self._figures.accidents), FIRST_QUESTION_S
        try:
            while not self.stopping.wait(pause):
                found = questions.next()
                if found is not None:
                    self._figures.asked(found)
                pause = NEXT_QUESTION_S
        except BaseException as error:
            self._failed(error)
