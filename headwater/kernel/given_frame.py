"""A DataFrame that the program hands in: what is one, its columns, and its rows as files.

It belongs to the program's session, so it is evaluated there, by its settings, once; whatever is done with
the rows then is done to the files, in a session of ours. Must never: collect its rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import Error, NotSupportedError
from headwater.kernel.failure import translate
from headwater.kernel.kernel import type_text
from headwater.kernel.relation import Relation
from headwater.sql.type_parser import parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def given_frame(rows: Any) -> DataFrame | None:
    """Rows as a DataFrame of Spark's, if that is what they are."""
    module = type(rows).__module__
    if module.startswith("pyspark.pandas") and hasattr(rows, "to_spark"):
        return given_frame(rows.to_spark())
    if not module.startswith("pyspark.sql") or type(rows).__name__ != "DataFrame":
        return None
    if ".connect" in module:
        raise NotSupportedError(
            "a DataFrame of Spark Connect cannot be used",
            hint="its rows can: frame.toArrow(); or use a session of this process",
        )
    return _without_void(rows)


def _without_void(frame: DataFrame) -> DataFrame:
    """The frame without columns that are NULL by their type: no file holds them, and a table has none."""
    typed = [f.name for f in frame.schema.fields if f.dataType.typeName() != "void"]
    if len(typed) == len(frame.columns):
        return frame
    return frame.select(*["`" + name.replace("`", "``") + "`" for name in typed])


def schema_of(frame: DataFrame) -> pa.Schema:
    """The columns."""
    fields = frame.schema.fields
    return pa.schema([pa.field(f.name, parse_type(type_text(f.dataType))) for f in fields])


def write_frame(frame: DataFrame, folder: Path) -> Relation:
    """Has Spark write a frame as files into a new folder."""
    if frame.isStreaming:
        raise NotSupportedError(
            "a streaming DataFrame has no end",
            hint="in foreachBatch each batch can be inserted, with batch_id=f'{query}/{number}'",
        )
    schema = schema_of(frame)
    try:
        frame.write.mode("error").parquet(str(folder))
    except Exception as error:
        raise error if isinstance(error, Error) else translate(error, "") from None
    return Relation(schema, tuple(map(str, sorted(folder.glob("*.parquet")))))
