"""What a sink writes to: the one interface of all kinds.

A target keeps how far the sink is together with what was written, so that after a failure or a restart
nothing is written twice or left out. Must never: say that a batch is written before it is durable there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.connectors.manager import safe_name
from headwater.errors import StorageError


@dataclass(frozen=True)
class SinkProgress:
    """How far a sink is: the token of the last result that was written, and the rows in all."""

    token: str
    row_count: int


@dataclass(frozen=True)
class SinkBatch:
    """The rows of some results that are written together; there may be none."""

    rows: pa.Table
    position: int  # of the last result
    progress: SinkProgress


@dataclass(frozen=True)
class SinkName:
    """Whose rows they are: the key is never given twice, unlike the name."""

    name: str
    key: str

    @property
    def plain(self) -> str:
        """The name and the start of the key, safe in file names."""
        return f"{safe_name(self.name)}-{self.key[:8]}"


class Target(Protocol):
    """One run of a sink's outside; after an error it is closed, and another one is made."""

    def open(self, schema: pa.Schema) -> SinkProgress | None:
        """Connects; how far the sink is, None if it has written nothing yet."""

    def write(self, batch: SinkBatch) -> None:
        """Stores rows and progress together; both are durable when this returns."""

    def interrupt(self) -> None:
        """Ends a write that takes too long; called by another thread."""

    def close(self) -> None:
        """Lets go of connections and files."""


def write_error(message: str, error: Exception) -> StorageError:
    """What is shown of a failure outside."""
    return StorageError(message, detail=str(error).strip() or type(error).__name__)
