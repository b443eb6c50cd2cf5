"""What travels in frames besides rows, as plain data: schemas, relations, work for Spark."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation


def schema_to_json(schema: pa.Schema) -> str:
    """A schema as text."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_json(text: str) -> pa.Schema:
    """The schema that `schema_to_json` gave."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def relation_to_json(relation: Relation) -> dict[str, Any]:
    """A relation as plain data."""
    return {**vars(relation), "schema": schema_to_json(relation.schema)}


def relation_from_json(said: Mapping[str, Any]) -> Relation:
    """The relation that `relation_to_json` gave."""
    columns = said["columns"]
    return Relation(
        schema_from_json(said["schema"]),
        tuple(said["files"]),
        said["with_rows"],
        None if columns is None else tuple(columns),
        said["where"],
        tuple((name, text) for name, text in said["computed"]),
    )


def work_to_json(work: Work) -> dict[str, Any]:
    """What Spark is to run, as plain data; the engine's own work has no other parts."""
    return {
        "sql": work.sql,
        "relations": {name: relation_to_json(r) for name, r in work.relations.items()},
        "functions": sorted(work.functions),
        "time_zone": work.time_zone,
    }


def work_from_json(said: Mapping[str, Any]) -> Work:
    """The work that `work_to_json` gave."""
    relations = {name: relation_from_json(r) for name, r in said["relations"].items()}
    return Work(
        said["sql"],
        relations,
        functions=frozenset(said["functions"]),
        time_zone=said["time_zone"],
    )
