"""The value indexes of one streaming table, and the sidecar they point into (ST9).

Built by upkeep, off the insert path. A block without an index file is scanned, so an index never
hides a row; a damaged file is forgotten and built again. Block ids are the blocks' paths.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.expression.predicate import Predicate
from headwater.settings import Live
from headwater.storage.sidecar import Sidecar
from headwater.storage.streaming.blocks import Block
from headwater.storage.value_index import ValueIndex, estimate, rows_for

SELECTIVE = 8  # an index is used for at most one in so many rows of a block
OPEN_FILES = 512


class TableIndexes:
    """All value indexes of one table."""

    def __init__(self, folder: Path, sidecar_bytes: Live[int]) -> None:
        self._folder = folder
        self._sidecar_bytes = sidecar_bytes
        self._lock = threading.Lock()
        self._building = threading.Lock()  # upkeep and whoever waits for it do no block twice
        self._indexes: dict[str, ValueIndex] = {}  # by the index's name
        self.sidecar: Sidecar | None = None  # blocks as Arrow files, if there is an index

    def add(self, name: str, number: int, column: str, method: str) -> None:
        """Takes in an index; its files are built by later rounds of upkeep."""
        index = ValueIndex(self._folder / f"index-{number}", column, method.upper())
        with self._lock:
            self._indexes[name.casefold()] = index
            if self.sidecar is None:
                self.sidecar = Sidecar(self._folder / "sidecar", self._sidecar_bytes, OPEN_FILES)

    def remove(self, name: str) -> None:
        """Removes an index with its files; the sidecar goes with the last one."""
        with self._lock:
            index = self._indexes.pop(name.casefold(), None)
            sidecar, last = self.sidecar, not self._indexes
            if last:
                self.sidecar = None
        if index is not None:
            index.close()
            index.drop_all()
        if last and sidecar is not None:
            sidecar.close()
            shutil.rmtree(self._folder / "sidecar", ignore_errors=True)

    def lag(self, name: str, blocks: Sequence[Block]) -> int:
        """How many blocks an index does not cover yet."""
        index = self._indexes.get(name.casefold())
        return 0 if index is None else index.lag([block.path for block in blocks])

    def largest_lag(self, blocks: Sequence[Block]) -> int:
        """How many blocks the index that is most behind does not cover yet."""
        paths = [block.path for block in blocks]
        return max((index.lag(paths) for index in list(self._indexes.values())), default=0)

    def build(self, blocks: Sequence[Block], read: Callable[[Block], pa.Table], most: int) -> int:
        """Indexes up to `most` blocks that lack a file, the newest first; how many were done."""
        with self._building:
            return self._build(blocks, read, most)

    def _build(self, blocks: Sequence[Block], read: Callable[[Block], pa.Table], most: int) -> int:
        indexes, sidecar = list(self._indexes.values()), self.sidecar
        if sidecar is not None:
            sidecar.fit()
        done = 0
        for block in reversed(blocks) if indexes else ():
            wanting = [index for index in indexes if not index.has(block.path)]
            if not wanting:
                continue
            rows = read(block)
            if sidecar is not None and not sidecar.has(block.path):
                sidecar.write(block.path, rows)  # first: an index says that its block is done
            for index in wanting:
                index.add(block.path, rows)
            done += 1
            if done >= most:
                break
        return done

    def forget(self, blocks: Sequence[Block]) -> None:
        """Drops the files of blocks that are gone."""
        for block in blocks:
            for index in list(self._indexes.values()):
                index.drop(block.path)
            if self.sidecar is not None:
                self.sidecar.drop(block.path)

    def keep_only(self, blocks: Sequence[Block]) -> None:
        """Drops files of blocks that no longer exist, left over from a crash."""
        paths = [block.path for block in blocks]
        for index in list(self._indexes.values()):
            index.keep_only(paths)

    def find_rows(self, block: Block, predicate: Predicate) -> np.ndarray[Any, Any] | None:
        """The rows of a block that may match; None: all of them."""
        usable = {}
        for index in list(self._indexes.values()):
            keys = index.keys(block.path)
            if keys is not None:
                usable[index.column] = keys
        if not usable or estimate(predicate, usable, block.row_count) * SELECTIVE > block.row_count:
            return None
        return rows_for(predicate, usable, block.row_count)

    def close(self) -> None:
        """Lets all files go."""
        for index in self._indexes.values():
            index.close()
        if self.sidecar is not None:
            self.sidecar.close()
