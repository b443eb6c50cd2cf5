"""How long the files stay that a DataFrame of the program reads.

Nobody can see whether a program still has a frame, or another one made of it. So files are held until the
database is closed, but of no more than a bounded number of frames: then those of the oldest go, and reading
it is Spark's error of a file that is not there, never another answer.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import ExitStack

from headwater.settings import Live, current


class HeldFrames:
    """What lets the files of each frame go, the oldest first."""

    def __init__(self, most: Live[int]) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: deque[ExitStack] = deque()

    def hold(self, files: ExitStack) -> None:
        """Holds the files of one more frame."""
        with self._lock:
            self._held.append(files)
            most = current(self._most)
            gone = [self._held.popleft() for _ in range(len(self._held) - most)]
        for oldest in gone:
            oldest.close()

    def close(self) -> None:
        """Lets all of them go."""
        with self._lock:
            gone = list(self._held)
            self._held.clear()
        for files in gone:
            files.close()
