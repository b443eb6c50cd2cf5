"""The stored side of a streaming table as those who follow it are told: blocks, and what they hold.

An image is told whole once and then as changes, in the order in which they came about. Rows that are in no
block yet are not part of it: those are in the log, after the record up to which the image holds everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headwater.storage.clock import ClockState, Mark
from headwater.storage.delta import DataFile
from headwater.storage.streaming.blocks import Block, BlockProgress, TableState, known_block


@dataclass(frozen=True)
class TableImage:
    """The blocks of a table at one moment."""

    version: int = 0
    sealed: TableState = field(default_factory=TableState)  # records up to its LSN are in blocks
    blocks: tuple[Block, ...] = ()
    unsealed: frozenset[str] = frozenset()  # blocks of sources that the log names
    generation: int = 0
    horizon: int | None = None
    let_go: int = 0

    @property
    def sealed_blocks(self) -> dict[str, int]:
        """By path: the size of each block that a commit holds."""
        return {b.path: b.size for b in self.blocks if b.path not in self.unsealed}

    def is_as(self, other: TableImage) -> bool:
        """Whether there is nothing to tell to one who knows another image of the same table."""
        mine, its = (
            replace(self, blocks=(), unsealed=frozenset()),
            replace(other, blocks=(), unsealed=frozenset()),
        )
        return mine == its

    def since(self, before: TableImage | None) -> dict[str, Any]:
        """What has changed, as plain data; since nothing, with the state that the log goes on from."""
        known = {} if before is None else before.sealed_blocks
        mine = self.sealed_blocks
        change: dict[str, Any] = {
            "version": self.version,
            "lsn": self.sealed.lsn,
            "added": [[path, size] for path, size in mine.items() if path not in known],
            "removed": [path for path in known if path not in mine],
            "generation": self.generation,
            "horizon": self.horizon,
            "let_go": self.let_go,
        }
        if before is None:
            change["state"] = state_to_json(self.sealed)
        return change


def blocks_of(added: list[list[Any]]) -> list[Block]:
    """The blocks that a change names."""
    return [known_block(DataFile(path, size, 0, {})) for path, size in added]


def state_to_json(state: TableState) -> dict[str, Any]:
    """A table's state as plain data."""
    return asdict(replace(state, progress=dict(state.progress)))


def state_from_json(saved: Mapping[str, Any]) -> TableState:
    """The state that `state_to_json` gave."""
    time = saved["time"]
    marks = {source: Mark(**mark) for source, mark in time["marks"].items()}
    clock = ClockState(**{**time, "marks": marks})
    progress = {source: BlockProgress(**p) for source, p in saved["progress"].items()}
    return TableState(**{**saved, "time": clock, "progress": progress})
