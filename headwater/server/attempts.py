"""How often a password may be wrong: a guesser is made to wait.

Owns the counts, in memory, bounded. The count is for a user from an address: nobody can lock out a
user who comes from elsewhere. While it is over the bound nothing is compared, or a right guess would
still show.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from headwater.server.http.failure import HttpError

MOST_FAILURES = 20  # wrong passwords of one user from one address …
WINDOW_S = 60.0  # … within so long
REMEMBERED = 10_000  # users and addresses; the oldest are forgotten
Key = tuple[str, str]  # address, user


class Attempts:
    """The wrong passwords of the last while; safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[Key, tuple[float, int]] = OrderedDict()  # since, how many

    def check(self, key: Key) -> None:
        """Raises HttpError 429 where there were too many."""
        with self._lock:
            since, count = self._failures.get(key, (0.0, 0))
            left = since + WINDOW_S - self._clock()
            if left <= 0:
                self._failures.pop(key, None)
            elif count >= MOST_FAILURES:
                raise HttpError(
                    429,
                    "too many wrong passwords",
                    sqlstate="28000",
                    hint=f"try again in {left:.0f} s",
                )

    def failed(self, key: Key) -> None:
        """A password was wrong."""
        with self._lock:
            since, count = self._failures.pop(key, (self._clock(), 0))
            self._failures[key] = (since, count + 1)
            while len(self._failures) > REMEMBERED:
                self._failures.popitem(last=False)

    def passed(self, key: Key) -> None:
        """A password was right."""
        with self._lock:
            self._failures.pop(key, None)
