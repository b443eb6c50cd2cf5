"""`GET /console/live`: one channel per open page, with what that page shows and nothing else.

Owns the pace: numbers once a second, results at most four times a second, the newest `SHOWN_ROWS`
rows; a part that has not changed is not sent. A query that gives results faster is seen in steps:
what was left out is counted. Must never hold more than `HELD` results for a client.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from headwater.engine.subscription import Out, Pusher
from headwater.errors import BindError, Error
from headwater.kernel.cancellation import Cancellation
from headwater.server.console.snapshot import PAGES, ConsoleSnapshot, Rates
from headwater.server.http.failure import HttpError, as_error, body_of
from headwater.server.http.rows_out import JSON, columns_of, compact, plain_rows
from headwater.server.http.subscribe import EVENTS, QUIET_S, time_json
from headwater.sql.caller import Caller
from headwater.sql.keywords import FUNCTIONS, PHRASES, WORDS
from headwater.sql.statements.user import Role
from headwater.sql.types import quoted

if TYPE_CHECKING:
    from headwater.server.http.connection import HttpConnection
    from headwater.server.http.server import HttpServer

TICK_S = 0.25  # results at most so often
LOOK_S = 1.0  # the system tables at most so often
VIEW_S = 2.0  # a view is read at most so often, and only if rows came
HELD = 60  # results that wait for the next tick
SHOWN_ROWS = 200  # of the newest result
POINT_ROWS = 12  # of the results before it, for the chart
REPLAYED = 400  # a query with no more results than that is shown from its first one


class Results:
    """The results of a query between two ticks: the newest ones, and how many were left out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: deque[Out] = deque(maxlen=HELD)
        self._skipped = 0

    def add(self, out: Out) -> None:
        """Takes a result; the oldest one goes when there is no room."""
        with self._lock:
            self._skipped += len(self._held) == HELD
            self._held.append(out)

    def take(self) -> dict[str, Any] | None:
        """What came since the last time; None if nothing did."""
        with self._lock:
            held, skipped = list(self._held), self._skipped
            self._held.clear()
            self._skipped = 0
        if not held:
            return None
        newest = held[-1].arrow()
        return {
            "columns": columns_of(newest.schema),
            "skipped": skipped,
            "row_count": newest.num_rows,
            "points": [_point(out, POINT_ROWS) for out in held[:-1]]
            + [_point(held[-1], SHOWN_ROWS)],
        }


def _point(out: Out, rows: int) -> dict[str, Any]:
    shown = list(plain_rows(out.arrow().slice(0, rows)))
    return {"time": time_json(out.time), "row_count": out.table.num_rows, "rows": shown}


