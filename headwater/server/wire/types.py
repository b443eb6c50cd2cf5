"""Arrow types ⇄ PostgreSQL types.

Owns the numbers (OIDs), names and sizes of the PostgreSQL types that clients meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.sql.types import is_list

NUMERIC_HEAD = 4  # what a numeric's modifier is offset by


@dataclass(frozen=True)
class PgType:
    """A type of PostgreSQL's."""

    name: str
    oid: int
    size: int
    category: str
    array: int  # the OID of its array type, 0 for none
    sql: str  # as the SQL standard spells it


SIMPLE = tuple(
    PgType(*row)
    for row in (
        ("bool", 16, 1, "B", 1000, "boolean"),
        ("bytea", 17, -1, "U", 1001, "bytea"),
        ("char", 18, 1, "Z", 1002, '"char"'),
        ("name", 19, 64, "S", 1003, "name"),
        ("int8", 20, 8, "N", 1016, "bigint"),
        ("int2", 21, 2, "N", 1005, "smallint"),
        ("int2vector", 22, -1, "A", 1006, "int2vector"),
        ("int4", 23, 4, "N", 1007, "integer"),
        ("regproc", 24, 4, "N", 1008, "regproc"),
        ("text", 25, -1, "S", 1009, "text"),
        ("oid", 26, 4, "N", 1028, "oid"),
        ("oidvector", 30, -1, "A", 1013, "oidvector"),
        ("json", 114, -1, "U", 199, "json"),
        ("float4", 700, 4, "N", 1021, "real"),
        ("float8", 701, 8, "N", 1022, "double precision"),
        ("unknown", 705, -2, "X", 0, "unknown"),
        ("bpchar", 1042, -1, "S", 1014, "character"),
        ("varchar", 1043, -1, "S", 1015, "character varying"),
        ("date", 1082, 4, "D", 1182, "date"),
        ("time", 1083, 8, "D", 1183, "time without time zone"),
        ("timestamp", 1114, 8, "D", 1115, "timestamp without time zone"),
        ("timestamptz", 1184, 8, "D", 1185, "timestamp with time zone"),
        ("interval", 1186, 16, "T", 1187, "interval"),
        ("numeric", 1700, -1, "N", 1231, "numeric"),
        ("regclass", 2205, 4, "N", 2210, "regclass"),
        ("regtype", 2206, 4, "N", 2211, "regtype"),
        ("uuid", 2950, 16, "U", 2951, "uuid"),
        ("jsonb", 3802, -1, "U", 3807, "jsonb"),
    )
)
BY_NAME = {t.name: t for t in SIMPLE}
ARRAYS = {
    t.array: PgType(f"_{t.name}", t.array, -1, "A", 0, f"{t.sql}[]") for t in SIMPLE if t.array
}
BY_OID = {t.oid: t for t in SIMPLE} | ARRAYS
ELEMENTS = {t.array: t for t in SIMPLE if t.array}
SPELLINGS = {t.sql: t for t in SIMPLE} | {
    "boolean": BY_NAME["bool"],
    "int": BY_NAME["int4"],
    "float": BY_NAME["float8"],
    "decimal": BY_NAME["numeric"],
    "string": BY_NAME["text"],
    "double": BY_NAME["float8"],
    "timestamp": BY_NAME["timestamp"],
    "timestamp_ntz": BY_NAME["timestamp"],
    "timestamp_ltz": BY_NAME["timestamptz"],
    "binary": BY_NAME["bytea"],
    "tinyint": BY_NAME["int2"],
    "time": BY_NAME["time"],
}
_ARROW = {
    pa.bool_(): "bool",
    pa.int8(): "int2",
    pa.int16(): "int2",
    pa.int32(): "int4",
    pa.int64(): "int8",
    pa.uint8(): "int2",
    pa.uint16(): "int4",
    pa.uint32(): "int8",
    pa.uint64(): "numeric",
    pa.float16(): "float4",
    pa.float32(): "float4",
    pa.float64(): "float8",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.string_view(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
    pa.binary_view(): "bytea",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.null(): "text",
    pa.month_day_nano_interval(): "interval",
}


def pg_type(type_: pa.DataType) -> PgType:
    """The PostgreSQL type in which values of an Arrow type are sent; json for what has none."""
    found = _ARROW.get(type_)
    if found is not None:
        return BY_NAME[found]
    if pa.types.is_timestamp(type_):
        return BY_NAME["timestamp" if type_.tz is None else "timestamptz"]
    if pa.types.is_decimal(type_):
        return BY_NAME["numeric"]
    if pa.types.is_time(type_):
        return BY_NAME["time"]
    if pa.types.is_duration(type_) or pa.types.is_interval(type_):
        return BY_NAME["interval"]
    if pa.types.is_dictionary(type_):
        return pg_type(type_.value_type)
    if pa.types.is_fixed_size_binary(type_):
        return BY_NAME["bytea"]
    if is_list(type_) and not pa.types.is_nested(type_.value_type):
        return ARRAYS[pg_type(type_.value_type).array]
    return BY_NAME["json"]


def modifier(type_: pa.DataType) -> int:
    """The type's modifier: precision and scale of a decimal, -1 for everything else."""
    if pa.types.is_decimal(type_):
        return ((type_.precision << 16) | (type_.scale & 0x7FF)) + NUMERIC_HEAD
    return -1


def spelled(words: str) -> PgType | None:
    """The type of a name as people write it, in SQL's or PostgreSQL's spelling."""
    lower = " ".join(words.lower().split())
    base = lower.partition("(")[0].strip()
    return BY_NAME.get(base) or SPELLINGS.get(base)


def shown(oid: int, type_modifier: int | None = None) -> str:
    """What format_type() says: the SQL name, with precision and scale."""
    found = BY_OID.get(oid)
    if found is None:
        return "???" if oid else "-"
    if oid == BY_NAME["numeric"].oid and type_modifier is not None and type_modifier >= 0:
        number = type_modifier - NUMERIC_HEAD
        return f"numeric({number >> 16},{number & 0x7FF})"
    if oid == BY_NAME["varchar"].oid and type_modifier is not None and type_modifier >= 0:
        return f"character varying({type_modifier - NUMERIC_HEAD})"
    return found.sql
