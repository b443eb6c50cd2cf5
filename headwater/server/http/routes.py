"""The routes: method, path, who may use it, what answers, and what the OpenAPI document says of it.

Owns the table; a route that is not in it does not exist, and the document is made from it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.server.console import assets, live
from headwater.server.http import answers, subscribe
from headwater.server.http.request import Request
from headwater.server.http.rows_in import CSV
from headwater.server.http.rows_out import ARROW, JSON, LINES
from headwater.sql.statements.user import Role

if TYPE_CHECKING:
    from headwater.server.http.connection import HttpConnection
    from headwater.server.http.server import HttpServer

Handler = Callable[["HttpServer", "HttpConnection"], Awaitable[None]]


@dataclass(frozen=True)
class RouteParameter:
    """A parameter of a route: where it stands, its name and what it is for."""

    where: str  # path, query or header
    name: str
    meaning: str
    required: bool = False


@dataclass(frozen=True)
class Route:
    """One route; `least` is the role that it takes, None for anybody."""

    method: str
    path: str
    least: Role | None
    handler: Handler
    summary: str
    takes: Sequence[str] = ()  # types of the request's body
    gives: Sequence[str] = (JSON,)  # types of the answer
    parameters: Sequence[RouteParameter] = ()
    has_end: bool = True  # an answer without an end has no HEAD

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path."""
        return tuple(self.path[1:].split("/"))


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/sql",
        "reader",
        answers.run_sql,
        "Runs a statement, or several separated by semicolons; the result of the last one.",
        takes=(JSON, "application/sql", "text/plain"),
        gives=(JSON, LINES, ARROW),
        parameters=(
            RouteParameter("query", "timeout_s", "cancel the statement after so many seconds"),
        ),
    ),
    Route(
        "POST",
        "/tables/{table}",
        "writer",
        answers.insert,
        "Adds rows to a table; answers once they are durable.",
        takes=(LINES, JSON, CSV, ARROW),
        parameters=(
            RouteParameter("path", "table", "the table", required=True),
            RouteParameter(
                "header", "Batch-Id", "rows of an id that was there already are not added"
            ),
            RouteParameter("query", "header", "false: the first line of CSV is a row"),
        ),
    ),
    Route(
        "GET",
        "/subscribe/{query}",
        "reader",
        subscribe.subscribe,
        "The results of a continuous query as they come: server-sent events, or a WebSocket.",
        gives=("text/event-stream",),
        has_end=False,
        parameters=(
            RouteParameter(
                "path", "query", "the name of a query, or a continuous select", required=True
            ),
            RouteParameter(
                "query", "after", "the token of the last result that was seen, or earliest"
            ),
            RouteParameter("query", "emit", "all, inserts, deletes or changes"),
            RouteParameter("query", "timeout_s", "end after so many seconds without a result"),
            RouteParameter("header", "Last-Event-ID", "the same as after, as browsers send it"),
        ),
    ),
    Route("GET", "/health", None, answers.health, "Whether the process answers."),
    Route("GET", "/ready", None, answers.ready, "Whether statements can be run; 503 if not."),
    Route(
        "GET",
        "/metrics",
        "reader",
        answers.show_metrics,
        "Counters and gauges in the text format of Prometheus.",
        gives=("text/plain; version=0.0.4",),
    ),
    Route("GET", "/openapi.json", None, answers.show_openapi, "This document."),
    Route("GET", "/", None, assets.show_page, "The console.", gives=(assets.HTML,)),
    Route(
        "GET",
        "/console/live",
        "reader",
        live.live,
        "What a page of the console shows, as it changes: server-sent events.",
        gives=("text/event-stream",),
        has_end=False,
        parameters=(
            RouteParameter("query", "show", "the page"),
            RouteParameter("query", "name", "the query or view of the page"),
        ),
    ),
    Route("GET", "/console/names", "reader", live.show_names, "Names and words for completion."),
    Route(
        "GET",
        "/console/{asset}",
        None,
        assets.show_asset,
        "A file of the console.",
        gives=tuple(dict.fromkeys(assets.ASSETS.values())),
        parameters=(RouteParameter("path", "asset", "the file", required=True),),
    ),
)


def find(request: Request) -> Route | None:
    """The route of a request; the named parts of its path are put into it."""
    method = "GET" if request.method == "HEAD" else request.method
    for route in ROUTES:
        given = _match(route.segments, request.segments)
        fits = route.method == method and (route.has_end or request.method != "HEAD")
        if given is not None and fits:
            request.given = given
            return route
    return None


def allowed_methods(segments: tuple[str, ...]) -> list[str]:
    """The methods that a path takes."""
    return [r.method for r in ROUTES if _match(r.segments, segments) is not None]


def _match(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    given: dict[str, Any] = {}
    for part, found in zip(pattern, segments, strict=True):
        if part.startswith("{"):
            if not found:
                return None
            given[part[1:-1]] = found
        elif part != found:
            return None
    return given
