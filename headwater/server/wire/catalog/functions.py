"""PostgreSQL's functions about itself, as functions of SQLite.

Owns their meaning here. Arrays are texts such as `{a,b}`, booleans are 0 and 1.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater._version import __version__
from headwater.server.wire import types
from headwater.server.wire.commands import SERVER_VERSION
from headwater.server.wire.parameters import array_elements
from headwater.server.wire.values import array_text

SYSTEM = {
    "pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_database": 1262,
    "pg_authid": 1260, "pg_constraint": 2606, "pg_namespace": 2615, "pg_extension": 3079,
}  # fmt: skip
VERSION = f"PostgreSQL {SERVER_VERSION} (Headwater {__version__})"
ANY = -1  # any number of arguments
MOST_NUMBERS = 10_000  # of generate_series in a question about the catalog


@dataclass
class Asking:
    """Who asks, and what the functions know of the database."""

    user: str = ""
    database: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    oids: Mapping[str, int] = field(default_factory=dict)  # of relations, by name in lower case
    names: Mapping[int, str] = field(default_factory=dict)
    texts: Mapping[int, str | None] = field(default_factory=dict)  # of views
    comments: Mapping[int, str] = field(default_factory=dict)
    process: int = 0


def regexp(pattern: str | None, value: Any) -> int | None:
    """`value ~ pattern`, in Python's grammar, which is near enough for names."""
    if pattern is None or value is None:
        return None
    try:
        return int(re.search(pattern, str(value)) is not None)
    except re.error:
        return 0


def elements(array: Any) -> list[str | None]:
    """The elements of an array, or of a vector such as `1 2`."""
    if array is None:
        return []
    text = str(array)
    if not text.startswith("{"):
        return list(text.split())
    try:
        return array_elements(text)
    except ValueError:
        return []


def make_array(*values: Any) -> str:
    """ARRAY[…]."""
    return array_text([None if v is None else str(v) for v in values])


def has_element(array: Any, value: Any) -> int | None:
    """`value = ANY (array)`."""
    return None if array is None or value is None else int(str(value) in elements(array))


def element_at(array: Any, index: Any) -> str | None:
    """`array[index]`, counted from 0: sqlglot has taken one off."""
    found = elements(array)
    return found[int(index)] if index is not None and 0 <= int(index) < len(found) else None


def join_elements(array: Any, between: Any, for_null: Any = None) -> str | None:
    """array_to_string."""
    if array is None:
        return None
    texts = [for_null if e is None else e for e in elements(array)]
    return str(between).join(t for t in texts if t is not None)


def quote_ident(name: Any) -> str | None:
    """A name in double quotes where it needs them."""
    if name is None:
        return None
    plain = re.fullmatch(r"[a-z_][a-z0-9_$]*", str(name))
    return str(name) if plain else '"' + str(name).replace('"', '""') + '"'


