"""The catalog as the planner of continuous queries sees it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.execute import system_tables
from headwater.execute.context import Context
from headwater.kernel.functions import PythonFunction
from headwater.plan.blocks import StateFunction
from headwater.plan.folds import StreamColumns
from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of
from headwater.storage.streaming.definition import Definition


def stream_columns(definition: Definition) -> StreamColumns:
    """What the planner must know of a table."""
    d = definition
    return StreamColumns(
        d.name,
        d.stored_schema,
        d.visible,
        d.time,
        d.time_type,
        d.kind,
        d.range_ticks,
        d.update_key,
        d.keeps_all,
    )


def described(schema: pa.Schema) -> list[list[str]]:
    """Columns as a definition of the catalog has them."""
    return [[field.name, name_of(field.type)] for field in schema]


def stored_columns(output: Sequence[tuple[str, str]]) -> pa.Schema:
    """The columns of a view as its definition has them."""
    return pa.schema([pa.field(name, parse_type(type_)) for name, type_ in output])


class CatalogTables:
    """What the planner asks of the catalog."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table, a stream or a materialized view."""
        table = self._context.stream(name)
        return None if table is None else stream_columns(table.definition)

    def standard(self, name: str) -> pa.Schema | None:
        """The columns of a standard table or of a continuous view."""
        item = self._context.find(name)
        if item is not None and item.kind == "view":
            output = item.definition.get("output")
            return None if output is None else stored_columns(output)
        self._context.check_sound(item)
        table = None if item is None else self._context.tables.get(item.id)
        return None if table is None else table.schema

    def kind(self, name: str) -> str | None:
        """What a name means: a kind of the catalog, "system table", or nothing."""
        if system_tables.is_one(name):
            return "system table"
        item = self._context.find(name)
        return None if item is None else item.kind

    def names(self) -> Sequence[str]:
        """All names that may stand in FROM."""
        return self._context.relation_names()

    def state_function(self, name: str) -> StateFunction | None:
        """A function with state, by its name in lower case."""
        found = self._context.functions.get(name)
        if not isinstance(found, PythonFunction) or found.state is None:
            return None
        return StateFunction(found.state, parse_type(found.returns))

    def is_aggregate(self, name: str) -> bool:
        """Whether a user's function is an aggregate, by its name in lower case."""
        found = self._context.functions.get(name)
        return found is not None and found.kind == "aggregate"
