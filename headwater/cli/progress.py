"""The line that shows that a long statement is still running.

Written to stderr, and only if that is a terminal; cleared before anything else is written. It
must never start a thread: whoever waits for the statement calls `tick`.
"""

from __future__ import annotations

from typing import TextIO

from headwater.cli.output import duration

SHOW_AFTER_S = 0.5
TICK_S = 0.1
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_FRAMES = "|/-\\"
CLEAR = "\r\x1b[2K"


def line(elapsed_s: float, spark_ready: bool, cancelling: bool, frames: str = FRAMES) -> str:
    """What the progress line says after so much time."""
    frame = frames[int(elapsed_s / TICK_S) % len(frames)]
    if cancelling:
        return f"{frame} cancelling … (Ctrl-C again leaves)"
    what = "running" if spark_ready else "starting Spark"
    return f"{frame} {what} … {_elapsed(elapsed_s)} (Ctrl-C cancels)"


def _elapsed(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)


class ShellProgress:
    """The progress line of one stream."""

    def __init__(self, stream: TextIO, enabled: bool | None = None) -> None:
        self._stream = stream
        self._enabled = stream.isatty() if enabled is None else enabled
        self._shown = False
        wide = (stream.encoding or "").lower().startswith("utf")
        self._frames = FRAMES if wide else PLAIN_FRAMES

    def tick(self, elapsed_s: float, spark_ready: bool, cancelling: bool = False) -> None:
        """Draws the line anew, once the statement has taken long enough."""
        if not self._enabled or (elapsed_s < SHOW_AFTER_S and not cancelling):
            return
        text = line(elapsed_s, spark_ready, cancelling, self._frames)
        if self._frames is PLAIN_FRAMES:
            text = text.replace("…", "...")
        self._stream.write(f"{CLEAR}\x1b[2m{text}\x1b[0m")
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            self._stream.write(CLEAR)
            self._stream.flush()
            self._shown = False