class ArrayAgg:
    """array_agg."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def step(self, value: Any) -> None:
        """One more value."""
        self._values.append(value)

    def finalize(self) -> str | None:
        """The array."""
        return make_array(*self._values) if self._values else None


class BoolAnd:
    """bool_and."""

    def __init__(self) -> None:
        self._found: int | None = None

    def step(self, value: Any) -> None:
        """One more value."""
        if value is not None:
            self._found = int(bool(value) and self._found is not False and self._found != 0)

    def finalize(self) -> int | None:
        """Whether all were true."""
        return self._found


def _relation(asking: Asking) -> Callable[[Any], int | None]:
    def to_regclass(value: Any) -> int | None:
        if value is None or isinstance(value, int):
            return value
        text = str(value).strip()
        if text.isdigit():
            return int(text)
        name = text.split(".")[-1].strip('"`').lower()
        return asking.oids.get(name, SYSTEM.get(name))

    return to_regclass


def _type(value: Any) -> int | None:
    if value is None or isinstance(value, int):
        return value
    found = types.spelled(str(value).removesuffix("[]").strip('"'))
    if found is None:
        return int(value) if str(value).isdigit() else None
    return found.array if str(value).endswith("[]") else found.oid


def _nothing(*_arguments: Any) -> None:
    return None


def _yes(*_arguments: Any) -> int:
    return 1


def functions(asking: Asking) -> dict[str, Callable[..., Any]]:
    """All functions, by name."""
    found = {**ARRAYS, **TEXTS, **CONSTANTS, **_of_session(asking), **_of_relations(asking)}
    return found | dict.fromkeys(NOTHING, _nothing) | dict.fromkeys(YES, _yes)


def _of_session(asking: Asking) -> dict[str, Callable[..., Any]]:
    """Functions about who asks."""

    def setting(name: Any, missing_ok: Any = None) -> str | None:  # noqa: ARG001
        values = {key.lower(): value for key, value in asking.parameters.items()}
        return values.get(str(name).lower())

    return {
        "current_setting": setting,
        "set_config": lambda _name, value, _local: value,
        "current_database": lambda: asking.database,
        "current_catalog": lambda: asking.database,
        "current_user": lambda: asking.user,
        "session_user": lambda: asking.user,
        "user": lambda: asking.user,
        "current_role": lambda: asking.user,
        "current_schema": lambda: "public",
        "current_schemas": lambda implicit: "{pg_catalog,public}" if implicit else "{public}",
        "pg_get_userbyid": lambda _oid: asking.user,
        "pg_backend_pid": lambda: asking.process,
    }


def _of_relations(asking: Asking) -> dict[str, Callable[..., Any]]:
    """Functions about tables and views, by number or name."""

    def relation_name(oid: Any) -> str | None:
        return None if oid is None else asking.names.get(_number(oid), str(oid))

    def comment(oid: Any, catalog: Any = None) -> str | None:  # noqa: ARG001
        return None if oid is None else asking.comments.get(_number(oid))

    return {
        "to_regclass": _relation(asking),
        "regclass_text": relation_name,
        "pg_get_viewdef": lambda oid, *_rest: asking.texts.get(_number(oid)),
        "obj_description": comment,
    }


def _format_type(oid: Any, modifier: Any = None) -> str | None:
    return None if oid is None else types.shown(int(oid), modifier)


def _position(array: Any, value: Any) -> int | None:
    found = elements(array)
    return found.index(str(value)) + 1 if str(value) in found else None


def _without(array: Any, value: Any) -> str | None:
    return None if array is None else make_array(*[e for e in elements(array) if e != str(value)])


def _name_parts(name: str) -> list[str]:
    """`public."My Table"` → public, My Table."""
    return [
        quoted.replace('""', '"') if quoted else plain.lower()
        for quoted, plain in re.findall(r'"((?:[^"]|"")+)"|([^".]+)', name)
    ]


def _series(first: Any, last: Any) -> list[int]:
    """generate_series; NULL gives no rows."""
    if first is None or last is None:
        return []
    return list(range(int(first), min(int(last), int(first) + MOST_NUMBERS) + 1))


def _split_part(text: Any, by: Any, number: Any) -> str:
    parts = str(text).split(str(by))
    return parts[int(number) - 1] if 1 <= int(number) <= len(parts) else ""


ARRAYS: Mapping[str, Callable[..., Any]] = {
    "make_array": make_array,
    "has_element": has_element,
    "element_at": element_at,
    "array_to_string": join_elements,
    "array_length": lambda array, _dimension: len(elements(array)) or None,
    "array_upper": lambda array, _dimension: len(elements(array)) or None,
    "array_lower": lambda array, _dimension: 1 if elements(array) else None,
    "cardinality": lambda array: None if array is None else len(elements(array)),
    "array_position": _position,
    "array_json": lambda array: json.dumps(elements(array)),
    "array_remove": _without,
    "string_to_array": lambda text, by: None if text is None else make_array(*str(text).split(by)),
    "parse_ident": lambda name: make_array(*_name_parts(str(name))),
    "series_json": lambda first, last: json.dumps(_series(first, last)),
}
TEXTS: Mapping[str, Callable[..., Any]] = {
    "regexp": regexp,
    "regexp_i": lambda pattern, value: regexp(f"(?i){pattern}", value),
    "regexp_replace": lambda t, p, r, *_f: None if t is None else re.sub(p, r, str(t)),
    "quote_ident": quote_ident,
    "quote_literal": lambda v: None if v is None else "'" + str(v).replace("'", "''") + "'",
    "concat": lambda *texts: "".join(str(t) for t in texts if t is not None),
    "left": lambda text, count: None if text is None else str(text)[: int(count)],
    "strpos": lambda text, part: str(text).find(str(part)) + 1,
    "split_part": _split_part,
    "json_build_object": lambda *pairs: json.dumps(dict(zip(pairs[::2], pairs[1::2], strict=True))),
    "to_regtype": _type,
    "to_regnamespace": lambda value: value,
    "to_regproc": lambda value: None if value is None else str(value).split(".")[-1],
    "regtype_text": lambda oid: _format_type(oid),
    "format_type": _format_type,
}
CONSTANTS: Mapping[str, Callable[..., Any]] = {
    "version": lambda: VERSION,
    "getdatabaseencoding": lambda: "UTF8",
    "pg_encoding_to_char": lambda _number: "UTF8",
    "pg_char_to_encoding": lambda _name: 6,
    "pg_size_pretty": lambda size: f"{size} bytes",
    "pg_advisory_unlock_all": lambda: "",
    "txid_current": lambda: 1,
    "no_value": _nothing,
    **dict.fromkeys(
        ("pg_my_temp_schema", "pg_is_in_recovery", "pg_is_other_temp_schema",
         "pg_relation_is_publishable", "pg_relation_size", "pg_total_relation_size",
         "pg_table_size", "pg_indexes_size", "pg_database_size"),
        lambda *_arguments: 0,
    ),
}  # fmt: skip
NOTHING = (
    "pg_get_expr", "col_description", "shobj_description", "pg_get_constraintdef", "pg_get_indexdef",
    "pg_get_serial_sequence", "pg_get_function_result", "pg_get_function_arguments",
    "pg_get_function_identity_arguments", "pg_get_functiondef", "pg_get_triggerdef", "pg_get_ruledef",
    "pg_get_partkeydef", "pg_get_statisticsobjdef_columns", "pg_get_partition_constraintdef", "unnest",
    "generate_subscripts", "pg_options_to_table", "aclexplode", "pg_tablespace_location",
    "pg_relation_filepath", "pg_index_column_has_property", "pg_last_wal_receive_lsn",
    "pg_stat_get_numscans", "inet_server_addr", "inet_server_port", "inet_client_addr",
    "inet_client_port", "pg_postmaster_start_time", "pg_notify", "pg_cancel_backend",
    "pg_index_has_property", "pg_indexam_has_property", "pg_get_keywords", "regexp_split_to_table",
)  # fmt: skip
YES = (
    "pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_operator_is_visible",
    "pg_opclass_is_visible", "pg_collation_is_visible", "pg_statistics_obj_is_visible",
    "has_table_privilege", "has_schema_privilege", "has_database_privilege",
    "has_column_privilege", "has_any_column_privilege", "has_function_privilege",
    "has_sequence_privilege", "has_type_privilege", "has_tablespace_privilege", "pg_has_role",
    "has_server_privilege", "has_foreign_data_wrapper_privilege", "has_language_privilege",
)  # fmt: skip
AGGREGATES: Mapping[str, type] = {
    "array_agg": ArrayAgg,
    "bool_and": BoolAnd,
    "every": BoolAnd,
}
TYPES = {
    "bool": (*YES, "regexp", "regexp_i", "has_element", "pg_is_in_recovery", "bool_and",
             "pg_is_other_temp_schema", "pg_relation_is_publishable", "bool_or", "every"),
    "int4": ("array_length", "array_upper", "array_lower", "cardinality", "pg_backend_pid", "strpos",
             "generate_subscripts", "array_position", "length"),
    "int8": ("count", "sum", "pg_relation_size", "pg_total_relation_size", "pg_table_size", "row_number",
             "pg_indexes_size", "pg_database_size", "txid_current"),
    "oid": ("to_regclass", "to_regtype"),
    "_text": ("make_array", "array_agg", "current_schemas", "string_to_array", "parse_ident"),
    "name": ("current_database", "current_schema", "current_user", "session_user",
             "pg_get_userbyid", "current_role", "user", "current_catalog"),
}  # fmt: skip
TYPE_OF = {name: type_ for type_, names in TYPES.items() for name in names}


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def register(connection: sqlite3.Connection, asking: Asking) -> None:
    """Gives a connection all functions."""
    for name, function in functions(asking).items():
        connection.create_function(name, ANY, function)
    for name, aggregate in AGGREGATES.items():
        connection.create_aggregate(name, 1, aggregate)