class Channel:
    """What one page is sent; `changes` runs in a thread."""

    def __init__(self, server: HttpServer, page: str, name: str, role: Role = "reader") -> None:
        self._server, self._page, self._name, self._role = server, page, name, role
        self._rates = Rates()
        self._sent: dict[str, str] = {}
        self._looked = self._viewed = 0.0
        self._view_place: Any = None
        self.results = Results()
        self.pusher: Pusher | None = None

    def open(self) -> None:
        """Starts to follow the query of the page, if it shows one that runs; BindError if it is gone."""
        if self._page not in ("query", "view"):
            return
        row = ConsoleSnapshot(self._server, Rates(), self._name, self._role).object()
        if row is None:
            raise BindError(f"there is no {self._page} {self._name}", sqlstate="42704")
        if self._page == "view" or row["state"] == "failed":
            return
        after = "earliest" if (row["results"] or 0) <= REPLAYED else None
        database = self._server.database
        with contextlib.suppress(BindError):  # a select that its reader alone is given
            self.pusher = cast(
                Pusher,
                database.subscribe(quoted(self._name), after=after, callback=self.results.add),
            )

    def close(self) -> None:
        """Follows no more."""
        if self.pusher is not None:
            self.pusher.close()

    def changes(self) -> dict[str, Any] | None:
        """What is new for the page; None if nothing is."""
        now, found = time.monotonic(), {}
        if now - self._looked >= LOOK_S or not self._looked:
            self._looked = now
            found = self._changed_parts()
        if self._page == "view" and (now - self._viewed >= VIEW_S or not self._viewed):
            self._viewed = now
            found |= self._view_rows()
        results = self.results.take()
        if results is not None:
            found["results"] = results
        if self.pusher is not None and self.pusher.error is not None:
            error = self._server.database.told(
                as_error(self.pusher.error), Caller(self._role), self._name
            )
            found["failure"] = body_of(error)["error"]
            self.pusher = None
        return {"at": round(time.time(), 3), **found} if found else None

    def _changed_parts(self) -> dict[str, Any]:
        look = ConsoleSnapshot(self._server, self._rates, self._name, self._role)
        parts = look.parts(self._page)
        found = {}
        for part, value in parts.items():
            text = compact(value)
            if self._sent.get(part) != text:
                self._sent[part], found[part] = text, value
        return found

    def _view_rows(self) -> dict[str, Any]:
        """The rows of a view, if rows came since they were read."""
        database = self._server.database
        metrics = database.statement("SELECT name, value FROM headwater.metrics").rows()
        place = [row for row in metrics if str(row[0]).endswith(".sequence")]
        if place == self._view_place:
            return {}
        text = f"SELECT * FROM {quoted(self._name)} LIMIT {SHOWN_ROWS}"
        try:
            table = database.statement(text, Cancellation(), self._role).arrow()
        except Error as error:
            return {"failure": body_of(error)["error"]}
        finally:
            self._view_place = place
        shown = list(plain_rows(table))
        point = {"time": round(time.time(), 1), "row_count": len(shown), "rows": shown}
        columns = columns_of(table.schema)
        return {
            "results": {
                "columns": columns,
                "skipped": 0,
                "row_count": table.num_rows,
                "points": [point],
            }
        }


async def live(server: HttpServer, connection: HttpConnection) -> None:
    """GET /console/live"""
    asked = connection.request.parameters
    page = asked.get("show", "overview")
    if page not in PAGES:
        raise HttpError(400, "there is no such page", sqlstate="22023", hint=", ".join(PAGES))
    identity = connection.request.identity
    role = identity.role if identity is not None else "reader"
    channel = Channel(server, page, asked.get("name", ""), role)
    await server.in_thread(channel.open)
    try:
        await connection.head(200, {"Content-Type": EVENTS})
        await connection.send(b": follows\n\n")
        await _follow(server, connection, channel)
    finally:
        await server.in_thread(channel.close)


async def _follow(server: HttpServer, connection: HttpConnection, channel: Channel) -> None:
    """Sends changes until the client goes or the server stops."""
    stopped = asyncio.Event()
    take_back = server.on_stop(stopped.set)
    ends = [asyncio.ensure_future(connection.gone()), asyncio.ensure_future(stopped.wait())]
    spoke = time.monotonic()
    server.watchers += 1
    try:
        while not any(end.done() for end in ends):
            text = await server.in_thread(lambda: _event(channel))
            if text or time.monotonic() - spoke > QUIET_S:
                await connection.send(text or b": quiet\n\n")
                spoke = time.monotonic()
            await asyncio.wait(ends, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
        if stopped.is_set():
            await connection.finish()
    finally:
        server.watchers -= 1
        take_back()
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


def _event(channel: Channel) -> bytes:
    found = channel.changes()
    return b"" if found is None else f"data: {compact(found)}\n\n".encode()


async def show_names(server: HttpServer, exchange: HttpConnection) -> None:
    """GET /console/names"""

    def act() -> bytes:
        found = {
            "role": exchange.request.identity.role if exchange.request.identity else "",
            "user": exchange.request.identity.name if exchange.request.identity else "",
            "keywords": sorted(WORDS),
            "functions": sorted(FUNCTIONS),
            "phrases": PHRASES,
            "tables": server.database.catalog_names(),
            "shows": sorted(server.shows),
        }
        return compact(found).encode()

    await exchange.answer(200, await server.in_thread(act), {"Content-Type": JSON})
