"""What the engine needs of the database around it, as small protocols: it is below `execute`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.kernel.kernel import Kernel
from headwater.kernel.relation import Relation
from headwater.settings import Settings
from headwater.storage.streaming.table import StreamingTable


@dataclass(frozen=True)
class HeldTables:
    """Standard tables at one version each, for one evaluation."""

    relations: Mapping[str, Relation]
    versions: Mapping[str, int]

    def of(self, names: Iterable[str]) -> dict[str, Relation]:
        """Some of them."""
        return {name: self.relations[name] for name in names if name in self.relations}


class World(Protocol):
    """The database around the engine."""

    settings: Settings
    kernel: Kernel

    def stream(self, name: str) -> StreamingTable | None:
        """The streaming table, stream or materialized view of that name."""

    def held(self, identifiers: Iterable[str]) -> AbstractContextManager[HeldTables]:
        """The standard tables that names may mean, kept while inside."""

    def table_rows(self, relation: Relation) -> pa.Table:
        """All rows of a standard table at a version."""

    def function_names(self) -> frozenset[str]:
        """Functions that users made, in lower case."""
