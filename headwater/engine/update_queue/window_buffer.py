"""A key's rows in contiguous blocks: appended at the end, dropped or handed out at the front.

Owns: which blocks a buffer has (UpStream §7.2, "FLCZ") and the blocks that are free meanwhile.
Must never: know of windows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.engine.update_queue.store import Cells, PagedRowStore
from headwater.fold.columns import Slots


class Blocks:
    """Blocks of a row store, handed out one at a time; freed ones are given back in batches."""

    def __init__(self, store: PagedRowStore, block_rows: int) -> None:
        self._store = store
        self.block_rows = block_rows
        self._owners: list[WindowBuffer] = []
        self._free: list[int] = []

    def take(self, owner: WindowBuffer) -> int:
        """A block for a buffer."""
        if self._free:
            block = self._free.pop()
            self._owners[block] = owner
            return block
        self._owners.append(owner)
        return int(self._store.allocate(1)[0])

    def free(self, block: int) -> None:
        """A buffer no longer needs a block; its memory stays until `give_back`."""
        self._free.append(block)

    def give_back(self) -> None:
        """Return free blocks; others move into their places."""
        if not self._free:
            return
        sources, targets = self._store.free(np.array(self._free))
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            owner = self._owners[source]
            owner.move(source, target)
            self._owners[target] = owner
        del self._owners[self._store.block_count :]
        self._free.clear()

    def write(self, places: list[int], cells: list[Cells]) -> None:
        """Put rows at places; of several rows for one place the last stays."""
        self._store.write(np.array(places, np.int64), cells)

    def read(self, places: Slots) -> pa.Table:
        """Rows at places."""
        return self._store.read(places)


class WindowBuffer:
    """Rows of one key in the order of their times."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._own: list[int] = []
        self._begin = 0  # of the first row, in the first block
        self.times: list[int] = []

    def __len__(self) -> int:
        return len(self.times)

    def append(self, t: int) -> int:
        """Room for one more row; gives its place."""
        size = self._blocks.block_rows
        block, offset = divmod(self._begin + len(self.times), size)
        if block == len(self._own):
            self._own.append(self._blocks.take(self))
        self.times.append(t)
        return self._own[block] * size + offset

    def drop(self, count: int) -> None:
        """Forget rows at the front."""
        del self.times[:count]
        passed, self._begin = divmod(self._begin + count, self._blocks.block_rows)
        if not self.times:
            passed, self._begin = len(self._own), 0
        for block in self._own[:passed]:
            self._blocks.free(block)
        del self._own[:passed]

    def places(self, count: int) -> Slots:
        """Where the first rows are."""
        size = self._blocks.block_rows
        every = np.array(self._own, np.int64)[:, None] * size + np.arange(size)
        return every.reshape(-1)[self._begin : self._begin + count]

    def move(self, source: int, target: int) -> None:
        """One of the blocks is elsewhere now."""
        self._own[self._own.index(source)] = target
