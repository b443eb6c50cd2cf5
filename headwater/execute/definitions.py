"""`SHOW CREATE x`: the statement that makes an object as it is now.

Owns: that text, which makes an equal object in another folder that has what it reads. Clauses that say what
is so by default are left out. Must never: show what the caller may not see, or a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.errors import BindError
from headwater.execute.context import Running
from headwater.execute.discretion import without_paths
from headwater.result import Result
from headwater.sql.caller import current
from headwater.sql.duration import Duration
from headwater.sql.names import did_you_mean
from headwater.sql.statements.show import ShowCreate
from headwater.sql.types import quoted
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.definition import MICROSECONDS, Definition

RELATIONS = ("table", "streaming table", "stream", "view", "materialized view", "continuous query")
KINDS = {
    "table": ("table", "streaming table", "stream"),
    "view": ("view", "materialized view"),
    "query": ("continuous query",),
    "index": ("index",),
    "function": ("function",),
    "procedure": ("procedure",),
}
DEFAULTS = {"mode": "auto", "priority": 0, "maintenance": "split", "compartments": 8}


def show_create(running: Running, statement: ShowCreate) -> Result:
    """The name of an object, and the statement that makes it."""
    context, name = running.context, statement.name
    kinds = RELATIONS if statement.kind is None else KINDS[statement.kind]
    items = [item for item in context.catalog.all(*kinds) if not item.name.startswith("_")]
    found = next((item for item in items if item.key == name.key), None)
    if found is None:
        raise BindError(
            f"{statement.kind or 'table, view or query'} {name} does not exist",
            sqlstate="42704",
            hint=did_you_mean(name, [item.name for item in items]),
            place=name.span.place(statement.text),
        )
    text = _made_by(found, context.catalog.all())
    if not current().is_admin:
        text = without_paths(text, context.folder.path)
    return Result("SHOW", pa.table({"name": [found.name], "statement": [text]}))


def _made_by(item: CatalogObject, others: Sequence[CatalogObject]) -> str:
    name, saved = quoted(item.name), item.definition
    match item.kind:
        case "table":
            return _joined(f"CREATE TABLE {name} {_columns(saved)}", _comment(saved))
        case "streaming table" | "stream":
            definition = Definition.from_json(item.id, item.name, item.kind, saved)
            head = f"CREATE {_keyword(item.kind)} {name} {_columns(saved)}"
            return _joined(head, *_clauses(definition))
        case "view":
            return _view(name, saved)
        case "materialized view":
            query = next(o for o in others if o.definition.get("view") == item.id)
            definition = Definition.from_json(item.id, item.name, item.kind, saved["table"])
            return _kept_query(f"CREATE MATERIALIZED VIEW {name}", query.definition, definition)
        case "continuous query":
            return _kept_query(f"CREATE CONTINUOUS QUERY {name}", saved, None)
        case "index":
            table = next(o.name for o in others if o.id == saved["table_id"])
            method, column = _keyword(saved["method"]), quoted(saved["column"])
            return f"CREATE INDEX {name} ON {quoted(table)} USING {method} ({column})"
        case "function":
            return f"CREATE FUNCTION {name}{saved['text']}"
    parameters = ", ".join(f"{quoted(p['name'])} {p['type']}" for p in saved["parameters"])
    body = ";\n  ".join(saved["body"])
    return f"CREATE PROCEDURE {name}({parameters}) AS BEGIN\n  {body};\nEND"


def _keyword(kind: str) -> str:
    return kind.upper()


def _joined(*parts: str) -> str:
    return "\n  ".join(part for part in parts if part)


def _columns(saved: Mapping[str, Any]) -> str:
    listed = (
        f"{quoted(c['name'])} {c['type']}{'' if c['nullable'] else ' NOT NULL'}"
        for c in saved["columns"]
    )
    return f"({', '.join(listed)})"


def _comment(saved: Mapping[str, Any]) -> str:
    said = saved.get("comment")
    return "" if said is None else f"COMMENT {_string(said)}"


def _string(value: str) -> str:
    escaped = value.translate({ord("\\"): "\\\\", ord("'"): "\\'"})
    return f"'{escaped}'"


def _clauses(table: Definition) -> Iterable[str]:
    """The clauses of a streaming table."""
    if table.time_column is not None:
        yield f"TIMESTAMP BY {quoted(table.time_column)}"
    if table.range_ticks is not None:
        yield f"RANGE {_length(table, table.range_ticks)}"
    if table.watermark_ticks:
        yield f"WATERMARK {_length(table, table.watermark_ticks)}"
    if table.late != "keep":
        yield f"LATE {_keyword(table.late)}"
    if table.update_key is not None:
        yield f"UPDATE KEY ({', '.join(map(quoted, table.update_key))})"
    ahead, step = table.max_ahead_ticks, table.max_step_ticks
    yield _options(
        compartments=table.compartments,
        max_clock_ahead=None if ahead is None else _length(table, ahead),
        max_clock_step=None if step is None else _length(table, step),
    )
    yield _comment({"comment": table.comment})


def _length(table: Definition, ticks: int) -> str:
    numbers = pa.types.is_integer(table.time_type)
    return str(Duration(ticks * MICROSECONDS if numbers else ticks))


def _options(**options: object) -> str:
    """WITH (…), without what is so by default."""
    said = {
        name: value
        for name, value in options.items()
        if value is not None and value != DEFAULTS.get(name)
    }
    texts = (f"{name} = {_option(value)}" for name, value in said.items())
    return f"WITH ({', '.join(texts)})" if said else ""


def _option(value: object) -> str:
    written = str(value)
    plain = not isinstance(value, str) or written.startswith("INTERVAL '")
    return written if plain else _string(written)


def _parts(saved: Mapping[str, Any]) -> int | None:
    """How many parts it was given; one is also what it has because it cannot be split."""
    parts = saved.get("parts")
    return parts if parts is not None and parts > 1 else None


def _view(name: str, saved: Mapping[str, Any]) -> str:
    columns = saved["columns"]
    names = "" if columns is None else f" ({', '.join(map(quoted, columns))})"
    kind = "MATERIALIZED VIEW" if saved.get("materialized") else "VIEW"
    later = saved["continuous"] and any(start[0] for start in saved["starts"])
    return _joined(
        f"CREATE {kind} {name}{names}{' FROM NOW' if later else ''}",
        _options(
            maintenance=saved.get("maintenance"),
            volatile=saved.get("volatile"),
            parts=_parts(saved),
        ),
        f"AS {saved.get('written', saved['text'])}",
    )


def _kept_query(head: str, saved: Mapping[str, Any], view: Definition | None) -> str:
    """A continuous query, or the materialized view of one."""
    options = dict(saved["options"])
    beginning = " FROM BEGINNING" if saved["beginning"]["from_beginning"] else ""
    for name in ("max_wait", "budget"):
        if isinstance(options.get(name), int | float):
            options[name] = str(Duration(round(options[name] * MICROSECONDS)))
    clauses = (
        [] if view is None else [c for c in _clauses(view) if c.startswith(("RANGE", "UPDATE"))]
    )
    options["parts"] = _parts(saved)
    return _joined(head + beginning, *clauses, _options(**options), f"AS {saved['text']}")
