"""How long a test waits for what must happen.

A wait ends when what it waits for has happened. The bound only ends a run that hangs: it is far more than a
busy machine needs, it is the same everywhere, and nothing that is tested may depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 120.0


def until(done: Callable[[], bool], what: str = "it did not come to that") -> None:
    """Waits for something that nothing announces."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.005)  # not a wait for progress of ours: nothing announces it
