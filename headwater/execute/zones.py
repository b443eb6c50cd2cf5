"""The database around one view or query, in the time zone that was set when it was created.

Its text means the same for every row, whatever SET time_zone says later: what is computed here, by Spark,
at an insert, at a read or by VERIFY VIEW is in its own zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from headwater.execute.context import Context
from headwater.expression.terms import Terms
from headwater.kernel.relation import HeldTables, Relation
from headwater.storage.streaming.table import StreamingTable

BEFORE_ZONES = "UTC"  # of definitions that were stored without one


def stored_zone(saved: Mapping[str, Any]) -> str:
    """The time zone of a definition of the catalog."""
    return str(saved.get("time_zone", BEFORE_ZONES))


class WorldInZone:
    """What the engine needs of the database, with a time zone that stays."""

    def __init__(self, context: Context, time_zone: str) -> None:
        self._context, self._time_zone = context, time_zone
        self.settings, self.kernel = context.settings, context.kernel

    @property
    def time_zone(self) -> str:
        """How text becomes a timestamp and back."""
        return self._time_zone

    def stream(self, name: str) -> StreamingTable | None:
        """The streaming table, stream or materialized view of that name."""
        return self._context.stream(name)

    def held(self, identifiers: Iterable[str]) -> AbstractContextManager[HeldTables]:
        """The standard tables that names may mean, kept while inside."""
        return self._context.held(identifiers)

    def table_rows(self, relation: Relation) -> pa.Table:
        """All rows of a standard table at a version."""
        return self._context.table_rows(relation)

    def reads_tables(self, identifiers: Iterable[str]) -> bool:
        """Whether a text with these identifiers may read a standard table, itself or by a function."""
        return self._context.reads_tables(identifiers)

    def functions_in(self, identifiers: Iterable[str]) -> tuple[object, ...]:
        """The functions that a text with these identifiers calls, as they are now."""
        return self._context.functions_in(identifiers)

    def terms(self) -> Terms:
        """The names that users' functions took, and the zone."""
        return self._context.terms(self._time_zone)
