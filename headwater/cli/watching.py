"""`\\watch`: runs a statement again and again, and draws each result in the place of the last.

Ends by Ctrl-C, by an error, or after as many times as were asked for. Waits without holding
anything: the time between two runs is counted from the end of one to the start of the next.
"""

from __future__ import annotations

import threading
import time
from datetime import datetime

from headwater.cli.grid import DIM
from headwater.cli.progress import TICK_S
from headwater.cli.running import Interrupted, interrupts
from headwater.cli.session import ShellSession

CLEAR_SCREEN = "\x1b[H\x1b[2J\x1b[3J"


def watch(session: ShellSession, text: str, every_s: float, times: int | None = None) -> None:
    """Runs the text every so many seconds; None: until Ctrl-C."""
    stopped = threading.Event()
    done, presses = 0, session.runner.press_count
    with interrupts(stopped.set):
        while not stopped.is_set():
            _announce(session, every_s)
            try:
                session.run_sql(text)
            except Interrupted:
                return
            done += 1
            if session.runner.press_count > presses or done == times:
                return
            if _waited(stopped, every_s) and session.preferences.interactive:
                session.tell("")  # the terminal has written ^C


def _waited(stopped: threading.Event, seconds: float) -> bool:
    """Whether it was stopped meanwhile; in steps, as a signal just before a wait does not end that wait."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if stopped.wait(min(left, TICK_S)):
            return True
    return stopped.is_set()


def _announce(session: ShellSession, every_s: float) -> None:
    """A line above the result, at the top of an empty screen where there is one."""
    look = session.look()
    clear = CLEAR_SCREEN if session.preferences.interactive and look.colour else ""
    now = datetime.now().strftime("%H:%M:%S")
    session.tell(clear + look.styled(f"{now}, every {every_s:g} s; Ctrl-C ends", DIM))
