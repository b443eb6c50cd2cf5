"""How often a password may be wrong: a guesser is made to wait.

Owns the counts, in memory, bounded; one object for all listeners, or a guesser would have as many turns as
there are ports. The count is for a user from an address: nobody can lock out a user who comes from
elsewhere. While it is over the bound no answer tells whether a guess was right.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from headwater.errors import AccessError
from headwater.server.peers import neighbourhood

MOST_FAILURES = 20  # wrong passwords of one user from one address …
WINDOW_S = 60.0  # … within so long
REMEMBERED = 10_000  # users and addresses; the oldest are forgotten
LONGEST_NAME = (
    256  # characters of a name that are told apart: names that somebody makes up are bounded too
)
Key = tuple[str, str]  # where from, user


class ThrottledError(AccessError):
    """Too many wrong passwords; `wait_s` is how long nothing will be told."""

    default_sqlstate = "28000"

    def __init__(self, wait_s: float) -> None:
        super().__init__("too many wrong passwords", hint=f"try again in {wait_s:.0f} s")
        self.wait_s = wait_s


def key_of(address: str, user: str) -> Key:
    """Under which a user from an address is counted: as the catalog compares names."""
    return neighbourhood(address), user[:LONGEST_NAME].casefold()


class Attempts:
    """The wrong passwords of the last while; safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[Key, tuple[float, int]] = OrderedDict()  # since, how many

    def check(self, key: Key) -> None:
        """ThrottledError where there were too many; asked before a password is looked at."""
        with self._lock:
            self._check(key)

    def settle(self, key: Key, *, right: bool) -> None:
        """A password was looked at. ThrottledError, right or wrong, if others were too many meanwhile."""
        with self._lock:
            self._check(key)
            since, count = self._failures.pop(key, (self._clock(), 0))
            if right:
                return
            self._failures[key] = (since, count + 1)
            while len(self._failures) > REMEMBERED:
                self._failures.popitem(last=False)

    def _check(self, key: Key) -> None:
        since, count = self._failures.get(key, (0.0, 0))
        left = since + WINDOW_S - self._clock()
        if left <= 0:
            self._failures.pop(key, None)
        elif count >= MOST_FAILURES:
            raise ThrottledError(left)
