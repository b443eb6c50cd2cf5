"""A process that snapshots a large state and reads it back: `python -m tests.harness.large_snapshot`.

It prints a line of JSON: the bytes of the state, and what memory grew by at most meanwhile, for a snapshot
that is written beside and for its reading.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headwater.engine.snapshots import SnapshotFile, SnapshotKeeper

VECTORS, ENTRIES = 24, 1 << 20  # 192 MiB
SAMPLE_S = 0.001


class Vectors:
    """A state that is folded into in place, as groups are."""

    def __init__(self, vectors: list[Any] | None = None) -> None:
        self.vectors = vectors or []

    def state(self) -> dict[str, Any]:
        """What must be kept."""
        return {"vectors": self.vectors}

    def restore(self, state: dict[str, Any]) -> None:
        """Take it up again."""
        self.vectors = state["vectors"]


def memory_bytes() -> int:
    """What the process holds that no file stands for, one in memory neither."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def growth(work: Callable[[], Any]) -> int:
    """How many bytes more than before some work held at most."""
    before, peak, done = memory_bytes(), [0], threading.Event()

    def look() -> None:
        while not done.wait(SAMPLE_S):
            peak[0] = max(peak[0], memory_bytes())

    thread = threading.Thread(target=look, name="watch")
    thread.start()
    work()
    done.set()
    thread.join()
    return max(peak[0], memory_bytes()) - before


def main() -> None:
    """The whole life of the process."""
    with tempfile.TemporaryDirectory() as folder:
        keeper = SnapshotKeeper(SnapshotFile(Path(folder) / "1.snapshot"))
        mine = Vectors([np.full(ENTRIES, number) for number in range(VECTORS)])

        def keep() -> None:
            keeper.keep(mine.state(), {"place": 1}, keeper.stamp, beside=True)
            for vector in mine.vectors:
                vector += 1
            keeper.settle()

        written, restored = growth(keep), Vectors()
        read = growth(lambda: keeper.read(restored))
        assert all((v == n).all() for n, v in enumerate(restored.vectors))
        size = sum(vector.nbytes for vector in mine.vectors)
        print(json.dumps({"size": size, "written": written, "read": read}))


if __name__ == "__main__":
    main()
