"""What the routes answer, but for subscriptions: statements, rows, health, metrics, the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.database import Database, moved
from headwater.errors import BindError, ClosedError, Error
from headwater.kernel.cancellation import Cancellation
from headwater.kernel.spark import NOT_STARTED, STARTING
from headwater.result import Result
from headwater.server.counts import Counts, of_result
from headwater.server.http import metrics, openapi
from headwater.server.http.failure import HttpError
from headwater.server.http.request import Identity, json_of_body, positive
from headwater.server.http.rows_in import read_rows
from headwater.server.http.rows_out import ARROW, JSON, LINES, compact, encoded
from headwater.sql import scripts
from headwater.sql.parameters import Parameters, bind_values, unbound
from headwater.sql.scripts import Asked

if TYPE_CHECKING:
    from headwater.server.http.connection import HttpConnection
    from headwater.server.http.server import HttpServer

PLAIN_SQL = ("application/sql", "text/plain")
LONGEST_BATCH_ID = 200
SMALL_ANSWER = 64 << 10  # bytes that are sent at once


async def run_sql(server: HttpServer, exchange: HttpConnection) -> None:
    """POST /sql"""
    request = exchange.request
    kind = request.accepts(JSON, LINES, ARROW)
    if kind is None:
        raise HttpError(406, "no such format", sqlstate="22023", hint=f"{JSON}, {LINES}, {ARROW}")
    data = await exchange.body()
    text, parameters, timeout_s = _asked(request.content_type, data)
    timeout_s = timeout_s or request.number("timeout_s")
    identity = request.identity
    assert identity is not None

    def act(cancellation: Cancellation) -> tuple[Counts, bytes, Iterator[bytes] | None]:
        result = run_script(server.database, identity, text, parameters, cancellation)
        return of_result(result), *_beginning(encoded(result, kind))

    counts, first, parts = await server.cancellable(exchange, act, timeout_s)
    server.counts.add(counts)
    if parts is None:
        await exchange.answer(200, first, {"Content-Type": kind})
        return
    await exchange.head(200, {"Content-Type": kind})
    await exchange.send(first)
    while (part := await server.in_thread(lambda: next(parts, None))) is not None:
        await exchange.send(part)
    await exchange.finish()


def _beginning(parts: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """The first parts of an answer, and the rest; None if that was all."""
    first = b""
    for part in parts:
        first += part
        if len(first) > SMALL_ANSWER:
            return first, parts
    return first, None


def _asked(content_type: str, data: bytes) -> tuple[str, Parameters, float | None]:
    """The statement, its parameters and its limit of time."""
    if content_type in PLAIN_SQL:
        try:
            return data.decode(), (), None
        except UnicodeDecodeError as error:
            raise HttpError(400, "the statement is not UTF-8", sqlstate="22021") from error
    if content_type not in (JSON, ""):
        raise HttpError(
            415,
            f"statements cannot be of type {content_type}",
            sqlstate="22023",
            hint='Content-Type: text/plain for SQL, application/json for {"sql": "…"}',
        )
    found = json_of_body(data)
    if not isinstance(found, dict) or not isinstance(found.get("sql"), str):
        raise HttpError(400, 'the body is {"sql": "…", "parameters": […]}', sqlstate="22023")
    unknown = found.keys() - {"sql", "parameters", "timeout_s"}
    parameters = found.get("parameters", [])
    if unknown or not isinstance(parameters, list | dict):
        what = (
            f"there is no {sorted(unknown)[0]}" if unknown else "parameters are a list or an object"
        )
        raise HttpError(400, what, sqlstate="22023", hint="sql, parameters and timeout_s")
    limit = found.get("timeout_s")
    return found["sql"], parameters, None if limit is None else positive(limit, "timeout_s")


def run_script(
    database: Database,
    identity: Identity,
    text: str,
    parameters: Parameters,
    cancellation: Cancellation,
) -> Result:
    """Runs statements one by one as a role; the result of the last one."""
    script = scripts.read(text)
    if parameters and len(script) > 1:
        raise BindError("parameters go with one statement", sqlstate="42601")
    if not parameters:
        bind_values(text, ())  # it has none
    result = Result("EMPTY")
    for asked in script:
        try:
            if parameters:
                result = _run_bound(database, identity, asked.text, parameters, cancellation)
            else:
                result = _run(database, identity, asked, cancellation)
        except Error as error:
            raise moved(error, asked, text) from None
    return result


def _run(
    database: Database, identity: Identity, asked: str | Asked, cancellation: Cancellation
) -> Result:
    return database.statement(asked, cancellation, identity.role, user=identity.name)


def _run_bound(
    database: Database,
    identity: Identity,
    text: str,
    parameters: Parameters,
    cancellation: Cancellation,
) -> Result:
    """Runs a statement with values in place of its parameters; errors stand in the text that came."""
    edited = bind_values(text, parameters)
    try:
        return _run(database, identity, edited.text, cancellation)
    except Error as error:
        raise unbound(error, edited) from None


async def insert(server: HttpServer, exchange: HttpConnection) -> None:
    """POST /tables/{table}"""
    request, database = exchange.request, server.database
    table, batch_id = request.given["table"], request.header("batch-id") or None
    if batch_id is not None and len(batch_id) > LONGEST_BATCH_ID:
        raise HttpError(
            400, f"Batch-Id has at most {LONGEST_BATCH_ID} characters", sqlstate="22001"
        )
    schema = database.columns_of_table(table)
    data = await exchange.body()
    header = request.parameters.get("header", "true").lower() != "false"
    zone = str(database.setting("time_zone"))

    def act() -> tuple[int, int]:
        rows = read_rows(request.content_type, data, schema, table, header=header, zone=zone)
        return len(rows), database.insert(table, rows, batch_id)

    given, added = await server.in_thread(act)
    server.counts.rows_in += added
    body = {"inserted": added, "duplicate": bool(batch_id and given and not added)}
    await exchange.answer(200, compact(body).encode(), {"Content-Type": JSON})


async def health(_server: HttpServer, exchange: HttpConnection) -> None:
    """GET /health"""
    await exchange.answer(200, b'{"status":"ok"}', {"Content-Type": JSON})


async def ready(server: HttpServer, exchange: HttpConnection) -> None:
    """GET /ready"""
    spark = server.database.spark_status
    try:
        waits = not spark.ready and (
            server.database.setting("eager_spark") or spark.state != NOT_STARTED
        )
        state = "stopping" if server.stopping else "ready"
        if waits and not server.stopping:
            state = spark.state if spark.state != NOT_STARTED else STARTING
    except ClosedError:
        state = "closed"
    status = 200 if state == "ready" else 503
    found = {"status": state, "spark": spark.ready, "spark_state": spark.state}
    body = compact(found).encode()
    await exchange.answer(status, body, {"Content-Type": JSON})


async def show_metrics(server: HttpServer, exchange: HttpConnection) -> None:
    """GET /metrics"""
    text = await server.in_thread(lambda: metrics.text_of(metrics.collected(server)))
    await exchange.answer(200, text.encode(), {"Content-Type": "text/plain; version=0.0.4"})


async def show_openapi(_server: HttpServer, exchange: HttpConnection) -> None:
    """GET /openapi.json"""
    from headwater.server.http.routes import ROUTES

    document = compact(openapi.document(ROUTES)).encode()
    await exchange.answer(200, document, {"Content-Type": JSON})
