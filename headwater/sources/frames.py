"""A streaming frame with the table's columns: matched by name, cast as an INSERT would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import BindError
from headwater.plan.assign import cast_text
from headwater.sql.types import name_of, quoted
from headwater.storage.streaming.definition import Definition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def spark_schema(schema: pa.Schema) -> str:
    """The columns as Spark's DDL text; NOT NULL is checked when rows are written."""
    return ", ".join(f"{_ticked(field.name)} {name_of(field.type)}" for field in schema)


def fitted(frame: DataFrame, definition: Definition) -> DataFrame:
    """The frame as rows of the table; columns that it lacks are NULL, its others are left out."""
    given = {f.name.casefold(): (f.name, f.dataType.simpleString()) for f in frame.schema.fields}
    parts = []
    for field in definition.schema:
        found = given.get(field.name.casefold())
        if found is None:
            _check_may_miss(definition, field, [name for name, _ in given.values()])
            parts.append(f"CAST(NULL AS {name_of(field.type)}) AS {quoted(field.name)}")
        else:
            name, type_ = found
            parts.append(f"{cast_text(_ticked(name), type_, field)} AS {quoted(field.name)}")
    return frame.selectExpr(*parts)


def _check_may_miss(definition: Definition, field: pa.Field[pa.DataType], given: list[str]) -> None:
    if field.nullable and field.name != definition.time_column:
        return
    raise BindError(
        f"the source has no column {field.name}",
        sqlstate="42703",
        detail="its columns: " + ", ".join(given),
        hint="columns are matched by name; spark sources take columns = 'x AS name, …'",
    )


def _ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
