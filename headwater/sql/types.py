"""SQL types and their Arrow and Delta forms.

A table column has one of the types that Delta can store. Any other type of Spark's (TIME,
INTERVAL, VARIANT, …) may be used inside queries and is refused in DDL. Timestamps are
microseconds in UTC.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeGuard

import pyarrow as pa

from headwater.errors import NotSupportedError

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

SIMPLE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
ALIASES = {
    "BOOL": "BOOLEAN",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
_NAMES = {type_: name for name, type_ in SIMPLE.items()}


def simple(name: str) -> pa.DataType | None:
    """The Arrow type of a type name without parameters, or None."""
    upper = name.upper()
    return SIMPLE.get(ALIASES.get(upper, upper))


def name_of(type_: pa.DataType) -> str:
    """The SQL text of a type, as DDL and DESCRIBE show it."""
    if type_ in _NAMES:
        return _NAMES[type_]
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP_NTZ" if type_.tz is None else "TIMESTAMP"
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "STRING"
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return "BINARY"
    if pa.types.is_map(type_):
        return f"MAP<{name_of(type_.key_type)}, {name_of(type_.item_type)}>"
    if is_list(type_):
        return f"ARRAY<{name_of(type_.value_type)}>"
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        inner = ", ".join(
            f"{quoted(f.name)}: {name_of(f.type)}{'' if f.nullable else ' NOT NULL'}"
            for f in fields
        )
        return f"STRUCT<{inner}>"
    if pa.types.is_null(type_):
        return "VOID"
    return str(type_).upper()


def is_list(type_: pa.DataType) -> TypeGuard[pa.ListType[pa.DataType]]:
    """Whether the type is a list of any Arrow flavour."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def quoted(name: str) -> str:
    """The name as SQL text, in backticks where it needs them."""
    plain = name.isascii() and name.isidentifier()
    return name if plain else "`" + name.replace("`", "``") + "`"


def canonical(type_: pa.DataType) -> pa.DataType:
    """The type in the flavour that tables and results use; NotSupportedError if Delta has none."""
    if type_ in _NAMES:
        return type_
    if pa.types.is_timestamp(type_):
        return TIMESTAMP_NTZ if type_.tz is None else TIMESTAMP
    if pa.types.is_date(type_):
        return pa.date32()
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_decimal(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    if pa.types.is_dictionary(type_):
        return canonical(type_.value_type)
    if pa.types.is_map(type_):
        item = pa.field("value", canonical(type_.item_type), type_.item_field.nullable)
        map_type: pa.DataType = pa.map_(canonical(type_.key_type), item)
        return map_type
    if is_list(type_) or pa.types.is_fixed_size_list(type_):
        return pa.list_(
            pa.field("element", canonical(type_.value_type), type_.value_field.nullable)
        )
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return pa.struct([pa.field(f.name, canonical(f.type), f.nullable) for f in fields])
    raise NotSupportedError(
        f"a table cannot store type {name_of(type_)}",
        hint="tables hold the types that Delta Lake stores; cast the value first",
    )


def result_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as results show it: nullable everywhere, one flavour per type."""
    return pa.schema([pa.field(f.name, result_type(f.type)) for f in schema])


@lru_cache(maxsize=256)
def result_type(type_: pa.DataType) -> pa.DataType:
    """The type as results show it, nested fields nullable; types that tables cannot store stay."""
    if pa.types.is_map(type_):
        return pa.map_(result_type(type_.key_type), result_type(type_.item_type))
    if is_list(type_) or pa.types.is_fixed_size_list(type_):
        return pa.list_(pa.field("element", result_type(type_.value_type)))
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return pa.struct([pa.field(f.name, result_type(f.type)) for f in fields])
    try:
        return canonical(type_)
    except NotSupportedError:
        return type_
