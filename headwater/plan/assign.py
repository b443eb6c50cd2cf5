"""Storing a query's columns in a table's columns: which types go, and the casts that do it.

Spark's ANSI store assignment, with one addition: text may go into DATE and TIMESTAMP columns,
where a value that does not parse is an error (docs/decisions/0005-assignment.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.errors import BindError, Error
from headwater.sql.type_parser import parse_spark_type
from headwater.sql.types import is_list, name_of, quoted


def cast_text(expression: str, spark_type: str, field: pa.Field[pa.DataType]) -> str:
    """The expression as the column's type; BindError 42804 if its type may not be stored there."""
    if not assignable(spark_type, field.type):
        raise BindError(
            f"column {field.name} is {name_of(field.type)} but the expression is {_shown(spark_type)}",
            sqlstate="42804",
            hint="use CAST(… AS …) if that is what you mean",
        )
    return f"CAST({expression} AS {name_of(field.type)})"


def _shown(spark_type: str) -> str:
    try:
        return name_of(parse_spark_type(spark_type))
    except Error:
        return spark_type.upper()


def assignable(spark_type: str, wanted: pa.DataType) -> bool:
    """Whether an expression of this type may be stored in a column."""
    if spark_type == "void":
        return True
    try:
        given = parse_spark_type(spark_type)
    except Error:
        return False
    return storable(given, wanted)


def storable(given: Any, wanted: Any) -> bool:
    """Whether a value of one type may be stored in a column of another."""
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_string(wanted):
        return not (pa.types.is_nested(given) or pa.types.is_binary(given))
    if _is_number(wanted):
        return _is_number(given)
    if pa.types.is_date(wanted) or pa.types.is_timestamp(wanted):
        return bool(
            pa.types.is_date(given) or pa.types.is_timestamp(given) or pa.types.is_string(given)
        )
    if pa.types.is_map(wanted):
        return bool(pa.types.is_map(given)) and (
            storable(given.key_type, wanted.key_type)
            and storable(given.item_type, wanted.item_type)
        )
    if is_list(wanted):
        return is_list(given) and storable(given.value_type, wanted.value_type)
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        if given.num_fields != wanted.num_fields:
            return False
        pairs = [(given.field(i).type, wanted.field(i).type) for i in range(given.num_fields)]
        return all(storable(g, w) for g, w in pairs)
    return False


def _is_number(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def insert_projection(
    types: Sequence[tuple[str, str]], targets: Sequence[pa.Field[pa.DataType]], schema: pa.Schema
) -> str:
    """The SELECT list that turns columns c0, c1, … of a query into rows of the table."""
    by_name = {
        field.name: cast_text(f"c{i}", type_, field)
        for i, ((_, type_), field) in enumerate(zip(types, targets, strict=True))
    }
    parts = []
    for field in schema:
        text = by_name.get(field.name, f"CAST(NULL AS {name_of(field.type)})")
        parts.append(f"{text} AS {quoted(field.name)}")
    return ", ".join(parts)
