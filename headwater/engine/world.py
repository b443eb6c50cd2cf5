"""What the engine needs of the database around it, as small protocols: it is below `execute`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from headwater.errors import Error
from headwater.expression.terms import Terms
from headwater.kernel.kernel import Kernel, Work
from headwater.kernel.relation import HeldTables, Relation
from headwater.settings import Settings
from headwater.storage.streaming.table import StreamingTable


class World(Protocol):
    """The database around the engine."""

    settings: Settings
    kernel: Kernel

    @property
    def time_zone(self) -> str:
        """How text becomes a timestamp and back."""

    def stream(self, name: str) -> StreamingTable | None:
        """The streaming table, stream or materialized view of that name."""

    def held(self, identifiers: Iterable[str]) -> AbstractContextManager[HeldTables]:
        """The standard tables that names may mean, kept while inside."""

    def table_rows(self, relation: Relation) -> pa.Table:
        """All rows of a standard table at a version."""

    def reads_tables(self, identifiers: Iterable[str]) -> bool:
        """Whether a text with these identifiers may read a standard table, itself or by a function."""

    def functions_in(self, identifiers: Iterable[str]) -> tuple[object, ...]:
        """The functions that a text with these identifiers calls, as they are now."""

    def terms(self) -> Terms:
        """The names that users' functions took, and the time zone."""


def run_over(
    world: World,
    texts: Sequence[str],
    tables: Mapping[str, pa.Table],
    static: Mapping[str, Relation],
) -> list[pa.Table]:
    """Runs texts on Spark over staged rows and static tables."""
    staging = world.kernel.staging
    relations = {name: staging.stage(rows) for name, rows in tables.items()}
    try:
        zone = world.time_zone
        work = [Work(text, {**static, **relations}, time_zone=zone) for text in texts]
        return [world.kernel.run(one) for one in work]
    except Error as error:
        error.place = None  # Spark's place lies in a text that the user never saw
        raise
    finally:
        for relation in relations.values():
            staging.release(relation)
