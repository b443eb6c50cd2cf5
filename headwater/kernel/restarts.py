"""When Spark is started again after it ended: soon to begin with, then after growing pauses.

Owns the bound on how often an hour, and the pauses. Looks at no clock and starts nothing: the caller
passes the time in.
"""

from __future__ import annotations

from collections import deque

FIRST_PAUSE_S = 0.25
PERIOD_S = 3600.0


class Restarts:
    """The ends of the last hour, and what follows from them."""

    def __init__(self) -> None:
        self._ends: deque[float] = deque()

    def pause_after_end(self, now: float, most: int, longest_pause_s: float) -> float | None:
        """Spark ended now: how long to wait before it is started again; None if it is not.

        `most`: how often within an hour. After that the pause lasts until the hour allows one more.
        """
        self._ends.append(now)
        while self._ends[0] <= now - PERIOD_S:
            self._ends.popleft()
        if most == 0:
            return None
        count = len(self._ends)
        pause = min(FIRST_PAUSE_S * 2.0 ** (count - 1), longest_pause_s)
        if count <= most:
            return pause
        return max(self._ends[count - most - 1] + PERIOD_S - now, pause)
