"""`GET /openapi.json`: the routes as an OpenAPI 3.1 document, made from their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater._version import __version__

if TYPE_CHECKING:
    from headwater.server.http.routes import Route

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["sqlstate", "message"],
            "properties": {
                "sqlstate": {"type": "string", "pattern": "^[0-9A-Z]{5}$"},
                "message": {"type": "string"},
                "detail": {"type": "string"},
                "hint": {"type": "string"},
                "position": {"type": "integer", "minimum": 1},
                "line": {"type": "integer", "minimum": 1},
                "column": {"type": "integer", "minimum": 1},
            },
        }
    },
}
STATEMENT = {
    "type": "object",
    "required": ["sql"],
    "properties": {
        "sql": {"type": "string"},
        "parameters": {"oneOf": [{"type": "array", "items": {}}, {"type": "object"}]},
        "timeout_s": {"type": "number", "exclusiveMinimum": 0},
    },
    "additionalProperties": False,
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headwater", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR, "Statement": STATEMENT},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": _name(route),
        "summary": route.summary,
        "responses": {
            "200": {"description": "done", "content": {kind: {} for kind in route.gives}},
            "default": {
                "description": "an error",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if route.parameters:
        found["parameters"] = [
            {
                "in": p.where,
                "name": p.name,
                "description": p.meaning,
                "required": p.required,
                "schema": {"type": "string"},
            }
            for p in route.parameters
        ]
    if route.takes:
        found["requestBody"] = {"required": True, "content": _bodies(route)}
    if route.least is not None:
        found["description"] = f"Takes the role {route.least}."
        found["security"] = [{"basic": []}, {"token": []}]
    return found


def _name(route: Route) -> str:
    """`get_console_live`; the named parts of a path are left out."""
    words = [part.partition(".")[0] for part in route.segments if part and part[0] != "{"]
    return "_".join([route.method.lower(), *(words or ["page"])])


def _bodies(route: Route) -> dict[str, Any]:
    statement = {"schema": {"$ref": "#/components/schemas/Statement"}}
    return {
        kind: statement if route.path == "/sql" and kind == "application/json" else {}
        for kind in route.takes
    }
